"""Do 95 % intervals cover under noise that is not white, and under errors of the model?

    python tests/campaigns/interval_conditions.py [runs [first seed]] [--default] [condition ...]

Robots of known parameters move along random paths that do not repeat, another one in each run. Printed is the share of
intervals that hold the truth, for every group of parameters: by weighted least squares, or with `--default` by
physically consistent least squares with a prior whose densities and frictions are wrong by random factors (e^0.2).

    white, ar0.9, ar0.98   independent torque noise, and noise that follows a first-order autoregression at 100 Hz
    quantised              positions of an encoder with 2^14 steps a turn, at 250 Hz
    ripple                 a torque that repeats 20 times a turn, of unknown phase, in addition to white noise
    repeated               the same along a motion of half the length that is repeated
    stribeck               dry friction that falls by 0.3 of 0.7 N m between 0 and 0.2 rad/s, in a model without it
    offsets                three logs, the offsets of each shifted at random

The truth of `stribeck` needs a word. No parameters of the model give the true friction; those that a fit finds depend
on the speeds of its motion. `stribeck` is measured against the parameters that fit best to all motions together: what
endless recording would give. `stribeck (planted)` is measured against the planted ones, which hold at high speed only:
there no interval from the scatter of data can cover dry and viscous friction. Nor can it cover under `repeated`: the
errors of the model come back with the motion, so that more time does not average them out but looks as if it did.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from dynid.estimation.equations import build_equations
from dynid.estimation.estimate import Estimator
from dynid.estimation.linear.least_squares import WLS
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.kernels import inverse_dynamics
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

Floats = NDArray[np.float64]
ROBOTS = ("gautier_khalil_3r", "scara", "ddarm")
CONDITIONS = ("white", "ar0.9", "ar0.98", "quantised", "ripple", "repeated", "stribeck", "offsets")
GROUPS = {"inertial": (), "rotor": ("IA",), "viscous": ("FV",), "dry": ("FC",), "offset": ("OFF",)}
RATE_HZ, DURATION_S = 100.0, 20.0
HARMONICS = 20
"""Harmonics of the motion, up to 1 Hz."""
NOISE = 0.2
"""Standard deviation of white and autoregressive noise [N m]."""
RIPPLE, RIPPLES = 0.3, 20.0
"""Amplitude [N m] and number of repetitions a turn."""
DROP, STRIBECK_SPEED = 0.3, 0.1
"""Dry friction at rest beyond that at speed [N m], and speed at which it falls [rad/s or m/s]."""
ENCODER = 2.0 * np.pi / 2**14
ENCODER_RATE_HZ = 250.0
BETWEEN = 0.1
"""Standard deviation of the offsets between logs [N m]."""
LOGS = 3


def make_robot(name: str) -> Robot:
    """A robot with the usual terms."""
    return zoo.get(name).with_terms(RotorInertia(0.1), Viscous(0.5), Coulomb(0.4), Offset(0.1))


def record(robot: Robot, condition: str, seed: int, *, noise: float = NOISE) -> Experiment:
    """One run."""
    rng = np.random.default_rng((7, seed))
    share = 0.5 if condition == "repeated" else 1.0
    path = sum_of_sines(
        robot.dof, period_s=share * DURATION_S, harmonics=int(share * HARMONICS), amplitude=0.6, seed=seed + 1
    )
    if condition == "quantised":
        log = simulate_experiment(
            robot, path, rate_hz=ENCODER_RATE_HZ, duration_s=DURATION_S, with_velocity=False, seed=seed
        )
        assert log.effort is not None
        steps = np.round(log.q / ENCODER) * ENCODER
        return process(replace(log, q=steps, effort=log.effort + noise * rng.normal(size=log.effort.shape)))
    time = np.arange(int(RATE_HZ * DURATION_S)) / RATE_HZ
    q, dq, ddq = path(time)
    effort = inverse_dynamics(robot, q, dq, ddq) + noise * coloured(condition, q.shape, rng)
    if condition in ("ripple", "repeated"):
        effort = effort + RIPPLE * np.cos(RIPPLES * q + rng.uniform(0.0, 2.0 * np.pi, robot.dof))
    elif condition == "stribeck":
        effort = effort + DROP * np.sign(dq) * np.exp(-((dq / STRIBECK_SPEED) ** 2))
    elif condition == "offsets":
        effort = effort + BETWEEN * rng.normal(size=robot.dof)
    return Experiment(
        time=time, q=q, dq=dq, ddq=ddq, effort=effort, valid=np.ones(q.shape, dtype=bool),
        segment=np.zeros(len(q), dtype=np.int64), rate_hz=RATE_HZ,
    )  # fmt: skip


def coloured(condition: str, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """(N, n) noise of variance one, autoregressive where the condition says so."""
    pole = float(condition[2:]) if condition.startswith("ar") else 0.0
    white = rng.normal(size=(shape[0] + 2000, shape[1]))
    return np.asarray(lfilter([np.sqrt(1.0 - pole**2)], [1.0, -pole], white, axis=0)[2000:])


def wrong_prior(robot: Robot, seed: int) -> Robot:
    """The robot with densities and terms off by random factors."""
    rng = np.random.default_rng((11, seed))
    scale = np.exp(0.2 * rng.normal(size=robot.parameter_vector.size))
    for j in range(robot.dof):
        scale[10 * j : 10 * j + 10] = scale[10 * j]
    return robot.with_parameters(robot.parameter_vector * scale)


def best_fit(robot: Robot, base: BaseParameters, condition: str, seeds: range) -> Floats:
    """(b,) parameters that fit best to the motions of all runs together, without noise."""
    experiments = [record(robot, condition, seed, noise=0.0) for seed in seeds]
    return WLS().solve(build_equations(robot, experiments, base=base)).values


def hits(name: str, condition: str, seeds: range, *, default: bool) -> dict[str, dict[str, float]]:
    """Share of intervals that hold the truth [%], by group of parameters."""
    robot = make_robot(name)
    base = base_parameters(robot)
    planted = base.project(robot.parameter_vector)
    truths = {condition: planted}
    if condition == "stribeck":
        truths = {"stribeck": best_fit(robot, base, condition, seeds), "stribeck (planted)": planted}
    found: dict[str, list[NDArray[np.bool_]]] = {label: [] for label in truths}
    for seed in seeds:
        logs = LOGS if condition == "offsets" else 1
        experiments = [record(robot, condition, logs * seed + k) for k in range(logs)]
        prior = wrong_prior(robot, seed) if default else robot
        estimator: Estimator = FeasibleWLS() if default else WLS()
        interval = estimator.solve(build_equations(prior, experiments, base=base)).interval()
        for label, truth in truths.items():
            found[label].append((interval[:, 0] <= truth) & (truth <= interval[:, 1]))
    return {label: by_group(base.names, np.array(table)) for label, table in found.items()}


def by_group(names: Sequence[str], table: NDArray[np.bool_]) -> dict[str, float]:
    """Share of hits (runs, b) of each group of parameters [%]."""
    marks = {group: np.array([name.startswith(prefix) for name in names]) for group, prefix in GROUPS.items() if prefix}
    marks["inertial"] = ~np.any(list(marks.values()), axis=0)
    return {group: 100.0 * float(table[:, marks[group]].mean()) for group in GROUPS if marks[group].any()}


def main(arguments: Sequence[str]) -> None:
    """Print the coverage of every condition, robot and group."""
    numbers = [int(word) for word in arguments if word.isdigit()]
    runs, first = (*numbers, *(200, 0)[len(numbers) :])[:2]
    chosen = [word for word in arguments if word in CONDITIONS] or CONDITIONS
    print(f"{'condition':20s}{'robot':20s}" + "".join(f"{group:>10s}" for group in GROUPS))
    for condition in chosen:
        for name in ROBOTS:
            found = hits(name, condition, range(first, first + runs), default="--default" in arguments)
            for label, shares in found.items():
                cells = "".join(f"{shares[g]:9.1f} " if g in shares else f"{'-':>9s} " for g in GROUPS)
                print(f"{label:20s}{name:20s}{cells}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
