"""Coverage of the intervals of loads and links when the gains of the drives are wrong, with and without saying so.

Every drive gets a gain that is wrong by a random share of the stated standard deviation (10 %). The load comes from a
pair of runs, the links from the unloaded run alone.

Run ``python tests/campaigns/gain_coverage.py [runs]``; 200 runs by default.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.estimation.linear.least_squares import WLS
from dynid.kernels import inverse_dynamics
from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.load.payload import identify_payload
from dynid.parameters.base import base_parameters
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import sum_of_sines
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.tables import Table

Floats = NDArray[np.float64]
WRONG = 0.1
"""Relative standard deviation of the gains."""
NOISE = 0.01
"""Noise of the torques over their root mean square."""
INTERVAL = 1.96
LOAD = Inertia.from_com(2.0, [0.02, -0.03, 0.12], np.diag([0.004, 0.005, 0.003]))
NAMES = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")


def run_of(robot: Robot, seed: int, factor: Floats, std: Floats | None) -> Experiment:
    """Ten seconds of motion with wrong gains."""
    time = np.arange(500) / 50.0
    q, dq, ddq = sum_of_sines(robot.dof, period_s=10.0, amplitude=1.2, seed=1)(time)
    torque = inverse_dynamics(robot, q, dq, ddq)
    noise = NOISE * np.sqrt((torque**2).mean(axis=0)) * np.random.default_rng(seed).normal(size=torque.shape)
    return Experiment(
        time=time, q=q, dq=dq, ddq=ddq, effort=factor * (torque + noise), valid=np.ones(q.shape, dtype=bool),
        segment=np.zeros(len(time), dtype=np.int64), rate_hz=50.0, gain_std=std,
    )  # fmt: skip


def coverage(count: int, *, stated: bool) -> tuple[Floats, float, float]:
    """Shares of intervals that hold the truth, (10,) of the load and of base parameters; mean std of the mass."""
    arm = dynid.robots.panda().with_terms(dynid.Viscous(0.8), dynid.Coulomb(0.6), dynid.Offset(0.1))
    base = base_parameters(arm)
    truth = base.grouping @ arm.parameter_vector
    heavy = arm.with_body("box", parent=arm.bodies[-1].joint.child, inertia=LOAD)
    std = np.full(arm.dof, WRONG if stated else 0.0)
    held, links, spread = [], [], []
    for k in range(count):
        factor = 1.0 + WRONG * np.random.default_rng(10_000 + k).normal(size=arm.dof)
        loaded, unloaded = run_of(heavy, 2 * k, factor, std), run_of(arm, 2 * k + 1, factor, std)
        load = identify_payload(arm, loaded=loaded, unloaded=unloaded, physical=False)
        away = np.abs(load.vector - LOAD.vector)
        held.append(np.where(load.undetermined, np.nan, away <= INTERVAL * np.sqrt(np.diag(load.covariance))))
        spread.append(float(np.sqrt(load.covariance[9, 9])))
        fit = identify(arm, unloaded, replace(Recipe.bare()), estimator=WLS(), base=base)
        links.append(np.mean(np.abs(fit.estimate.values - truth) <= INTERVAL * fit.estimate.stderr))
    return np.nanmean(held, axis=0), float(np.mean(links)), float(np.mean(spread))


def main(count: int) -> None:
    """Print the coverage with stated gains and with gains that count as exact."""
    rows = []
    for stated in (True, False):
        load, links, spread = coverage(count, stated=stated)
        shown = [f"{100 * share:.0f} %" for share in load]
        rows.append(("stated: 10 %" if stated else "exact", *shown, f"{100 * links:.0f} %", f"{spread:.3f} kg"))
    print(f"{count} runs, gains wrong by 10 % (one standard deviation); share of 95 % intervals that hold the truth")
    print(Table.of(["gains", *NAMES, "base parameters", "mean std of M"], rows).to_text())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
