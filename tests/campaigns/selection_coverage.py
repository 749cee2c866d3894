"""Do the 95 % intervals of the default way to identify cover, with the terms that selection chooses?

    python -m tests.campaigns.selection_coverage [--plain] [--robot NAME] [--keep FOLDER] [runs] [condition ...]

Robots, motions and disturbances are those of `interval_conditions`, with load-dependent friction beside them: 5 % of
the links' torque, in the direction of motion. The links of the 3-R robot are cuboids: no links have the parameters of
its paper, so that physically consistent estimates stay away from them. The prior is off by random factors (e^0.2).
Printed is the share of intervals that hold the planted value, for every group of parameters that the data determine,
and in brackets the smallest share of a single one. The last column is of parameters that the prior knows better than
the data: theirs are cautious by intention. `--plain` fits without selection, so that its effect can be told. With
`--keep` the runs of each robot and condition are kept in a folder, and not computed again after an interruption.

Several terms share the friction of a joint after selection, and a single coefficient means nothing then. Dry and
viscous friction are those of the joint as a whole (`joint_friction`: the line through the fast part of its friction),
which is what the command prints; their truth is the line of the planted friction.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

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
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot

from .interval_conditions import GROUPS, ROBOTS, make_robot, record, wrong_prior

CONDITIONS = ("white", "ar0.9", "quantised", "ripple", "stribeck", "load-friction")
DRY, VISCOUS = 0.4, 0.5
"""Planted friction of `make_robot` [N m, N m s/rad]."""
LOAD_SHARE, LOAD_SPEED = 0.05, 0.05
"""Friction as a share of the links' torque, and speed at which it is full [rad/s or m/s]."""


KEPT_RUNS = 10
"""Runs after which they are kept."""
CUBOIDS = ((8.0, (0.1, 0.1, 0.3)), (12.0, (0.5, 0.12, 0.12)), (5.0, (0.15, 0.4, 0.1)))
"""Mass [kg] and edges [m] of the links of the 3-R robot, about as heavy as those of a PUMA 560."""


def planted_robot(name: str) -> Robot:
    """The robot that is recorded; all its links are possible."""
    robot = make_robot(name)
    if name != "gautier_khalil_3r":
        return robot
    theta = robot.parameter_vector.copy()
    for j, (mass, edges) in enumerate(CUBOIDS):
        size = np.array(edges)
        about_com = mass / 12.0 * np.diag(size @ size - size**2)
        theta[10 * j : 10 * j + 10] = Inertia.from_com(mass, 0.4 * size, about_com).vector
    return robot.with_parameters(theta)


def recorded(robot: Robot, condition: str, seed: int) -> Experiment:
    """One run."""
    if condition != "load-friction":
        return record(robot, condition, seed)
    run = record(robot, "white", seed)
    bare = robot.with_terms()
    links = inverse_dynamics(bare, run.q, run.dq, run.ddq)
    return replace(run, effort=run.effort + LOAD_SHARE * np.abs(links) * np.tanh(run.dq / LOAD_SPEED))


def planted_load(run: Experiment, robot: Robot) -> NDArray[np.float64]:
    """(n,) mean magnitude of the links' torque along a run [N m or N]."""
    return np.asarray(np.abs(inverse_dynamics(robot.with_terms(), run.q, run.dq, run.ddq)).mean(axis=0))


@dataclass(frozen=True)
class Hits:
    """Which intervals hold the planted value."""

    names: tuple[str, ...]
    held: NDArray[np.bool_]
    """(runs, b)"""
    by_data: NDArray[np.bool_]
    """(runs, b) whether the data determine the parameter more than the prior does."""


def hits(name: str, condition: str, runs: int, *, plain: bool, keep: Path | None = None) -> Hits:
    """Identify many runs."""
    robot = planted_robot(name)
    base = base_parameters(robot)
    truth = base.project(robot.parameter_vector)
    recipe = Recipe(selection=None) if plain else Recipe()
    found, sources = (list(table) for table in _read(keep))
    for seed in range(len(found), runs):
        run = recorded(robot, condition, seed)
        fit = identify_experiments(wrong_prior(robot, seed), [run], recipe, FeasibleWLS(), base=base)
        interval = fit.estimate.interval()[: base.rank]
        held = (interval[:, 0] <= truth) & (truth <= interval[:, 1])
        extra = LOAD_SHARE * planted_load(run, robot) * (condition == "load-friction")
        for joint, friction in enumerate(joint_friction(fit)):
            for symbol, figure, planted in (
                ("FC", friction.dry, DRY + extra[joint]),
                ("FV", friction.viscous, VISCOUS),
            ):
                place = base.names.index(f"{symbol}{joint + 1}")
                held[place] = abs(figure.value - planted) <= TWO_SIDED_95 * figure.stderr
        found.append(held)
        sources.append([source == "data" for source in fit.estimate.sources[: base.rank]])
        if keep and (len(found) % KEPT_RUNS == 0 or len(found) == runs):
            np.save(keep, np.array([found, sources], dtype=bool))
    return Hits(tuple(base.names), np.array(found[:runs]), np.array(sources[:runs]))


def _read(keep: Path | None) -> NDArray[np.bool_]:
    """The runs (2, runs, b) that a file keeps."""
    return np.load(keep) if keep and keep.exists() else np.zeros((2, 0, 0), dtype=bool)


def describe(found: Hits) -> str:
    """Shares of the groups [%], with the smallest of a parameter that the data determine in most runs."""
    marks = {
        group: np.array([name.startswith(prefix) for name in found.names]) for group, prefix in GROUPS.items() if prefix
    }
    marks["inertial"] = ~np.any(list(marks.values()), axis=0)
    cells = []
    for group in GROUPS:
        counted = found.by_data & marks[group]
        often = counted.mean(axis=0) > 0.5
        shares = (found.held & counted).sum(axis=0) / np.maximum(counted.sum(axis=0), 1)
        smallest = f"({100 * shares[often].min():3.0f})" if often.any() else ""
        cells.append(f"{100 * found.held[counted].mean():6.1f} {smallest:5s}" if counted.any() else f"{'-':>12s}")
    left = found.held[~found.by_data]
    return "".join(cells) + (f"{100 * left.mean():7.1f} of {left.size / len(found.held):.1f}" if left.size else "")


def main() -> None:
    """The campaign's command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=200)
    parser.add_argument("conditions", nargs="*", choices=[[], *CONDITIONS])
    parser.add_argument("--robot", choices=ROBOTS)
    parser.add_argument("--keep", type=Path, help="folder in which runs are kept")
    parser.add_argument("--plain", action="store_true", help="without selection")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"{'condition':14s}{'robot':18s}" + "".join(f"{group:>12s}" for group in GROUPS) + "  prior\n")
    for condition in options.conditions or CONDITIONS:
        for name in [options.robot] if options.robot else ROBOTS:
            started = time.process_time()
            keep = options.keep and options.keep / f"{condition}-{name}{'-plain' * options.plain}.npy"
            found = hits(name, condition, options.runs, plain=options.plain, keep=keep)
            spent = (time.process_time() - started) / options.runs
            sys.stdout.write(f"{condition:14s}{name:18s}{describe(found)}   {spent:.1f} s a run\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
