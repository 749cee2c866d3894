"""Do the 95 % intervals of the default way to identify cover, with the terms that selection chooses?

    python -m tests.campaigns.selection_coverage [runs] [--plain] [--robot NAME] [condition ...]

Robots, motions and disturbances are those of `interval_conditions`, with load-dependent friction beside them: 5 % of
the links' torque, in the direction of motion. The prior is off by random factors (e^0.2). Printed is the share of
intervals that hold the planted value, for every group of parameters, and in brackets the largest share by which one
parameter misses. `--plain` fits without selection, so that its effect can be told.

Several terms share the friction of a joint after selection, and a single coefficient means nothing then. Dry and
viscous friction are those of the joint as a whole (`joint_friction`: the line through the fast part of its friction),
which is what the command prints; their truth is the line of the planted friction.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.estimate import TWO_SIDED_95
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.kernels import inverse_dynamics
from dynid.links.friction_summary import joint_friction
from dynid.links.identify import identify_experiments
from dynid.links.recipe import Recipe
from dynid.parameters.base import base_parameters
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

from .interval_conditions import GROUPS, ROBOTS, make_robot, record, wrong_prior

CONDITIONS = ("white", "ar0.9", "quantised", "ripple", "stribeck", "load-friction")
DRY, VISCOUS = 0.4, 0.5
"""Planted friction of `make_robot` [N m, N m s/rad]."""
LOAD_SHARE, LOAD_SPEED = 0.05, 0.05
"""Friction as a share of the links' torque, and speed at which it is full [rad/s or m/s]."""


def recorded(robot: Robot, condition: str, seed: int) -> Experiment:
    """One run."""
    if condition != "load-friction":
        return record(robot, condition, seed)
    run = record(robot, "white", seed)
    bare = robot.with_terms()
    links = inverse_dynamics(bare, run.q, run.dq, run.ddq)
    return replace(run, effort=run.effort + LOAD_SHARE * np.abs(links) * np.tanh(run.dq / LOAD_SPEED))


def hits(name: str, condition: str, runs: int, *, plain: bool) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Names of the parameters, and (runs, b) whether each interval holds the planted value."""
    robot = make_robot(name)
    base = base_parameters(robot)
    truth = base.project(robot.parameter_vector)
    recipe = Recipe(selection=None) if plain else Recipe()
    found = []
    for seed in range(runs):
        run = recorded(robot, condition, seed)
        fit = identify_experiments(wrong_prior(robot, seed), [run], recipe, FeasibleWLS(), base=base)
        interval = fit.estimate.interval()[: base.rank]
        held = (interval[:, 0] <= truth) & (truth <= interval[:, 1])
        for joint, friction in enumerate(joint_friction(fit)):
            extra = LOAD_SHARE * friction.load if condition == "load-friction" else 0.0
            for symbol, figure, planted in (("FC", friction.dry, DRY + extra), ("FV", friction.viscous, VISCOUS)):
                place = base.names.index(f"{symbol}{joint + 1}")
                held[place] = abs(figure.value - planted) <= TWO_SIDED_95 * figure.stderr
        found.append(held)
    return tuple(base.names), np.array(found)


def describe(names: tuple[str, ...], table: NDArray[np.bool_]) -> str:
    """Shares of the groups [%], with the smallest of a single parameter."""
    marks = {group: np.array([name.startswith(prefix) for name in names]) for group, prefix in GROUPS.items() if prefix}
    marks["inertial"] = ~np.any(list(marks.values()), axis=0)
    cells = []
    for group in GROUPS:
        part = table[:, marks[group]]
        cells.append(f"{100 * part.mean():6.1f} ({100 * part.mean(axis=0).min():3.0f})" if part.size else f"{'-':>12s}")
    return "".join(cells)


def main() -> None:
    """The campaign's command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=200)
    parser.add_argument("conditions", nargs="*", choices=[[], *CONDITIONS])
    parser.add_argument("--robot", choices=ROBOTS)
    parser.add_argument("--plain", action="store_true", help="without selection")
    options = parser.parse_args()
    sys.stdout.write(f"{'condition':14s}{'robot':18s}" + "".join(f"{group:>12s}" for group in GROUPS) + "\n")
    for condition in options.conditions or CONDITIONS:
        for name in [options.robot] if options.robot else ROBOTS:
            started = time.process_time()
            names, table = hits(name, condition, options.runs, plain=options.plain)
            spent = (time.process_time() - started) / options.runs
            sys.stdout.write(f"{condition:14s}{name:18s}{describe(names, table)}   {spent:.1f} s a run\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
