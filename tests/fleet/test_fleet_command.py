"""dynid fleet: the run folder, its page, the store, engines on the command line, wrong uses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.fleet import identify_fleet
from dynid.fleet.fleet_logs import find_logs
from dynid.report.sections.fleet_sections import fleet_page
from dynid.robot.formats.urdf import write_urdf
from fleet.small_fleet import MAP, RECIPE, ROBOT, arm, write_log

ARMS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("fleet")
    for number in range(ARMS):
        robot = arm(number, {"FC1": 2.5} if number == 3 else {})
        write_log(robot, where / "logs" / f"arm{number}" / "2026-02-01.csv", seed=number, start_s=0.0, duration_s=8.0)
    (where / "logs" / "arm0" / "2026-02-02.csv").write_text("t,q0\n0,1\n")
    write_urdf(ROBOT, where / "arm.urdf")
    lines = [f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
             for name, entry in MAP.items()]  # fmt: skip
    (where / "map.toml").write_text("".join(lines))
    return where


def run(folder: Path, *words: str) -> tuple[int, str]:
    robot, pattern = str(folder / "arm.urdf"), str(folder / "logs" / "{arm}" / "{date}.csv")
    settings = ["--set", "gate=false", "--set", "cutoff_hz=15", "--set", "terms=", "--allow-unphysical"]
    command = ["fleet", robot, pattern, "--map", str(folder / "map.toml"), *settings, *words]
    result = CliRunner().invoke(main, command)
    return result.exit_code, result.output


def test_the_folder_holds_numbers_models_and_a_page(folder: Path, tmp_path: Path) -> None:
    code, text = run(folder, "--out", str(tmp_path / "out"), "--store", str(tmp_path / "factors"))
    assert code == 1, text
    assert re.search(r"arm3 +\d+ +FC1 is", text)
    assert "Left out:" in text
    content = json.loads((tmp_path / "out" / "fleet.json").read_text())
    assert sorted(content["arms"]) == [f"arm{k}" for k in range(ARMS)]
    assert [d["what"] for d in content["arms"]["arm3"]["differences"]] == ["FC1"]
    assert content["arms"]["arm3"]["windows"][0]["time_s"] == 1769904000.0
    assert content["left_out"][0]["arm"] == "arm0"
    page = (tmp_path / "out" / "report.md").read_text()
    assert page.index("Conspicuous arms") < page.index("Every arm's own parameters") < page.index("Shared parameters")
    assert "1 of 6 arms is conspicuous: arm3" in page
    assert (tmp_path / "out" / "ddarm_identified.urdf").exists()
    code, text = run(folder, "--out", str(tmp_path / "second"), "--store", str(tmp_path / "factors"), "--json")
    again = json.loads(text)
    assert again["logs_read"] == 1  # the one that cannot be used
    assert again["left_out"] == content["left_out"]
    assert (again["cutoff_hz"], again["cutoff_origin"]) == (15.0, "as set")


def test_a_folder_stands_for_its_logs(folder: Path) -> None:
    files = find_logs(str(folder / "logs" / "{arm}" / "*.csv"))
    assert find_logs(str(folder / "logs" / "{arm}"), MAP) == files
    assert [log.arm for log in files] == ["arm0", "arm0", "arm1", "arm2", "arm3", "arm4", "arm5"]


def test_a_small_fleet_says_what_it_cannot_tell(folder: Path) -> None:
    logs = {f"arm{k}": [folder / "logs" / f"arm{k}" / "2026-02-01.csv"] for k in (0, 1, 2)}
    fleet = identify_fleet(ROBOT, logs, RECIPE, channel_map=MAP)
    assert not fleet.outliers
    assert "3 arms cannot tell what is unusual: friction is compared from 5 arms on" in fleet.summary()
    assert "The links of the 3 arms do not differ" in fleet_page(fleet).to_markdown()
    one = identify_fleet(ROBOT, {"arm0": logs["arm0"]}, RECIPE, channel_map=MAP)
    assert "Fleet of 1 arm of ddarm: 1 log" in one.summary()
    assert "times better" not in one.summary()
    json.dumps(fleet.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--engine", "processes:0"], "there is no engine"),
        (["--engine", "tcp://nowhere"], "there is no engine"),
        (["--set", "hold_out=30%"], "hold_out needs a whole log"),
    ],
)
def test_wrong_uses(folder: Path, tmp_path: Path, words: list[str], what: str) -> None:
    code, text = run(folder, "--out", str(tmp_path / "out"), *words)
    assert code == 2, text
    assert what in text
    assert not (tmp_path / "out").exists()
