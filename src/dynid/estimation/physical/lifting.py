"""From base to standard parameters: of all possible robots that reproduce an estimate, the one nearest to the prior.

The estimate's own covariance says how far each base parameter may move where no possible robot has it exactly; a prior
of next to no weight chooses among the robots that move alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import EstimationError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.physical.feasible import FeasibleWLS, feasible_parameters
from dynid.findings import Finding
from dynid.information import Factor

__all__ = ["lifted_parameters", "distance_findings"]

Floats = NDArray[np.float64]
TIE = 1e-3
"""Weight of the prior: it decides what the estimate leaves open and hardly moves anything else."""
SMALLEST = 1e-6
"""Smallest standard deviation, relative to the value: exact fits are not infinitely sure."""


def lifted_parameters(equations: Factors, estimate: Estimate) -> tuple[Floats, tuple[Finding, ...]]:
    """Standard parameters (p,) of a possible robot, and a finding where it cannot have the estimated base parameters.

    Args:
        equations: Its robot is the prior.
        estimate: Of the equations, with covariance.
    """
    size = len(equations.names)
    known = ~estimate.undetermined
    values = np.where(known, estimate.values, 0.0)
    rows = np.zeros((size, size))
    rows[np.ix_(known, known)] = _inverse_root(estimate.covariance[np.ix_(known, known)], values[known])
    R = np.asarray(np.linalg.qr(rows, mode="r"))
    factor = Factor(
        columns=equations.information.columns,
        R=R,
        z=R @ values,
        residual=0.0,
        samples=int(estimate.samples.sum()),
        resolution=1e-11,
    )
    try:
        theta = feasible_parameters(equations, factor, TIE, FeasibleWLS(prior_weight=TIE)).theta
    except EstimationError:
        message = "no possible robot was found near these base parameters: the exported robot keeps its prior ones"
        found = Finding(code="no-possible-robot", severity="warning", where="standard parameters", message=message)
        return equations.robot.parameter_vector.copy(), (found,)
    return theta[: len(equations.base.layout)], distance_findings(equations, estimate, theta)


def distance_findings(equations: Factors, estimate: Estimate, theta: Floats) -> tuple[Finding, ...]:
    """A finding where standard parameters and terms (p + k,) are further from the estimate than noise would be."""
    known = ~estimate.undetermined
    rows = _inverse_root(estimate.covariance[np.ix_(known, known)], estimate.values[known])
    away = (equations.grouping @ theta - estimate.values)[known]
    off = float(np.linalg.norm(rows @ away) / np.sqrt(max(1, known.sum())))
    if off <= 1.0:
        return ()
    return (
        Finding(
            code="impossible-estimate",
            severity="warning",
            where="standard parameters",
            message="no possible robot has these base parameters: the nearest, which is written to files, is "
            f"{off:.2g} standard deviations away, on average",
            evidence={"standard deviations": off},
        ),
    )


def _inverse_root(covariance: Floats, values: Floats) -> Floats:
    """Rows W with ``W^T W`` the inverse of a covariance, rounding kept from making anything infinitely sure."""
    sigma = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    typical = float(np.max(np.abs(values), initial=0.0))
    sigma = np.maximum(sigma, SMALLEST * np.maximum(np.abs(values), SMALLEST * typical) + 1e-300)
    spread, vectors = np.linalg.eigh(covariance / np.outer(sigma, sigma))
    spread = np.maximum(spread, 1e-10 * max(float(spread[-1]) if spread.size else 1.0, 1e-300))
    # a floor on sigma also floors the spread: certainty beyond it is rounding
    return np.asarray((vectors / np.sqrt(np.maximum(spread, 1e-12))).T / sigma)
