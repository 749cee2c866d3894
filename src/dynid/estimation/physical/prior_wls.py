"""Weighted least squares drawn towards the prior, without physical constraints: one linear solve.

What the data determine, they decide; what they leave open stays at the prior instead of wandering off, which predicts
better than plain least squares. `FeasibleWLS` is the same with every body possible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dynid.decompositions import lstsq
from dynid.errors import ArgumentError
from dynid.estimation.cross_validation import weigh_prior
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.physical.constrained_spread import drawn_estimate, prior_dominated
from dynid.estimation.physical.prior import PriorCoordinates
from dynid.estimation.physical.prior_bias import Draw


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorWLS(Estimator):
    """Weighted least squares with a Gaussian prior around the robot's own parameters."""

    name: ClassVar[str] = "prior-wls"
    on_command_line: ClassVar[bool] = False
    title: ClassVar[str] = "weighted least squares with a prior"
    use: ClassVar[str] = "the prior is good and an impossible body does no harm"
    references: ClassVar[tuple[str, ...]] = ("LeeWensingPark2020",)

    prior_weight: float | None = None
    """As in `FeasibleWLS`; None chooses by cross-validation."""
    rounds: int = 3
    """How often the joints' weights are refined."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if self.prior_weight is not None and not self.prior_weight > 0.0:
            raise ArgumentError(f"the prior's weight must be positive, not {self.prior_weight}")

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate all standard parameters, possible or not; the base parameters are their combinations."""
        weighing = weigh_prior(equations, self.prior_weight, self.rounds, "weighted least squares with a prior")
        factor, plain = weighing.factor, weighing.plain
        coordinates = PriorCoordinates.of(equations.robot, factor.scale[equations.base.rank :])
        to_base = equations.grouping @ coordinates.from_scaled
        pull = weighing.prior_weight * coordinates.pull
        rows = np.vstack([factor.R @ to_base, np.diag(np.sqrt(pull))])
        y = lstsq(rows, np.concatenate([factor.z, np.sqrt(pull) * coordinates.centre]))
        dominated = prior_dominated(plain, plain, factor, to_base, pull)
        draw = Draw(to_base, coordinates.centre, pull)
        return replace(
            drawn_estimate(equations, weighing, draw, to_base @ y, dominated),
            findings=(*plain.findings, *coordinates.findings, *weighing.findings),
            prior_dominated=dominated,
            extras={"prior_weight": weighing.prior_weight},
        )
