"""Drift and wear: planted changes of friction are found on their joint; an unchanged robot shows none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.processing.simulation import sum_of_sines
from dynid.runs import CompareRuns, run
from dynid.runs.drift_run import Drift
from fleet.small_fleet import ROBOT, arm
from support.three_joints import MAP


def compare_runs(stored: Path, later: list[Path], out: Path | None = None, **options: Any) -> Drift:
    return run(CompareRuns(stored, later, **options), out)


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


def test_an_unchanged_robot_exits_with_zero(folder: Path) -> None:
    words = ["compare-runs", str(folder / "result.json"), str(folder / "same.csv"), "--map", str(folder / "map.toml")]
    assert CliRunner().invoke(main, words, catch_exceptions=False).exit_code == 0


def test_friction_that_several_terms_share_is_compared_as_a_whole(folder: Path, tmp_path: Path) -> None:
    """Each of three terms that are hardly told apart stays in its interval; their sum does not."""
    alike = [dynid.terms.SmoothSign(0.0, joint=joint, scale=scale) for joint in range(3) for scale in (0.03, 0.04)]
    arm = dynid.robots.gautier_khalil_3r().with_terms(dynid.Viscous(), dynid.Coulomb())
    log = dynid.read_recording(folder / "first.csv", channel_map=folder / "map.toml")
    run = dynid.process(log, cutoff_hz=10)
    fit = dynid.identify(arm, run, dynid.Recipe.bare(), estimator=dynid.WLS(), terms=alike)
    path = dynid.write_result(fit, tmp_path / "result.json")
    drift = compare_runs(path, [folder / "same.csv", folder / "worn.csv"], channel_map=folder / "map.toml")
    same, worn = drift.later
    assert same.moved == ()
    (dry,) = worn.moved
    assert (dry.name, dry.joint, dry.unit) == ("dry friction", "joint2", "N m")
    assert dry.after - dry.before == pytest.approx(0.6, abs=0.1)
    assert dry.sentence.startswith("dry friction of joint2 grew from 0.")


@pytest.mark.parametrize("fault", ["degrees", "reversed"])
def test_a_log_in_other_units_or_order_is_no_wear(folder: Path, tmp_path: Path, fault: str) -> None:
    table = np.loadtxt(folder / "same.csv", delimiter=",", skiprows=1)
    if fault == "degrees":
        table[:, 1:4] = np.rad2deg(table[:, 1:4])
    else:
        table = table[:, [0, 3, 2, 1, 6, 5, 4]]
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header="t,q1,q2,q3,tau1,tau2,tau3", comments="")
    result, maps = folder / "result.json", folder / "map.toml"
    with pytest.raises(dynid.errors.DataError, match="--no-check"):
        compare_runs(result, [tmp_path / "log.csv"], channel_map=maps)
    assert compare_runs(result, [tmp_path / "log.csv"], channel_map=maps, gate=False).has_moved


def test_the_same_values_have_not_moved(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "result.json", tmp_path / "later.json")
    drift = compare_runs(folder / "result.json", [tmp_path / "later.json"])
    assert not drift.has_moved
    assert drift.verdict == "no parameter moved beyond its interval"


def test_friction_over_temperature_is_told_from_wear(folder: Path, tmp_path: Path) -> None:
    """Viscous friction of all joints falls by 1 % per kelvin; that of joint 1 also rises by 2 % a day."""
    warm = [24.0, 36.0, 21.0, 40.0, 28.0, 33.0]
    arm = dynid.robots.gautier_khalil_3r()
    (tmp_path / "map.toml").write_text(MAP + '[temperature]\ncolumns = "warm"\nunit = "degC"\n')
    for day, kelvin in enumerate(warm):
        cold = 1.0 - 0.01 * (kelvin - 25.0)
        rubs = [dynid.Viscous(0.5 * cold * (1.0 + 0.02 * day * (joint == 0)), joint=joint) for joint in range(3)]
        robot = arm.with_terms(*rubs, dynid.Coulomb(0.6))
        log = dynid.simulate_experiment(
            robot, sum_of_sines(3, seed=day), rate_hz=100, duration_s=8, noise=dynid.Noise(effort=0.02), seed=day
        )
        table = np.column_stack(
            [1.78e9 + 86400.0 * day + log.time, log.q, np.asarray(log.effort), np.full(len(log.q), kelvin)]
        )
        header = "t,q1,q2,q3,tau1,tau2,tau3,warm"
        np.savetxt(tmp_path / f"{day}.csv", table, fmt="%.12g", delimiter=",", header=header, comments="")
    logs = [tmp_path / f"{day}.csv" for day in range(len(warm))]
    drift = compare_runs(folder / "result.json", logs, channel_map=tmp_path / "map.toml", out=tmp_path / "page")
    assert [one.date[:10] for one in drift.later[:2]] == ["2026-05-28", "2026-05-29"]
    found = {(one.joint, one.kind): one for one in drift.trends}
    for joint, wear in (("joint1", 0.01), ("joint2", 0.0), ("joint3", 0.0)):
        one = found[joint, "viscous"]
        change, half = one.per_kelvin
        assert abs(change + 0.005 * (1.05 if wear else 1.0)) < 2.0 * half
        change, half = one.per_day
        assert abs(change - wear) < 2.0 * half + 0.1 * wear
    assert found["joint1", "viscous"].per_day[0] > 2.0 * found["joint1", "viscous"].per_day[1]
    assert "Friction over temperature" in (tmp_path / "page" / "report.html").read_text()
    content = json.loads((tmp_path / "page" / "drift.json").read_text())
    assert {entry["kind"] for entry in content["friction_and_temperature"]} == {"dry", "viscous"}


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
    assert load is not None
    assert load.mass == pytest.approx(1.2, abs=4.0 * load.stderr)
    assert load.stderr < 0.1
    assert found.verdict.startswith("a load of 1.")
    worn = compare_runs(fits["empty"], [fits["worn"]])
    assert worn.later[0].load is None
    assert worn.has_moved
