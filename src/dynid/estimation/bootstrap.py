"""Uncertainty by the block bootstrap, without a formula and without assumptions about the noise within a block.

The equations are cut into blocks of time that are longer than the correlation of their errors. Each replicate draws as
many blocks as there are, with replacement, and estimates again from their factors. The scatter of the replicates is the
scatter of the estimate (Kuensch 1989), also for estimators with constraints and priors: they act on every replicate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimation.equations import Factors, Samples, build_equations
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import WLS
from dynid.findings import Finding

MOST_FAILURES = 0.2
"""Largest share of replicates without a solution (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockBootstrap(Estimator):
    """The values of another estimator with the covariance of its replicates on randomly drawn blocks.

    Only for estimators that work on factors: least squares of any kind, and physically consistent least squares.
    """

    name: ClassVar[str] = "bootstrap"
    on_command_line: ClassVar[bool] = False
    title: ClassVar[str] = "block bootstrap"
    use: ClassVar[str] = "intervals are wanted that assume nothing about the noise"
    needs: ClassVar[tuple[type[Factors], ...]] = (Samples,)

    estimator: Estimator = field(default_factory=WLS)
    replicates: int = 200
    """Number of replicates; 200 give standard deviations to 5 %, that is 1 / sqrt(2 * 200)."""
    blocks: int = 40
    """Number of blocks of time that each experiment is cut into (convention)."""
    seed: int = 0
    """Seed of the random draws."""

    def __post_init__(self) -> None:
        """Check the numbers of replicates and blocks, and that the estimator works on reduced equations."""
        if self.replicates < 2 or self.blocks < 2:
            raise ArgumentError(f"a bootstrap needs two replicates and two blocks or more, not {self}")
        if Factors not in self.estimator.needs:
            raise ArgumentError(
                f"{type(self.estimator).__name__} reads single samples, and a bootstrap draws blocks of equations",
                remedy="Use an estimator that needs reduced equations only, such as WLS or FeasibleWLS.",
            )

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate the values from all data and their covariance from replicates.

        Raises:
            IdentifiabilityError: Too many replicates leave parameters undetermined that all data together determine.
        """
        estimate = self.estimator.solve(equations)
        found, failed = [], 0
        for drawn in self._draw(equations):
            try:
                replicate = self.estimator.solve(drawn)
            except (EstimationError, IdentifiabilityError):
                failed += 1
                continue
            found.append(np.where(replicate.undetermined & ~estimate.undetermined, np.nan, replicate.values))
        values = np.array([row for row in found if np.isfinite(row).all()]).reshape(-1, len(equations.names))
        if len(values) < (1.0 - MOST_FAILURES) * self.replicates:
            raise IdentifiabilityError(
                f"{self.replicates - len(values)} of {self.replicates} replicates leave parameters undetermined",
                remedy="Use more blocks, record longer, or use the covariance of the estimator itself.",
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

    def _draw(self, equations: Samples) -> Iterator[Factors]:
        """Draw equations of as many blocks as there are, with replacement, from each experiment.

        The drawn equations are plain `Factors`: the samples that belong to a draw are not at hand, and an estimator
        that reads those of all experiments would see no scatter.
        """
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
            yield Factors(
                robot=fine.robot,
                base=fine.base,
                information=replace(fine.information, parts=tuple(parts)),
                blocks=tuple(blocks),
                excerpts=fine.excerpts,
                terms=fine.terms,
                band_hz=fine.band_hz,
            )
