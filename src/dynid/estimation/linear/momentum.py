"""The integral form of the torque equations: impulse of a joint against the change of its momentum, no accelerations.

[Atkeson1986] integrates the load's equations over ``[t, t + T]`` so that accelerations become differences of velocities
(eqs. 25-27, Appendix II). For the joints of a robot that is Lagrange's equation, integrated:

    integral(tau_i) = p_i(t + T) - p_i(t) - integral(dL / dq_i),    p = M dq

All terms are linear in the parameters. The slope of the kinetic energy follows from velocity torques c(q, dq) alone:
with Christoffel symbols ``c_j = sum G_jik dq_i dq_k`` and ``dM_jk / dq_i = G_jik + G_kij``,

    dT / dq_i = sum dq_j G_jik dq_k = dq^T (c(q, dq + e_i) - c(q, dq - e_i)) / 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.estimation.equations import Factors, Samples
from dynid.estimation.linear.balance import Balance, IntervalEstimator
from dynid.estimation.linear.integrals import Intervals, cut_intervals, split_columns, term_momentum, term_torque_rows
from dynid.kernels import kernel, regressor


@dataclass(frozen=True, slots=True)
class Momentum(IntervalEstimator):
    """Least squares on the impulses of each joint over consecutive intervals. Accelerations are not used.

    It weighs slow errors more than the torque equations do: the paper found it worse where sensors drift.
    """

    name: ClassVar[str] = "momentum"
    title: ClassVar[str] = "least squares on momentum differences"
    use: ClassVar[str] = "accelerations are too noisy, and each joint is weighted separately"
    references: ClassVar[tuple[str, ...]] = ("Atkeson1986",)
    needs: ClassVar[tuple[type[Factors], ...]] = (Samples,)
    accepts_band: ClassVar[bool] = False

    @property
    def _quantity(self) -> str:
        return "momentum"

    def _balances(self, equations: Samples) -> list[Balance]:
        return momentum_balances(equations, self.interval_s)


def momentum_balances(equations: Samples, interval_s: float) -> list[Balance]:
    """The integrated equations, one `Balance` per joint and gap-free stretch."""
    found = []
    for parts in cut_intervals(equations, interval_s):
        tables = [_table(equations, part) for part in parts]
        matrix, target, whole, scatter = (np.concatenate(pieces) for pieces in zip(*tables, strict=True))
        for joint in range(equations.robot.dof):
            mine = np.zeros((len(target), equations.robot.dof))
            mine[:, joint] = scatter
            keep = whole[:, joint]
            found.append(Balance(matrix=matrix[keep, joint], target=target[keep, joint], scatter=mine[keep]))
    return found


def _table(equations: Samples, part: Intervals) -> tuple[Floats, Floats, NDArray[np.bool_], Floats]:
    """Matrix (m, n, b + k), impulses (m, n), which of them count, their variance per unit variance of torque (m,)."""
    links, _ = split_columns(equations)
    q, dq = part.q, part.dq
    momentum = kernel(equations.robot, "momentum_regressor", columns=links)(part.instants(q), part.instants(dq))
    rigid = np.diff(momentum, axis=0) - part.integral(lagrangian_slope(equations, q, dq))  # (25)-(27)
    models = np.diff(term_momentum(equations, part), axis=0) + part.integral(term_torque_rows(equations, part))
    scatter = part.integral_variance(np.ones(len(q)))
    return np.concatenate([rigid, models], axis=2), part.integral(part.effort), part.is_complete(), scatter


def lagrangian_slope(equations: Samples, q: Floats, dq: Floats) -> Floats:
    """(N, n, links) derivative of the links' Lagrangian with respect to each q_i, per unit of each link column.

    Args:
        equations: Its base's columns that belong to links are meant.
        q: (N, n) [rad or m]
        dq: (N, n)
    """
    links, _ = split_columns(equations)
    rest = np.zeros_like(q)
    slope = -regressor(equations.robot, q, rest, rest, columns=links)  # of the potential energy
    for i, unit in enumerate(np.eye(equations.robot.dof)):
        ahead = regressor(equations.robot, q, dq + unit, rest, columns=links)
        behind = regressor(equations.robot, q, dq - unit, rest, columns=links)
        slope[:, i] += 0.25 * np.einsum("tj,tjk->tk", dq, ahead - behind)
    return slope
