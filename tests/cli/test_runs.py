"""Run folders: what they hold, saved results, reports made again, reruns, mixed folders, interrupted runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dynid.cli import main
from dynid.export.c.c_package import generate_c
from dynid.export.result_file import read_result
from dynid.safe_files import file_digest
from dynid.workflows.protocol import Task
from dynid.workflows.run_folder import WRITTEN

from .conftest import Desk

MAP = "--map", "map.toml"


@pytest.fixture(autouse=True, scope="module")
def _inside(desk: Desk) -> Iterator[None]:
    with chdir(desk.folder):
        yield


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def identify(out: str | Path, *options: str) -> Result:
    return run("identify", "arm.urdf", "run1.csv", "--validate", "run2.csv", *MAP, "--out", out, *options)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def record(folder: Path, **changes: object) -> dict[str, Any]:
    """What run.json of a folder holds, after some changes."""
    facts = json.loads((folder / "run.json").read_text()) | changes
    (folder / "run.json").write_text(json.dumps(facts))
    return facts


def test_a_run_folder_says_how_it_was_made() -> None:
    facts = json.loads(Path("res/run.json").read_text())
    assert facts["finished"]
    assert facts["options"]["estimator"] == "feasible"
    assert facts["options"]["limit_percent"] == 15.0
    assert {Path(entry["path"]).name for entry in facts["inputs"]} == {"arm.urdf", "run1.csv", "run2.csv", "map.toml"}
    for entry in facts["inputs"]:
        assert entry["sha256"] == hashlib.sha256(Path(entry["path"]).read_bytes()).hexdigest()
    for name, digest in facts["outputs"].items():
        assert digest == hashlib.sha256(Path("res", name).read_bytes()).hexdigest()
    assert {"result.json", "report.html", "report.md", "report.json", "summary.txt", "recipe.toml"} <= set(
        facts["outputs"]
    )
    assert "numpy" in facts["versions"]
    assert "finished, exit code 0" in Path("res/log.txt").read_text()
    assert not Path("res/cache").exists()
    page = Path("res/report.html").read_text()
    assert facts["inputs"][0]["sha256"] in page
    assert "Lee, P. M. Wensing" in page


def test_nothing_is_overwritten_without_force() -> None:
    before = contents(Path("res"))
    assert identify("res").exit_code == 5
    assert contents(Path("res")) == before
    Path("mine").mkdir(exist_ok=True)
    Path("mine/summary.txt").write_text("my own notes")
    assert identify("mine").exit_code == 5
    assert Path("mine/summary.txt").read_text() == "my own notes"


def test_a_saved_result_is_judged_on_new_logs() -> None:
    arguments = ("validate", "res", "run3.csv", *MAP)
    result = run(*arguments, "--json", "--out", "proof")
    assert result.exit_code == 0, result.output
    verdict = json.loads(result.stdout)
    assert verdict["passed"]
    assert verdict == json.loads(Path("proof/validation.json").read_text())
    # the same log as held-out data of a new identification gives the same figure
    logs = "run1.csv", "--validate", "run3.csv"
    again = run("identify", "arm.urdf", *logs, *MAP, "--out", "other", "--json", "--force")
    expected = json.loads(again.stdout)["validation"]
    assert verdict["relative_error_percent"] == pytest.approx(expected["relative_error_percent"], rel=1e-6)
    assert verdict["per_joint_percent"] == pytest.approx(expected["per_joint_percent"], rel=1e-6)
    strict = run(*arguments, "--set", "limit_percent=1e-6")
    assert strict.exit_code == 1
    assert "exceeds the limit" in strict.output


def test_a_delay_in_the_new_log_is_not_called_passed() -> None:
    table = np.loadtxt("run3.csv", delimiter=",", skiprows=1)
    table[:, 4:] = np.roll(table[:, 4:], 2, axis=0)  # 20 ms
    head = Path("run3.csv").read_text().splitlines()[0]
    np.savetxt("late.csv", table, delimiter=",", header=head, comments="")
    words = ("validate", "res", "late.csv", *MAP, "--set", "limit_percent=60")
    late = run(*words, "--out", "late")
    assert late.exit_code == 1
    assert "not passed: " in late.stdout
    verdict = json.loads(Path("late/validation.json").read_text())
    assert verdict["relative_error_percent"] < verdict["limit_percent"]
    assert " late" in verdict["doubts"][0]
    assert "ms late" in Path("late/report.md").read_text()
    assert run(*words, "--set", "delay_s=0.02").exit_code == 0


def test_a_result_of_a_band_knows_its_training_error() -> None:
    first = json.loads(identify("banded", "--set", "band_hz=5", "--json").stdout)
    arguments = ("validate", "banded", "run3.csv", *MAP)
    result = run(*arguments)
    assert "nan" not in result.output
    verdict = json.loads(run(*arguments, "--json").stdout)
    assert verdict["training_error_percent"] == pytest.approx(first["validation"]["training_error_percent"])
    other = run(*arguments, "--set", "band_hz=4")  # the samples of the training data are not in the result
    assert other.exit_code == 0, other.output
    assert "training" not in other.output
    assert "nan" not in other.output


def test_a_report_is_made_again() -> None:
    page = Path("res/report.html").read_bytes()
    Path("res/report.html").unlink()
    assert run("report", "res").exit_code == 0
    assert Path("res/report.html").read_bytes() == page


def test_two_runs_are_compared_on_identical_samples() -> None:
    """A dead band leaves out what is hard to predict: the worse run states the smaller error."""
    words = "--set", "friction=plain", "--estimator", "wls", "--force"
    good = json.loads(identify("good", *words, "--json").stdout)["validation"]["relative_error_percent"]
    wide = "--set", "dead_band=0.4", "--set", "terms=viscous"
    bad = json.loads(identify("bad", *words, *wide, "--json").stdout)["validation"]["relative_error_percent"]
    assert run("compare-runs", "good", "bad", "--out", "both", "--force").exit_code in (0, 1)
    (sentence,) = json.loads(Path("both/drift.json").read_text())["same_samples"]
    low, high = (float(word) for word in re.findall(r"([\d.]+) %", sentence))
    assert sentence.startswith("good predicts better on the same held-out samples")
    assert low == pytest.approx(good, abs=0.006)
    assert high > 1.05 * bad
    text = Path("both/report.md").read_text()
    assert "Which run predicts better" in text
    moved = Path("run2.csv").rename("away.csv")
    again = run("compare-runs", "good", "bad")
    moved.rename("run2.csv")
    assert "not judged on the same samples" in again.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arguments": ["--force", "arm.urdf"]}, r"arguments: no repeated run may give 'force'"),
        ({"arguments": ["arm.urdf", "--out=/tmp/x"]}, r"arguments: no repeated run may give 'out'"),
        *(
            ({"arguments": [*words, "arm.urdf"]}, "no repeated run may give")  # what a cluster returns is run here
            for words in (
                ["--set", "scheduler=tcp://h:1"],
                ["--set", "scheduler\t=tcp://h:1"],
                ["--set=scheduler\u00a0= 'x'"],
                ["--engine", "tcp://h:1"],
                ["--engine", "127.0.0.1:18786"],
                ["--engine", "inproc://h/1"],
                ["--engine", "--verbose", "tcp://h:1"],
            )
        ),
        ({"arguments": ["--save-recipe", "x", "arm.urdf"]}, r"arguments: No such option"),
        ({"verb": "demo"}, "verb: a run of 'demo' is not repeated"),
        ({"inputs": [{"path": 1, "sha256": "0" * 64}]}, r"inputs\[0\]\.path: expected `str`"),
        ({"result": "../result.json"}, "result: the text is not of the form"),
    ],
)
def test_a_strangers_record_is_not_obeyed(tmp_path: Path, change: dict[str, object], message: str) -> None:
    folder = shutil.copytree("res", tmp_path / "res")
    record(folder, **change)
    result = run("rerun", folder, "--out", tmp_path / "new")
    assert result.exit_code == 3
    assert re.search(message, result.stderr)
    assert not (tmp_path / "new").exists()


def test_the_words_that_are_checked_are_those_that_are_run(tmp_path: Path) -> None:
    """`--verbose` may stand anywhere, so it is no value: the address is the robot's name, and logs are missing."""
    folder = shutil.copytree("res", tmp_path / "res")
    record(folder, arguments=["--estimator", "--", "--estimator", "--verbose", "--engine", "tcp://h:1"])
    assert "Missing argument 'LOGS...'" in run("rerun", folder).stderr


@pytest.mark.parametrize("refused", [True, False])
def test_the_record_of_a_stranger_costs_no_file_of_others(tmp_path: Path, refused: bool) -> None:
    """Whatever it lists: the log of others without --force, their own names with it."""
    shutil.copy("res/run.json", tmp_path)
    mine = {name: tmp_path / name for name in ("log.txt", "thesis.txt")}
    for path in mine.values():
        path.write_text("years of work")
    listed = {name: file_digest(path) for name, path in mine.items()}
    record(tmp_path, finished=False, refused=refused, outputs=listed)
    assert "log.txt exists already" in identify(tmp_path).stderr
    assert {path.read_text() for path in mine.values()} == {"years of work"}
    assert identify(tmp_path, "--force").exit_code == 0
    assert mine["thesis.txt"].read_text() == "years of work"
    assert record(tmp_path)["log"] == file_digest(mine["log.txt"])
    assert all(WRITTEN.fullmatch(name) for kind in Task.__subclasses__() for name in kind.files)


def test_a_command_does_not_replace_the_run_that_it_reads(tmp_path: Path) -> None:
    folder = shutil.copytree("res", tmp_path / "res")
    before = contents(folder)
    for words in (["validate", folder, "run3.csv", *MAP], ["watch", folder, "run3.csv", *MAP], ["report", "res"]):
        result = run(*words, "--out", folder, "--force")
        assert result.exit_code in (2, 5), result.output
        assert "Choose another folder" in result.stderr
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["summary.txt", "cylindrical_identified.urdf"])
def test_a_folder_in_the_place_of_a_file_keeps_the_earlier_run(tmp_path: Path, name: str) -> None:
    """The first is known before anything is computed, the second only when it is written."""
    folder = shutil.copytree("res", tmp_path / "res")
    (folder / name).unlink()
    (folder / name / "mine").mkdir(parents=True)
    before = contents(folder)
    words = "arm.urdf", "run3.csv", *MAP, "--out", folder, "--force"
    result = run("identify", *words)
    assert result.exit_code == 5
    assert "it is no file" in result.stderr
    assert contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["res"]
    (folder / name / "mine").rmdir()
    (folder / name).rmdir()
    assert run("codegen", folder, "--out", tmp_path / "code", "--no-verify").exit_code == 0


def test_a_rerun_gives_the_same_result_and_sees_changed_inputs(tmp_path: Path) -> None:
    result = run("rerun", "res", "--json")
    assert result.exit_code == 0, result.output
    assert "repeats: dynid identify" in result.stderr  # what it does is shown first
    assert f"reads: {Path('run1.csv').resolve()}" in result.stderr
    found = json.loads(result.stdout)
    assert found["same"]
    assert found["inputs_changed"] == []
    for name in ("arm.urdf", "run1.csv", "run2.csv", "map.toml"):
        shutil.copy(name, tmp_path)
    with chdir(tmp_path):
        assert identify("res").exit_code == 0
    lines = (tmp_path / "run1.csv").read_text().splitlines()
    (tmp_path / "run1.csv").write_text("\n".join(lines[:-100]) + "\n")
    changed = run("rerun", tmp_path / "res", "--out", tmp_path / "again")
    assert changed.exit_code == 1
    assert f"changed since: {tmp_path / 'run1.csv'}" in changed.output
    assert (tmp_path / "again" / "result.json").exists()
    (tmp_path / "run1.csv").unlink()
    gone = run("rerun", tmp_path / "res")
    assert gone.exit_code == 3
    assert "Restore it" in gone.output


def test_an_interrupted_run_leaves_nothing_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    import dynid.identification.identify as links

    solve = links.identify_experiments

    def interrupt(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(links, "identify_experiments", interrupt)
    assert identify("broken").exit_code == 130
    assert not Path("broken").exists()
    assert not Path(".broken.dynid").exists()
    monkeypatch.setattr(links, "identify_experiments", solve)
    result = identify("broken")
    assert result.exit_code == 0, result.output
    first, again = (read_result(Path(name)).content["standard_parameters"] for name in ("res", "broken"))
    assert first == again


def test_a_run_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    """A folder with a cache, a link and notes of the user; then a file of another run."""
    out, secret = Path("project"), tmp_path / "secret.txt"
    (out / "cache").mkdir(parents=True)
    (out / "cache" / "photo.jpg").write_text("mine")
    secret.write_text("untouched\n")
    (out / "log.txt").symlink_to(secret)
    refused = identify("project")
    assert refused.exit_code == 5
    assert "log.txt exists already" in refused.output
    assert identify("project", "--force").exit_code == 0
    assert secret.read_text() == "untouched\n"
    assert not (out / "log.txt").is_symlink()
    assert (out / "cache" / "photo.jpg").read_text() == "mine"
    assert not [name for name in os.listdir() if name.endswith(".dynid")]
    result = out / "result.json"
    result.write_text(result.read_text().replace("0", "1", 1))
    for words in (["validate", out, "run3.csv", *MAP], ["codegen", out]):
        mixed = run(*words, "--out", tmp_path / "new")
        assert mixed.exit_code == 3
        assert "not the one that run.json lists" in mixed.output


def test_two_commands_from_logs_to_pruned_code() -> None:
    plain = "--estimator", "wls", "--set", "friction=plain", "--set", "terms=rotor-inertia,viscous,coulomb"
    assert identify("short", *plain, "--significant", "3%").exit_code == 0
    for name, words in (("summary.txt", "held-out error %"), ("report.md", "## Significant parameters")):
        assert words in Path("short", name).read_text()
    done = run("codegen", "short", "--prune", "--out", "short_code", "--functions", "inverse_dynamics")
    assert done.exit_code == 0, done.output
    whole = generate_c(read_result(Path("short")).pruned(), ["inverse_dynamics"])
    assert Path("short_code", f"{whole.name}.c").read_text() == whole.files[f"{whole.name}.c"]
    refused = run("codegen", "puma560", "--prune", "--out", "none")
    assert (refused.exit_code, "dynid.export.prune" in refused.output) == (2, True)
    assert identify("wrong", "--significant", "one").exit_code == 2


@pytest.fixture(scope="module")
def other(_inside: None) -> Path:
    """A finished identification from another log."""
    words = "arm.urdf", "run3.csv", "--validate", "run2.csv", *MAP
    assert run("identify", *words, "--out", "second").exit_code == 0
    return Path("second")


def _pipe(folder: Path) -> None:
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")


MIXED = {
    name: (lambda folder, other, name=name: shutil.copy(other / name, folder / name))
    for name in ("result.json", "run.json", "report.json", "report.html", "cylindrical_identified.urdf")
} | {
    "unfinished": lambda folder, other: record(folder, finished=False),
    "pipe": lambda folder, other: _pipe(folder),
}  # fmt: skip
"""What was done to a run's folder."""


@pytest.mark.parametrize("change", MIXED)
def test_every_command_refuses_a_folder_of_two_runs(change: str, other: Path, tmp_path: Path) -> None:
    mixed = shutil.copytree("res", tmp_path / "mixed")
    MIXED[change](mixed, other)
    before = contents(mixed)
    for words in (
        ["report", mixed], ["report", mixed, "--out", tmp_path / "new"], ["rerun", mixed],
        ["codegen", mixed, "--out", tmp_path / "new"], ["export", mixed, "--to", "csv", "--out", tmp_path / "new"],
        ["validate", mixed, "run3.csv", *MAP, "--out", tmp_path / "new"],
        ["watch", mixed, "run3.csv", *MAP, "--out", tmp_path / "new"],
    ):  # fmt: skip
        refused = run(*words)
        assert refused.exit_code == 3, (words[0], refused.output)
        assert "Traceback" not in refused.output
    assert not (tmp_path / "new").exists()
    assert contents(mixed) == before


def test_a_report_written_again_still_belongs_to_its_run(tmp_path: Path) -> None:
    """As by a newer dynid, whose pages look different."""
    folder = shutil.copytree("res", tmp_path / "res")
    (folder / "report.html").write_text("an older page")
    record(folder, outputs=record(folder)["outputs"] | {"report.html": file_digest(folder / "report.html")})
    assert run("report", folder).exit_code == 0
    assert (folder / "report.html").read_bytes() == Path("res/report.html").read_bytes()
    assert run("report", folder, "--out", folder / "." / "..").exit_code == 0
    again = run("codegen", folder, "--out", tmp_path / "c", "--no-verify")
    assert again.exit_code == 0, again.output


def test_force_removes_only_what_the_earlier_run_wrote(tmp_path: Path) -> None:
    folder = shutil.copytree("res", tmp_path / "res")
    (folder / "plan.txt").write_text("mine")
    (folder / "load.txt").write_text("of the run")
    outputs = record(folder)["outputs"] | {"plan.txt": "0" * 64, "load.txt": file_digest(folder / "load.txt")}
    record(folder, outputs=outputs)
    words = "arm.urdf", "run1.csv", *MAP, "--out", folder, "--force"
    assert run("identify", *words).exit_code == 0
    assert (folder / "plan.txt").read_text() == "mine"
    assert not (folder / "load.txt").exists()
    record(folder, outputs=outputs | {"../plan.txt": "0" * 64})
    assert run("identify", *words).exit_code == 0
    assert record(folder)["finished"]


def test_names_in_files_stay_in_the_folder() -> None:
    text = Path("arm.urdf").read_text()
    Path("odd.urdf").write_text(re.sub('<robot name="[^"]*"', f'<robot name="../../{"x" * 300}"', text))
    result = run("identify", "odd.urdf", "run1.csv", *MAP, "--out", "odd")
    assert result.exit_code == 0, result.output
    assert Path("odd", f"{'x' * 60}_identified.urdf").exists()


@pytest.mark.parametrize(
    "arguments", [["robots"], ["doctor"], ["base", "scara"], ["check", "panda"]], ids=lambda words: words[0]
)
def test_json_for_other_programs(arguments: list[str]) -> None:
    assert isinstance(json.loads(run(*arguments, "--json").stdout), dict | list)


def test_json_of_verbs_with_files(tmp_path: Path) -> None:
    assert "[position]" in json.loads(run("inspect", "run1.csv", "--json").stdout)["toml"]
    code = run("codegen", "arm.urdf", "--no-verify", "--out", tmp_path / "code", "--json")
    assert json.loads(code.stdout)["compiled_and_compared"] is False
    plan = run("excite", "arm.urdf", "--time-limit", "1", "--out", tmp_path / "plan", "--json")
    assert json.loads(plan.stdout)["condition_number"] > 1.0
    assert json.loads((tmp_path / "plan" / "run.json").read_text())["result"] == "plan.json"
    assert "<canvas" in (tmp_path / "plan" / "report.html").read_text()


@pytest.mark.skipif(not shutil.which("script"), reason="no terminal to try")
@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_on_terminals_only(environment: dict[str, str], coloured: bool) -> None:
    arguments = ["validate", "res", "run3.csv", *MAP]
    assert "\x1b[" not in run(*arguments).output
    script = ["script", "-qec", " ".join([sys.executable, "-m", "dynid", *arguments]), os.devnull]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
    assert ("\x1b[32m" in done.stdout) == coloured


def test_every_verb_has_examples_and_the_exit_codes_are_told() -> None:
    assert "Exit codes:" in run("--help").output
    for name in main.commands:
        assert f"dynid {name}" in run(name, "--help").output.partition("Examples:")[2], name


@pytest.mark.parametrize("terms", ["none", "", "offset"])
def test_terms_without_a_sign(tmp_path: Path, terms: str) -> None:
    """No coefficient must be kept at zero or above; rich friction is compared with such a model, too."""
    result = identify(tmp_path, "--set", f"terms={terms}")
    assert result.exit_code == 0, result.output
    names = json.loads((tmp_path / "result.json").read_text())["estimate"]["names"]
    assert not [name for name in names if re.fullmatch(r"(IA|FC|FV)\d", name)]


def test_next_commands_can_be_copied_into_a_shell(tmp_path: Path) -> None:
    robot = shutil.copy("arm.urdf", tmp_path / "arm; touch PWN.urdf")
    result = run("excite", robot, "--method", "commands", "--out", tmp_path / "plan")
    assert f"next: dynid actuate '{robot}' LOG" in result.output, result.output
