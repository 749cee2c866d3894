"""How long one on-line update takes, and how far its result is from that of all samples at once.

Run: ``python tests/campaigns/load_online.py``.
"""

from __future__ import annotations

import time

import numpy as np

import dynid
from dynid.kernels import wrench_regressor
from dynid.load.online_load import OnlineLoad
from dynid.load.wrench_equations import WrenchData
from dynid.load.wrist import Sensing, solve_load
from dynid.processing.simulation import sum_of_sines

STD = np.repeat([0.2, 0.01], 3)


def main() -> None:
    """Print microseconds per update, best of many rounds, and the largest difference to the batch result."""
    robot = dynid.robots.puma560()
    link = robot.bodies[-1].joint.child
    stamps = np.arange(1000) / 100.0
    matrices = wrench_regressor(robot, link, *sum_of_sines(robot.dof, amplitude=1.5)(stamps))
    load = dynid.Inertia.from_com(2.0, [0.01, 0.02, 0.1], 0.01 * np.eye(3))
    wrenches = matrices @ load.vector + 1.0 + np.random.default_rng(0).normal(size=(1000, 6)) * STD
    online = OnlineLoad(frame=link, noise_std=STD)
    pairs = list(zip(matrices, wrenches, strict=True))
    for matrix, wrench in pairs:
        online.update(matrix, wrench)
    batch = solve_load(WrenchData(matrices, wrenches, stamps), frame=link, sensing=Sensing(noise_std=tuple(STD)))
    print(f"largest difference to the batch result: {np.abs(online.load().vector - batch.vector).max():.1e}")
    best = np.inf
    for _ in range(200):
        begun = time.perf_counter()
        for matrix, wrench in pairs:
            online.update(matrix, wrench)
        best = min(best, (time.perf_counter() - begun) / len(pairs))
    print(f"one update: {1e6 * best:.2f} microseconds")


if __name__ == "__main__":
    main()
