"""Robots without insignificant parameters ([Izaguirre1992] section 7), chosen on planned motions: with an error bound.

Parameters that were identified from logs are chosen by `dynid.links.significant_parameters` and fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError
from dynid.export.c.c_model import regroup
from dynid.kernels import inertia_matrix, regressor
from dynid.robot.model import Robot
from dynid.tables import Table

Motions = Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]]
"""Trajectories, each (q, dq, ddq) of shape (N, n)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrunedModel:
    """A robot whose insignificant parameters are zero."""

    robot: Robot
    """The robot with regrouped parameters; the dropped ones are zero."""
    kept: tuple[str, ...]
    """Names of the base parameters that remain."""
    dropped: tuple[str, ...]
    """Names of the base parameters that were dropped."""
    threshold: float
    """Parameters below this share of every joint's largest torque are dropped."""
    error_bound: Floats
    """(n,) bound of the torque error over the trajectories [N m or N]: sum of the absolute dropped contributions."""
    largest_torque: Floats
    """(n,) largest torque over the trajectories [N m or N]."""
    samples: int
    """Number of samples the bound was computed on."""
    indefinite: int
    """Number of samples at which the inertia matrix is not positive definite; forward dynamics is not defined there."""

    def notes(self) -> list[str]:
        """Lines for the reader of the code."""
        lines = [
            f"Pruned: {len(self.kept)} of {len(self.kept) + len(self.dropped)} base parameters kept; the others "
            f"contribute less than {100 * self.threshold:g} percent of",
            f"each joint's largest torque on all {self.samples} samples of the given trajectories.",
            "Largest error of the torques of inverse dynamics on these samples:",
        ]
        for j, (bound, torque) in enumerate(zip(self.error_bound, self.largest_torque, strict=True)):
            share = 100 * bound / torque if torque else 0.0
            lines.append(f"  joint {j + 1}: {bound:.6e} N m or N ({share:.3g} percent of {torque:.6g})")
        lines.append(
            "The bound is for the whole torque. Inertias, gravity, velocity torques and friction by themselves"
        )
        lines.append("may have larger errors, and the potential energy is counted from another zero.")
        return lines

    def __str__(self) -> str:
        rows = [(j + 1, float(b), float(t)) for j, (b, t) in enumerate(zip(self.error_bound, self.largest_torque))]
        table = Table.of(["joint", "error bound", "largest torque"], rows)
        return f"kept {' '.join(self.kept)}\ndropped {' '.join(self.dropped)}\n{table}"


def prune(robot: Robot, trajectories: Motions, *, threshold: float = 0.01) -> PrunedModel:
    """Drop base parameters that hardly contribute to the torques.

    A parameter stays if, on any joint at any sample, its contribution reaches ``threshold`` times that joint's largest
    torque. The error bound holds at all samples: it adds the sizes of the dropped contributions.

    Args:
        robot: The robot with its parameter values.
        trajectories: The motions it will perform: (q, dq, ddq), each (N, n).
        threshold: Share of each joint's largest torque; the paper took 1 percent.

    Raises:
        ArgumentError: There are no trajectories, or their arrays do not fit the robot.

    Example:
        >>> type(dynid.export.prune(robot, [(run.q, run.dq, run.ddq)])).__name__
        'PrunedModel'
    """
    if not 0.0 <= threshold < 1.0:
        raise ArgumentError(f"threshold is {threshold}", remedy="Give a share between 0 and 1, such as 0.01.")
    base = regroup(robot)
    beta = base.grouping @ robot.parameter_vector
    states = _samples(trajectories, robot.dof)
    terms = regressor(robot, *states, columns=base.columns) * beta  # (N, n, b)
    largest_torque = np.abs(terms.sum(axis=2)).max(axis=0)
    stays = (np.abs(terms).max(axis=0) >= threshold * largest_torque[:, None]) & (np.abs(terms).max(axis=0) > 0.0)
    kept = stays.any(axis=0)
    names = [base.names(robot)[column] for column in base.columns]
    values = np.zeros(robot.parameter_vector.size)
    values[list(base.columns)] = np.where(kept, beta, 0.0)
    pruned = robot.with_parameters(values)
    return PrunedModel(
        robot=pruned,
        kept=tuple(name for name, stay in zip(names, kept, strict=True) if stay),
        dropped=tuple(name for name, stay in zip(names, kept, strict=True) if not stay),
        threshold=threshold,
        error_bound=np.abs(terms[:, :, ~kept]).sum(axis=2).max(axis=0),
        largest_torque=largest_torque,
        samples=len(states[0]),
        indefinite=int((eigvalsh(inertia_matrix(pruned, states[0])).min(axis=1) <= 0.0).sum()),
    )


def _samples(trajectories: Motions, joints: int) -> list[Floats]:
    """Positions, velocities, accelerations (N, n) of all trajectories, one after another."""
    remedy = f"Give one or more motions (q, dq, ddq), each (N, {joints}) with the same N."
    try:
        states = np.hstack([np.asarray(motion, dtype=float) for motion in trajectories])
    except (TypeError, ValueError) as error:
        raise ArgumentError("trajectories are no motions", remedy=remedy) from error
    if states.shape[0] != 3 or states.shape[2:] != (joints,) or not states.size or not np.isfinite(states).all():
        raise ArgumentError(f"trajectories of shape {states.shape} do not fit, or are not finite", remedy=remedy)
    return list(states)
