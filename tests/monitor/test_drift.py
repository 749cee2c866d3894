"""Drift and wear: planted changes of friction are found on their joint; an unchanged robot shows none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.processing.simulation import sum_of_sines
from dynid.workflows import run
from dynid.workflows.drift_run import CompareRuns, Drift
from fleet.small_fleet import ROBOT, arm
from support.header_styles import write_columns
from support.three_joints import HEADER, MAP


def compare_runs(stored: Path, later: list[Path], out: Path | None = None, **options: Any) -> Drift:
    return run(CompareRuns(stored, later, **options), out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result, a later log of the same robot, and one in which joint 2 rubs twice as much."""
    here = tmp_path_factory.mktemp("drift")
    (here / "map.toml").write_text(MAP)
    arm = dynid.robots.gautier_khalil_3r()
    usual = arm.with_terms(dynid.Viscous(0.5), dynid.Coulomb(0.6))
    worn = usual.with_terms(dynid.Coulomb(0.6, joint=1), keep=True)
    for seed, (name, robot) in enumerate({"first": usual, "same": usual, "worn": worn}.items()):
        log = dynid.simulate_experiment(
            robot, sum_of_sines(3, seed=seed), rate_hz=100, duration_s=10, noise=dynid.Noise(effort=0.1), seed=seed
        )
        write_columns(here / f"{name}.csv", [HEADER], [log.time, log.q, log.effort])
    log = dynid.read_recording(here / "first.csv", channel_map=here / "map.toml")
    kinds = arm.with_terms(dynid.Viscous(), dynid.Coulomb())
    fit = dynid.identify(kinds, dynid.process(log, cutoff_hz=10), dynid.Recipe.bare(), estimator=dynid.WLS())
    dynid.write_result(fit, here / "result.json")
    return here


def test_wear_is_found_on_its_joint_and_nothing_else(folder: Path) -> None:
    files = [str(folder / name) for name in ("result.json", "same.csv", "worn.csv")]
    options = ["--map", str(folder / "map.toml"), "--out", str(folder / "wear"), "--json"]
    done = CliRunner().invoke(main, ["compare-runs", *files, *options], catch_exceptions=False)
    assert done.exit_code == 1  # something moved
    same, worn = json.loads(done.stdout)["later"]
    assert same["moved"] == []
    assert {entry["joint"] for entry in worn["moved"]} == {"joint2"}
    dry = next(entry for entry in worn["moved"] if entry["parameter"] == "dry friction")
    assert dry["after"] - dry["before"] == pytest.approx(0.6, abs=0.1)
    page = (folder / "wear" / "report.html").read_text()
    assert "Friction over time" in page
    assert "N m s/rad" in page.partition("Friction over time")[2]
    assert worn["date"][:4].isdigit()


@pytest.mark.parametrize("fault", ["degrees", "reversed"])
def test_a_log_in_other_units_or_order_is_no_wear(folder: Path, tmp_path: Path, fault: str) -> None:
    table = np.loadtxt(folder / "same.csv", delimiter=",", skiprows=1)
    changed = {
        "degrees": table * [1.0, *3 * [180.0 / np.pi], 1.0, 1.0, 1.0],
        "reversed": table[:, [0, 3, 2, 1, 6, 5, 4]],
    }
    write_columns(tmp_path / "log.csv", [HEADER], [changed[fault]])
    result, maps = folder / "result.json", folder / "map.toml"
    with pytest.raises(dynid.errors.DataError, match="--no-check"):
        compare_runs(result, [tmp_path / "log.csv"], channel_map=maps)
    assert compare_runs(result, [tmp_path / "log.csv"], channel_map=maps, gate=False).has_moved


def test_a_load_is_named_where_it_explains_what_moved(tmp_path: Path) -> None:
    """1.2 kg on the last link; a worn joint is no load."""
    fits = {}
    for seed, (name, robot) in enumerate(
        {"empty": ROBOT, "loaded": arm(0, load_kg=1.2), "worn": arm(0, {"FC2": 2.0})}.items()
    ):
        motion = sum_of_sines(3, period_s=5.0, harmonics=5, amplitude=0.7, seed=seed)
        log = dynid.simulate_experiment(
            robot, motion, rate_hz=100, duration_s=20, noise=dynid.Noise(effort=0.2), seed=seed
        )
        fit = dynid.identify(ROBOT, dynid.process(log, cutoff_hz=10), dynid.Recipe.bare(), estimator=dynid.WLS())
        fits[name] = dynid.write_result(fit, tmp_path / f"{name}.json")
    found = compare_runs(fits["empty"], [fits["loaded"]])
    load = found.later[0].load
    assert load.mass == pytest.approx(1.2, abs=4.0 * load.stderr)
    assert load.stderr < 0.1
    assert found.verdict.startswith("a load of 1.")
    worn = compare_runs(fits["empty"], [fits["worn"]])
    assert worn.later[0].load is None
    assert worn.has_moved
