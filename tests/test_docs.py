"""README and docs keep their promises: every snippet and every command runs, every link resolves."""

from __future__ import annotations

import functools
import os
import pkgutil
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.excitation.point_design import design_energy_points
from dynid.logs.channel_map import read_channel_map
from dynid.payload.recognition import read_library
from dynid.processing.simulation import sum_of_sines
from support.api_reference import reference
from support.header_styles import write_columns

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
DATASETS = Path(os.environ.get("DYNID_DATASETS", ROOT.parent / "shared" / "datasets"))
LONG = {
    "demo": "run by make demo",
}
"""Commands not run here, and why."""
CAMPAIGNS = {"real-data.md": ("yumi_ft",)}
"""Pages whose commands a make target runs, and which of them run here too."""
EXAMPLES = {".NAME"}
"""Names that the docs invent."""
QUICKER = {"excite": ["--time-limit", "2"], "energy-points": []}
"""Options that shorten what stands in the docs, by the verb or by a word of the command."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "") for line in block.splitlines()]
    return [line.partition("  #")[0].strip() for line in lines if line.startswith("dynid ")]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_snippets_run_in_order(page: Path) -> None:
    namespace: dict[str, object] = {}
    for number, block in enumerate(blocks(page, "python")):
        if any(find_spec(name) is None for name in re.findall(r"^# needs (\w+)$", block, re.MULTILINE)):
            continue  # a library that dynid works without, and that is not here
        exec(compile(block, f"{page.name} block {number}", "exec"), namespace)
    if page.name == "README.md":
        assert namespace["check"].passed  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place where the files exist that the docs speak of: a robot and logs of it, simulated."""
    here = tmp_path_factory.mktemp("docs")
    robot = dynid.robots.ur10()
    dynid.write_urdf(robot, here / "arm.urdf")
    (here / "arm.toml").write_text(blocks(ROOT / "docs" / "my-robot.md", "toml")[0], encoding="utf-8")
    friction = (dynid.RotorInertia(0.3), dynid.Viscous(2.0), dynid.Coulomb(3.0), dynid.Offset(0.1))
    real = robot.with_terms(*friction)
    block = dynid.Inertia.from_com(2.0, [0.0, 0.02, 0.06], 4e-3 * np.eye(3))
    holding = real.with_body("block", parent=robot.bodies[-1].joint.child, inertia=block)
    for seed, name in enumerate(("run1", "run2", "run3", "empty", "held")):
        log = dynid.simulate_experiment(
            holding if name == "held" else real,
            sum_of_sines(6, period_s=10.0, amplitude=0.9, seed=1 if name in ("empty", "held") else seed),
            duration_s=20.0,
            rate_hz=200.0,
            noise=dynid.Noise(position=2e-6, effort=0.4),
            with_velocity=False,
            seed=seed,
        )
        names = ["time", *(f"{what}{j}" for what in ("q", "effort") for j in range(6))]
        write_columns(here / f"{name}.csv", names, [log.time, log.q, log.effort])
    for shipped in ("channel_maps", "robots"):
        (here / shipped).symlink_to(ROOT / shipped)
    if DATASETS.is_dir():
        (here / "datasets").symlink_to(DATASETS)
    return here


MAP = """[time]
column = "time"
unit = "s"
[position]
columns = "q{0..5}"
unit = "rad"
[effort]
columns = "effort{0..5}"
unit = "N m"
"""


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda p: p.name)
def test_commands_run_in_order(page: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for entry in folder.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "map.toml").write_text(MAP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "dynid.workflows.plan_run.design_energy_points", functools.partial(design_energy_points, iterations=20)
    )
    for command in commands(page):
        if not any(name in command for name in CAMPAIGNS.get(page.name, ("",))):
            continue
        command = command.replace("$DATA/", "datasets/")
        words = shlex.split(command)[1:]
        if words[0] in LONG:
            assert CliRunner().invoke(main, [words[0], "--help"]).exit_code == 0, command
            continue
        if "datasets/" in command and not DATASETS.is_dir():
            pytest.skip("the data sets are not here")
        target = None
        if ">" in words:
            target = tmp_path / words[words.index(">") + 1]
            words = words[: words.index(">")]
        key = next((word for word in reversed(words) if word in QUICKER), "")
        result = CliRunner().invoke(main, [*words, *QUICKER.get(key, [])])
        assert result.exit_code == 0, f"{command}\n{result.output}"
        if target is not None:
            assert "TODO" not in result.stdout
            target.write_text(MAP)  # as a reader would complete the proposal


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_resolve(page: Path) -> None:
    for target in re.findall(r"(?:\]\(|src=\")([^)#\"]+)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "toml")], ids=lambda p: p.name)
def test_toml_is_understood(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "toml"):
        path = tmp_path / "page.toml"
        path.write_text(block)
        if page.name == "recipes.md":
            assert dynid.Recipe.read(path) != dynid.Recipe()
        elif "convention" in block:
            assert dynid.robot.read_robot(path).dof
        else:
            assert read_library(path) if "[[object]]" in block else read_channel_map(path).signals


def codes(page: Path) -> list[str]:
    """Everything on a page that stands between backticks or in a block without a language."""
    text = page.read_text(encoding="utf-8")
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks(page, "") for line in block.splitlines()]
    return [*re.findall(r"`([^`\n]+)`", outside), *lines]


def make_targets() -> set[str]:
    rules = re.findall(r"^([a-z][a-z -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return {target for rule in rules for target in rule.split()}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_make_target_exists(page: Path) -> None:
    named = {target for code in codes(page) for target in re.findall(r"(?:^|[;&] *)make ([a-z][a-z-]*)", code)}
    assert named <= make_targets()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_named_path_exists(page: Path) -> None:
    """Every path of a test or a source file."""
    named = re.findall(r"(?<![\w/.-])(?:tests|src)/[\w./-]*\w", page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == [p for p in named if p in added_files(page)]


def added_files(page: Path) -> list[str]:
    """Files that a page adds: `test_extending` writes them."""
    return re.findall(r"^# (src/\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_public_name_resolves(page: Path) -> None:
    found = set(re.findall(r"\bdynid((?:\.[A-Za-z_]\w*)+)(\(?)", page.read_text(encoding="utf-8")))
    added = {path.removeprefix("src/dynid").removesuffix(".py").replace("/", ".") for path in added_files(page)}
    for name, call in sorted(found):
        if name in EXAMPLES or any(f"{name}.".startswith(f"{module}.") for module in added):
            continue
        thing = pkgutil.resolve_name("dynid" + name)
        assert callable(thing) or not call, f"dynid{name} is not a function"


def test_the_estimators_of_the_command_line_are_those_of_the_registry() -> None:
    """On the page about estimators and in the help of the command."""
    page = " ".join((ROOT / "docs" / "choosing-an-estimator.md").read_text(encoding="utf-8").split())
    sentence = re.search(r"`dynid identify --estimator` offers all \(([^)]*)\)", page)
    table = dynid.estimators.estimators()
    assert sentence[1].split(", ") == [entry.name for entry in table]
    shown = " ".join(CliRunner().invoke(main, ["identify", "--help"]).output.split())
    text = shown[shown.index("--estimator NAME") + 2 :].partition(" --")[0]
    assert {entry.name for entry in table} <= set(re.findall(r"[a-z-]+", text))


def test_make_pages_runs_every_generator() -> None:
    rule = (ROOT / "Makefile").read_text().partition("\npages:")[2].partition("\n\n")[0]
    for path in (ROOT / "tests" / "support").glob("*.py"):
        # pictures have a rule of their own; the wheel and counts are looked at on request
        elsewhere = ("gallery.py", "wheel_smoke.py", "call_count.py", "log_calls.py",
                     "screens_page.py")  # fmt: skip
        if "__main__" in path.read_text(encoding="utf-8") and path.name not in elsewhere:
            assert f"tests/support/{path.name}" in rule


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_named_option_exists(page: Path) -> None:
    """Commands within sentences are not run, but their verbs and options exist."""
    for code in codes(page):
        verb = re.match(r"dynid ([a-z][a-z-]*)", code)
        if verb is None:
            continue
        command = main.get_command(click.Context(main), verb[1])
        assert command is not None, code
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert set(re.findall(r"(?<!\S)--[a-z][a-z-]*", code)) <= known | {
            "--help",
            "--no-snap",
            "--allow-unphysical",
        }, code  # of all commands


def test_public_names_are_those_of_the_reference() -> None:
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == reference(), "run make pages"
