"""Microseconds per sample of the estimators on line, for a PUMA 560 with friction: ``make online-speed``."""

from __future__ import annotations

import os
from time import perf_counter

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np

import dynid

SAMPLES = 4000


def main() -> None:
    """One sample after the other; on a busy machine the quickest tenth tells what an update costs."""
    robot = dynid.robots.puma560().with_terms(dynid.RotorInertia(0.3), dynid.Viscous(1.0), dynid.Coulomb(1.0))
    q, dq, ddq, tau = np.random.default_rng(0).normal(size=(4, SAMPLES, robot.dof))
    trackers = {
        "OnlineLeastSquares": (dynid.estimators.OnlineLeastSquares(robot), (q, dq, ddq, tau)),
        "OnlineLeastSquares, forgetting": (
            dynid.estimators.OnlineLeastSquares(robot, forgetting=0.999),
            (q, dq, ddq, tau),
        ),
        "OnlineLinkByLink": (dynid.estimators.OnlineLinkByLink(robot), (q, dq, ddq, tau)),
        "OnlineEnergy, 1 kHz": (dynid.estimators.OnlineEnergy(robot, rate_hz=1000.0), (q, dq, tau)),
    }
    for name, (tracker, channels) in trackers.items():
        times = []
        for sample in zip(*channels, strict=True):
            began = perf_counter()
            tracker.update(*sample)
            times.append(1e6 * (perf_counter() - began))
        tenth, half = np.quantile(times, [0.1, 0.5])
        print(f"{name}, {tracker.base.rank} unknowns: a tenth below {tenth:.0f} us, half below {half:.0f} us")


if __name__ == "__main__":
    main()
