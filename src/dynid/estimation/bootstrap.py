"""Uncertainty by drawing blocks of time anew: no formula, no assumption on noise within a block.

The equations are cut into blocks longer than their errors remember. Each replicate draws as many blocks as there are,
with replacement, and estimates again from their factors; the scatter of the replicates is that of the estimate (Kuensch
1989). It holds for estimators with constraints and priors too, as they are applied to every replicate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimation.equations import Factors, Samples, build_equations
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import WLS
from dynid.findings import Finding

__all__ = ["BlockBootstrap"]

Floats = NDArray[np.float64]
GROUPS = 10
"""Segments that the drawn blocks of an experiment are put into: fewer are faster to solve."""
MOST_FAILURES = 0.2
"""Share of replicates that may be unsolvable before the whole is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockBootstrap(Estimator):
    """Another estimator's values with the covariance of its replicates on blocks drawn anew.

    Only for estimators that need factors and no single samples: least squares of any kind, feasible ones.
    """

    name: ClassVar[str] = "bootstrap"
    on_command_line: ClassVar[bool] = False
    title: ClassVar[str] = "block bootstrap"
    use: ClassVar[str] = "intervals are wanted that assume nothing about the noise"
    needs: ClassVar[tuple[type[Factors], ...]] = (Samples,)

    estimator: Estimator = field(default_factory=WLS)
    replicates: int = 200
    """How often to estimate again; 200 give standard deviations to 5 %."""
    blocks: int = 40
    """Into how many blocks of time each experiment is cut."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if self.replicates < 2 or self.blocks < 2:
            raise ArgumentError(f"a bootstrap needs two replicates and two blocks or more, not {self}")

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate once from all data, then the scatter from replicates.

        Raises:
            IdentifiabilityError: Too many replicates leave parameters open that all data together determine.
        """
        estimate = self.estimator.solve(equations)
        found, failed = [], 0
        for drawn in self._drawn(equations):
            try:
                replicate = self.estimator.solve(drawn)
            except (EstimationError, IdentifiabilityError):
                failed += 1
                continue
            found.append(np.where(replicate.undetermined & ~estimate.undetermined, np.nan, replicate.values))
        values = np.array([row for row in found if np.isfinite(row).all()]).reshape(-1, len(equations.names))
        if len(values) < (1.0 - MOST_FAILURES) * self.replicates:
            raise IdentifiabilityError(
                f"{self.replicates - len(values)} of {self.replicates} replicates leave parameters open",
                remedy="Use more blocks, record longer, or trust the formula instead.",
            )
        covariance = np.cov(values, rowvar=False).reshape(len(equations.names), -1)
        covariance[estimate.undetermined, estimate.undetermined] = np.inf
        remark = Finding(
            code="bootstrap",
            severity="note",
            where="estimate",
            message=f"the covariance comes from {len(values)} replicates of randomly drawn blocks",
        )
        return replace(estimate, covariance=covariance, findings=(*estimate.findings, remark))

    def _drawn(self, equations: Samples) -> Iterator[Samples]:
        """Problems of as many blocks as there are, drawn with replacement from each experiment."""
        fine = build_equations(
            equations.robot,
            equations.experiments,
            base=equations.base,
            terms=equations.terms,
            band_hz=equations.band_hz,
            blocks=self.blocks,
        )
        rng = np.random.default_rng(self.seed)
        for _ in range(self.replicates):
            parts, blocks, first = [], [], 0
            for segments in fine.blocks:
                drawn = rng.choice(segments, size=len(segments))
                for number, segment in enumerate(drawn, start=first):
                    parts += [
                        replace(part, segment=number) for part in fine.information.parts if part.segment == segment
                    ]
                blocks.append(tuple(range(first, first + len(drawn))))
                first += len(drawn)
            yield replace(fine, information=replace(fine.information, parts=tuple(parts)), blocks=tuple(blocks))
