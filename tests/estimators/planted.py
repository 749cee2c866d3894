"""Experiments of robots whose parameters are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.compiled import inverse_dynamics
from dynid.estimators.equations import Samples, build_equations
from dynid.estimators.estimate import Estimate
from dynid.excitation.trajectories.quintic import minimum_jerk
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import sum_of_sines
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from support.exact_runs import exact_run

Floats = NDArray[np.float64]


def experiment(q: Floats, dq: Floats, ddq: Floats, effort: Floats, rate_hz: float) -> Experiment:
    return exact_run(np.arange(len(q)) / rate_hz, (q, dq, ddq), effort=effort, rate_hz=rate_hz)


def planted_run(
    robot: Robot,
    *,
    noise: ArrayLike = 0.0,
    outliers: float = 0.0,
    samples: int = 1500,
    rate_hz: float = 100.0,
    amplitude: ArrayLike = 0.8,
    period_s: float = 6.0,
    seed: int = 0,
    motion: int = 0,
) -> Experiment:
    """A motion with known torques; ``seed`` of the noise, ``motion`` of the trajectory."""
    time = np.arange(samples) / rate_hz
    path = sum_of_sines(robot.dof, period_s=period_s, harmonics=5, amplitude=amplitude, seed=motion)
    q, dq, ddq = path(time)
    effort = inverse_dynamics(robot, q, dq, ddq)
    rng = np.random.default_rng(1000 + seed)
    effort = effort + rng.normal(size=q.shape) * np.asarray(noise)
    hit = rng.random(q.shape) < outliers
    effort = effort + hit * (0.5 + rng.random(q.shape)) * 2.0 * np.abs(effort).max(axis=0)  # all to one side
    return experiment(q, dq, ddq, effort, rate_hz)


def with_friction(robot: Robot) -> Robot:
    return robot.with_terms(RotorInertia(0.1), Viscous(0.5), Coulomb(0.3), Offset(0.2))


SCARA = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))


@cache
def arm() -> Robot:
    """Three joints of the paper, with friction."""
    return with_friction(zoo.ddarm())


def truth(equations: Samples) -> Floats:
    return equations.base.project(equations.robot.parameter_vector)


def covered(equations: Samples, estimate: Estimate) -> NDArray[np.bool_]:
    """(b,) whether the 95 % interval holds the planted value."""
    interval, planted = estimate.interval(), truth(equations)
    return (interval[:, 0] <= planted) & (planted <= interval[:, 1])


def feed(tracker: Any, run: Experiment, portion: int = 1, *, accelerations: bool = True) -> Any:
    """The tracker, given a run in portions of some samples."""
    signals = [run.q, run.dq, *[run.ddq] * accelerations, run.effort]
    for start in range(0, run.samples, portion):
        here = slice(start, start + portion)
        tracker.update(*(values[here] for values in signals), valid=run.valid[here])
    return tracker


def equations_of(robot: Robot, **options: object) -> Samples:
    return build_equations(robot, planted_run(robot, **options))  # type: ignore[arg-type]


@cache
def atkeson_equations(noise: float = 0.0) -> Samples:
    """The direct drive arm on [Atkeson1986]'s three moves, 600 samples in all; the lost time of one taken as 1.3 s."""
    robot = zoo.ddarm()
    moves = [
        ((330, 289.1, 230), (80, 39.1, -10)),
        ((330, 269.1, -30), (80, 19.1, 220)),
        ((80, 269.1, -30), (330, 19.1, 220)),
    ]
    rng = np.random.default_rng(0)
    runs = []
    for start, end in moves:
        path = minimum_jerk(np.deg2rad(start), np.deg2rad(end), duration_s=1.3)
        states = path.evaluate(np.linspace(0.0, 1.3, 200))
        q, dq, ddq = (np.ascontiguousarray(x) for x in states)
        effort = inverse_dynamics(robot, q, dq, ddq)
        runs.append(experiment(q, dq, ddq, effort + noise * rng.normal(size=q.shape), 199 / 1.3))
    return build_equations(robot, runs)


def held_run(robot: Robot, joints: Sequence[int], *, noise: float = 0.0, **options: object) -> Experiment:
    """A motion in which some joints stand still."""
    run = planted_run(robot, **options)  # type: ignore[arg-type]
    states = [run.q.copy(), run.dq.copy(), run.ddq.copy()]
    for state, value in zip(states, (0.3, 0.0, 0.0), strict=True):
        state[:, joints] = value
    effort = inverse_dynamics(robot, *states) + noise * np.random.default_rng(3).normal(size=run.q.shape)
    return experiment(*states, effort, run.rate_hz)


def still(robot: Robot, joints: Sequence[int], **options: object) -> Samples:
    """Equations in which some joints never move."""
    return build_equations(robot, held_run(robot, joints, **options))  # type: ignore[arg-type]


def silent(robot: Robot) -> Samples:
    """Equations whose torques are all zero, as of an unplugged sensor."""
    run = planted_run(robot)
    return build_equations(robot, replace(run, effort=np.zeros_like(run.effort)))
