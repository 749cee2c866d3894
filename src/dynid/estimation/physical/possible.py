"""The physically possible robot, or body, nearest to an estimate in the metric of the estimate's own uncertainty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import EstimationError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.physical.conic import ConeProgram, solve_cone_program
from dynid.estimation.physical.feasible import FeasibleSolution, FeasibleWLS, feasible_parameters
from dynid.estimation.physical.lifting import distance_findings
from dynid.estimation.physical.pseudo_inertia import WhitenedBody, svec
from dynid.findings import Finding
from dynid.information import Factor
from dynid.robot.inertia import Inertia

__all__ = ["near_possible", "nearest_possible_body", "possible_estimate", "with_standard"]

Floats = NDArray[np.float64]
STRONGEST = 1e8
"""Squared ratio of signal to noise beyond which data are not taken to be better: the solver's own limit."""
TIE = 1e-3
"""Weight of the prior: it decides what the data leave open and hardly moves anything else."""
BALL_RADIUS = 0.05
"""Radius of the ball that stands in for what the data about a single body leave open [m]; convention."""
BALL_PULL = 1e-9
"""Weight of that ball against data in units of their standard deviation: it decides only what the data leave open."""
BODY_MARGIN = 1e-4
"""Smallest eigenvalue of the pseudo-inertia of a single body, relative to that of the ball; convention."""


def possible_estimate(equations: Factors, estimate: Estimate, information: Floats) -> Estimate:
    """The estimate moved to the nearest possible robot; its standard parameters come with it.

    Minimises ``(beta - estimate)' information (beta - estimate)`` over possible bodies, friction and rotor inertia not
    negative: a convex program, whose answer is that of a log-Cholesky parametrisation without its local minima. Where
    the estimate is possible already, only the choice among equivalent standard parameters remains.

    Args:
        equations: The equations; its robot is the prior among equivalent robots.
        estimate: Of the base parameters.
        information: (b, b) second derivative of half the weighted squares at the estimate.
    """
    found = _nearest(equations, estimate.values, information, int(estimate.samples.sum()), TIE)
    return replace(
        estimate,
        values=equations.grouping @ found.theta,
        standard=found.theta[: len(equations.base.layout)],
        method=f"physically consistent {estimate.method}",
        findings=(*estimate.findings, *found.findings),
        at_bound=found.at_bound,
    )


def near_possible(equations: Factors, beta: Floats, information: Floats) -> Floats:
    """(b,) base parameters of a possible robot near beta (b,), pulled by the prior to 100 % of itself.

    The pull keeps it off the border of what is possible, where bodies without inertia cannot be simulated.

    Raises:
        EstimationError: The convex program is not solved.
    """
    samples = int(equations.counts.sum())
    return np.asarray(equations.grouping @ _nearest(equations, beta, information, samples, 1.0).theta)


def _nearest(equations: Factors, beta: Floats, information: Floats, samples: int, prior: float) -> FeasibleSolution:
    strength = float(beta @ information @ beta)
    information = information * min(1.0, STRONGEST / max(strength, 1e-300))
    # instruments that noise turned against their regressor make a diagonal below zero: nothing is known there, and
    # the nearest positive matrix has no information in that direction
    sizes = np.abs(np.diagonal(information))
    scale = 1.0 / np.sqrt(np.maximum(sizes, 1e-14 * sizes.max(initial=1e-300)))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    root = (vectors * np.sqrt(np.maximum(values, 1e-14 * values[-1]))) @ vectors.T / scale
    R: Floats = np.asarray(np.linalg.qr(root, mode="r"))
    factor = Factor(
        columns=equations.information.columns,
        R=R,
        z=R @ beta,
        residual=0.0,
        samples=samples,
        resolution=1e-11,
    )
    return feasible_parameters(equations, factor, prior, FeasibleWLS(prior_weight=prior))


def with_standard(equations: Factors, estimate: Estimate, information: Floats) -> Estimate:
    """The estimate as it is, with the standard parameters of the nearest possible robot, which models are written from.

    Where no possible robot is found near it, they are the base parameters alone, which give the same torques.
    """
    try:
        samples = int(estimate.samples.sum())
        theta = _nearest(equations, estimate.values, information, samples, TIE).theta
    except EstimationError:
        message = "no possible robot was found near the estimate: its standard parameters give the torques only"
        found = Finding(code="no-possible-robot", severity="warning", where="standard parameters", message=message)
        standard = equations.representative(estimate.values)
        return replace(estimate, standard=standard, findings=(*estimate.findings, found))
    findings = (*estimate.findings, *distance_findings(equations, estimate, theta))
    return replace(estimate, standard=theta[: len(equations.base.layout)], findings=findings)


def nearest_possible_body(vector: Floats, covariance: Floats) -> tuple[Floats, float] | None:
    """The possible body nearest to an estimate of ten parameters with a positive mass.

    Minimises ``|F (phi - vector)|^2`` with ``F^T F = covariance^-1`` over positive definite pseudo-inertias. A ball of
    the same mass at the same place decides what the data leave open.

    Args:
        vector: (10,) ``XX XY XZ YY YZ ZZ MX MY MZ M`` [kg m^2, kg m, kg].
        covariance: (10, 10) of the ten parameters.

    Returns:
        The parameters (10,) and their distance from the estimate in standard deviations; None if no answer is found.
    """
    mass = float(vector[9])
    ball = Inertia.from_com(mass, vector[6:9] / mass, 0.4 * mass * BALL_RADIUS**2 * np.eye(3))
    body = WhitenedBody.around(ball, "ball")
    rows = _information_root(covariance)
    nothing = np.zeros((0, 10))
    answer = solve_cone_program(
        ConeProgram(
            matrix=rows @ body.from_whitened,
            target=rows @ vector,
            centre=svec(np.eye(4)),
            pull=np.full(10, BALL_PULL),
            bodies=1,
            margin=BODY_MARGIN,
            nonnegative=(),
            at_most=nothing,
            limit=np.zeros(0),
            equal=nothing,
            value=np.zeros(0),
        )
    )
    if answer is None:
        return None
    nearest = np.asarray(body.from_whitened @ answer[0])
    return nearest, float(np.linalg.norm(rows @ (nearest - vector)))


def _information_root(covariance: Floats) -> Floats:
    """(r, 10) rows F with ``F^T F`` the inverse of the covariance within its range."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(scale > 0.0, scale, np.max(scale, initial=0.0) * 1e-6 + 1e-300)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    good = values > 1e-12 * values[-1]
    return np.asarray((vectors[:, good] / np.sqrt(values[good])).T / scale)
