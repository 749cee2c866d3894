"""The power model: the rate of the energy balance, one equation per sample ([GautierKhalil1992] eq. 7, derived).

The power of all joints together, ``tau^T dq``, is that of the links, rotors and friction, ``dq^T Y``. Internal forces
do no work, so it is one simple equation; it uses the accelerations of the experiment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.balance import Balance, solve_balances
from dynid.estimation.problem import Problem
from dynid.estimation.samples import check_samples, sample_blocks

__all__ = ["Power", "power_balances"]


@dataclass(frozen=True, slots=True)
class Power(Estimator):
    """Least squares on the power of all joints together."""

    def solve(self, problem: Problem) -> Estimate:
        """Estimate from the power balances of all samples at which every joint counts."""
        check_samples(problem)
        return solve_balances(problem, lambda: power_balances(problem), "least squares on power")


def power_balances(problem: Problem) -> Iterator[Balance]:
    """The equations ``tau^T dq = (dq^T Y) x``, block by block."""
    for block in sample_blocks(problem, 8192):
        whole = block.valid.all(axis=1)
        dq = block.run.dq[block.rows][whole]
        yield Balance(
            matrix=np.einsum("tj,tjk->tk", dq, block.matrix[whole]),
            target=(dq * block.effort[whole]).sum(axis=1),
            scatter=dq**2,
        )
