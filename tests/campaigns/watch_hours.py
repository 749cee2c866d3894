"""False alarms of watches over hours of simulated motion, which no real log here is long enough for.

Run ``python tests/campaigns/watch_hours.py`` (``--hours H`` for each robot, ``--seed S``). The simulated arms have
Stribeck friction and friction that grows with the load; the models have not. Each watch is calibrated with twenty
minutes and looks at motions that neither the model nor the calibration has seen. Printed are the alarms that were
counted beside the number that is expected, with the interval in which 95 % of the counts of such a rate lie.

``--short OFFSETS`` calibrates as a newcomer does: from the three runs of 12 s that the model was identified from, parts
left out in turn. The offsets of all runs are random, of this standard deviation [N m or N].
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from watch import counts

import dynid
from dynid.links.identify import Identification
from dynid.monitor.alarms import find_alarms
from dynid.monitor.calibration import Calibration, calibrate
from dynid.monitor.watched_signals import watched_stretches
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import TimeFunction
from dynid.tables import Table

RATE_HZ, PART_S = 100.0, 60.0
"""Rate of the logs [Hz], and length of one [s]."""
CLEAN = 20
"""Logs that a model, and then a watch, is learnt from."""
WATCHES = 4
"""Calibrations of each robot, between which the hours are divided."""
SHORT, SHORT_S = 3, 12.0
"""Runs of a short calibration, and their length [s]."""
STATED = (60.0, 1.0)
"""Stated rates [1/h]."""
TORQUE_NOISE = 0.2
"""Standard deviation of the measured torques [N m or N]."""
SINES, BAND_HZ, AMPLITUDE = 6, (0.05, 0.5), 0.7
"""Sines of each joint, their frequencies [Hz], and the size of their sum [rad or m]."""
STRIBECK, STRIBECK_SPEED, LOAD_FRICTION = 0.2, 0.05, 0.02
"""Friction that the models do not have: at creep speed [N m or N], its speed [rad/s or m/s], and per torque [1]."""
ROBOTS = {
    "3R": dynid.robots.gautier_khalil_3r,
    "scara": dynid.robots.scara,
    "puma560": dynid.robots.puma560,
}


def wander(joints: int, seed: int) -> TimeFunction:
    """A motion that never repeats: sines of random frequencies for each joint."""
    rng = np.random.default_rng(seed)
    w = 2.0 * np.pi * rng.uniform(*BAND_HZ, size=(SINES, joints))
    phase = rng.uniform(0.0, 2.0 * np.pi, size=(SINES, joints))
    size = AMPLITUDE / np.sqrt(SINES)

    def trajectory(t: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        angle = np.multiply.outer(t, w) + phase
        s, c = np.sin(angle), np.cos(angle)
        return size * s.sum(axis=1), size * (w * c).sum(axis=1), -size * (w**2 * s).sum(axis=1)

    return trajectory


def motions(robot: dynid.Robot, seed: int, offsets: float = 0.0) -> Iterator[Experiment]:
    """Simulated experiments of `PART_S`, each with a motion of its own and random offsets [N m or N]."""
    for number in range(10**6):
        own = 1000 * seed + number
        offset = np.random.default_rng(own).normal(scale=offsets, size=robot.dof)
        log = dynid.simulate_experiment(
            robot, wander(robot.dof, own), rate_hz=RATE_HZ, duration_s=PART_S,
            noise=dynid.Noise(effort=TORQUE_NOISE), seed=own,
        )  # fmt: skip
        assert log.dq is not None
        assert log.effort is not None
        size = STRIBECK * np.exp(-np.square(log.dq / STRIBECK_SPEED)) + LOAD_FRICTION * np.abs(log.effort)
        yield dynid.process(replace(log, effort=log.effort + np.sign(log.dq) * size + offset), cutoff_hz=20.0)


def count(fit: Identification, known: Calibration, run: Experiment) -> NDArray[np.float64]:
    """(rates,) alarms along an experiment."""
    found = [known.statistics(one) for one in watched_stretches(fit, run, known.rate_hz, log_hz=known.log_hz)]
    return np.array(
        [sum(len(list(find_alarms(one, known.joint_names, known.levels(rate)))) for one in found) for rate in STATED],
        dtype=float,
    )


def judge(robot: dynid.Robot, hours: float, seed: int) -> NDArray[np.float64]:
    """(watches, rates) alarms of each watch."""
    counted = np.zeros((WATCHES, len(STATED)))
    for watch in range(WATCHES):
        runs = motions(robot, seed + watch)
        training, clean = ([next(runs) for _ in range(CLEAN)] for _ in range(2))
        fit = dynid.identify(robot, training, dynid.Recipe.bare(), estimator=dynid.WLS())
        known = calibrate(fit, clean)
        for _ in range(round(3600.0 * hours / WATCHES / PART_S)):
            counted[watch] += count(fit, known, next(runs))
    return counted


def judge_short(robot: dynid.Robot, hours: float, seed: int, offsets: float) -> NDArray[np.float64]:
    """(watches, rates) alarms of watches that are calibrated from a few short runs."""
    counted = np.zeros((WATCHES, len(STATED)))
    for watch in range(WATCHES):
        runs = motions(robot, seed + watch, offsets)
        training = [run.rows(slice(0, round(RATE_HZ * SHORT_S))) for run, _ in zip(runs, range(SHORT), strict=False)]
        fit = dynid.identify(robot, training, dynid.Recipe.bare(), estimator=dynid.WLS())
        known = calibrate(fit)
        for _ in range(round(3600.0 * hours / WATCHES / PART_S)):
            counted[watch] += count(fit, known, next(runs))
    return counted


def main() -> None:
    """Print the table; exit 1 where a rate over all robots is beyond a factor 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0, help="simulated hours of each robot")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", type=float, metavar="OFFSETS", help="calibrate from three short runs")
    options = parser.parse_args()
    rows, total = [], np.zeros(len(STATED))
    for name, make in ROBOTS.items():
        robot = make().with_terms(dynid.Viscous(0.4), dynid.Coulomb(0.6), dynid.Offset())
        if options.short is None:
            counted = judge(robot, options.hours, options.seed)
        else:
            counted = judge_short(robot, options.hours, options.seed, options.short)
        total += counted.sum(axis=0)
        single = ", ".join(f"{alarms:.0f}" for alarms in counted[:, 0 if options.short is not None else -1])
        rows.append((name, f"{options.hours:g}", *counts(STATED, counted.sum(axis=0), 3600.0 * options.hours), single))
        print(f"{name} is judged", file=sys.stderr)
    hours = len(ROBOTS) * options.hours
    rows.append(("all", f"{hours:g}", *counts(STATED, total, 3600.0 * hours), ""))
    header = [
        "robot",
        "clean [h]",
        *(f"{rate:g}/h" for rate in STATED),
        f"each watch at {STATED[0 if options.short is not None else -1]:g}/h",
    ]
    print(Table.of(header, rows).to_markdown())
    ratios = total / (np.array(STATED) * hours)
    sys.exit(1 if np.any((ratios < 0.5) | (ratios > 2.0)) else 0)


if __name__ == "__main__":
    main()
