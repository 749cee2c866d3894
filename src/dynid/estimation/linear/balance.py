"""Equations in energy, power or momentum instead of torque, and their weighted least-squares solution.

Each such equation sums torques over joints or time, so its error is a known sum of the joints' torque errors: the
variances of those, n numbers, give the variance of every equation. Stacked, the equations of energy are the
system (8)-(10) of [GautierKhalil1992]. They are found from the squared residuals by
non-negative least squares, and weight the next round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.equations import Samples
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import sandwich
from dynid.estimation.noise import block_inflation, check_data
from dynid.information import Factor
from dynid.information.triangular import append_many_rows

ROUNDS = 4
"""How often the weights are refined."""
ERROR_BLOCKS = 10
"""Blocks of time of an experiment, by which correlation of errors is judged."""
NEAR_REST = 1e-3
"""Smallest variance of an equation relative to their mean: near rest little is known, whatever the torque's noise."""
QUIETEST = 1e-6
"""Smallest variance of a joint's torque relative to the largest: squared residuals tell no finer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Balance:
    """Consecutive equations ``target = matrix @ parameters``."""

    matrix: Floats
    """(r, b + k) one column per base parameter and term"""
    target: Floats
    """(r,) [J, W, N m s or N s]"""
    scatter: Floats
    """(r, n) variance of the equation's error per unit variance of each joint's torque error"""

    def variance(self, torque: Floats) -> Floats:
        """(r,) of the equations' errors where the joints' torques have variances (n,)."""
        values = self.scatter @ torque
        return np.asarray(np.maximum(values, NEAR_REST * values.sum() / max(values.size, 1) + 1e-200))


@dataclass(frozen=True, slots=True)
class IntervalEstimator(Estimator, ABC):
    """Least squares on balances over consecutive intervals of time. Accelerations are not used."""

    interval_s: float = 0.05
    """Length of the intervals [s]: short against the motion, long against the sampling time. It is rounded to whole
    samples of each experiment: 0.05 s at 250 Hz become 12 samples, 0.048 s."""

    def __post_init__(self) -> None:
        """Refuse intervals without length."""
        if not (np.isfinite(self.interval_s) and self.interval_s > 0.0):
            raise ArgumentError(f"the interval is {self.interval_s} s", remedy="Give a positive time.")

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate from the balances of all intervals whose samples all count."""
        check_data(equations, spare=1)
        balances = self._balances(equations)
        return solve_balances(equations, lambda: balances, f"least squares on {self._quantity} differences")

    @property
    @abstractmethod
    def _quantity(self) -> str:
        """What is balanced."""

    @abstractmethod
    def _balances(self, equations: Samples) -> list[Balance]:
        """The equations."""


Balances = Callable[[], Iterable[Balance]]
"""The equations, stretch after stretch; called once for every pass over them."""


def solve_balances(equations: Samples, balances: Balances, method: str) -> Estimate:
    """The weighted least-squares estimate from balances.

    Raises:
        IdentifiabilityError: There are no more equations than unknowns, or they say nothing.
    """
    counts = check_balances(equations, balances)
    variances = np.ones(equations.robot.dof)
    for _ in range(ROUNDS):
        factor = _fold(equations, balances, variances)
        variances = _noise(balances, factor.solve(minimum_norm=True), variances, factor)
    factor = _fold(equations, balances, variances)
    beta = factor.solve(minimum_norm=True)
    inflation = _inflation(equations, balances, beta, variances, factor.samples)
    covariance, undetermined = sandwich(factor, _fold(equations, balances, variances, inflation))
    return Estimate.of(
        equations,
        values=beta,
        covariance=covariance,
        undetermined=undetermined,
        noise_std=np.sqrt(variances),
        inflation=inflation,
        samples=counts,
        condition=factor.condition,
        method=method,
        extras={"equations": float(factor.samples)},
    )


def check_balances(equations: Samples, balances: Balances) -> NDArray[np.int64]:
    """(n,) equations that each joint takes part in.

    Raises:
        IdentifiabilityError: There are no more equations than unknowns, or they say nothing.
    """
    counts, total, acts = np.zeros(equations.robot.dof, dtype=np.int64), 0, False
    for rows in balances():
        counts += np.count_nonzero(rows.scatter, axis=0)
        total += len(rows.target)
        acts = acts or bool(np.any(rows.matrix))
    if total <= len(equations.names):
        raise IdentifiabilityError(
            f"{total} equations for {len(equations.names)} unknowns",
            remedy="Record longer gap-free stretches, shorten the intervals, or use an estimator of torques.",
        )
    if not acts:
        raise IdentifiabilityError("the robot does not move, so these equations say nothing", remedy="Move the robot.")
    return counts


def _fold(equations: Samples, balances: Balances, variances: Floats, inflation: Floats | None = None) -> Factor:
    """All equations as one triangle, by the inverse of their variances; or, inflated, the spread for `sandwich`.

    The triangle stands for the stacked system, [GautierKhalil1992] eqs. (8)-(10) for energy.
    """
    b, count = len(equations.names), 0
    R = np.zeros((b + 1, b + 1))
    for rows in balances():
        v = rows.variance(variances)
        weight = 1.0 / v if inflation is None else rows.variance(variances * inflation) / v**2
        R = append_many_rows(R, np.column_stack([rows.matrix, rows.target]) * np.sqrt(weight)[:, None])
        count += len(weight)
    columns = equations.information.columns
    z, residual = R[:b, b].copy(), float(R[b, b] ** 2)
    return Factor(columns=columns, R=R[:b, :b].copy(), z=z, residual=residual, samples=count, resolution=1e-11)


def _noise(balances: Balances, beta: Floats, variances: Floats, factor: Factor) -> Floats:
    """(n,) variance of each joint's torque."""
    n = variances.size
    normal, right = np.zeros((n, n)), np.zeros(n)
    for rows in balances():
        v = rows.variance(variances)
        e = rows.target - rows.matrix @ beta
        S = rows.scatter / v[:, None]
        normal += S.T @ S
        right += S.T @ (e**2 / v)
    return torque_variances(normal, right, factor)


def torque_variances(normal: Floats, right: Floats, factor: Factor) -> Floats:
    """(n,) variance of each joint's torque: the non-negative v of the smallest ``|S v - e^2|``.

    Args:
        normal: (n, n) ``S^T S`` with S the scatter of the equations.
        right: (n,) ``S^T e^2`` with the squared residuals.
        factor: The equations that were fitted.
    """
    from scipy.optimize import nnls

    squares, vectors = eigh(normal)
    root = np.sqrt(np.maximum(squares, 1e-12 * max(float(squares[-1]), 1e-300)))
    found, _ = nnls(root[:, None] * vectors.T, (vectors.T @ right) / root)
    found = found * factor.samples / max(factor.samples - factor.rank, 1)
    floor = max(QUIETEST * float(found.max()), 1e-150)
    return np.asarray(np.maximum(found, floor))


def _inflation(equations: Samples, balances: Balances, beta: Floats, variances: Floats, count: int) -> Floats:
    """(n,) the factor for errors that are correlated in time, by blocks of it; one for joints that act together."""
    groups: dict[tuple[int, ...], list[tuple[Floats, Floats]]] = {}
    length = max(1.0, count / (ERROR_BLOCKS * len(equations.experiments)))
    for rows in balances():
        acting = tuple(np.flatnonzero(rows.scatter.any(axis=0)).tolist())
        mine = length / equations.robot.dof if len(acting) == 1 else length  # of one joint there are fewer equations
        root = np.sqrt(rows.variance(variances))
        W, e = rows.matrix / root[:, None], (rows.target - rows.matrix @ beta) / root
        for part in np.array_split(np.arange(len(e)), max(1, round(len(e) / mine))):
            groups.setdefault(acting, []).append((W[part].T @ W[part], W[part].T @ e[part]))
    inflation = np.ones(equations.robot.dof)
    found = block_inflation(list(groups.values()), np.ones(len(groups)), beta.size)
    for acting, factor in zip(groups, found, strict=True):
        inflation[list(acting)] = factor
    return inflation
