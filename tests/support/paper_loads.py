"""[Atkeson1986] Tables 1 and 2 in simulation: PUMA, 200 Hz, 33 Hz filter, fifth-order trajectories, imperfect sensors.

The sensor is noisy (vibration included) and has small gain errors, joint angles are quantised and carry offsets; levels
are chosen so that the errors are those of the paper. The gripper is identified alone and subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.excitation.trajectories.quintic import QuinticTrajectory, minimum_jerk
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.kernels import wrench_regressor
from dynid.load.load import Load
from dynid.load.wrist import identify_load
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.robot.inertia import Inertia

Floats = NDArray[np.float64]
ROBOT = dynid.robots.puma560()
LINK = ROBOT.bodies[-1].joint.child
RATE, CUTOFF = 200.0, 33.0
GRIPPER = Inertia.from_com(0.9, [0.0, 0.0, 0.03], np.diag([0.0008, 0.0010, 0.0009]))
MASS, SIDES = 1.106, np.array([0.0508, 0.1524, 0.0508])
SHIFTS = (0.037, -0.043, -0.021, 0.018)
"""Table 1: by how much the block was moved along y [m]."""
BAR_TENSOR = np.diag([0.0244, 0.0007, 0.0242])
"""Table 2: two masses at the ends of a bar along y [kg m^2]."""
PAPER = (minimum_jerk(np.deg2rad([0, 0, 0, -90, 0, 0]), np.deg2rad([90, -60, 90, 90, 90, 90]), duration_s=2.0),)
"""All joints at once, two seconds."""
POSES = np.deg2rad(
    [
        [0, -45, 90, 0, 0, 0],
        [0, -45, 90, 0, 90, 0],
        [0, -45, 90, 90, 90, 0],
        [0, -45, 90, -90, 90, 90],
        [0, -45, 90, 0, -90, 45],
        [0, -45, 0, 45, 60, 0],
    ]
)


@dataclass(frozen=True)
class Rig:
    """One sensor and one set of encoders, imperfect in their own way."""

    gain: Floats
    offset: Floats
    force_noise: float = 0.4
    moment_noise: float = 0.04
    encoder: float = 1e-4

    @classmethod
    def random(cls, rng: np.random.Generator) -> Rig:
        """Gains within 0.2 %, joint offsets of 0.1 deg."""
        return cls(gain=1.0 + 0.002 * rng.normal(size=6), offset=np.deg2rad(0.1) * rng.normal(size=6))

    def wrench(
        self, body: Inertia, motion: tuple[Floats, Floats, Floats], rng: np.random.Generator, mean: int = 1
    ) -> Floats:
        """(N, 6) what the sensor says, each sample the mean of several."""
        q, dq, ddq = motion
        true = wrench_regressor(ROBOT, LINK, q + self.offset, dq, ddq) @ body.vector
        noise = np.repeat([self.force_noise, self.moment_noise], 3) / np.sqrt(mean)
        return np.asarray(self.gain * true + 3.0 * self.gain + rng.normal(size=true.shape) * noise)


def block(shift: float) -> Inertia:
    """The aluminium block, moved along the gripper's y axis."""
    x, y, z = SIDES
    tensor = MASS / 12 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])
    return Inertia.from_com(MASS, [0.001, shift, 0.047], tensor)


def static(rig: Rig, body: Inertia, rng: np.random.Generator) -> Load:
    """Six positions, a thousand samples averaged in each."""
    still = np.zeros_like(POSES)
    run = Experiment(
        time=np.arange(6.0),
        q=POSES,
        dq=still,
        ddq=still,
        effort=still,
        valid=np.ones(POSES.shape, dtype=bool),
        segment=np.zeros(6, dtype=np.int64),
        rate_hz=1.0,
        wrench=rig.wrench(body, (POSES, still, still), rng, mean=1000),
    )
    return identify_load(ROBOT, run, sensor_frame=LINK)


def dynamic(rig: Rig, body: Inertia, paths: Sequence[Trajectory], rng: np.random.Generator) -> Load:
    """One run along each trajectory."""
    runs = [recorded(rig, body, path, rng) for path in paths]
    return identify_load(ROBOT, runs, sensor_frame=LINK, physical=False)


def recorded(rig: Rig, body: Inertia, path: Trajectory, rng: np.random.Generator) -> Experiment:
    """A run from encoders and sensor through filter and differentiation."""
    time = np.arange(-0.3, path.duration + 0.3, 1.0 / RATE)
    motion = path.evaluate(np.clip(time, 0.0, path.duration))
    outside = (time < 0.0) | (time > path.duration)
    q, dq, ddq = motion[0], np.where(outside[:, None], 0.0, motion[1]), np.where(outside[:, None], 0.0, motion[2])
    recording = Recording(
        time=time - time[0],
        q=np.round(q / rig.encoder) * rig.encoder,
        wrench=rig.wrench(body, (q, dq, ddq), rng),
    )
    return dynid.process(recording, cutoff_hz=CUTOFF, rest=None)


def table_1(rng: np.random.Generator) -> list[tuple[float, ...]]:
    """Actual, static and dynamic mass [kg]; actual, static and dynamic change of the centre of mass along y [m]."""
    rig = Rig.random(rng)
    rows: list[tuple[float, ...]] = []
    tares = static(rig, GRIPPER, rng), dynamic(rig, GRIPPER, PAPER, rng)
    still = [static(rig, GRIPPER + block(y), rng).minus(tares[0]) for y in (0.0, *SHIFTS)]
    moving = [dynamic(rig, GRIPPER + block(y), PAPER, rng).minus(tares[1]) for y in (0.0, *SHIFTS)]
    for shift, at_rest, moved in zip(SHIFTS, still[1:], moving[1:], strict=True):
        changes = [float(a.com[1] - b.com[1]) for a, b in ((at_rest, still[0]), (moved, moving[0]))]
        rows.append((MASS, at_rest.mass, moved.mass, shift, *changes))
    return rows


def wrist_moves(roll_deg: float, *joints: int) -> Trajectory:
    """Half turns of single joints within a second, there and back, with the load rolled about the hand's axis."""
    start = np.deg2rad(
        [0, -45, 90, 0, 90, roll_deg]
    )  # the paper's arm, elbow and speeds: not those of this PUMA's limits
    q = np.array([start, *(x for joint in joints for x in (start + 2.97 * np.eye(6)[joint], start))])
    return QuinticTrajectory(q=q, dq=np.zeros_like(q), durations=np.full(len(q) - 1, 1.0))


SPECIAL = (wrist_moves(0.0, 3, 5), wrist_moves(90.0, 3))
"""Joint 4 about the load's two other axes in turn, joint 6 about the third."""


def table_2(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Ixx Ixy Ixz Iyy Iyz Izz of the bar about its centre of mass, by all joints and by special test motions."""
    rig = Rig.random(rng)
    bar = Inertia.from_com(1.1, [0.0, 0.0, 0.05], BAR_TENSOR)
    found = []
    for paths in (PAPER, SPECIAL):
        tare = dynamic(rig, GRIPPER, paths, rng)
        load = dynamic(rig, GRIPPER + bar, paths, rng).minus(tare)
        found.append(Inertia.from_vector(load.vector).about_com[np.triu_indices(3)])
    return found[0], found[1]
