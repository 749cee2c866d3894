"""Many arms of one type: shared inertial parameters, and friction and offsets of every arm's own.

The equations of arm a are ``S_a s + O_a o_a = t_a`` with the shared unknowns s and the arm's own ones o_a. The own ones
are eliminated arm by arm, by projecting the equations on what O_a cannot explain (the Schur complement in square-root
form), so that the fleet costs one small triangle per arm, however many arms and samples there are. Then all arms
together give s, and each arm its o_a.

An arm's equations count by the inverse of its residual variances, raised by their autocorrelation factors: errors of
neighbouring samples are alike, and no arm may count as if they were not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Bools, Floats
from dynid.decompositions import standard_deviations, svd
from dynid.errors import IdentifiabilityError
from dynid.estimation.equations import Factors
from dynid.estimation.linear.least_squares import refined_weights
from dynid.estimation.noise import correlation_inflation, joint_variances
from dynid.estimation.score_covariance import solution_root
from dynid.information import Information
from dynid.information.factor import Factor
from dynid.information.triangular import append_rows

RESOLUTION = 1e-10
"""Relative singular value below which a direction of own unknowns has no equations (convention: rounding)."""
OPEN = 1e-6
"""Share of an own unknown in a direction without equations that leaves it open (as for single robots)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmEquations:
    """What one arm's logs say, weighted."""

    name: str
    logs: tuple[Information, ...]
    """Each log; columns are those of the base parameters."""
    log_names: tuple[str, ...]
    windows: tuple[tuple[int, ...], ...]
    """Numbers of the logs in each window of time: friction may change from one to the next."""
    weights: Floats
    """(n,) inverse of each joint's residual variance, raised by its autocorrelation factor."""

    @classmethod
    def of(
        cls, name: str, logs: Sequence[Factors], names: Sequence[str], windows: Sequence[Sequence[int]]
    ) -> ArmEquations:
        """Weigh the logs of an arm by their residuals; each is fitted alone: what changes in between is no noise."""
        count, squares = np.zeros(logs[0].information.dof), np.zeros(logs[0].information.dof)
        for equations in logs:
            beta = equations.information.weight(refined_weights(equations)).solve(minimum_norm=True)
            variances = joint_variances(equations, beta) * correlation_inflation(equations, beta)
            count, squares = count + equations.counts, squares + equations.counts * variances
        return cls(
            name=name, logs=tuple(equations.information for equations in logs), log_names=tuple(names),
            windows=tuple(map(tuple, windows)), weights=np.maximum(count, 1.0) / np.maximum(squares, 1e-300),
        )  # fmt: skip

    def rows(self, logs: Sequence[int] | None = None, gains_at: Floats | None = None) -> Floats:
        """(r, b + g + 1) weighted equations of all joints: base columns, gains, torque.

        Args:
            logs: Numbers of logs; all of them by default.
            gains_at: (b,) base parameters whose torques are the columns of the gains; None for no such columns.
        """
        size, dof = len(self.logs[0].columns), self.logs[0].dof
        width = size + (0 if gains_at is None else dof) + 1
        triangle = np.zeros((width, width))
        for information in self.logs if logs is None else [self.logs[log] for log in logs]:
            for joint, (support, weight) in enumerate(zip(information.supports, self.weights, strict=True)):
                R = np.sqrt(weight) * information.factor(joint)
                rows = np.zeros((len(R), width))
                rows[:, list(support)], rows[:, -1] = R[:, :-1], R[:, -1]
                if gains_at is not None:
                    rows[:, size + joint] = R[:, :-1] @ gains_at[list(support)]
                triangle = append_rows(triangle, rows)
        return triangle


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnPart:
    """The own unknowns of one arm."""

    values: Floats
    """(k,)"""
    std: Floats
    """(k,) standard deviations; infinite where the arm's logs leave an unknown open."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """The shared unknowns of a fleet and the own ones of every arm."""

    own_places: tuple[int, ...]
    """Places of the own unknowns among the base parameters."""
    shared_places: tuple[int, ...]
    """Places of the shared ones."""
    shared: Floats
    """(s,) values."""
    covariance: Floats
    """(s, s) of the known directions."""
    undetermined: Bools
    """(s,) what all arms together leave open."""
    own: tuple[OwnPart, ...]
    """For each arm."""

    @property
    def std(self) -> Floats:
        """(s,) standard deviations; infinite where the fleet leaves an unknown open."""
        return standard_deviations(self.covariance, self.undetermined)

    def base_values(self, arm: int) -> Floats:
        """(b,) base parameters of one arm."""
        values = np.zeros(len(self.own_places) + len(self.shared_places))
        values[list(self.shared_places)], values[list(self.own_places)] = self.shared, self.own[arm].values
        return values


def pool_arms(arms: Sequence[ArmEquations], own_places: Sequence[int], present: Sequence[int] | None = None) -> Pool:
    """Estimate the shared unknowns of arms and the own ones of each.

    Args:
        arms: Their equations, of the same columns.
        own_places: Places of the own unknowns among the base parameters; the others are shared.
        present: Numbers of the arms whose shared unknowns count; all of them by default.

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
    """The own unknowns of an arm in one window of time at the fleet's shared ones, which are taken as known."""
    part = Elimination.of(arm.rows(window), list(pool.own_places), list(pool.shared_places))
    return part.own(pool.shared, np.zeros_like(pool.covariance))


def solve_shared(rows: Floats) -> tuple[Floats, Floats, Bools]:
    """The shared unknowns (s,) by rows (r, s + 1), their covariance (s, s), and which of them are left open (s,)."""
    width = rows.shape[1]
    whole = Factor.of(range(width - 1), append_rows(np.zeros((width, width)), rows), len(rows))
    factor = replace(whole, resolution=RESOLUTION)
    root, undetermined = solution_root(factor)
    return factor.solve(minimum_norm=True), root @ root.T, undetermined


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Elimination:
    """Equations with some own unknowns eliminated."""

    triangle: Floats
    """(s + 1, s + 1) of what the own unknowns cannot explain: kept columns, torque."""
    inverse: Floats
    """(k, r) from rows of the equations to own unknowns."""
    null: Floats
    """(k, d) directions of own unknowns without equations."""
    kept: Floats
    """(r, s) kept columns."""
    torque: Floats
    """(r,)"""

    @classmethod
    def of(cls, rows: Floats, own: list[int], kept: list[int]) -> Elimination:
        """Project the rows of an arm on what its own columns cannot explain."""
        scale = np.linalg.norm(rows[:, own], axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        U, values, Vt = svd(rows[:, own] / scale, full_matrices=False)
        good = values > RESOLUTION * max(float(values.max(initial=0.0)), 1e-300)
        U = U[:, good]
        left = rows[:, [*kept, -1]]
        left = left - U @ (U.T @ left)
        return cls(
            triangle=append_rows(np.zeros((left.shape[1],) * 2), left),
            inverse=(Vt[good].T / values[good]) @ U.T / scale[:, None],
            null=Vt[~good].T, kept=rows[:, kept], torque=rows[:, -1],
        )  # fmt: skip

    def own(self, shared: Floats, covariance: Floats) -> OwnPart:
        """The own unknowns at the kept ones, with the uncertainty of both."""
        values = self.inverse @ (self.torque - self.kept @ shared)
        moved = self.inverse @ self.kept
        spread = self.inverse @ self.inverse.T + moved @ covariance @ moved.T
        is_open: Bools = np.any(np.abs(self.null) > OPEN, axis=1)
        return OwnPart(values=values, std=standard_deviations(spread, is_open))
