"""Loads that turn about one axis only: which moments of inertia show, and do their 95 % intervals hold the truth?

A rotation about axis k of the sensor's frame shows the three moments of column k of the tensor ([Atkeson1986] eq. 8 and
section 3.1.3); the other three must stay open. The load turns by one quintic move of the last joint and back; the arm's
posture, the load, the sensor's frame and the noise are random. The rounded angles of the sensor's frame (1.5708) turn
it by microradians against the joint's axis, as in real robot files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import dynid
from campaigns.load_coverage import random_load
from dynid.compiled import wrench_regressor
from dynid.payload.load import NAMES, Load
from dynid.payload.load_motions import wrist_test_motion
from dynid.payload.payload import identify_payload
from dynid.payload.wrist import identify_load
from dynid.processing.experiment import Experiment
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import transform
from support.exact_runs import exact_run

Floats = NDArray[np.float64]
ARM = dynid.robots.puma560()
RATE_HZ = 200.0
"""Samples per second of the simulated log; convention."""
TURNS = {0: (0.0, -1.5708, 0.0), 1: (1.5708, 0.0, 0.0), 2: (0.0, 0.0, 0.7)}
"""Axis of the sensor's frame that lies on the joint's axis -> roll, pitch and yaw of that frame on the link [rad]."""
SHOWN = {0: ("XX", "XY", "XZ"), 1: ("XY", "YY", "YZ"), 2: ("XZ", "YZ", "ZZ")}
"""Axis -> the moments of inertia that a rotation about it shows."""


@dataclass(frozen=True)
class Trial:
    """One load: which parameters were determined, and which of their intervals held the truth."""

    determined: NDArray[np.bool_]
    expected: NDArray[np.bool_]
    covered: NDArray[np.bool_]
    is_physical: bool


def arm_with_sensor(axis: int) -> Robot:
    """A PUMA 560 whose sensor frame has one of its axes on the last joint's axis, to four digits."""
    R = Rotation.from_euler("xyz", TURNS[axis]).as_matrix()
    last = ARM.bodies[-1].joint.child
    return ARM.with_body("sensor", parent=last, inertia=Inertia.zero(), T_parent_body=transform(R, np.zeros(3)))


def turning_run(robot: Robot, rng: np.random.Generator) -> Experiment:
    """The last joint turns by half a revolution and back in 2 s; the others hold a random posture."""
    limits = [joint.limits for joint in robot.moving_joints]
    start = np.array([rng.uniform(max(limit.lower, -1.5), min(limit.upper, 1.5)) for limit in limits])
    motion = wrist_test_motion(robot, start, joints=[robot.joint_names[-1]], duration_s=1.0)
    time = np.arange(0.0, motion.duration, 1.0 / RATE_HZ)
    return exact_run(time, motion.evaluate(time), wrench=np.zeros((len(time), 6)))


def sensor_trial(seed: int) -> Trial:
    """A random load by the wrist sensor, which has a bias."""
    rng = np.random.default_rng(seed)
    axis, truth = seed % 3, random_load(rng)
    robot = arm_with_sensor(axis)
    run = turning_run(robot, rng)
    noise = np.repeat([0.2, 0.01], 3) * rng.uniform(0.3, 3.0, 6)
    wrench = wrench_regressor(robot, "sensor", run.q, run.dq, run.ddq) @ truth.vector
    wrench = wrench + rng.normal(size=6) * np.repeat([5.0, 0.3], 3) + rng.normal(size=wrench.shape) * noise
    load = identify_load(robot, replace(run, wrench=wrench), sensor_frame="sensor", physical=False)
    return judged(load, truth, axis)


def torque_trial(seed: int) -> Trial:
    """A random load by joint torques of an arm that is known."""
    rng = np.random.default_rng(seed)
    axis, truth = seed % 3, random_load(rng)
    robot = arm_with_sensor(axis)
    run = turning_run(robot, rng)
    loaded = robot.with_body("load", parent="sensor", inertia=truth)
    effort = dynid.inverse_dynamics(loaded, run.q, run.dq, run.ddq)
    effort = effort + 0.02 * rng.uniform(0.3, 3.0, robot.dof) * rng.normal(size=effort.shape)
    load = identify_payload(robot, loaded=replace(run, effort=effort), link="sensor", physical=False)
    return judged(load, truth, axis)


def judged(load: Load, truth: Inertia, axis: int) -> Trial:
    """Compare an estimate with the truth; an open parameter has an infinite interval."""
    return Trial(
        determined=~load.undetermined[:6],
        expected=np.array([name in SHOWN[axis] for name in NAMES[:6]]),
        covered=np.abs(load.vector - truth.vector) < 1.96 * load.stderr,
        is_physical=load.inertia.is_physical,
    )
