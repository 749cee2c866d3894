"""Estimation for many arms of one type: inertial parameters that all share, and friction and offsets of each arm.

The equations of arm a are ``S_a s + O_a o_a = t_a`` with the shared unknowns s and the arm's own unknowns o_a. The own
unknowns are nuisance parameters at first: they are eliminated arm by arm, by projecting the equations on the orthogonal
complement of O_a (the Schur complement in square-root form), so that the fleet costs one small triangle per arm,
however many arms and samples there are. Then all arms together give s, and each arm its o_a.

The equations of an arm are weighted by the inverse of its residual variances, which are raised by their autocorrelation
factors: errors of neighbouring samples are alike, and no arm may count as if they were independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.array_types import Bools, Floats
from dynid.data_reduction import Information
from dynid.data_reduction.factor import RESOLUTION, Factor
from dynid.data_reduction.triangular import append_rows
from dynid.decompositions import standard_deviations, svd
from dynid.errors import IdentifiabilityError
from dynid.estimators.equations import Factors
from dynid.estimators.linear.least_squares import refined_weights
from dynid.estimators.noise import correlation_inflation, joint_variances
from dynid.estimators.score_covariance import OPEN, solution_root
from dynid.spatial import TINY


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmEquations:
    """The equations of one arm's logs, with their weights."""

    name: str
    """Name of the arm."""
    logs: tuple[Information, ...]
    """The reduced equations of each log; columns are the base parameters."""
    log_names: tuple[str, ...]
    """Names of the logs."""
    windows: tuple[tuple[int, ...], ...]
    """Numbers of the logs in each window of time: friction may change from one window to the next."""
    weights: Floats
    """(n,) inverse of each joint's residual variance, which is raised by its autocorrelation factor."""

    @classmethod
    def of(
        cls, name: str, logs: Sequence[Factors], names: Sequence[str], windows: Sequence[Sequence[int]]
    ) -> ArmEquations:
        """Weigh the equations of an arm by their residuals.

        Each log is fitted alone, because changes of the robot between logs are no noise.

        Args:
            name: Name of the arm.
            logs: Equations of each log.
            names: Names of the logs.
            windows: Numbers of the logs in each window of time.
        """
        count = np.zeros(logs[0].information.dof)
        squares = np.zeros(logs[0].information.dof)
        for equations in logs:
            beta = equations.information.weight(refined_weights(equations)).solve(minimum_norm=True)
            variances = joint_variances(equations, beta) * correlation_inflation(equations, beta)
            count += equations.counts
            squares += equations.counts * variances
        return cls(
            name=name, logs=tuple(equations.information for equations in logs), log_names=tuple(names),
            windows=tuple(map(tuple, windows)), weights=np.maximum(count, 1.0) / np.maximum(squares, TINY),
        )  # fmt: skip

    def rows(self, logs: Sequence[int] | None = None, gains_at: Floats | None = None) -> Floats:
        """Reduce the weighted equations of all joints to a triangle: base columns, columns of gains, torque.

        Args:
            logs: Numbers of logs; all of them by default.
            gains_at: (b,) base parameters for a column per joint, which holds the torques that they give: its unknown
                is an error of the joint's gain. None for no such columns.

        Returns:
            (w, w) with w = b + 1 columns, or b + n + 1 with gains.
        """
        size, dof = len(self.logs[0].columns), self.logs[0].dof
        width = size + (0 if gains_at is None else dof) + 1
        triangle = np.zeros((width, width))
        for information in self.logs if logs is None else [self.logs[log] for log in logs]:
            for joint, (support, weight) in enumerate(zip(information.supports, self.weights, strict=True)):
                R = np.sqrt(weight) * information.factor(joint)
                rows = np.zeros((len(R), width))
                rows[:, list(support)] = R[:, :-1]
                rows[:, -1] = R[:, -1]
                if gains_at is not None:
                    rows[:, size + joint] = R[:, :-1] @ gains_at[list(support)]
                triangle = append_rows(triangle, rows)
        return triangle


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnPart:
    """The own unknowns of one arm."""

    values: Floats
    """(k,) estimates."""
    std: Floats
    """(k,) standard deviations; infinite where the arm's logs leave an unknown open."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """The shared unknowns of a fleet and the own ones of every arm."""

    own_places: tuple[int, ...]
    """Indices of the k own unknowns among the base parameters."""
    shared_places: tuple[int, ...]
    """Indices of the s shared unknowns among the base parameters."""
    shared: Floats
    """(s,) estimates of the shared unknowns."""
    covariance: Floats
    """(s, s) their covariance in the directions that the data determine."""
    undetermined: Bools
    """(s,) whether all arms together leave an unknown open."""
    own: tuple[OwnPart, ...]
    """Own unknowns of each arm."""

    @property
    def std(self) -> Floats:
        """(s,) standard deviations; infinite where the fleet leaves an unknown open."""
        return standard_deviations(self.covariance, self.undetermined)

    def base_values(self, arm: int) -> Floats:
        """(b,) base parameters of the arm with this number."""
        values = np.zeros(len(self.own_places) + len(self.shared_places))
        values[list(self.shared_places)] = self.shared
        values[list(self.own_places)] = self.own[arm].values
        return values


def pool_arms(arms: Sequence[ArmEquations], own_places: Sequence[int], present: Sequence[int] | None = None) -> Pool:
    """Estimate the shared unknowns of arms and the own unknowns of each.

    Args:
        arms: Their equations, of the same columns.
        own_places: Indices of the own unknowns among the base parameters; the others are shared.
        present: Numbers of the arms from which the shared unknowns are estimated; all of them by default.

    Raises:
        IdentifiabilityError: There is no arm.
    """
    if not arms:
        raise IdentifiabilityError("no arm has a log that can be used", remedy="See the list of logs that failed.")
    own = list(own_places)
    shared = [place for place in range(len(arms[0].logs[0].columns)) if place not in own]
    counted = [arms[k] for k in present or range(len(arms))]
    rows = [Elimination.of(arm.rows(window), own, shared).triangle for arm in counted for window in arm.windows]
    values, covariance, undetermined = solve_shared(np.vstack(rows))
    whole = [Elimination.of(arm.rows(), own, shared).own(values, covariance) for arm in arms]
    return Pool(
        own_places=tuple(own), shared_places=tuple(shared), shared=values, covariance=covariance,
        undetermined=undetermined, own=tuple(whole),
    )  # fmt: skip


def own_values(arm: ArmEquations, pool: Pool, window: Sequence[int]) -> OwnPart:
    """Estimate the own unknowns of an arm in one window of time; the shared ones of the fleet are taken as exact."""
    part = Elimination.of(arm.rows(window), list(pool.own_places), list(pool.shared_places))
    return part.own(pool.shared, np.zeros_like(pool.covariance))


def solve_shared(rows: Floats) -> tuple[Floats, Floats, Bools]:
    """Solve for the shared unknowns.

    Args:
        rows: (r, s + 1) weighted equations, the torque in the last column.

    Returns:
        Estimates (s,), their covariance (s, s), and whether each is left open (s,).
    """
    width = rows.shape[1]
    whole = Factor.of(range(width - 1), append_rows(np.zeros((width, width)), rows), len(rows))
    factor = replace(whole, resolution=RESOLUTION)
    root, undetermined = solution_root(factor)
    return factor.solve(minimum_norm=True), root @ root.T, undetermined


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Elimination:
    """The equations of an arm, from which its k own unknowns are eliminated; s kept unknowns remain."""

    triangle: Floats
    """(s + 1, s + 1) equations of the kept unknowns, projected on the complement of the own columns; torque last."""
    inverse: Floats
    """(k, r) pseudoinverse of the own columns."""
    null: Floats
    """(k, d) directions of own unknowns without equations."""
    kept: Floats
    """(r, s) columns of the kept unknowns before the projection."""
    torque: Floats
    """(r,) weighted torques before the projection."""

    @classmethod
    def of(cls, rows: Floats, own: list[int], kept: list[int]) -> Elimination:
        """Eliminate own unknowns from weighted equations.

        Args:
            rows: (r, w) equations, the torque in the last column.
            own: Columns of the own unknowns.
            kept: Columns of the others.
        """
        scale = np.linalg.norm(rows[:, own], axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        U, values, Vt = svd(rows[:, own] / scale, full_matrices=False)
        shown = values > RESOLUTION * max(float(values.max(initial=0.0)), TINY)
        U = U[:, shown]
        projected = rows[:, [*kept, -1]]
        projected = projected - U @ (U.T @ projected)
        return cls(
            triangle=append_rows(np.zeros((projected.shape[1],) * 2), projected),
            inverse=(Vt[shown].T / values[shown]) @ U.T / scale[:, None],
            null=Vt[~shown].T, kept=rows[:, kept], torque=rows[:, -1],
        )  # fmt: skip

    def own(self, shared: Floats, covariance: Floats) -> OwnPart:
        """Estimate the own unknowns for values (s,) of the kept ones, whose covariance (s, s) adds to theirs."""
        values = self.inverse @ (self.torque - self.kept @ shared)
        sensitivity = self.inverse @ self.kept
        own_covariance = self.inverse @ self.inverse.T + sensitivity @ covariance @ sensitivity.T
        is_open: Bools = np.any(np.abs(self.null) > OPEN, axis=1)
        return OwnPart(values=values, std=standard_deviations(own_covariance, is_open))
