"""The possible body nearest to an estimate, in the metric of the estimate's own uncertainty.

    minimise |F (phi - estimate)|^2   with F^T F = covariance^-1,   subject to a positive definite pseudo-inertia

What the data leave open is drawn weakly to a small ball of the same mass at the same place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.physical.conic import ConeProgram, solve_cone_program
from dynid.estimation.physical.pseudo_inertia import WhitenedBody, svec
from dynid.findings import Finding
from dynid.load.load import Load
from dynid.robot.inertia import Inertia

__all__ = ["possible_load"]

Floats = NDArray[np.float64]
RADIUS = 0.05
"""Radius of the ball that stands in for what the data leave open [m]; convention, the size of a load in a hand."""
CLEAR = 4.0
"""Distance to the nearest possible body [standard deviations] that chance does not explain; convention."""
LOOK = "Look at signs, units and axes, at the link, and at the delay of the wrench."


def possible_load(load: Load, margin: float = 1e-4) -> Load:
    """The same load where a body can have it, otherwise the nearest possible one, with a note.

    Args:
        load: With a positive mass.
        margin: Smallest eigenvalue of the pseudo-inertia relative to that of a ball of 5 cm at the centre of mass.
    """
    if load.undetermined[6:].any() or not load.mass > 0.0 or not load.has_inertia or load.inertia.is_physical:
        return load
    ball = Inertia.from_com(load.mass, load.com, 0.4 * load.mass * RADIUS**2 * np.eye(3))
    body = WhitenedBody.around(ball, load.frame)
    rows = _information_root(load.covariance)
    nothing = np.zeros((0, 10))
    program = ConeProgram(
        matrix=rows @ body.from_whitened,
        target=rows @ load.vector,
        centre=svec(np.eye(4)),
        pull=np.full(10, 1e-9),
        bodies=1,
        margin=margin,
        nonnegative=(),
        at_most=nothing,
        limit=np.zeros(0),
        equal=nothing,
        value=np.zeros(0),
    )
    answer = solve_cone_program(program)
    if answer is None:
        return replace(load, findings=(*load.findings, _IMPOSSIBLE))
    vector = body.from_whitened @ answer[0]
    shift = float(np.linalg.norm(rows @ (vector - load.vector)))
    return replace(
        load,
        vector=vector,
        findings=(*load.findings, _replaced(shift)),
        extras={**load.extras, "plain": load.vector, "shift": np.array([shift])},
    )


_IMPOSSIBLE = Finding(
    code="impossible-load",
    severity="warning",
    where="load",
    message="no body can have the estimated parameters, and no possible body was found near them",
    remedy=LOOK,
)


def _replaced(shift: float) -> Finding:
    """The nearest possible body takes the place of the estimate; far away that is a warning."""
    is_far = shift > CLEAR
    return Finding(
        code="impossible-load",
        severity="warning" if is_far else "note",
        where="load",
        message=f"no body can have the plain estimate: the nearest possible one is {shift:.2g} standard deviations off",
        remedy=LOOK if is_far else "The nearest possible body is given; Load.extras holds the plain estimate.",
        evidence={"shift [standard deviations]": shift},
    )


def _information_root(covariance: Floats) -> Floats:
    """(r, 10) rows F with ``F^T F`` the inverse of the covariance within its range."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(scale > 0.0, scale, np.max(scale, initial=0.0) * 1e-6 + 1e-300)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    good = values > 1e-12 * values[-1]
    return np.asarray((vectors[:, good] / np.sqrt(values[good])).T / scale)
