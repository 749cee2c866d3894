"""The power model: the rate of the energy balance, one equation per sample ([GautierKhalil1992] eq. 7, derived).

The power of all joints together, ``tau^T dq``, is that of the links, rotors and friction, ``dq^T Y``. Internal forces
do no work, so it is one simple equation; it uses the accelerations of the experiment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.estimation.equations import Factors, Samples
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.balance import Balance, solve_balances
from dynid.estimation.samples import check_samples, sample_blocks

__all__ = ["Power", "power_balances"]


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
        check_samples(equations)
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
