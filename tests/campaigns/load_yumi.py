"""The YuMi log: the tool by its wrist sensor, against the scales, and what its joint torques say of it.

Joint torques see the last link, the sensor's own body and the tool as one: their columns are the same. Neither a run
without the tool nor a model of the arm came with the log (public model files of the arm hold placeholders, 2 kg for
every link). So two answers are given: with nothing known of the arm the first moments of all that turns with joint 7,
and what of it is not the tool; with guessed masses the load itself, in an interval that says what a guess is worth.

Run: ``python tests/campaigns/load_yumi.py``; needs the data sets (``DYNID_DATASETS``) and h5py.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

import dynid
from dynid.estimation.linear.least_squares import WLS
from dynid.export.controller_dialogs import payload_dialogs
from dynid.load.load import Load
from dynid.load.load_study import study_load, study_payload
from dynid.load.payload import ArmUncertainty, identify_end_link
from dynid.load.sensor_faults import check_wrench
from dynid.load.wrist import Sensing
from dynid.processing.experiment import Experiment
from dynid.robot.formats.dh import StandardDH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import rotation_about
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

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


GUESSED = (2.0, 2.0, 1.5, 1.5, 1.0, 0.8, 0.4)
"""Masses of the links [kg]: the whole arm with its base weighs 9.6 kg by the maker's data sheet."""
TRUSTED = ArmUncertainty(mass=0.5, com=0.05)
"""What such a guess is worth."""


def guessed_arm(along: float) -> Robot:
    """The arm with guessed masses, each a part of the way along its link (1: at its far end), and unknown friction."""
    robot = yumi().with_terms(Viscous(), Coulomb(), Offset())
    bodies = [
        Inertia.from_com(mass, [along * a, 0.0, (along - 1.0) * d], 0.4 * mass * 0.08**2 * np.eye(3)).vector
        for mass, (a, _, d, _) in zip(GUESSED, _ROWS, strict=True)
    ]
    return robot.with_parameters(np.concatenate([*bodies, robot.parameter_vector[70:]]))


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
        print(f"proposed: {proposal.finding.message}")
    study = study_load(robot, run, sensor_frame=FRAME, sensing=Sensing(find_orientation=True, drift=True))
    print(study)
    print(f"against the scales: {100 * (study.load.mass / WEIGHED - 1):+.2f} %")
    print(*payload_dialogs(study.load), sep="\n")
    print("\nBy joint torques, nothing known of the arm:\n")
    arm = robot.with_terms(Viscous(), Coulomb(), Offset())
    last = identify_end_link(arm, run, link=FRAME)
    print(last)
    print_joint_7(arm, run, last, study.load)
    for where, along in (("half way along", 0.5), ("at the far end of", 1.0)):
        print(f"\nBy joint torques, masses guessed {where} the links:\n")
        print(study_payload(guessed_arm(along), loaded=run, link=FRAME, arm=TRUSTED))


def print_joint_7(arm: Robot, run: Experiment, last: Load, tool: Load) -> None:
    """Why joint 7's first moments are not the tool's: the sign is right, the body is another one."""
    friction = dict(zip(*_friction(arm, run), strict=True))
    print(f"dry friction of joint 7: {friction['FC7']:.3f} N m, with the motion: the sign of its torque is right")
    print("first moments by joint 7   [g m]:", np.round(1e3 * last.vector[6:8], 2), "std", 1e3 * last.stderr[6:8])
    print("first moments of the tool  [g m]:", np.round(1e3 * tool.vector[6:8], 2), "std", 1e3 * tool.stderr[6:8])
    left, spread = last.vector[6:8] - tool.vector[6:8], np.hypot(last.stderr[6:8], tool.stderr[6:8])
    print("link 7, sensor and cable   [g m]:", np.round(1e3 * left, 2), "std", 1e3 * spread)
    share = 9.81 * np.linalg.norm(tool.vector[6:8]) / friction["FC7"]
    print(f"the tool's torque about joint 7 is at most {100 * share:.0f} % of that joint's friction")
    for part in np.array_split(np.arange(run.samples), 6):
        stretch = replace(run, **{name: getattr(run, name)[part] for name in _SAMPLED})
        found = identify_end_link(arm, stretch, link=FRAME)
        print("  one sixth of the log     [g m]:", np.round(1e3 * found.vector[6:8], 2))


_SAMPLED = ("time", "q", "dq", "ddq", "effort", "valid", "segment", "wrench")


def _friction(arm: Robot, run: Experiment) -> tuple[tuple[str, ...], list[float]]:
    fit = dynid.identify(arm, run, dynid.Recipe.bare(), estimator=WLS())
    return fit.estimate.names, fit.estimate.values.tolist()


if __name__ == "__main__":
    main()
