"""How much acceleration does the low-pass of quantised positions take, and how far does it move a parameter?

    python -m tests.campaigns.lost_signal [runs]

An automatic cutoff weighs lost signal against passed noise, sample by sample. A fit averages the noise of all samples,
but not the loss: accelerations come out too small by the same share throughout, and inertias too large by it. Printed
are, for the logs `quantised` of `interval_conditions`, the mean share of acceleration that is lost, and the mean error
of the largest link parameter beside the standard error of one run, both as shares of its value.
"""

from __future__ import annotations

import sys

import numpy as np

from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import WLS
from dynid.parameters.base import base_parameters
from dynid.processing.simulation import sum_of_sines

from .interval_conditions import DURATION_S, HARMONICS, ROBOTS, record
from .selection_coverage import planted_robot


def main(runs: int) -> None:
    """Print one line for each robot."""
    for name in ROBOTS:
        robot = planted_robot(name)
        base = base_parameters(robot)
        truth = base.project(robot.parameter_vector)
        links = [k for k, label in enumerate(base.names) if not label.startswith(("IA", "FV", "FC", "OFF"))]
        largest = max(links, key=lambda k: abs(truth[k]))
        lost, errors, stderr = [], [], []
        for seed in range(runs):
            run = record(robot, "quantised", seed)
            path = sum_of_sines(robot.dof, period_s=DURATION_S, harmonics=HARMONICS, amplitude=0.6, seed=seed + 1)
            true = path(run.time)[2]
            lost.append(1.0 - np.sum(run.ddq * true) / np.sum(true**2))
            found = WLS().solve(build_equations(robot, [run], base=base))
            errors.append(found.values[largest] / truth[largest] - 1.0)
            stderr.append(found.stderr[largest] / abs(truth[largest]))
        print(f"{name:18s} lost {np.mean(lost):.1e}, {base.names[largest]} too large by {np.mean(errors):.1e} "
              f"+- {np.std(errors) / np.sqrt(runs):.1e}, standard error of one run {np.mean(stderr):.1e}")  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
