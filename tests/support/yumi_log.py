"""The YuMi log: a tool on a wrist sensor, weighed on scales."""

from __future__ import annotations

import numpy as np

import dynid
from dynid.processing.experiment import Experiment
from dynid.robot.formats.dh import StandardDH, from_dh
from dynid.robot.model import Robot
from dynid.spatial import rotation_about
from support.servo_logs import DATASETS

LOG = DATASETS / "yumi_ft" / "gravitylog.mat"
WEIGHED = 0.2205
"""Mass of the tool on scales [kg]."""
FRAME = "link7"
_ROWS = (
    (-0.03, -90, 0.11, 0),
    (0.03, 90, 0, 0),
    (0.0405, -90, 0.2465, 0),
    (-0.0405, 90, 0, 90),
    (0.0135, -90, 0.265, 0),
    (-0.027, 90, 0, 0),
    (0, 0, 0.032, 0),
)


def yumi() -> Robot:
    """The arm's geometry on its tilted base."""
    x, y, z = np.eye(3)
    base = rotation_about(x, -0.63) @ rotation_about(y, 0.95) @ rotation_about(z, -0.18)
    rows = [StandardDH(a=a, alpha=alpha, d=d, theta=theta) for a, alpha, d, theta in _ROWS]
    return from_dh(rows, degrees=True, name="yumi").with_base_orientation(base)


def log() -> Experiment:
    """Rows of slow motion: velocities measured, accelerations taken as zero."""
    recording = dynid.read_recording(LOG, channel_map="yumi_ft")
    assert recording.dq is not None
    assert recording.effort is not None
    return Experiment(
        time=recording.time,
        q=recording.q,
        dq=recording.dq,
        ddq=np.zeros_like(recording.q),
        effort=recording.effort,
        valid=np.abs(recording.dq) > 0.01,
        segment=np.zeros(len(recording.time), dtype=np.int64),
        rate_hz=1 / 4.032e-3,
        wrench=recording.wrench,
    )
