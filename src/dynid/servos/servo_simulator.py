"""Simulate the encoder readings of a robot's servos under the commands of a log, and differentiate them exactly.

`simulate_servos` takes a `ServoModel` (robot, law of the drives, parameters to find) with values for its unknown
numbers, its P *entries*, and a `CommandedMotion` (commands and readings at N instants of a log). It gives the simulated
readings (N, n) of the n joints. `differentiate_chains` also gives their derivatives by the entries, for least squares.

Branches of a robot on a fixed base, such as the legs of a quadruped, do not act on each other: each is simulated by
itself as a *chain*. Every interval between two samples of the log is cut into time steps of at most ``model.step_s``;
servo_step.py has the equations of a step, servo_run.py runs the steps in machine code. A delay is no parameter of the
step: it shifts the commands in time (`_delay_signal`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.array_types import Floats
from dynid.control_loop.simulator import FAR
from dynid.errors import ArgumentError, EstimationError
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.servos.kinds import DELAY
from dynid.servos.motion import CommandedMotion
from dynid.servos.servo_model import ServoModel
from dynid.servos.servo_run import ServoRun, compiled_run
from dynid.servos.servo_step import CONSTANT_INPUTS, ServoPlant
from dynid.spatial import transform


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedChain:
    """The simulated motion of one chain, such as a leg, with its derivatives."""

    joints: list[int]
    """Indices of its m joints among those of the robot."""
    entries: list[int]
    """Indices of the p entries of the model that its motion depends on."""
    position: Floats
    """(N, m) simulated readings [rad or m]."""
    slopes: Floats
    """(N, m, p) derivatives of the readings with respect to these entries [rad or m per unit of the entry]."""


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """The K time steps of a motion: every interval of the log is cut into equal steps."""

    h: Floats
    """(K,) lengths of the steps [s]."""
    middle: Floats
    """(K,) times of their middles [s]."""
    interval: NDArray[np.int64]
    """(K,) index of the log's interval, between two samples, that each step is in."""
    noted: NDArray[np.int64]
    """(K,) 1 for the last step of an interval, which ends at the time of a sample of the log; otherwise 0."""


@lru_cache(maxsize=256)
def _grid(motion: CommandedMotion, step_s: float) -> _Grid:
    """Cut a motion into steps of at most ``step_s`` [s]."""
    dt = np.diff(motion.time)
    # rounding must not add a step to an interval of exactly one step
    counts = np.maximum(1, np.ceil(dt / step_s * (1.0 - 1e-9)).astype(np.int64))
    interval = np.repeat(np.arange(dt.size), counts)
    place = np.arange(interval.size) - np.repeat(np.cumsum(counts) - counts, counts)  # of each step in its interval
    h = (dt / counts)[interval]
    noted = (place == counts[interval] - 1).astype(np.int64)
    return _Grid(h, motion.time[interval] + (place + 0.5) * h, interval, noted)


def _delay_signal(motion: CommandedMotion, values: Floats, grid: _Grid, delay: Floats) -> tuple[Floats, Floats]:
    """Delay a commanded signal by each joint's delay.

    Before the first sample the signal has its first value, after the last one its last.

    Args:
        motion: The motion, with the times of the samples.
        values: (N, n) samples of the signal.
        grid: The K time steps.
        delay: (n,) delay of each joint [s].

    Returns:
        Values of the delayed signal during the steps, and their derivatives with respect to the delay, (K, n) each.
    """
    shifted = np.empty((grid.h.size, motion.dof))
    slopes = np.empty((grid.h.size, motion.dof))
    evaluate = _held if motion.held else _interpolate_midway
    for late in np.unique(delay):  # joints of the same delay at once
        joints = np.flatnonzero(delay == late)
        shifted[:, joints], slopes[:, joints] = evaluate(motion.time, values[:, joints], grid, float(late))
    return shifted, slopes


def _held(time: Floats, values: Floats, grid: _Grid, late: float) -> tuple[Floats, Floats]:
    """Average over each step a signal that keeps each sample until the next one, delayed by ``late`` [s].

    Unlike the value in the middle of a step, the mean changes continuously with the delay, so that it can be fitted.
    It is the difference of the signal's integral at both ends of the step, over the length of the step. Result as for
    `_delay_signal`.
    """
    # (N, m) integral of the signal from the first sample to each sample
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(np.diff(time)[:, None] * values[:-1], axis=0)])
    ends = np.append(time[0], grid.middle + 0.5 * grid.h) - late  # (K + 1,) of the steps, which follow one another
    here = np.clip(np.searchsorted(time, ends, side="right") - 1, 0, time.size - 1)  # sample in force at each end
    kept = values[here]
    per_step = 1.0 / grid.h[:, None]
    means = np.diff(total[here] + (ends - time[here])[:, None] * kept, axis=0) * per_step
    return means, -np.diff(kept, axis=0) * per_step


def _interpolate_midway(time: Floats, values: Floats, grid: _Grid, late: float) -> tuple[Floats, Floats]:
    """Interpolate a signal linearly between its samples in the middle of each step, delayed by ``late`` [s].

    Result as for `_delay_signal`.
    """
    rates = np.diff(values, axis=0) / np.diff(time)[:, None]
    times = np.clip(grid.middle - late, time[0], time[-1])
    left = np.clip(np.searchsorted(time, times, side="right") - 1, 0, time.size - 2)
    inside = (grid.middle - late > time[0])[:, None]
    shifted = values[left] + (times - time[left])[:, None] * rates[left]
    return shifted, np.where(inside, -rates[left], 0.0)


def given_gains(model: ServoModel, motion: CommandedMotion) -> Floats:
    """Gather kp, kd, ki and supply voltage, (4, n): those of the motion or, where it states none, of the drive law.

    Raises:
        ArgumentError: Neither of them states a number that the law needs.
    """
    logged = {name: getattr(motion, name) for name in ("kp", "kd", "ki")}
    logged["voltage"] = None if motion.voltage is None else np.full(model.dof, motion.voltage)
    for name in model.law.needs:
        if logged[name] is None and getattr(model.law, name) is None:
            raise ArgumentError(
                f"neither the law nor '{motion.name}' states {name}",
                remedy=f"Give {name} in the law, or its column in the channel map.",
            )
    default = model.law.gains(model.dof)  # name -> (n,)
    return np.stack([default[name] if logged[name] is None else logged[name] for name in CONSTANT_INPUTS])


class _Prepared:
    """Inputs of all joints for the K time steps of a motion: commands, gains, parameters; `chain` takes a chain's."""

    def __init__(self, model: ServoModel, values: ArrayLike, motion: CommandedMotion) -> None:
        """Delay the commands and spread them over the time steps.

        Args:
            model: The robot and its servos.
            values: (P,) values of the model's entries.
            motion: The motion; its joints must be the robot's.
        """
        if motion.joint_names != model.robot.joint_names:
            raise ArgumentError(
                f"'{motion.name}' has the joints {', '.join(motion.joint_names)}",
                remedy=f"The robot has {', '.join(model.robot.joint_names)}, in this order.",
            )
        self.motion = motion
        self.table = model.table(values)
        self.grid = _grid(motion, model.step_s)
        self.command, self.command_slopes = _delay_signal(motion, motion.command, self.grid, self.table[DELAY])
        zero = np.zeros_like(self.command)
        self.rate = zero  # commanded velocities; zero where the motion has none
        self.rate_slopes = zero
        if motion.command_velocity is not None:
            self.rate, self.rate_slopes = _delay_signal(motion, motion.command_velocity, self.grid, self.table[DELAY])
        self.enabled = np.ones_like(self.command)
        if motion.enabled is not None:
            self.enabled = motion.enabled[self.grid.interval].astype(float)
        self.gains = given_gains(model, motion)

    def chain(self, plant: ServoPlant, joints: list[int]) -> tuple[Floats, Floats, Floats, Floats]:
        """Take the inputs of the compiled steps of one chain.

        Args:
            plant: The equations of the chain.
            joints: Indices of its n joints among those of the robot.

        Returns:
            As `dynid.servos.servo_run.ServoRun.trace` takes them: first state (s,), samples (K, 1 + 3 n), gains (4 n,)
            and parameters (kinds n,).
        """
        n = len(joints)
        samples = np.empty((self.grid.h.size, 1 + 3 * n))
        samples[:, 0] = self.grid.h
        for k, rows in enumerate((self.command, self.rate, self.enabled)):
            samples[:, 1 + k * n : 1 + (k + 1) * n] = rows[:, joints]
        start = np.zeros(plant.state_size)
        start[:n] = self.motion.position[0, joints]
        if self.motion.velocity is not None:
            start[n : 2 * n] = self.motion.velocity[0, joints]
        parameters = np.concatenate([self.table[kind][joints] for kind in plant.kinds] or [np.zeros(0)])
        return start, samples, np.ascontiguousarray(self.gains[:, joints]).ravel(), parameters

    def readings(self, trace: Floats, n: int) -> Floats:
        """Pick the readings (N, n) at the times of the log's samples.

        Args:
            trace: (K + 1, s) the first state, and those after the steps.
            n: Number of joints of the chain.

        Raises:
            EstimationError: The simulated motion runs away.
        """
        rows = np.concatenate([[0], 1 + np.flatnonzero(self.grid.noted)])
        positions = trace[rows, :n]
        if not (np.abs(positions - positions[0]) < FAR).all():  # also where it is not a number
            raise EstimationError(
                f"the simulated motion '{self.motion.name}' runs away",
                remedy="Start from other values, or narrow the bounds of the gains.",
            )
        return np.asarray(positions)


def simulate_servos(model: ServoModel, values: ArrayLike, motion: CommandedMotion) -> Floats:
    """Simulate the readings (N, n) of the encoders under a motion's commands, from its first reading on [rad or m].

    Args:
        model: The robot and its servos.
        values: (P,) values of the model's entries.
        motion: Commands, gains and voltage; of the readings only the first one is used.

    Raises:
        EstimationError: The simulated motion runs away.

    Example:
        >>> dynid.servos.simulate_servos(servo, [0.05, 0.4, 0.3], sensed).shape
        (300, 1)
    """
    prepared = _Prepared(model, values, motion)
    position = np.empty_like(motion.position)
    for run, joints in _chains(model):
        states = run.trace(*prepared.chain(run.plant, joints))
        position[:, joints] = prepared.readings(states, len(joints))
    return position


def differentiate_chains(model: ServoModel, values: ArrayLike, motion: CommandedMotion) -> list[SimulatedChain]:
    """Simulate every chain and differentiate its readings with respect to the entries that they depend on.

    Arguments and errors are those of `simulate_servos`.
    """
    prepared = _Prepared(model, values, motion)
    found = []
    for run, joints in _chains(model):
        plant = run.plant
        m = len(joints)
        start, samples, gains, parameters = prepared.chain(plant, joints)
        trace = run.trace(start, samples, gains, parameters)
        position = prepared.readings(trace, m)
        by_delay = (
            np.ascontiguousarray(prepared.command_slopes[:, joints]),
            np.ascontiguousarray(prepared.rate_slopes[:, joints]),
        )
        changes = run.derivatives(trace, samples, gains, parameters, by_delay, prepared.grid.noted)
        # `changes` has a column for each kind of each joint; an entry may be the common value of several of these.
        # chain rule: 1 where the entry is the value of the column
        columns = [(kind, j) for kind in (*plant.kinds, DELAY) for j in joints]
        sets = np.array([[float(kind == e.kind and j in e.joints) for e in model.entries] for kind, j in columns])
        acting = np.flatnonzero(sets.any(axis=0))  # entries that the chain depends on
        slopes = np.zeros((len(position), m, len(acting)))
        # the first reading is the measured one and depends on nothing
        slopes[1:] = changes @ sets[:, acting]
        found.append(SimulatedChain(joints, acting.tolist(), position, slopes))
    return found


def _chains(model: ServoModel) -> list[tuple[ServoRun, list[int]]]:
    """Compile the steps of every chain; return each with the indices of its joints among those of the robot."""
    return [
        (compiled_run(ServoPlant(chain, model.law, model.kinds)), list(places))
        for chain, places in split_chains(model.robot)
    ]


@lru_cache(maxsize=32)
def split_chains(robot: Robot) -> tuple[tuple[Robot, tuple[int, ...]], ...]:
    """Make a robot without friction terms of every branch on the base, each with the indices of its joints in q."""
    branch: list[int] = []  # for each body the first body of its branch
    for j, body in enumerate(robot.bodies):
        branch.append(j if body.parent < 0 else branch[body.parent])
    found = []
    for first in sorted(set(branch)):
        places = tuple(j for j, start in enumerate(branch) if start == first)
        found.append((_chain(robot, places), places))
    return tuple(found)


def _chain(robot: Robot, places: tuple[int, ...]) -> Robot:
    """Make a robot of the bodies with the indices ``places``; every body (links fixed together) becomes one link."""
    base = "base"
    names = {j: f"body_{robot.bodies[j].joint.name}" for j in places}
    joints = []
    for j in places:
        body = robot.bodies[j]
        joints.append(
            Joint(
                name=body.joint.name,
                kind=body.joint.kind,
                parent=names.get(body.parent, base),
                child=names[j],
                T_parent_joint=transform(body.R_parent_joint, body.p_parent_joint),
                axis=body.axis,
            )
        )
    links = (Link(name=base), *(Link(name=names[j], inertia=robot.bodies[j].inertia) for j in places))
    return Robot(name=robot.name, links=links, joints=tuple(joints), gravity=robot.gravity)
