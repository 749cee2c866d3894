"""The possible robot that comes nearest to an identified model without the terms that its destination cannot hold.

    minimise |R (K x - beta)|^2   over possible robots x in which the absent terms are zero

with the triangle R of the weighted equations and the identified parameters beta: the difference of the torques over the
motion of the data. The remaining terms take over what they can, so that nothing is lost that the destination could
hold: the dry friction of a smooth sign goes into the Coulomb friction, a missing rotor inertia into the links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.least_squares import refined_weights
from dynid.estimation.physical.bounds import Bounds
from dynid.estimation.physical.feasible import FeasibleWLS, feasible_parameters
from dynid.information import Factor
from dynid.robot.model import Robot
from dynid.terms.base import Term

__all__ = ["restrict_parameters"]

Floats = NDArray[np.float64]
PULL = 0.3
"""Weight of the identified links as the prior, against torques in units of what the absent terms leave. Experiment:
from 0.03 to 1 the files of the logs of docs/real-data.md predict alike; far below, links imitate absent terms."""
STRONGEST = 1e8
"""Squared torque over squared noise beyond which data do not count as better: the cone solver's own accuracy."""

ROUNDS = 3
"""Number of solutions (convention): each weighs the joints by the residuals of the one before, because what the absent
terms leave is much larger than the noise."""
TINY = 1e-300
"""Keeps quotients finite where there is no torque or no residual."""


def restrict_parameters(
    equations: Factors, estimate: Estimate, identified: Robot, absent: Sequence[str], kept: Sequence[Term] = ()
) -> Floats:
    """Refit the standard parameters without some of the terms.

    Args:
        equations: The equations of the estimate.
        estimate: The identified parameters.
        identified: A possible robot with the identified parameters, for what the data leave open.
        absent: Names of the parameters of the robot's own terms that are zero in the result.
        kept: Further terms that stay; none by default.

    Returns:
        (p + k,) standard parameters of a possible robot, and those of the kept terms.

    Raises:
        EstimationError: The convex program has no solution.
    """
    links = identified.parameter_vector.copy()
    links[10 * identified.dof :] = 0.0  # terms take over from absent ones: nothing draws them to what they were
    own = replace(equations.keep(kept), robot=identified.with_parameters(links))
    settings = FeasibleWLS(prior_weight=PULL, signs=True, bounds=Bounds(absent=tuple(absent)))
    places = [*range(equations.base.rank), *(equations.base.rank + equations.terms.index(term) for term in kept)]
    weights = refined_weights(equations) / estimate.inflation
    theta = identified.parameter_vector
    for _ in range(ROUNDS):
        theta = feasible_parameters(own, _torque_difference(equations, estimate, weights, places), PULL, settings).theta
        found = np.zeros(len(equations.names))
        found[places] = own.grouping @ theta
        squares = equations.information.per_joint_residual(found).sum(axis=0)
        weights = equations.counts / np.maximum(squares, TINY) / estimate.inflation
    return theta


def _torque_difference(equations: Factors, estimate: Estimate, weights: Floats, places: Sequence[int]) -> Factor:
    """The difference of the torques of some of the unknowns from those of the whole estimate, as a triangle."""
    weighted = equations.information.weight(weights)
    torque = weighted.R @ np.where(estimate.undetermined, 0.0, estimate.values)
    triangle: Floats = np.asarray(np.linalg.qr(np.column_stack([weighted.R[:, places], torque]), mode="r"))
    triangle = triangle * min(1.0, np.sqrt(STRONGEST) / max(float(np.linalg.norm(torque)), TINY))
    size = len(places)
    return Factor(
        columns=tuple(weighted.columns[place] for place in places),
        R=triangle[:size, :size],
        z=triangle[:size, size],
        residual=float(np.sum(triangle[size:, size] ** 2)),
        samples=weighted.samples,
        resolution=weighted.resolution,
    )
