"""Drift and wear: planted changes of friction are found on their joint; an unchanged robot shows none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.processing.simulation import sum_of_sines
from dynid.runs.drift_run import compare_runs
from support.three_joints import MAP


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result, a later log of the same robot, and one in which joint 2 rubs twice as much."""
    here = tmp_path_factory.mktemp("drift")
    (here / "map.toml").write_text(MAP)
    arm = dynid.robots.gautier_khalil_3r()
    usual = arm.with_terms(dynid.Viscous(0.5), dynid.Coulomb(0.6))
    worn = arm.with_terms(dynid.Viscous(0.5), dynid.Coulomb(0.6)).with_terms(dynid.Coulomb(0.6, joint=1), keep=True)
    for seed, (name, robot) in enumerate({"first": usual, "same": usual, "worn": worn}.items()):
        log = dynid.simulate_experiment(
            robot, sum_of_sines(3, seed=seed), rate_hz=100, duration_s=10, noise=dynid.Noise(effort=0.1), seed=seed
        )
        table = np.column_stack([log.time, log.q, np.asarray(log.effort)])
        np.savetxt(here / f"{name}.csv", table, delimiter=",", header="t,q1,q2,q3,tau1,tau2,tau3", comments="")
    log = dynid.read_recording(here / "first.csv", channel_map=here / "map.toml")
    kinds = arm.with_terms(dynid.Viscous(), dynid.Coulomb())
    fit = dynid.identify(kinds, dynid.process(log, cutoff_hz=10), dynid.Recipe.bare(), estimator=dynid.WLS())
    dynid.write_result(fit, here / "result.json")
    return here


def test_wear_is_found_on_its_joint_and_nothing_else(folder: Path) -> None:
    words = ["compare-runs", "result.json", "same.csv", "worn.csv"]
    arguments = [words[0], *(str(folder / word) for word in words[1:]), "--map", str(folder / "map.toml")]
    done = CliRunner().invoke(main, [*arguments, "--out", str(folder / "wear"), "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    same, worn = json.loads(done.stdout)["later"]
    assert same["moved"] == []
    assert {entry["joint"] for entry in worn["moved"]} == {"joint2"}
    dry = next(entry for entry in worn["moved"] if entry["parameter"] == "FC2")
    assert dry["after"] - dry["before"] == pytest.approx(0.6, abs=0.1)
    page = (folder / "wear" / "report.html").read_text()
    assert "Friction over time" in page
    assert worn["date"][:4].isdigit()


def test_a_result_beside_itself_has_not_moved(folder: Path) -> None:
    drift = compare_runs(folder / "result.json", [folder / "result.json"])
    assert not drift.has_moved
    assert drift.verdict == "no parameter moved beyond its interval"
