"""Real logs in short: the TX40's friction beside the values circulated with its log, and a Panda behind a relay."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.logs.reading import read_recording
from dynid.logs.recording import Recording
from dynid.processing.timing import source_clock
from dynid.processing.uniform import Cleaning
from dynid.robot.model import Robot

ROOT = Path(__file__).parents[2]
DATASETS = Path(os.environ.get("DYNID_DATASETS", ROOT.parent / "shared" / "datasets"))
pytestmark = pytest.mark.skipif(not DATASETS.is_dir(), reason=f"the real data sets are not at {DATASETS}")
PLAIN = (dynid.RotorInertia(), dynid.Viscous(), dynid.Coulomb(), dynid.Offset())
CIRCULATED = {
    "FV": (8.05, 5.53, 1.97, 1.11, 1.86, 0.65),
    "FC": (7.14, 8.26, 6.34, 2.48, 3.03, 0.282),
    "OFF": (0.392, 1.37, 0.326),
}
"""Viscous and dry friction, and the large offsets [N m s/rad, N m, N m]."""


def log(name: str, robot: Robot | None = None) -> Recording:
    return read_recording(DATASETS / name, robot, channel_map=ROOT / "channel_maps" / f"{name}.toml")


def test_tx40_friction_is_the_circulated_one() -> None:
    robot = dynid.read_urdf(DATASETS / "tx40" / "tx40_mdh_modified.urdf")
    wrist = dict.fromkeys(robot.joint_names[-2:], 1.0)
    robot = robot.with_terms(*PLAIN, dynid.terms.Coupling(wrist))
    run = dynid.process(log("tx40", robot), cutoff_hz=60.0, dead_band=0.02)
    estimate = dynid.WLS().solve(dynid.estimators.build_equations(robot, run, band_hz=30.0))
    found = dict(zip(estimate.names, estimate.values, strict=True))
    for symbol, values in CIRCULATED.items():
        for joint, value in enumerate(values, start=1):
            assert found[f"{symbol}{joint}"] == pytest.approx(value, rel=0.1), f"{symbol}{joint}"


def test_panda_behind_a_relay_comes_out_better_on_its_own_clock() -> None:
    path = DATASETS / "panda_unisa" / "panda.urdf"
    fingers = re.findall(r'<joint[^>]*name="([^"]*finger[^"]*)"', path.read_text())
    robot = dynid.read_urdf(path, hold=dict.fromkeys(fingers, 0.0)).with_terms(*PLAIN)
    recording = log("panda_unisa")
    clock = source_clock(recording.time, recording.q)
    assert clock is not None
    assert 1.0 / clock.period_s == pytest.approx(29.4, abs=0.05)
    errors = []
    for relayed in (False, True):
        run = dynid.process(recording, cutoff_hz=6.0, cleaning=Cleaning(relayed=relayed))
        fold_of = np.arange(run.samples) * 3 // run.samples
        folds = [(fold_of == fold)[:, None] for fold in range(3)]
        checks = [
            dynid.validate(
                dynid.identify(robot, replace(run, valid=run.valid & ~held), dynid.Recipe.bare(band_hz=4.0)),
                replace(run, valid=run.valid & held),
            )
            for held in folds
        ]
        errors.append(np.mean([check.relative_error for check in checks]))
    assert errors[1] < 0.75 * errors[0]


def test_halves_of_a_log_agree_within_their_intervals() -> None:
    """The short version of the campaign real_halves: weighted least squares on either half of a log."""
    robot = dynid.read_urdf(DATASETS / "ur10_unisa" / "ur10_robot.urdf").with_terms(*PLAIN)
    run = dynid.process(log("ur10_unisa", robot), cutoff_hz=12.0)
    base, middle = dynid.base_parameters(robot), run.samples // 2
    first, second = (
        dynid.WLS().solve(dynid.estimators.build_equations(robot, run.rows(part), base=base, band_hz=6.0))
        for part in (slice(0, middle), slice(middle, None))
    )
    apart = np.abs(first.values - second.values) / np.hypot(first.stderr, second.stderr)
    assert 0.88 <= np.mean(apart <= 1.96) <= 0.99


def test_samples_of_a_slow_reader_are_counted() -> None:
    """The robot sampled at 1 kHz; a program read the newest sample, often twice, at times late."""
    recording = log("panda_gaz")
    clock = source_clock(recording.time, recording.q)
    assert clock is not None
    assert clock.period_s == pytest.approx(1e-3, rel=1e-4)
    assert np.count_nonzero(~clock.fresh) > 1000
    assert np.ptp(recording.time - clock.time) < 6e-3
