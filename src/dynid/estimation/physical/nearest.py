"""The possible robot, or the possible body, that is nearest to an estimate in the metric of the estimate's uncertainty.

    minimise |F (x - estimate)|^2   with F^T F the information,   over positive definite pseudo-inertias

The information (an inverse covariance, or the equations) says how far each parameter may move where no possible robot
has the estimate exactly; a prior of next to no weight chooses among robots that move alike ([LeeWensingPark2020]). The
program is convex, so its answer is that of a log-Cholesky parametrisation without the local minima of that one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import eigh, pinv, svd
from dynid.errors import EstimationError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.physical.conic import ConeProgram, Constraint, solve_cone_program
from dynid.estimation.physical.feasible import FeasibleWLS, feasible_parameters
from dynid.estimation.physical.prior import IDENTITY, WhitenedBody
from dynid.findings import Finding
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import EXACT

TIE = 1e-3
"""Weight of the prior (convention): it decides what the estimate leaves open and hardly moves anything else."""
STRONGEST = 1e8
"""Squared signal-to-noise ratio beyond which data do not count as better: the cone solver's own accuracy."""
BALL_RADIUS = 0.05
"""Radius of the ball that stands in for what the data about a single body leave open [m]; convention."""
BALL_PULL = 1e-9
"""Weight of that ball against data in units of their standard deviation: it decides only what the data leave open."""


def nearest_possible_body(
    vector: Floats, covariance: Floats, undetermined: NDArray[np.bool_] | None = None
) -> tuple[Floats, float] | None:
    """The possible body nearest to an estimate of ten parameters with a positive mass.

    Minimises ``|F (phi - vector)|^2`` with ``F^T F = covariance^-1`` over positive definite pseudo-inertias. A ball of
    the same mass at the same place decides what the data leave open.

    Args:
        vector: (10,) ``XX XY XZ YY YZ ZZ MX MY MZ M`` [kg m^2, kg m, kg].
        covariance: (10, 10) of the ten parameters.
        undetermined: (10,) parameters that the data leave open, so that their values do not count; none by default.

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
        constraints=[Constraint("matrix", -np.eye(10), -FeasibleWLS().margin * IDENTITY)],
    )
    try:
        nearest = np.asarray(body.from_whitened @ solve_cone_program(program))
    except EstimationError:
        return None
    return nearest, float(np.linalg.norm(rows @ (nearest - vector)))


def _information_root(covariance: Floats) -> Floats:
    """(r, k) rows F with ``F^T F`` the inverse of a covariance (k, k) within its range."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(scale > 0.0, scale, np.max(scale, initial=0.0) * np.sqrt(EXACT) + 1e-300)
    values, vectors = eigh(covariance / np.outer(scale, scale))
    good = values > EXACT * values[-1]
    return np.asarray((vectors[:, good] / np.sqrt(values[good])).T / scale)


def lift_parameters(equations: Factors, estimate: Estimate) -> tuple[Floats, tuple[Finding, ...]]:
    """Standard parameters (p,) of a possible robot, and a finding where it cannot have the estimated base parameters.

    Args:
        equations: The equations; their robot is the prior.
        estimate: An estimate from the equations, with its covariance.
    """
    known = ~estimate.undetermined
    values = np.where(known, estimate.values, 0.0)
    rows = np.zeros((len(values), len(values)))
    rows[:, known] = _equation_rows(equations, estimate)
    R: Floats = np.asarray(np.linalg.qr(rows, mode="r"))
    factor = replace(equations.information.weight(), R=R, z=R @ values, residual=0.0)
    try:
        theta = feasible_parameters(equations, factor, FeasibleWLS(prior_weight=TIE)).theta
    except EstimationError:
        message = "no possible robot was found near these base parameters: the exported robot keeps its prior ones"
        return equations.robot.parameter_vector.copy(), (_doubt(message),)
    found = theta[: len(equations.base.layout)]
    away = rows @ np.where(known, equations.grouping @ theta - estimate.values, 0.0)
    off = float(np.linalg.norm(away) / np.sqrt(max(1, known.sum())))
    if off <= 1.0:
        return found, ()
    message = (
        "no possible robot has these base parameters: the nearest, which is written to files, is "
        f"{off:.2g} standard deviations away, on average"
    )
    return found, (_doubt(message, off),)


def _equation_rows(equations: Factors, estimate: Estimate) -> Floats:
    """(b, k) rows F of the known parameters: ``|F (x - values)|`` is the distance of others in standard deviations.

    The equations give the shape of the distance and the covariance its size. A covariance from the scatter of few
    blocks of time is right for each parameter by itself, but not for all directions at once.
    """
    known = ~estimate.undetermined
    noise = estimate.noise_std**2 * estimate.inflation
    noise = np.maximum(noise, max(EXACT * float(np.max(noise, initial=0.0)), 1e-280))
    R = equations.information.weight(1.0 / noise).R
    U, size, _ = svd(R[:, ~known], full_matrices=False)
    U = U[:, size > 1e-9 * max(float(size.max(initial=0.0)), 1e-300)]
    rows = R[:, known] - U @ (U.T @ R[:, known])  # open parameters take what they can
    scale = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
    alone = np.sum((pinv(rows / scale, rcond=1e-9) / scale[:, None]) ** 2, axis=1)
    variance = np.diagonal(estimate.covariance)[known]
    usable = (alone > 0.0) & (variance > 0.0)
    ratio = float(np.median(variance[usable] / alone[usable])) if usable.any() else 1e-300
    rows = rows / np.sqrt(max(ratio, 1e-300))
    strength = float(np.linalg.norm(rows @ estimate.values[known]))
    return np.asarray(rows * min(1.0, np.sqrt(STRONGEST) / max(strength, 1e-300)))


def _doubt(message: str, off: float = np.inf) -> Finding:
    evidence = {"standard deviations": off} if np.isfinite(off) else {}
    where = "standard parameters"
    return Finding(code="impossible-estimate", severity="warning", where=where, message=message, evidence=evidence)


def with_possible_links(robot: Robot, theta: Floats) -> Robot:
    """The robot with parameters (p,), every single link of a possible body possible too."""
    found = robot.with_parameters(theta)
    wrong = [body for body in found.bodies if not found.link(body.joint.child).inertia.is_physical]
    emptied = {name for body in wrong if body.inertia.is_physical for name, _ in body.members[1:]}
    if not emptied:
        return found
    links = tuple(replace(link, inertia=Inertia.zero()) if link.name in emptied else link for link in robot.links)
    return replace(robot, links=links).with_parameters(theta)
