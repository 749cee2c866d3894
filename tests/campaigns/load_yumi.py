"""The YuMi log: the tool by its wrist sensor, against the scales, and what its joint torques say of the last link.

Run: ``python tests/campaigns/load_yumi.py``; needs the data sets (``DYNID_DATASETS``) and h5py.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import dynid
from dynid.data.recording import Experiment
from dynid.export.payload_dialogs import payload_dialogs
from dynid.identification.end_link import identify_end_link
from dynid.identification.load_study import study_load
from dynid.identification.sensor_checks import check_wrench
from dynid.identification.wrist import Sensing
from dynid.robot.dh import StandardDH, from_dh
from dynid.robot.joint_models import Coulomb, Offset, Viscous
from dynid.robot.model import Robot
from dynid.spatial import rotation_about

ROOT = Path(__file__).parents[2]
LOG = Path(os.environ.get("DYNID_DATASETS", ROOT.parent / "shared" / "datasets")) / "yumi_ft" / "gravitylog.mat"
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
    return from_dh(rows, convention="standard", degrees=True, name="yumi").with_base_orientation(base)


def log() -> Experiment:
    """Rows of slow motion: velocities measured, accelerations taken as zero."""
    recording = dynid.read_recording(LOG, channel_map=ROOT / "channel_maps" / "yumi_ft.toml")
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


def main() -> None:
    """Print what the log says."""
    robot, run = yumi(), log()
    for proposal in check_wrench(robot, run, sensor_frame=FRAME):
        print(f"proposed: {proposal.text} (residual {proposal.improvement:.1f} times smaller)")
    study = study_load(robot, run, sensor_frame=FRAME, sensing=Sensing(find_orientation=True, drift=True))
    print(study)
    print(f"against the scales: {100 * (study.load.mass / WEIGHED - 1):+.2f} %")
    print(*payload_dialogs(study.load), sep="\n")
    arm = robot.with_joint_models(Viscous(), Coulomb(), Offset())
    last = identify_end_link(arm, run, link=FRAME)
    print(last)
    print("first moments by torque  [g m]:", 1e3 * last.vector[6:9], "std", 1e3 * last.stderr[6:9])
    print("first moments of the tool [g m]:", 1e3 * study.load.vector[6:9])


if __name__ == "__main__":
    main()
