"""Run folders: what they hold, saved results, reports made again, reruns, mixed folders, interrupted runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dynid.cli import main
from dynid.export.c.c_package import generate_c
from dynid.export.result_file import read_result
from dynid.safe_files import file_digest

from .conftest import Desk


@pytest.fixture(scope="session")
def bench(desk: Desk) -> Path:
    return desk.folder


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def identify(folder: Path, out: str, *options: str) -> Result:
    logs = folder / "run1.csv", "--validate", folder / "run2.csv", "--map", folder / "map.toml"
    return run("identify", folder / "arm.urdf", *logs, "--out", folder / out, *options)


def test_a_run_folder_says_how_it_was_made(bench: Path) -> None:
    facts = json.loads((bench / "res" / "run.json").read_text())
    assert facts["finished"]
    assert facts["options"]["estimator"] == "feasible"
    assert facts["options"]["limit_percent"] == 15.0
    assert {Path(entry["path"]).name for entry in facts["inputs"]} == {"arm.urdf", "run1.csv", "run2.csv", "map.toml"}
    for entry in facts["inputs"]:
        assert entry["sha256"] == hashlib.sha256(Path(entry["path"]).read_bytes()).hexdigest()
    for name, digest in facts["outputs"].items():
        assert digest == hashlib.sha256((bench / "res" / name).read_bytes()).hexdigest()
    assert {"result.json", "report.html", "report.md", "report.json", "summary.txt", "recipe.toml"} <= set(
        facts["outputs"]
    )
    assert "numpy" in facts["versions"]
    assert "finished, exit code 0" in (bench / "res" / "log.txt").read_text()
    assert not (bench / "res" / "cache").exists()
    page = (bench / "res" / "report.html").read_text()
    assert facts["inputs"][0]["sha256"] in page
    assert "Lee, P. M. Wensing" in page


def test_nothing_is_overwritten_without_force(bench: Path) -> None:
    before = {file.name: file.read_bytes() for file in (bench / "res").iterdir()}
    assert identify(bench, "res").exit_code == 5
    assert {file.name: file.read_bytes() for file in (bench / "res").iterdir()} == before
    (bench / "mine").mkdir(exist_ok=True)
    (bench / "mine" / "summary.txt").write_text("my own notes")
    assert identify(bench, "mine").exit_code == 5
    assert (bench / "mine" / "summary.txt").read_text() == "my own notes"


def test_a_saved_result_is_judged_on_new_logs(bench: Path) -> None:
    arguments = ("validate", bench / "res", bench / "run3.csv", "--map", bench / "map.toml")
    result = run(*arguments, "--json", "--out", bench / "proof")
    assert result.exit_code == 0, result.output
    verdict = json.loads(result.stdout)
    assert verdict["passed"]
    assert verdict == json.loads((bench / "proof" / "validation.json").read_text())
    # the same log as held-out data of a new identification gives the same figure
    again = run("identify", bench / "arm.urdf", bench / "run1.csv", "--validate", bench / "run3.csv", "--map",
                bench / "map.toml", "--out", bench / "other", "--json", "--force")  # fmt: skip
    expected = json.loads(again.stdout)["validation"]
    assert verdict["relative_error_percent"] == pytest.approx(expected["relative_error_percent"], rel=1e-6)
    assert verdict["per_joint_percent"] == pytest.approx(expected["per_joint_percent"], rel=1e-6)
    strict = run(*arguments, "--set", "limit_percent=1e-6")
    assert strict.exit_code == 1
    assert "exceeds the limit" in strict.output


def test_a_delay_in_the_new_log_is_not_called_passed(bench: Path) -> None:
    table = np.loadtxt(bench / "run3.csv", delimiter=",", skiprows=1)
    table[:, 4:] = np.roll(table[:, 4:], 2, axis=0)  # 20 ms
    head = (bench / "run3.csv").read_text().splitlines()[0]
    np.savetxt(bench / "late.csv", table, delimiter=",", header=head, comments="")
    words = ("validate", bench / "res", bench / "late.csv", "--map", bench / "map.toml", "--set", "limit_percent=60")
    late = run(*words, "--out", bench / "late")
    assert late.exit_code == 1
    assert "not passed: " in late.stdout
    verdict = json.loads((bench / "late" / "validation.json").read_text())
    assert verdict["relative_error_percent"] < verdict["limit_percent"]
    assert " late" in verdict["doubts"][0]
    assert "ms late" in (bench / "late" / "report.md").read_text()
    assert run(*words, "--set", "delay_s=0.02").exit_code == 0


def test_a_result_of_a_band_knows_its_training_error(bench: Path) -> None:
    first = json.loads(identify(bench, "banded", "--set", "band_hz=5", "--json").stdout)
    arguments = ("validate", bench / "banded", bench / "run3.csv", "--map", bench / "map.toml")
    result = run(*arguments)
    assert "nan" not in result.output
    verdict = json.loads(run(*arguments, "--json").stdout)
    assert verdict["training_error_percent"] == pytest.approx(first["validation"]["training_error_percent"])
    other = run(*arguments, "--set", "band_hz=4")  # the samples of the training data are not in the result
    assert other.exit_code == 0, other.output
    assert "training" not in other.output
    assert "nan" not in other.output


def test_a_report_is_made_again(bench: Path) -> None:
    page = (bench / "res" / "report.html").read_bytes()
    (bench / "res" / "report.html").unlink()
    assert run("report", bench / "res").exit_code == 0
    assert (bench / "res" / "report.html").read_bytes() == page


def test_two_runs_are_compared_on_identical_samples(bench: Path) -> None:
    """A dead band leaves out what is hard to predict: the worse run states the smaller error."""
    words = "--set", "friction=plain", "--estimator", "wls", "--force"
    good = json.loads(identify(bench, "good", *words, "--json").stdout)["validation"]["relative_error_percent"]
    wide = "--set", "dead_band=0.4", "--set", "terms=viscous"
    bad = json.loads(identify(bench, "bad", *words, *wide, "--json").stdout)["validation"]["relative_error_percent"]
    assert run("compare-runs", bench / "good", bench / "bad", "--out", bench / "both", "--force").exit_code in (0, 1)
    (sentence,) = json.loads((bench / "both" / "drift.json").read_text())["same_samples"]
    low, high = (float(word) for word in re.findall(r"([\d.]+) %", sentence))
    assert sentence.startswith("good predicts better on the same held-out samples")
    assert low == pytest.approx(good, abs=0.006)
    assert high > 1.05 * bad
    text = (bench / "both" / "report.md").read_text()
    assert "Which run predicts better" in text
    moved = (bench / "run2.csv").rename(bench / "away.csv")
    again = run("compare-runs", bench / "good", bench / "bad")
    moved.rename(bench / "run2.csv")
    assert "not judged on the same samples" in again.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arguments": ["--force", "arm.urdf"]}, r"arguments: no repeated run may give 'force'"),
        ({"arguments": ["arm.urdf", "--out=/tmp/x"]}, r"arguments: no repeated run may give 'out'"),
        ({"arguments": ["--save-recipe", "x", "arm.urdf"]}, r"arguments: No such option"),
        ({"verb": "demo"}, "verb: a run of 'demo' is not repeated"),
        ({"inputs": [{"path": 1, "sha256": "0" * 64}]}, r"inputs\[0\]\.path: expected `str`"),
        ({"result": "../result.json"}, "result: the text is not of the form"),
    ],
)
def test_a_strangers_record_is_not_obeyed(bench: Path, tmp_path: Path, change: dict[str, object], message: str) -> None:
    shutil.copytree(bench / "res", tmp_path / "res")
    facts = json.loads((tmp_path / "res" / "run.json").read_text())
    (tmp_path / "res" / "run.json").write_text(json.dumps(facts | change))
    result = run("rerun", tmp_path / "res", "--out", tmp_path / "new")
    assert result.exit_code == 3
    assert re.search(message, result.stderr)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--set", "scheduler=tcp://h:1"],
        ["--set", "scheduler\t=tcp://h:1"],
        ["--set=scheduler\u00a0= 'x'"],
        ["--engine", "tcp://h:1"],
        ["--engine=tcp://h:1"],
    ],
    ids=repr,
)
def test_no_file_names_a_cluster(bench: Path, tmp_path: Path, words: list[str]) -> None:
    """What a cluster returns is run here: a record or a recipe of a stranger may not name one."""
    shutil.copytree(bench / "res", tmp_path / "res")
    facts = json.loads((tmp_path / "res" / "run.json").read_text())
    facts["arguments"] = [*words, *facts["arguments"]]
    (tmp_path / "res" / "run.json").write_text(json.dumps(facts))
    result = run("rerun", tmp_path / "res")
    assert result.exit_code == 3
    assert "no repeated run may give" in result.stderr


def test_the_record_of_a_refused_run_deletes_no_file_of_others(bench: Path, tmp_path: Path) -> None:
    folder = tmp_path / "res"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    facts = json.loads((bench / "res" / "run.json").read_text())
    outputs = {"thesis.txt": file_digest(folder / "thesis.txt")}
    (folder / "run.json").write_text(json.dumps({**facts, "finished": False, "refused": True, "outputs": outputs}))
    assert identify(bench, str(folder)).exit_code == 0
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_a_command_does_not_replace_the_run_that_it_reads(bench: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bench / "res", tmp_path / "res")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    log = bench / "run3.csv", "--map", bench / "map.toml"
    for words in (["validate", folder, *log], ["watch", folder, *log], ["report", bench / "res"]):
        result = run(*words, "--out", folder, "--force")
        assert result.exit_code in (2, 5), result.output
        assert "Choose another folder" in result.stderr
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["summary.txt", "cylindrical_identified.urdf"])
def test_a_folder_in_the_place_of_a_file_keeps_the_earlier_run(bench: Path, tmp_path: Path, name: str) -> None:
    """The first is known before anything is computed, the second only when it is written."""
    folder = shutil.copytree(bench / "res", tmp_path / "res")
    (folder / name).unlink()
    (folder / name / "mine").mkdir(parents=True)
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    words = bench / "arm.urdf", bench / "run3.csv", "--map", bench / "map.toml", "--out", folder, "--force"
    result = run("identify", *words)
    assert result.exit_code == 5
    assert "it is no file" in result.stderr
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["res"]
    (folder / name / "mine").rmdir()
    (folder / name).rmdir()
    assert run("codegen", folder, "--out", tmp_path / "code", "--no-verify").exit_code == 0


def test_a_rerun_gives_the_same_result_and_sees_changed_inputs(bench: Path, tmp_path: Path) -> None:
    result = run("rerun", bench / "res", "--json")
    assert result.exit_code == 0, result.output
    assert "repeats: dynid identify" in result.stderr  # what it does is shown first
    assert f"reads: {bench / 'run1.csv'}" in result.stderr
    found = json.loads(result.stdout)
    assert found["same"]
    assert found["inputs_changed"] == []
    for name in ("arm.urdf", "run1.csv", "run2.csv", "map.toml"):
        (tmp_path / name).write_bytes((bench / name).read_bytes())
    assert identify(tmp_path, "res").exit_code == 0
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


def test_an_interrupted_run_leaves_nothing_and_begins_anew(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dynid.identification.identify as links

    solve = links.identify_experiments

    def interrupt(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(links, "identify_experiments", interrupt)
    assert identify(bench, "broken").exit_code == 130
    assert not (bench / "broken").exists()
    assert not (bench / ".broken.dynid").exists()
    monkeypatch.setattr(links, "identify_experiments", solve)
    result = identify(bench, "broken")
    assert result.exit_code == 0, result.output
    first, again = (read_result(bench / name).content["standard_parameters"] for name in ("res", "broken"))
    assert first == again


def test_a_run_leaves_what_is_not_its_own(bench: Path, tmp_path: Path) -> None:
    """A folder with a cache, a link and notes of the user; then a file of another run."""
    out, secret = bench / "project", tmp_path / "secret.txt"
    (out / "cache").mkdir(parents=True)
    (out / "cache" / "photo.jpg").write_text("mine")
    secret.write_text("untouched\n")
    (out / "log.txt").symlink_to(secret)
    refused = identify(bench, "project")
    assert refused.exit_code == 5
    assert "log.txt exists already" in refused.output
    assert identify(bench, "project", "--force").exit_code == 0
    assert secret.read_text() == "untouched\n"
    assert not (out / "log.txt").is_symlink()
    assert (out / "cache" / "photo.jpg").read_text() == "mine"
    assert not [name for name in os.listdir(bench) if name.endswith(".dynid")]
    result = out / "result.json"
    result.write_text(result.read_text().replace("0", "1", 1))
    for words in (["validate", out, bench / "run3.csv", "--map", bench / "map.toml"], ["codegen", out]):
        mixed = run(*words, "--out", tmp_path / "new")
        assert mixed.exit_code == 3
        assert "not the one that run.json lists" in mixed.output


def test_two_commands_from_logs_to_pruned_code(bench: Path) -> None:
    plain = "--estimator", "wls", "--set", "friction=plain", "--set", "terms=rotor-inertia,viscous,coulomb"
    assert identify(bench, "short", *plain, "--significant", "3%").exit_code == 0
    for name, words in (("summary.txt", "held-out error %"), ("report.md", "## Significant parameters")):
        assert words in (bench / "short" / name).read_text()
    done = run("codegen", bench / "short", "--prune", "--out", bench / "short_code", "--functions", "inverse_dynamics")
    assert done.exit_code == 0, done.output
    whole = generate_c(read_result(bench / "short").pruned(), ["inverse_dynamics"])
    assert (bench / "short_code" / f"{whole.name}.c").read_text() == whole.files[f"{whole.name}.c"]
    refused = run("codegen", "puma560", "--prune", "--out", bench / "none")
    assert (refused.exit_code, "dynid.export.prune" in refused.output) == (2, True)
    assert identify(bench, "wrong", "--significant", "one").exit_code == 2


@pytest.fixture(scope="module")
def other(bench: Path) -> Path:
    """A finished identification from another log."""
    words = bench / "arm.urdf", bench / "run3.csv", "--validate", bench / "run2.csv", "--map", bench / "map.toml"
    assert run("identify", *words, "--out", bench / "second").exit_code == 0
    return bench / "second"


def _unfinish(folder: Path) -> None:
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**facts, "finished": False}))


def _pipe(folder: Path) -> None:
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")


MIXED = {
    name: (lambda folder, other, name=name: shutil.copy(other / name, folder / name))
    for name in ("result.json", "run.json", "report.json", "report.html", "cylindrical_identified.urdf")
} | {
    "unfinished": lambda folder, other: _unfinish(folder),
    "pipe": lambda folder, other: _pipe(folder),
}  # fmt: skip
"""What was done to a run's folder."""


@pytest.mark.parametrize("change", MIXED)
def test_every_command_refuses_a_folder_of_two_runs(change: str, bench: Path, other: Path, tmp_path: Path) -> None:
    mixed = shutil.copytree(bench / "res", tmp_path / "mixed")
    MIXED[change](mixed, other)
    before = {file.name: file.read_bytes() for file in mixed.iterdir() if file.is_file()}
    log = "--map", bench / "map.toml"
    for words in (
        ["report", mixed], ["report", mixed, "--out", tmp_path / "new"], ["rerun", mixed],
        ["codegen", mixed, "--out", tmp_path / "new"], ["export", mixed, "--to", "csv", "--out", tmp_path / "new"],
        ["validate", mixed, bench / "run3.csv", *log, "--out", tmp_path / "new"],
        ["watch", mixed, bench / "run3.csv", *log, "--out", tmp_path / "new"],
    ):  # fmt: skip
        refused = run(*words)
        assert refused.exit_code == 3, (words[0], refused.output)
        assert "Traceback" not in refused.output
    assert not (tmp_path / "new").exists()
    assert {file.name: file.read_bytes() for file in mixed.iterdir() if file.is_file()} == before


def test_a_report_written_again_still_belongs_to_its_run(bench: Path, tmp_path: Path) -> None:
    """As by a newer dynid, whose pages look different."""
    folder = shutil.copytree(bench / "res", tmp_path / "res")
    facts = json.loads((folder / "run.json").read_text())
    (folder / "report.html").write_text("an older page")
    facts["outputs"]["report.html"] = hashlib.sha256(b"an older page").hexdigest()
    (folder / "run.json").write_text(json.dumps(facts))
    assert run("report", folder).exit_code == 0
    assert (folder / "report.html").read_bytes() == (bench / "res" / "report.html").read_bytes()
    assert run("report", folder, "--out", folder / "." / "..").exit_code == 0
    again = run("codegen", folder, "--out", tmp_path / "c", "--no-verify")
    assert again.exit_code == 0, again.output


def test_force_removes_only_what_the_earlier_run_wrote(bench: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bench / "res", tmp_path / "res")
    facts = json.loads((folder / "run.json").read_text())
    (folder / "thesis.txt").write_text("mine")
    (folder / "old.txt").write_text("of the run")
    digest = hashlib.sha256(b"of the run").hexdigest()
    facts["outputs"] |= {"thesis.txt": "0" * 64, "old.txt": digest}
    (folder / "run.json").write_text(json.dumps(facts))
    words = bench / "arm.urdf", bench / "run1.csv", "--map", bench / "map.toml", "--out", folder, "--force"
    assert run("identify", *words).exit_code == 0
    assert (folder / "thesis.txt").read_text() == "mine"
    assert not (folder / "old.txt").exists()
    facts["outputs"]["../thesis.txt"] = "0" * 64
    (folder / "run.json").write_text(json.dumps(facts))
    assert run("identify", *words).exit_code == 0
    assert json.loads((folder / "run.json").read_text())["finished"]


def test_names_in_files_stay_in_the_folder(bench: Path) -> None:
    text = (bench / "arm.urdf").read_text()
    (bench / "odd.urdf").write_text(re.sub('<robot name="[^"]*"', f'<robot name="../../{"x" * 300}"', text))
    logs = bench / "run1.csv", "--map", bench / "map.toml"
    result = run("identify", bench / "odd.urdf", *logs, "--out", bench / "odd")
    assert result.exit_code == 0, result.output
    assert (bench / "odd" / f"{'x' * 60}_identified.urdf").exists()


@pytest.mark.parametrize(
    "arguments", [["robots"], ["doctor"], ["base", "scara"], ["check", "panda"]], ids=lambda words: words[0]
)
def test_json_for_other_programs(arguments: list[str]) -> None:
    assert isinstance(json.loads(run(*arguments, "--json").stdout), dict | list)


def test_json_of_verbs_with_files(bench: Path, tmp_path: Path) -> None:
    assert "[position]" in json.loads(run("inspect", bench / "run1.csv", "--json").stdout)["toml"]
    code = run("codegen", bench / "arm.urdf", "--no-verify", "--out", tmp_path / "code", "--json")
    assert json.loads(code.stdout)["compiled_and_compared"] is False
    plan = run("excite", bench / "arm.urdf", "--time-limit", "1", "--out", tmp_path / "plan", "--json")
    assert json.loads(plan.stdout)["condition_number"] > 1.0
    assert json.loads((tmp_path / "plan" / "run.json").read_text())["result"] == "plan.json"
    assert "<canvas" in (tmp_path / "plan" / "report.html").read_text()


@pytest.mark.skipif(not shutil.which("script"), reason="no terminal to try")
@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_on_terminals_only(bench: Path, environment: dict[str, str], coloured: bool) -> None:
    arguments = ["validate", str(bench / "res"), str(bench / "run3.csv"), "--map", str(bench / "map.toml")]
    assert "\x1b[" not in run(*arguments).output
    script = ["script", "-qec", " ".join([sys.executable, "-m", "dynid", *arguments]), os.devnull]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
    assert ("\x1b[32m" in done.stdout) == coloured


def test_every_verb_has_examples_and_the_exit_codes_are_told() -> None:
    assert "Exit codes:" in run("--help").output
    for name in main.commands:
        assert f"dynid {name}" in run(name, "--help").output.partition("Examples:")[2], name
