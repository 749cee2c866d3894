"""The possible robot, or the possible body, nearest to an estimate, with distances in its standard deviations.

    minimise |F (x - estimate)|^2   with F^T F the information,   over positive definite pseudo-inertias

The information (an inverse covariance, or the equations) decides how far each parameter may move if no possible robot
has the estimate exactly. A prior with a very small weight chooses among robots that move alike ([LeeWensingPark2020]).
The program is convex. So it finds the best answer of a log-Cholesky parametrisation, without the local minima of that.

`nearest_possible_body` is called for loads. `identify` calls `lift_parameters` if the estimator gave base parameters
only, and its model calls `with_possible_links` for the robot that is written to files.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.decompositions import eigh, pinv, svd
from dynid.errors import EstimationError
from dynid.estimators.equations import Factors
from dynid.estimators.estimate import Estimate
from dynid.estimators.physical.conic import ConeCondition, ConeProgram, solve_cone_program
from dynid.estimators.physical.feasible import FeasibleWLS, feasible_parameters
from dynid.estimators.physical.prior import IDENTITY, WhitenedBody
from dynid.findings import Finding
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import EXACT

PRIOR_WEIGHT = 1e-3
"""Weight of the prior (convention): it decides what the estimate leaves open and hardly moves anything else."""
LARGEST_INFORMATION = 1e8
"""Squared norm of the estimate in its standard deviations beyond which it is not trusted more (convention: the accuracy
of the cone solver)."""
BALL_RADIUS = 0.05
"""Radius of the ball that is the prior of a single body [m] (convention)."""
BALL_PULL = 1e-9
"""Weight of that ball against data in units of their standard deviation (convention: it decides only what the data
leave open)."""


def nearest_possible_body(
    vector: Floats, covariance: Floats, undetermined: NDArray[np.bool_] | None = None
) -> tuple[Floats, float] | None:
    """Find the possible body nearest to an estimate of ten parameters, whose mass must be positive.

    Minimises ``|F (phi - vector)|^2`` with ``F^T F = covariance^-1`` over positive definite pseudo-inertias. A ball of
    the same mass at the same place decides what the data leave open.

    Args:
        vector: (10,) ``XX XY XZ YY YZ ZZ MX MY MZ M`` [kg m^2, kg m, kg].
        covariance: (10, 10) covariance of the estimate.
        undetermined: (10,) whether the data leave a parameter open, so that its value does not count; none by default.

    Returns:
        The parameters (10,) and their distance from the estimate in standard deviations; None if no answer is found.
    """
    mass = float(vector[9])
    ball = Inertia.from_com(mass, vector[6:9] / mass, 0.4 * mass * BALL_RADIUS**2 * np.eye(3))
    body = WhitenedBody.around(ball, "ball")
    known = np.arange(10) if undetermined is None else np.flatnonzero(~undetermined)
    root = _information_root(covariance[np.ix_(known, known)])
    rows = np.zeros((len(root), 10))
    rows[:, known] = root
    program = ConeProgram(
        matrix=rows @ body.from_whitened,
        target=rows @ vector,
        centre=IDENTITY,
        pull=np.full(10, BALL_PULL),
        constraints=[ConeCondition("matrix", -np.eye(10), -FeasibleWLS().margin * IDENTITY)],
    )
    try:
        nearest = np.asarray(body.from_whitened @ solve_cone_program(program))
    except EstimationError:
        return None
    return nearest, float(np.linalg.norm(rows @ (nearest - vector)))


def _information_root(covariance: Floats) -> Floats:
    """Compute rows F (r, k) with ``F^T F`` the pseudo-inverse of a covariance (k, k)."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)  # what is known exactly, or not at all, gives no row
    values, vectors = eigh(covariance / np.outer(scale, scale))
    good = values > EXACT * values[-1]
    return np.asarray((vectors[:, good] / np.sqrt(values[good])).T / scale)


def lift_parameters(equations: Factors, estimate: Estimate) -> tuple[Floats, tuple[Finding, ...]]:
    """Find standard parameters of a possible robot with, or near, estimated base parameters.

    Args:
        equations: The equations; their robot is the prior.
        estimate: An estimate from the equations, with its covariance.

    Returns:
        The standard parameters (p,), and a finding if no possible robot has the estimated base parameters.
    """
    known = ~estimate.undetermined
    values = np.where(known, estimate.values, 0.0)
    rows = np.zeros((len(values), len(values)))
    rows[:, known] = _distance_rows(equations, estimate)
    R: Floats = np.asarray(np.linalg.qr(rows, mode="r"))
    # equations whose least-squares solution is the estimate, as if they were data
    factor = replace(equations.information.weight(), R=R, z=R @ values, residual=0.0)
    try:
        theta = feasible_parameters(equations, factor, FeasibleWLS(prior_weight=PRIOR_WEIGHT)).theta
    except EstimationError:
        message = "no possible robot was found near these base parameters: the exported robot keeps its prior ones"
        return equations.robot.parameter_vector.copy(), (_doubt(message),)
    found = theta[: len(equations.base.layout)]
    deviations = rows @ np.where(known, equations.grouping @ theta - estimate.values, 0.0)
    distance = float(np.linalg.norm(deviations) / np.sqrt(max(1, known.sum())))
    if distance <= 1.0:
        return found, ()
    message = (
        "no possible robot has these base parameters: the nearest, which is written to files, is "
        f"{distance:.2g} standard deviations away, on average"
    )
    return found, (_doubt(message, distance),)


def _distance_rows(equations: Factors, estimate: Estimate) -> Floats:
    """Compute rows F (b, k) for the k known parameters: ``|F (x - values)|`` is a distance in standard deviations.

    The equations give the directions of F, and the covariance its overall size: a covariance from the scatter of few
    blocks of time is right for each parameter by itself, but not for all directions at once.
    """
    known = ~estimate.undetermined
    noise = estimate.noise_std**2 * estimate.inflation
    noise = np.maximum(noise, max(EXACT * float(np.max(noise, initial=0.0)), 1e-280))
    R = equations.information.weight(1.0 / noise).R
    U, size, _ = svd(R[:, ~known], full_matrices=False)
    U = U[:, size > 1e-9 * size.max(initial=0.0)]
    rows = R[:, known] - U @ (U.T @ R[:, known])  # whatever open parameters can explain says nothing of known ones
    scale = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
    variance_of_rows = np.sum((pinv(rows / scale, rcond=1e-9) / scale[:, None]) ** 2, axis=1)
    variance = np.diagonal(estimate.covariance)[known]
    usable = (variance_of_rows > 0.0) & (variance > 0.0)
    ratio = float(np.median(variance[usable] / variance_of_rows[usable])) if usable.any() else 1e-300
    rows = rows / np.sqrt(max(ratio, 1e-300))
    strength = float(np.linalg.norm(rows @ estimate.values[known]))
    return np.asarray(rows * min(1.0, np.sqrt(LARGEST_INFORMATION) / max(strength, 1e-300)))


def _doubt(message: str, distance: float = np.inf) -> Finding:
    """Make the finding about an impossible estimate; its distance in standard deviations is evidence, if known."""
    evidence = {"standard deviations": distance} if np.isfinite(distance) else {}
    where = "standard parameters"
    return Finding(code="impossible-estimate", severity="warning", where=where, message=message, evidence=evidence)


def with_possible_links(robot: Robot, theta: Floats) -> Robot:
    """Make the robot with parameters (p,); links of a possible body become possible too.

    A body is a moving link with the links that are fixed to it, and parameters are those of whole bodies. The fixed
    links keep their masses, so that the moving link, which gets the rest, may become impossible. Then the fixed links
    are emptied, and the moving link has the whole body.
    """
    found = robot.with_parameters(theta)
    wrong = [body for body in found.bodies if not found.link(body.joint.child).inertia.is_physical]
    emptied = {name for body in wrong if body.inertia.is_physical for name, _ in body.members[1:]}
    if not emptied:
        return found
    links = tuple(replace(link, inertia=Inertia.zero()) if link.name in emptied else link for link in robot.links)
    return replace(robot, links=links).with_parameters(theta)
