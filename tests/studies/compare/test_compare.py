"""Estimators compared on simulated loops."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.errors import ArgumentError
from dynid.kernels import inverse_dynamics
from dynid.robot import zoo
from dynid.studies.compare.compare_page import comparison_table, study_page, study_pictures
from dynid.studies.compare.compared_methods import method, names
from dynid.studies.compare.condition import Condition, conditions
from dynid.studies.compare.study import Study, run_study
from dynid.studies.compare.trial import FRICTION_SPEED, Setting, make_trial, planted_robot


@cache
def setting() -> Setting:
    return Setting(robot=planted_robot(zoo.gautier_khalil_3r()), duration_s=6.0)


@cache
def study() -> Study:
    return run_study(setting(), conditions(position_std=(1e-4, 1e-3)), ("ols", "wls+f", "iv", "didim"), runs=2)


def test_without_noise_a_trial_obeys_the_unchanged_model() -> None:
    trial = make_trial(setting(), Condition(position_std=0.0, torque_std=0.0), 0)
    other = trial.other
    counts = np.abs(other.dq) > FRICTION_SPEED
    expected = inverse_dynamics(setting().robot, other.q, other.dq, other.ddq)
    assert np.where(counts, other.torque - expected, 0.0) == pytest.approx(np.zeros_like(expected), abs=1e-9)
    assert trial.torque_error(trial.truth) < 1e-10
    assert trial.position_error(trial.truth) < 1e-12
    assert trial.torque_error(1.1 * trial.truth) == pytest.approx(10.0, rel=1e-6)


def test_the_same_rows_count_for_all_methods() -> None:
    trial = make_trial(setting(), Condition(), 3)
    assert trial.raw.valid.sum() == trial.filtered.valid.sum()
    rough = trial.raw.time[trial.raw.valid[:, 0]]
    assert rough == pytest.approx(trial.filtered.time[trial.filtered.valid[:, 0]])


def test_noise_spoils_least_squares_and_not_the_others() -> None:
    worse = study().conditions[1]
    assert study().of(worse, "ols").error > 5.0 * study().of(worse, "wls+f").error
    assert study().of(worse, "didim").torque_error < 5.0
    assert study().of(worse, "ols").torque_error > 10.0
    assert study().of(study().conditions[0], "didim").simulations >= 2


def test_seeds_fix_the_numbers() -> None:
    again = run_study(setting(), study().conditions[:1], ("ols", "wls+f"), runs=2)
    for name in ("ols", "wls+f"):
        assert again.of(again.conditions[0], name).error == study().of(study().conditions[0], name).error


def test_table_page_and_pictures() -> None:
    table = comparison_table(study())
    assert len(table.rows) == 2 * 6
    html = study_page(study()).to_html()
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "maximum likelihood" in html
    assert "<h3>parameter error [%], 100 Hz</h3>" in html
    assert "total least squares" in html.partition("<h3>Remarks</h3>")[2]  # why it refused
    picture = study_pictures(study())
    assert picture.startswith("<svg")
    colours = re.findall(r'style="fill:(#\w+)">didim<', picture)
    assert len(colours) == 4  # one per chart
    assert len(set(colours)) == 1
    json.dumps(study().to_json(), default=float)


def test_whatever_conditions_differ_in_is_drawn() -> None:
    varied = conditions(rate_hz=(100.0, 250.0), gain_error=(0.0, 0.3))
    found = run_study(setting(), varied, ("ols",), runs=1)
    picture = study_pictures(found)
    assert "rate [Hz]" in picture
    assert "gains" in picture
    assert "noise of positions" not in picture


def test_names_and_conditions_are_checked() -> None:
    for name in names():
        assert method(f"{name}+f").filtered
    with pytest.raises(ArgumentError, match="no method"):
        method("magic")
    with pytest.raises(ArgumentError):
        Condition(rate_hz=0.0)
    with pytest.raises(ArgumentError, match="not a multiple"):
        make_trial(setting(), Condition(rate_hz=333.0), 0)


def test_the_command_line(tmp_path: Path) -> None:
    words = ["compare", "gautier_khalil_3r", "--runs", "1", "--set", "duration_s=4", "--methods", "ols,wls+f"]
    result = CliRunner().invoke(main, [*words, "--noise", "1e-4,1e-3", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "wls+f" in result.output
    assert {path.name for path in tmp_path.iterdir()} == {"compare.html", "compare.md", "compare.json", "compare.svg"}
    again = CliRunner().invoke(main, [*words, "--out", str(tmp_path)])
    assert again.exit_code != 0
    parallel = CliRunner().invoke(main, [*words, "--json", "--jobs", "2", "--runs", "2"])
    assert parallel.exit_code == 0
    assert len(json.loads(parallel.stdout)["results"]) == 2


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    words = ["-m", "dynid", "compare", "gautier_khalil_3r", "--runs", "500", "--methods", "ols", "--jobs", "2"]
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, *words, "--out", str(out)], stderr=subprocess.PIPE, start_new_session=True
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    for _ in range(300):  # until it has processes at work
        time.sleep(0.1)
        if children.exists() and len(children.read_text().split()) >= 2:
            break
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
    _, text = process.communicate(timeout=60)
    assert process.returncode == 130, text
    assert b"starts again" in text
    assert not out.exists()
