"""The last body with all that it carries, from joint torques, when nothing is known of the arm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.load.coloured_noise import coloured, run_gram
from dynid.load.load import Load
from dynid.load.load_solver import resolved
from dynid.load.payload import Runs, as_runs, reduced_runs
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.model import Robot
from dynid.spatial import inverse_transform

__all__ = ["identify_end_link"]

Floats = NDArray[np.float64]
ROUNDS = 4
RESOLUTION = 1e-9


def identify_end_link(robot: Robot, experiments: Runs, *, link: str | None = None, threads: int = 1) -> Load:
    """What joint torques say of the last body with all that it carries, when nothing is known of the arm.

    Only base parameters that lump together nothing but this body's own parameters are told; the mass never is. With a
    known or unloaded arm use `identify_payload`.

    Args:
        robot: Geometry and joint models.
        experiments: One or several, all with the same load.
        link: A link of the last body, in whose frame the result is given; the body's own by default.
        threads: How many threads reduce the samples.
    """
    runs = as_runs(robot, experiments)
    body = robot.dof - 1
    moving = [np.concatenate([getattr(run, name) for run in runs]) for name in ("q", "dq", "ddq")]
    some = max(1, len(moving[0]) // 400)
    base = base_parameters(robot, states=tuple(values[::some] for values in moving))
    kept = _trusted(base, quasi_static=not np.any(moving[2]))
    information = reduced_runs(robot, runs, [base.columns[k] for k in kept], threads)
    std = np.ones(robot.dof)
    for _ in range(ROUNDS):
        factor = information.weight(1.0 / std**2)
        values, covariance, undetermined = resolved(factor.R, factor.z, RESOLUTION)
        squares = information.per_joint_residual(values).sum(axis=0)
        std = np.sqrt(squares / np.maximum(information.samples.sum(axis=0), 1))
        std = np.maximum(std, 1e-10 * max(float(std.max()), 1e-140))  # joints without a sample do not divide by zero
    own = range(10 * body, 10 * body + 10)
    alone = [c in own and np.count_nonzero(base.grouping[k]) == 1 for k, c in zip(kept, information.columns)]
    known = np.flatnonzero(np.array(alone) & ~undetermined)
    places = [information.columns[k] - 10 * body for k in known]
    vector, spread, open_ones = np.zeros(10), np.zeros((10, 10)), np.ones(10, dtype=bool)
    vector[places], open_ones[places] = values[known], False
    design = np.eye(len(base.layout))[:, list(information.columns)]
    grams = [run_gram(robot, run, design, values, covariance, std) for run in runs]
    grown, _ = coloured(covariance, np.sum(grams, axis=0))
    spread[np.ix_(places, places)] = grown[np.ix_(known, known)]
    load = Load(
        frame=robot.bodies[-1].joint.child,
        vector=vector,
        covariance=spread,
        undetermined=open_ones,
        residual_std=std,
        method="joint torques, arm unknown: last body and load together",
        notes=(
            "a load on the last body acts as that body does: joint torques tell the two together, and nothing of the "
            "mass; give a run without the load, or say how well the arm's model is known",
        ),
    )
    if link is None or link == load.frame:
        return load
    T = robot.link_body(link)[1]
    return load.in_frame(inverse_transform(T), link)


def _trusted(base: BaseParameters, quasi_static: bool) -> list[int]:
    """Base parameters to estimate; runs without accelerations say nothing of inertias, whatever the velocities."""
    kinds = [base.layout[column].kind for column in base.columns]
    return [k for k, kind in enumerate(kinds) if not (quasi_static and kind == "inertia")]
