"""The energy model: work done by the joints between two instants against the change of the links' energy.

[GautierKhalil1992] eqs. (1)-(10). One equation per interval, no accelerations. Friction, where the robot has joint
models for it, enters by its work over the interval; rotors by their kinetic energy.

The power model: the rate of the energy balance, one equation per sample ([GautierKhalil1992] eq. 7, derived).

The power of all joints together, ``tau^T dq``, is that of the links, rotors and friction, ``dq^T Y``. Internal forces
do no work, so it is one simple equation; it uses the accelerations of the experiment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.equations import Factors, Samples
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.balance import Balance, IntervalEstimator, solve_balances
from dynid.estimation.linear.integrals import Intervals, intervals, model_momentum, model_rows, split_columns
from dynid.estimation.noise import check_data
from dynid.estimation.samples import sample_blocks
from dynid.kernels import kernel

__all__ = ["Energy", "Power", "energy_balances", "power_balances"]

Floats = NDArray[np.float64]


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

    @property
    def _quantity(self) -> str:
        return "energy"

    def _balances(self, equations: Samples) -> list[Balance]:
        return energy_balances(equations, self.interval_s)


def energy_balances(equations: Samples, interval_s: float) -> list[Balance]:
    """The equations (10), one `Balance` per gap-free stretch."""
    return [_joined([_balance(equations, part) for part in parts]) for parts in intervals(equations, interval_s)]


def _balance(equations: Samples, part: Intervals) -> Balance:
    links, _ = split_columns(equations)
    dq = part.samples("dq")
    q_ab, dq_ab = part.instants(part.samples("q")), part.instants(dq)
    h = kernel(equations.robot, "energy_regressor", columns=links)(q_ab, dq_ab)  # (4), (6)
    rotors = 0.5 * np.einsum("tj,tjk->tk", dq_ab, model_momentum(equations, part))
    friction = part.integral(np.einsum("tj,tjk->tk", dq, model_rows(equations, part)))
    whole = part.whole().all(axis=1)
    return Balance(
        matrix=np.column_stack([np.diff(h, axis=0), np.diff(rotors, axis=0) + friction])[whole],  # (5)
        target=part.integral((part.effort * dq).sum(axis=1))[whole],  # (2)
        scatter=part.squares(dq)[whole],
    )


def _joined(parts: list[Balance]) -> Balance:
    return Balance(
        matrix=np.concatenate([part.matrix for part in parts]),
        target=np.concatenate([part.target for part in parts]),
        scatter=np.concatenate([part.scatter for part in parts]),
    )


@dataclass(frozen=True, slots=True)
class Power(Estimator):
    """Minimises squared residuals of the power of all joints together ([GautierKhalil1992] eq. 7, derived).

    One equation per sample; use it as a reference for the energy model.
    """

    name: ClassVar[str] = "power"
    title: ClassVar[str] = "least squares on power"
    use: ClassVar[str] = "one equation per sample is enough"
    references: ClassVar[tuple[str, ...]] = ("GautierKhalil1992",)
    needs: ClassVar[tuple[type[Factors], ...]] = (Samples,)
    accepts_band: ClassVar[bool] = False

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate from the power balances of all samples at which every joint counts."""
        check_data(equations, spare=1)
        return solve_balances(equations, lambda: power_balances(equations), "least squares on power")


def power_balances(equations: Samples) -> Iterator[Balance]:
    """The equations ``tau^T dq = (dq^T Y) x``, block by block."""
    for block in sample_blocks(equations, 8192):
        whole = block.valid.all(axis=1)
        dq = block.run.dq[block.rows][whole]
        yield Balance(
            matrix=np.einsum("tj,tjk->tk", dq, block.matrix[whole]),
            target=(dq * block.effort[whole]).sum(axis=1),
            scatter=dq**2,
        )
