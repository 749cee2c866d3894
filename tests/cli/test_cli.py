"""The command line: what it prints, its exit codes, and one helpful line for every wrong use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import dynid
from dynid.cli import main
from dynid.cli.screen import wrap_lines


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize(
    ("language", "start"),
    [("text", "Joint torques"), ("latex", "\\begin{align*}"), ("python", "import math")],
)
def test_base_prints_the_torques_as_formulas(language: str, start: str) -> None:
    result = run("base", "ddarm", "--torques", language)
    assert result.exit_code == 0
    assert result.output.startswith(start)


def test_base_in_distal_frames() -> None:
    shown = run("base", "puma260", "--frames", "distal")
    assert shown.exit_code == 0, shown.output
    assert "52 base parameters from 78 standard ones (elimination in distal frames" in shown.output


def test_check_of_a_sound_and_an_unsound_model(tmp_path: Path) -> None:
    text = '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="{}"/>{}</inertial></link>{}</robot>'
    tensor = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>'
    bad = tmp_path / "bad.urdf"
    bad.write_text(text.format(-1, tensor, joint))
    result = run("check", str(bad))
    assert result.exit_code == 1
    assert "mass" in result.output
    findings = json.loads(run("check", str(bad), "--json").output)
    assert any(finding["severity"] == "error" and finding["remedy"] for finding in findings)


def test_sentences_are_wrapped_and_tables_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    sentence, row = "word " * 40, "a" * 60 + "   " + "b" * 60
    wrapped = wrap_lines(f"{sentence}\n{row}").splitlines()
    assert max(len(line) for line in wrapped[:-1]) <= 80
    assert wrapped[-1] == row
    assert " ".join(" ".join(wrapped[:-1]).split()) == sentence.strip()


def test_sentences_and_formulas_fit_the_terminal() -> None:
    for words in (["base", "puma560"], ["check", "ddarm"]):
        lines = run(*words).stdout.splitlines()
        assert lines
        assert max(map(len, lines)) <= 80
    whole = dynid.base_parameters(dynid.robots.puma560()).to_text()
    assert run("base", "puma560").stdout.split() == whole.split()  # nothing is lost
