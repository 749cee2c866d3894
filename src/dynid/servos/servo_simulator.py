"""Simulated motions of a `ServoModel` under the commands of a log, and their exact derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError, EstimationError
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.servos.kinds import DELAY
from dynid.servos.motion import CommandedMotion
from dynid.servos.servo_model import ServoModel
from dynid.servos.servo_run import ServoRun, compiled_run
from dynid.servos.servo_step import GIVEN, ServoPlant
from dynid.spatial import transform

FAR = 1e3
"""Distance from the first reading beyond which a simulated joint counts as unstable [rad or m]. Convention."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedChain:
    """The simulated motion of one chain, such as a leg, with its derivatives."""

    joints: list[int]
    """Places of its m joints."""
    entries: list[int]
    """Places of the p entries of the model that move it."""
    position: Floats
    """(N, m) simulated readings [rad or m]."""
    slopes: Floats
    """(N, m, p) their derivatives."""


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """The time steps of a motion."""

    h: Floats
    """(K,) lengths of the steps [s]."""
    middle: Floats
    """(K,) times of their middles [s]."""
    interval: NDArray[np.int64]
    """(K,) number of the log's interval that each step is in."""
    noted: NDArray[np.int64]
    """(K,) 1 for the last step of an interval."""


@lru_cache(maxsize=256)
def _grid(motion: CommandedMotion, step_s: float) -> _Grid:
    dt = np.diff(motion.time)
    counts = np.maximum(1, np.ceil(dt / step_s * (1.0 - 1e-9)).astype(np.int64))
    interval = np.repeat(np.arange(dt.size), counts)
    place = np.arange(interval.size) - np.repeat(np.cumsum(counts) - counts, counts)
    h = (dt / counts)[interval]
    noted = (place == counts[interval] - 1).astype(np.int64)
    return _Grid(h, motion.time[interval] + (place + 0.5) * h, interval, noted)


def _shifted(motion: CommandedMotion, values: Floats, grid: _Grid, delay: Floats) -> tuple[Floats, Floats]:
    """(K, n) a signal (N, n) during the steps, late by each joint's delay, and slopes by the delay.

    Before the first sample the signal has its first value, after the last one its last.
    """
    shifted, slopes = np.empty((grid.h.size, motion.dof)), np.empty((grid.h.size, motion.dof))
    during = _held if motion.held else _joined
    for late in np.unique(delay):
        joints = np.flatnonzero(delay == late)
        shifted[:, joints], slopes[:, joints] = during(motion.time, values[:, joints], grid, float(late))
    return shifted, slopes


def _held(time: Floats, values: Floats, grid: _Grid, late: float) -> tuple[Floats, Floats]:
    """Means over the steps of a signal that keeps each sample until the next one: they move evenly with the delay."""
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(np.diff(time)[:, None] * values[:-1], axis=0)])
    ends = np.append(time[0], grid.middle + 0.5 * grid.h) - late  # steps follow one another
    here = np.clip(np.searchsorted(time, ends, side="right") - 1, 0, time.size - 1)
    kept = values[here]
    per_step = 1.0 / grid.h[:, None]
    return np.diff(total[here] + (ends - time[here])[:, None] * kept, axis=0) * per_step, -np.diff(
        kept, axis=0
    ) * per_step


def _joined(time: Floats, values: Floats, grid: _Grid, late: float) -> tuple[Floats, Floats]:
    """A signal that is a straight line between its samples, in the middles of the steps."""
    rates = np.diff(values, axis=0) / np.diff(time)[:, None]
    times = np.clip(grid.middle - late, time[0], time[-1])
    left = np.clip(np.searchsorted(time, times, side="right") - 1, 0, time.size - 2)
    inside = (grid.middle - late > time[0])[:, None]
    shifted = values[left] + (times - time[left])[:, None] * rates[left]
    return shifted, np.where(inside, -rates[left], 0.0)


def given_gains(model: ServoModel, motion: CommandedMotion) -> Floats:
    """(4, n) kp, kd, ki and voltage of a motion; those of the law where it states none.

    Raises:
        ArgumentError: Neither of them states what the law needs.
    """
    own = {name: getattr(motion, name) for name in ("kp", "kd", "ki")}
    own["voltage"] = None if motion.voltage is None else np.full(model.dof, motion.voltage)
    for name in model.law.needs:
        if own[name] is None and getattr(model.law, name) is None:
            raise ArgumentError(
                f"neither the law nor '{motion.name}' states {name}",
                remedy=f"Give {name} in the law, or its column in the channel map.",
            )
    default = model.law.gains(model.dof)
    return np.stack([default[g] if own[g] is None else own[g] for g in GIVEN])


class _Prepared:
    """A motion under given parameters, as the compiled steps read it."""

    def __init__(self, model: ServoModel, values: ArrayLike, motion: CommandedMotion) -> None:
        if motion.joint_names != model.robot.joint_names:
            raise ArgumentError(
                f"'{motion.name}' has the joints {', '.join(motion.joint_names)}",
                remedy=f"The robot has {', '.join(model.robot.joint_names)}, in this order.",
            )
        self.model, self.motion = model, motion
        self.table = model.table(values)
        self.grid = _grid(motion, model.step_s)
        self.command, self.command_slopes = _shifted(motion, motion.command, self.grid, self.table[DELAY])
        still = np.zeros_like(self.command)
        self.rate, self.rate_slopes = still, still
        if motion.command_velocity is not None:
            self.rate, self.rate_slopes = _shifted(motion, motion.command_velocity, self.grid, self.table[DELAY])
        self.on = np.ones_like(self.command)
        if motion.enabled is not None:
            self.on = motion.enabled[self.grid.interval].astype(float)
        self.given = given_gains(model, motion)

    def chain(self, plant: ServoPlant, joints: list[int]) -> tuple[Floats, Floats, Floats, Floats]:
        """First state, samples, gains and parameters of one chain."""
        n = len(joints)
        samples = np.empty((self.grid.h.size, 1 + 3 * n))
        samples[:, 0] = self.grid.h
        for k, rows in enumerate((self.command, self.rate, self.on)):
            samples[:, 1 + k * n : 1 + (k + 1) * n] = rows[:, joints]
        start = np.zeros(plant.state)
        start[:n] = self.motion.position[0, joints]
        if self.motion.velocity is not None:
            start[n : 2 * n] = self.motion.velocity[0, joints]
        parameters = np.concatenate([self.table[kind][joints] for kind in plant.kinds] or [np.zeros(0)])
        return start, samples, np.ascontiguousarray(self.given[:, joints]).ravel(), parameters

    def readings(self, trace: Floats, n: int) -> Floats:
        """(N, n) positions at the log's instants."""
        rows = np.concatenate([[0], 1 + np.flatnonzero(self.grid.noted)])
        positions = trace[rows, :n]
        if not (np.abs(positions - positions[0]) < FAR).all():  # also where it is not a number
            raise EstimationError(
                f"the simulated motion '{self.motion.name}' runs away",
                remedy="Start from other values, or narrow the bounds of the gains.",
            )
        return np.asarray(positions)


def simulate_servos(model: ServoModel, values: ArrayLike, motion: CommandedMotion) -> Floats:
    """(N, n) readings that the encoders would give under the motion's commands, from its first reading on [rad or m].

    Args:
        model: The robot and its servos.
        values: (P,) values of the model's entries.
        motion: Commands, gains and voltage; of the readings only the first is used.

    Raises:
        EstimationError: The simulated motion runs away.

    Example:
        >>> dynid.servos.simulate_servos(servo, [0.05, 0.4, 0.3], sensed).shape
        (300, 1)
    """
    prepared = _Prepared(model, values, motion)
    position = np.empty_like(motion.position)
    for run, joints in _chains(model):
        position[:, joints] = prepared.readings(run.trace(*prepared.chain(run.plant, joints)), len(joints))
    return position


def differentiate_chains(model: ServoModel, values: ArrayLike, motion: CommandedMotion) -> list[SimulatedChain]:
    """Simulate and differentiate every chain by what moves it; arguments and errors as for `simulate_servos`."""
    prepared, found = _Prepared(model, values, motion), []
    for run, joints in _chains(model):
        plant, m = run.plant, len(joints)
        start, samples, given, parameters = prepared.chain(plant, joints)
        trace = run.trace(start, samples, given, parameters)
        position = prepared.readings(trace, m)
        moved = tuple(np.ascontiguousarray(s[:, joints]) for s in (prepared.command_slopes, prepared.rate_slopes))
        changes = run.derivatives(trace, samples, given, parameters, (moved[0], moved[1]), prepared.grid.noted)
        cells = [(kind, j) for kind in (*plant.kinds, DELAY) for j in joints]
        parts = np.array([[float(kind == e.kind and j in e.joints) for e in model.entries] for kind, j in cells])
        mine = np.flatnonzero(parts.any(axis=0))
        slopes = np.zeros((len(position), m, len(mine)))
        slopes[1:] = changes @ parts[:, mine]
        found.append(SimulatedChain(joints, mine.tolist(), position, slopes))
    return found


def _chains(model: ServoModel) -> list[tuple[ServoRun, list[int]]]:
    """The compiled steps of every chain, and the places of its joints."""
    return [
        (compiled_run(ServoPlant(chain, model.law, model.kinds)), list(places))
        for chain, places in split_chains(model.robot)
    ]


@lru_cache(maxsize=32)
def split_chains(robot: Robot) -> tuple[tuple[Robot, tuple[int, ...]], ...]:
    """Every branch that hangs on the base, as a robot of its own without terms, and the places of its joints in q."""
    branch: list[int] = []
    for j, body in enumerate(robot.bodies):
        branch.append(j if body.parent < 0 else branch[body.parent])
    found = []
    for first in sorted(set(branch)):
        places = tuple(j for j, of in enumerate(branch) if of == first)
        found.append((_chain(robot, places), places))
    return tuple(found)


def _chain(robot: Robot, places: tuple[int, ...]) -> Robot:
    """The bodies at some places, each one link."""
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
