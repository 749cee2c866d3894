"""The energy theorem as equations, one per interval of time.

The work of the joints between two instants is the change of the links' energy ([GautierKhalil1992] eqs. (1)-(3)), which
is linear in the parameters (eqs. (4)-(7)); one such equation per interval makes the system (8)-(10). It needs no
accelerations. Friction enters by its work over the interval, rotors by their kinetic energy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors, Samples
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.balance import Balance, IntervalEstimator, check_balances
from dynid.estimation.linear.balance_sums import BalanceSums
from dynid.estimation.linear.integrals import (
    Intervals,
    Model,
    cut_intervals,
    split_columns,
    term_momentum,
    term_torque_rows,
)
from dynid.estimation.noise import check_data
from dynid.kernels import kernel

ROUNDING = 1e-14
"""Difference of two energies over the largest energy of a unit parameter there, below which it is rounding (derivation:
a few dozen roundings of double precision); otherwise a motion of constant energy would seem to show something."""


@dataclass(frozen=True, slots=True)
class Energy(IntervalEstimator):
    """Minimises squared residuals of energy differences between instants ([GautierKhalil1992] eqs. (1)-(10)).

    Use it where accelerations are too noisy: they are not needed.
    """

    name: ClassVar[str] = "energy"
    title: ClassVar[str] = "least squares on energy differences"
    use: ClassVar[str] = "accelerations are too noisy"
    references: ClassVar[tuple[str, ...]] = ("GautierKhalil1992",)
    needs: ClassVar[tuple[type[Factors], ...]] = (Samples,)
    accepts_band: ClassVar[bool] = False

    weights: Literal["refined", "equal"] = "refined"
    """Of the equations: the inverse of their variances, found in rounds, or the paper's own least squares with all of
    them alike, which `OnlineEnergy` gives sample by sample."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        IntervalEstimator.__post_init__(self)
        if self.weights not in ("refined", "equal"):
            raise ArgumentError(f"weights is {self.weights!r}", remedy="Choose 'refined' or 'equal'.")

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate from the energy balances of all intervals whose samples all count."""
        if self.weights == "refined":
            return IntervalEstimator.estimate(self, equations)
        check_data(equations, spare=1)
        balances = self._balances(equations)
        check_balances(equations, lambda: balances)
        sums = BalanceSums(equations.robot.dof, equations.names, equations.units)
        for rows in balances:
            sums.append(rows)
        return sums.estimate("ordinary least squares on energy differences")

    @property
    def _quantity(self) -> str:
        return "energy"

    def _balances(self, equations: Samples) -> list[Balance]:
        return energy_balances(equations, self.interval_s)


def energy_balances(equations: Samples, interval_s: float) -> list[Balance]:
    """The equations (8)-(10) of [GautierKhalil1992], one `Balance` per gap-free stretch."""
    return [
        _concatenate([energy_rows(equations, part) for part in parts]) for parts in cut_intervals(equations, interval_s)
    ]


def energy_rows(model: Model, part: Intervals) -> Balance:
    """The equations of consecutive intervals whose samples all count."""
    links, _ = split_columns(model)
    dq = part.dq
    q_ab, dq_ab = part.instants(part.q), part.instants(dq)
    h = kernel(model.robot, "energy_regressor", columns=links)(q_ab, dq_ab)  # [GautierKhalil1992] eqs. (4), (6)
    rotors = 0.5 * np.einsum("tj,tjk->tk", dq_ab, term_momentum(model, part))
    friction = part.integral(np.einsum("tj,tjk->tk", dq, term_torque_rows(model, part)))
    whole = part.is_complete().all(axis=1)
    return Balance(
        matrix=np.column_stack([_differences(h), np.diff(rotors, axis=0) + friction])[whole],  # eqs. (5), (7)
        target=part.integral((part.effort * dq).sum(axis=1))[whole],  # eqs. (1)-(3)
        scatter=part.integral_variance(dq)[whole],
    )


def _differences(h: Floats) -> Floats:
    """(m, links) of rows (m + 1, links) at the instants; zero where the difference is rounding."""
    change = np.diff(h, axis=0)
    size = np.abs(h).max(axis=1, initial=0.0, keepdims=True)
    return np.where(np.abs(change) > ROUNDING * np.maximum(size[1:], size[:-1]), change, 0.0)


def _concatenate(parts: list[Balance]) -> Balance:
    return Balance(
        matrix=np.concatenate([part.matrix for part in parts]),
        target=np.concatenate([part.target for part in parts]),
        scatter=np.concatenate([part.scatter for part in parts]),
    )
