"""``dynid watch`` and ``dynid.watch``: logs, planted pushes, standard input, and the live watch against whole logs."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.errors import DataError
from dynid.monitor.calibration import calibrate
from dynid.monitor.live_lines import read_samples
from dynid.monitor.live_watch import LiveWatch
from dynid.monitor.watched_signals import watched_stretches
from dynid.processing.simulation import sum_of_sines
from support.small_fit import small_fit
from support.three_joints import MAP


@cache
def calibrated():
    fit, run = small_fit()
    return fit, run, calibrate(fit, folds=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder, its log, a clean log, and one with a push on joint 2."""
    here = tmp_path_factory.mktemp("watch")
    robot = dynid.robots.gautier_khalil_3r()
    real = robot.with_terms(dynid.Viscous(0.5), dynid.Coulomb(0.3), dynid.RotorInertia(0.2), dynid.Offset(0.1))
    (here / "map.toml").write_text(MAP)
    for seed, name in enumerate(("train", "clean", "pushed")):
        log = dynid.simulate_experiment(
            real, sum_of_sines(3, seed=seed), rate_hz=100, duration_s=12, noise=dynid.Noise(effort=0.1), seed=seed
        )
        assert log.effort is not None
        effort = np.array(log.effort)
        if name == "pushed":
            effort[600:700, 1] -= 4.0
        table = np.column_stack([log.time, log.q, effort])
        np.savetxt(here / f"{name}.csv", table, delimiter=",", header="t,q1,q2,q3,tau1,tau2,tau3", comments="")
    words = ["--estimator", "wls", "--set", "selection=none", "--set", "cutoff_hz=10", "--set", "gate=false"]
    where = ["gautier_khalil_3r", str(here / "train.csv")]
    more = ["--map", str(here / "map.toml"), "--out", str(here / "result")]
    assert CliRunner().invoke(main, ["identify", *where, *words, *more]).exit_code == 0
    return here


def watch(folder: Path, *words: str, stdin: str | None = None):
    arguments = [w if w.startswith("-") or w.isdigit() else str(folder / w) for w in words]
    return CliRunner().invoke(main, ["watch", *arguments], input=stdin, catch_exceptions=False)


def test_a_push_is_reported_with_time_joint_and_exit_code(folder: Path) -> None:
    words = ("--clean", "clean.csv", "--map", "map.toml", "--json")
    done = watch(folder, "result", "pushed.csv", *words, "--out", "watched")
    assert done.exit_code == 1
    (found,) = json.loads(done.stdout)["watches"]
    first = found["alarms"][0]
    assert first["joint"] == "joint2"
    assert abs(first["time_s"] - 6.0) < 0.05
    assert "Torques from outside" in (folder / "watched" / "report.html").read_text()
    assert watch(folder, "result", "train.csv", *words).exit_code == 0


def test_the_logs_of_the_result_calibrate_it_by_default(folder: Path) -> None:
    found = dynid.watch(folder / "result", folder / "clean.csv", clean=[], channel_map=folder / "map.toml")
    assert found.alarms == 0
    assert found.calibration.seconds > 8.0


def test_live_lines_raise_the_same_alarm(folder: Path) -> None:
    fit = dynid.read_result(folder / "result").identification()
    run = dynid.process(
        dynid.read_recording(folder / "pushed.csv", fit.robot, channel_map=folder / "map.toml"), cutoff_hz=10
    )
    lines = [json.dumps({"time": t, "q": q.tolist(), "dq": dq.tolist(), "tau": tau.tolist()})
             for t, q, dq, tau in zip(run.time, run.q, run.dq, run.effort, strict=True)]  # fmt: skip
    words = ("--live", "--clean", "clean.csv", "--map", "map.toml")
    done = watch(folder, "result", *words, stdin="\n".join(lines))
    assert done.exit_code == 1
    assert "joint2" in done.stdout.splitlines()[0]
    assert watch(folder, "result", "clean.csv", *words).exit_code == 2


def test_a_live_watch_has_the_statistics_of_the_whole_log() -> None:
    fit, run, known = calibrated()
    (stretch,) = watched_stretches(fit, run)
    constant = np.broadcast_to(known.typical_spread, stretch.spread.shape)
    still = replace(known, band=replace(known.band, dry_friction=np.zeros(3)))
    wanted = still.statistics(replace(stretch, spread=constant))
    guard = LiveWatch(fit, still)
    found = []
    for k in range(run.samples):
        guard.step(float(run.time[k]), run.q[k], run.dq[k], run.effort[k])
        found.append((guard.external.copy(), guard.jump.copy(), guard.level.copy()))
    external, jump, level = (np.array(part)[1:] for part in zip(*found, strict=True))
    np.testing.assert_allclose(external, wanted.external, atol=1e-9)
    np.testing.assert_allclose(level, wanted.level, atol=1e-8)
    late = slice(known.whitening.order + max(known.whitening.windows), None)
    np.testing.assert_allclose(jump[late], wanted.jump[late], rtol=1e-6, atol=1e-8)


def test_lines_are_read_as_csv_and_json_and_refused_by_number() -> None:
    csv = ["time,q1,dq1,tau1", "0.0,1,2,3", "", "0.1,4,5,6"]
    assert [sample.torque[0] for sample in read_samples(csv, 1)] == [3.0, 6.0]
    assert next(read_samples(['{"time": 1, "q": [1], "dq": [2], "tau": [3]}'], 1)).time_s == 1.0
    for lines, word in ((["time,q1", "0,1,2"], "line 2"), (["{"], "JSON"), (['{"time": 1}'], "no 'q1'"),
                        (['{"time": 1, "q": ["x"], "dq": [2], "tau": [3]}'], "no number")):  # fmt: skip
        with pytest.raises(DataError, match=word):
            list(read_samples(lines, 1))
