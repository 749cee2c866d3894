"""Models without the parameters that hardly matter ([Izaguirre1992] section 7), with the error this makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ArgumentError
from dynid.export.c_regrouping import regroup
from dynid.kernels import regressor
from dynid.robot.model import Robot
from dynid.tables import Table

__all__ = ["PrunedModel", "prune"]

Floats = NDArray[np.float64]
Motions = Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]]
"""Trajectories, each (q, dq, ddq) of shape (N, n)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrunedModel:
    """A robot whose insignificant parameters are zero."""

    robot: Robot
    """With regrouped parameters; those dropped are zero."""
    kept: tuple[str, ...]
    """Names of the base parameters that remain."""
    dropped: tuple[str, ...]
    """Names of the base parameters that were dropped."""
    threshold: float
    """Largest contribution dropped, as a share of each joint's largest torque."""
    error_bound: Floats
    """(n,) bound of the torque error over the trajectories [N m or N]: the dropped contributions, added by size."""
    largest_torque: Floats
    """(n,) over the trajectories [N m or N]."""
    samples: int
    """Number of samples the bound was computed on."""

    def notes(self) -> list[str]:
        """What a reader of the code should know."""
        lines = [
            f"Pruned: {len(self.kept)} of {len(self.kept) + len(self.dropped)} base parameters kept; the others "
            f"contribute less than {100 * self.threshold:g} percent of",
            f"each joint's largest torque on all {self.samples} samples of the given trajectories.",
            "Torque error on these samples, at most:",
        ]
        for j, (bound, torque) in enumerate(zip(self.error_bound, self.largest_torque, strict=True)):
            share = 100 * bound / torque if torque else 0.0
            lines.append(f"  joint {j + 1}: {bound:.6e} N m or N ({share:.3g} percent of {torque:.6g})")
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
        trajectories: What it will do: (q, dq, ddq), each (N, n).
        threshold: As a share of each joint's largest torque; the paper took 1 percent.
    """
    if not 0.0 <= threshold < 1.0:
        raise ArgumentError(f"threshold {threshold} is not a share between 0 and 1")
    base = regroup(robot)
    beta = base.grouping @ robot.parameter_vector
    states = [np.concatenate([np.atleast_2d(np.asarray(t[k], dtype=float)) for t in trajectories]) for k in range(3)]
    terms = regressor(robot, *states, columns=base.columns) * beta  # (N, n, b)
    largest_torque = np.abs(terms.sum(axis=2)).max(axis=0)
    stays = (np.abs(terms).max(axis=0) >= threshold * largest_torque[:, None]) & (np.abs(terms).max(axis=0) > 0.0)
    kept = stays.any(axis=0)
    names = [base.names(robot)[column] for column in base.columns]
    values = np.zeros(robot.parameter_vector.size)
    values[list(base.columns)] = np.where(kept, beta, 0.0)
    return PrunedModel(
        robot=robot.with_parameters(values),
        kept=tuple(name for name, stay in zip(names, kept, strict=True) if stay),
        dropped=tuple(name for name, stay in zip(names, kept, strict=True) if not stay),
        threshold=threshold,
        error_bound=np.abs(terms[:, :, ~kept]).sum(axis=2).max(axis=0),
        largest_torque=largest_torque,
        samples=len(states[0]),
    )
