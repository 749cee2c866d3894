"""Many arms of one type: shared inertial parameters, and friction, offsets and gains of every arm's own.

The equations of arm a are ``S_a s + O_a o_a = t_a`` with the shared unknowns s and the arm's own ones o_a. The own ones
are eliminated arm by arm, by projecting the equations on what O_a cannot explain (the Schur complement in square-root
form), so that the fleet costs one small triangle per arm, however many arms and samples there are. Then all arms
together give s, and each arm its o_a.

An arm's equations count by the inverse of its residual variances, raised by their autocorrelation factors: errors of
neighbouring samples are alike, and no arm may count as if they were not.

Gains: the torque of joint j may be measured (1 + d_aj) times as large in arm a. In first order that is one more own
column, the torque of the joint itself. Only ratios of gains can be known, so the gains of a fleet scatter about one, by
an amount that is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import svd
from dynid.errors import IdentifiabilityError
from dynid.estimation.equations import Factors
from dynid.estimation.intervals.score_covariance import solution_root
from dynid.estimation.linear.least_squares import refined_weights
from dynid.estimation.noise import correlation_inflation, joint_variances
from dynid.information import Factor, Information
from dynid.information.triangular import append_rows

RESOLUTION = 1e-10
"""Relative singular value below which a direction of own unknowns has no equations (convention: rounding)."""
GAIN_ROUNDS = 2
"""How often the columns of the gains are made again (convention: they change by the square of the gains)."""
OPEN = 1e-6
"""Share of an own unknown in a direction without equations that leaves it open (as for single robots)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmEquations:
    """What one arm's logs say, weighted."""

    name: str
    information: Information
    """All logs; columns are those of the base parameters."""
    weights: Floats
    """(n,) inverse of each joint's residual variance, raised by its autocorrelation factor."""
    windows: tuple[Information, ...] = ()
    """The logs of each window of time; empty for a single window."""
    logs: tuple[Information, ...] = ()
    """Each log by itself."""
    log_names: tuple[str, ...] = ()
    """Their names."""

    def rows(self, gains_at: Floats | None = None, window: int | None = None, log: int | None = None) -> Floats:
        """(r, b + g + 1) weighted equations of all joints: base columns, gains, torque.

        Args:
            gains_at: (b,) base parameters whose torques are the columns of the gains; None for no such columns.
            window: Number of a window; all of them together by default.
            log: Number of a log; all of them together by default.
        """
        information = self.information if window is None else self.windows[window]
        information = information if log is None else self.logs[log]
        size = len(information.columns)
        gains = 0 if gains_at is None else information.dof
        triangle = np.zeros((size + gains + 1,) * 2)
        for joint, (support, weight) in enumerate(zip(information.supports, self.weights, strict=True)):
            R = np.sqrt(weight) * information.factor(joint)
            rows = np.zeros((len(R), size + gains + 1))
            rows[:, list(support)] = R[:, :-1]
            rows[:, -1] = R[:, -1]
            if gains_at is not None:
                rows[:, size + joint] = R[:, :-1] @ gains_at[list(support)]
            triangle = append_rows(triangle, rows)
        return triangle


def weigh_arm(
    name: str, information: Information, logs: Sequence[Factors], windows: Sequence[Information] = (),
    log_names: Sequence[str] = (),
) -> ArmEquations:  # fmt: skip
    """The equations of an arm, weighted by the residuals of its logs.

    Every log is fitted by itself: what changed from one log to the next is no noise.

    Args:
        name: Name of the arm.
        information: All its logs together.
        logs: The equations of each of them.
        windows: The logs of each window of time.
        log_names: Names of the logs.
    """
    total, squares = np.zeros(information.dof), np.zeros(information.dof)
    for equations in logs:
        weights = refined_weights(equations)
        beta = equations.information.weight(weights).solve(minimum_norm=True)
        variances = joint_variances(equations, beta) * correlation_inflation(equations, beta)
        total, squares = total + equations.counts, squares + equations.counts * variances
    shares = np.maximum(total, 1.0) / np.maximum(squares, 1e-300)
    return ArmEquations(
        name=name, information=information, weights=shares, windows=tuple(windows),
        logs=tuple(equations.information for equations in logs), log_names=tuple(log_names),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnPart:
    """The own unknowns of one arm."""

    values: Floats
    """(k,)"""
    std: Floats
    """(k,) standard deviations; infinite where the arm's logs leave an unknown open."""
    covariance: Floats
    """(k, k) of the known directions."""


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
    undetermined: NDArray[np.bool_]
    """(s,) what all arms together leave open."""
    own: tuple[OwnPart, ...]
    """For each arm; own base parameters first, then the gains d of the joints, where they are free."""
    eliminated: tuple[Floats, ...]
    """For each arm the (s + 1, s + 1) triangle of the shared unknowns and the torque, own unknowns eliminated."""
    gain_spread: float = 0.0
    """Standard deviation of the gains about one; zero where they are fixed."""
    shifts: Mapping[int, Floats] = field(default_factory=dict)
    """For arms that differ, what they add to the shared unknowns (s,), such as a load that they hold."""

    @property
    def std(self) -> Floats:
        """(s,) standard deviations; infinite where the fleet leaves an unknown open."""
        return np.where(self.undetermined, np.inf, np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0)))

    def shared_of(self, arm: int) -> Floats:
        """(s,) the shared unknowns as one arm has them."""
        return self.shared + self.shifts[arm] if arm in self.shifts else self.shared

    def base_values(self, arm: int) -> Floats:
        """(b,) base parameters of one arm."""
        values = np.zeros(len(self.own_places) + len(self.shared_places))
        values[list(self.shared_places)] = self.shared_of(arm)
        values[list(self.own_places)] = self.own[arm].values[: len(self.own_places)]
        return values

    def gains(self, arm: int) -> Floats:
        """(n,) factor by which an arm's torques are measured too large, joint by joint; empty where they are fixed."""
        return np.asarray(1.0 + self.own[arm].values[len(self.own_places) :])

    def of_arms(self, arms: Sequence[int]) -> tuple[Floats, Floats, Floats]:
        """The shared unknowns (s,) by some arms, their covariance (s, s), and the directions (s, d) they leave open."""
        return solve_shared([self.eliminated[k] for k in arms])


def pool_arms(arms: Sequence[ArmEquations], own_places: Sequence[int], gain_spread: float = 0.0) -> Pool:
    """Estimate the shared unknowns of all arms and the own ones of each.

    Args:
        arms: Their equations, of the same columns.
        own_places: Places of the own unknowns among the base parameters; the others are shared.
        gain_spread: Standard deviation of the gains of a fleet about one; zero takes all gains as one.

    Raises:
        IdentifiabilityError: There is no arm.
    """
    if not arms:
        raise IdentifiabilityError("no arm has a log that can be used", remedy="See the list of logs that failed.")
    size = len(arms[0].information.columns)
    own = tuple(own_places)
    shared = tuple(place for place in range(size) if place not in own)
    pool = _pool(arms, [None] * len(arms), own, shared, 0.0)
    for _ in range(GAIN_ROUNDS if gain_spread > 0.0 else 0):  # their columns are torques of the round before
        pool = _pool(arms, [pool.base_values(k) for k in range(len(arms))], own, shared, gain_spread)
    return pool


def share_of_others(
    arms: Sequence[ArmEquations], pool: Pool, present: Sequence[int], shifts: Mapping[int, Floats] | None = None
) -> Pool:
    """The pool with the shared unknowns of some arms only; every arm's own unknowns are estimated anew at them.

    Args:
        arms: All arms.
        pool: All of them together.
        present: Numbers of those whose shared unknowns count.
        shifts: For some arms what they add to the shared unknowns (s,), such as a load that they hold.
    """
    values, covariance, null = pool.of_arms(present)
    at = [pool.base_values(k) for k in range(len(arms))] if pool.gain_spread > 0.0 else [None] * len(arms)
    parts = [_eliminate(arm.rows(beta), pool) for arm, beta in zip(arms, at, strict=True)]
    undetermined = np.any(np.abs(null) > OPEN, axis=1) if null.size else np.zeros(len(values), dtype=bool)
    rest = replace(pool, shared=values, covariance=covariance, undetermined=undetermined, shifts=shifts or {})
    return replace(rest, own=tuple(part.own(rest.shared_of(k), covariance) for k, part in enumerate(parts)))


def own_values(arm: ArmEquations, pool: Pool, number: int, window: int | None = None) -> OwnPart:
    """The own unknowns of an arm in one window of time at the fleet's shared ones, which are taken as known.

    Args:
        arm: The equations of the arm.
        pool: The fleet.
        number: Number of the arm in the fleet.
        window: Number of the window; all of them together by default.
    """
    at = pool.base_values(number) if pool.gain_spread > 0.0 else None
    part = _eliminate(arm.rows(at, window), pool)
    return part.own(pool.shared_of(number), np.zeros_like(pool.covariance))


def solve_shared(triangles: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """The shared unknowns (s,) by some triangles, their covariance (s, s), and the directions (s, d) left open."""
    factor = _shared_factor(triangles)
    root, _ = solution_root(factor)
    null = svd(root)[0][:, root.shape[1] :]
    return factor.solve(minimum_norm=True), root @ root.T, null


def without_own(arm: ArmEquations, pool: Pool, number: int, log: int | None = None) -> Floats:
    """The triangle (s + n + 1) of an arm's shared unknowns, gains of its n joints, and torque; own unknowns eliminated.

    Where gains are own unknowns of every arm, they are eliminated too: (s + 1).

    Args:
        arm: The equations of the arm.
        pool: The fleet.
        number: Number of the arm in the fleet.
        log: Number of a log; by default all of them, own unknowns free in each window.
    """
    parts: Sequence[int | None] = range(len(arm.windows)) if log is None and len(arm.windows) > 1 else [None]
    size, gains = len(pool.own_places) + len(pool.shared_places), arm.information.dof
    triangle = np.zeros((0, 0))
    for window in parts:
        rows = arm.rows(pool.base_values(number), window, log)
        if pool.gain_spread > 0.0:
            part = _eliminate(rows, pool).triangle
        else:
            kept = [*pool.shared_places, *range(size, size + gains)]
            prior = np.zeros((0, len(pool.own_places)))
            part = _Elimination.of(rows, list(pool.own_places), kept, prior).triangle
        triangle = append_rows(triangle, part) if triangle.size else part
    return triangle


def _pool(
    arms: Sequence[ArmEquations], gains_at: Sequence[Floats | None], own: tuple[int, ...], shared: tuple[int, ...],
    gain_spread: float,
) -> Pool:  # fmt: skip
    nothing = np.zeros(0)
    empty = Pool(
        own_places=own, shared_places=shared, shared=nothing, covariance=nothing, undetermined=nothing.astype(bool),
        own=(), eliminated=(), gain_spread=gain_spread,
    )  # fmt: skip
    whole = [_eliminate(arm.rows(beta), empty) for arm, beta in zip(arms, gains_at, strict=True)]
    triangles = [
        part.triangle if len(arm.windows) < 2 else _by_window(arm, beta, empty)
        for arm, beta, part in zip(arms, gains_at, whole, strict=True)
    ]
    factor = _shared_factor(triangles)
    root, undetermined = solution_root(factor)
    values, covariance = factor.solve(minimum_norm=True), root @ root.T
    return replace(
        empty, shared=values, covariance=covariance, undetermined=undetermined,
        own=tuple(part.own(values, covariance) for part in whole), eliminated=tuple(triangles),
    )  # fmt: skip


def _by_window(arm: ArmEquations, gains_at: Floats | None, pool: Pool) -> Floats:
    """The triangle of the shared unknowns when own ones may differ from window to window: friction changes."""
    parts = [_eliminate(arm.rows(gains_at, window), pool).triangle for window in range(len(arm.windows))]
    total = parts[0]
    for part in parts[1:]:
        total = append_rows(total, part)
    return total


def _eliminate(rows: Floats, pool: Pool) -> _Elimination:
    """Eliminate the own unknowns of an arm; gains get their prior."""
    size = len(pool.own_places) + len(pool.shared_places)
    gains = rows.shape[1] - 1 - size
    own_columns = [*pool.own_places, *range(size, size + gains)]
    prior = np.zeros((gains, len(own_columns)))
    if gains:
        prior[:, len(pool.own_places) :] = np.eye(gains) / pool.gain_spread
    return _Elimination.of(rows, own_columns, list(pool.shared_places), prior)


def _shared_factor(triangles: Sequence[Floats]) -> Factor:
    """The least-squares problem of the shared unknowns of some arms."""
    size = triangles[0].shape[1] - 1
    R = np.zeros((size + 1, size + 1))
    for triangle in triangles:
        R = append_rows(R, triangle)
    return Factor(
        columns=tuple(range(size)), R=R[:size, :size].copy(), z=R[:size, size].copy(),
        residual=float(R[size, size] ** 2), samples=(size + 1) * len(triangles), resolution=RESOLUTION,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Elimination:
    """One arm with its own unknowns eliminated."""

    triangle: Floats
    """(s + 1, s + 1) of what the own unknowns cannot explain: shared columns, torque."""
    inverse: Floats
    """(k, r) from rows of the equations to own unknowns."""
    null: Floats
    """(k, d) directions of own unknowns without equations."""
    S: Floats
    """(r, s) shared columns."""
    t: Floats
    """(r,) torque."""

    @classmethod
    def of(cls, rows: Floats, own: list[int], shared: list[int], prior: Floats) -> _Elimination:
        """Project the rows of an arm on what its own columns cannot explain; `prior` (m, k) are rows with torque 0."""
        O = np.vstack([rows[:, own], prior])  # noqa: E741 (the own columns of the module's text)
        S = np.vstack([rows[:, shared], np.zeros((len(prior), len(shared)))])
        t = np.append(rows[:, -1], np.zeros(len(prior)))
        scale = np.linalg.norm(O, axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        U, values, Vt = svd(O / scale)
        good = values > RESOLUTION * max(float(values[0]) if values.size else 0.0, 1e-300)
        U, good_Vt = U[:, : values.size][:, good], Vt[: values.size][good]
        left = np.column_stack([S, t])
        left = left - U @ (U.T @ left)
        triangle = append_rows(np.zeros((left.shape[1],) * 2), left)
        inverse = (good_Vt.T / values[good]) @ U.T / scale[:, None]
        null = np.vstack([Vt[: values.size][~good], Vt[values.size :]]).T if Vt.size else np.zeros((len(own), 0))
        return cls(triangle=triangle, inverse=inverse, null=null, S=S, t=t)

    def own(self, shared: Floats, covariance: Floats) -> OwnPart:
        """The own unknowns at the shared ones, with the uncertainty of both."""
        values = self.inverse @ (self.t - self.S @ shared)
        moved = self.inverse @ self.S
        own_covariance = self.inverse @ self.inverse.T + moved @ covariance @ moved.T
        undetermined = np.any(np.abs(self.null) > OPEN, axis=1) if self.null.size else np.zeros(len(values), dtype=bool)
        std = np.where(undetermined, np.inf, np.sqrt(np.maximum(np.diagonal(own_covariance), 0.0)))
        return OwnPart(values=values, std=std, covariance=own_covariance)
