"""Real logs in short: the TX40's friction beside the values circulated with its log, and a Panda behind a relay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dynid
from dynid.logs.reading import read_recording
from dynid.logs.recording import Recording
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
