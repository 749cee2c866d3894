"""Names in files that hold characters which steer a terminal: none reaches the terminal or the log of a run."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.errors import DataError
from dynid.safe_text import markdown_text, safe_name, visible_text
from dynid.tables import Table
from support.header_styles import write_columns

STEERING = "\x1b]0;owned\x07\x9b2J\u202e\x00\u2028"
"""Changes the title of a terminal, clears it, and turns the direction of writing."""
ARM = """<robot name="a\x9b2J"><link name="base"/><link name="l\u202e1"><inertial><origin xyz="0.1 0 0"/>
<mass value="2"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<joint name="j\x9b31m" type="continuous"><parent link="base"/><child link="l\u202e1"/><axis xyz="0 1 0"/></joint>
</robot>"""


def _steers(text: str) -> list[str]:
    return [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a robot, a log and maps whose names steer a terminal."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "arm.urdf").write_text(ARM, encoding="utf-8")
    time = np.linspace(0.0, 4.0, 400)
    header = ",".join(["t", f"q{STEERING}".replace("\x00", "").replace("\u2028", ""), "tau\x1b[2J"])
    write_columns(folder / "run.csv", [header], [time, np.sin(3 * time), np.cos(3 * time)])
    for name, column in (("map", "tau\\u001b[2J"), ("wrong", "no\\u001b[2J\\u009b")):
        position = header.split(",")[1].encode("unicode_escape").decode().replace("\\x", "\\u00")
        (folder / f"{name}.toml").write_text(
            f'[time]\ncolumn = "t"\nunit = "s"\n[position]\ncolumns = ["{position}"]\nunit = "rad"\n'
            f'[effort]\ncolumns = ["{column}"]\nunit = "N m"\n', encoding="utf-8"
        )  # fmt: skip
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["base", "arm.urdf"],
        ["check", "arm.urdf"],
        ["check", "run.csv", "--map", "map.toml", "--robot", "arm.urdf"],
        ["check", "run.csv", "--map", "wrong.toml"],
        ["inspect", "run.csv"],
        ["identify", "arm.urdf", "run.csv", "--map", "wrong.toml", "--out", "wrong"],
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_names_in_files_do_not_steer_the_terminal(
    words: list[str], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    result = CliRunner().invoke(main, words)
    shown = result.stdout + result.stderr
    assert result.exit_code in (0, 1, 3), shown
    assert shown
    assert _steers(shown) == []


def test_runs_hold_no_steering_characters(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    words = ["identify", "arm.urdf", "run.csv", "--map", "map.toml", "--set", "gate=false", "--out", "o"]
    result = CliRunner().invoke(main, words)
    assert _steers(result.stdout + result.stderr) == []
    texts = [file for file in Path("o").iterdir() if file.suffix in (".txt", ".md")]
    assert {file.name for file in texts} >= {"log.txt", "summary.txt"}
    for file in texts:
        assert _steers(file.read_text(encoding="utf-8")) == [], file


def test_visible_text_escapes_as_json_does() -> None:
    assert visible_text("a\nb \u00e4 \u00a0") == "a\nb \u00e4 \u00a0"
    assert visible_text("\x1b[2J\x9b\u202e") == "\\u001b[2J\\u009b\\u202e"
    assert visible_text("\U000e0001") == "\\U000e0001"
    assert str(DataError("a\x07", place="b\x1b")) == "b\\u001b: a\\u0007"


def test_a_name_becomes_no_command_no_tag_and_no_cell() -> None:
    assert safe_name("; touch PWN;") == "touch_PWN"
    assert safe_name("../../etc/\u202epasswd") == "etc_u202epasswd"
    assert safe_name("-rf .") == "rf"
    assert safe_name("\u5de5\u696d arm") == "\u5de5\u696d_arm"
    shown = markdown_text("<script>alert(1)</script> [a](http://b) `c` | d\n# e")
    assert not set("<>\n") & set(shown)
    assert r"\[a]" in shown
    page = Table.of(["<b>"], [("<img src=x onerror=y>",)]).to_markdown()
    assert "<" not in page
