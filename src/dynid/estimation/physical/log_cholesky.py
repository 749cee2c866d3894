"""The same program as `dynid.estimation.physical.conic` without a cone solver: every body as a product of triangles.

``Q_j = margin 1 + L_j L_j^T`` with the logarithms of L's diagonal as unknowns ([RuckerWensing2022]) is possible by
construction, and so is ``y = exp(u)`` where y must not be negative. Slower, and only locally optimal in theory; it
steps in when the cone solver fails.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import EstimationError
from dynid.estimation.physical.conic import ConeProgram
from dynid.estimation.physical.pseudo_inertia import svec, unsvec

__all__ = ["solve_by_log_cholesky"]

Floats = NDArray[np.float64]
_LOWER = np.tril_indices(4, -1)
SMALLEST = -6.0
"""Lowest logarithm: at a constraint the true one runs off to minus infinity, and nothing is gained by following it."""


def solve_by_log_cholesky(program: ConeProgram) -> Floats:
    """The minimiser y (p,).

    Raises:
        EstimationError: The program has bounds, which this form cannot hold, or the search does not converge.
    """
    from scipy.optimize import least_squares

    if len(program.equal) or len(program.at_most) or program.cones:
        raise EstimationError(
            "the cone solver failed, and the fallback holds no bounds", remedy="Weaken or remove the bounds."
        )
    pull = np.sqrt(program.pull)

    def residual(u: Floats) -> Floats:
        y = _unknowns(program, u)
        return np.concatenate([program.matrix @ y - program.target, pull * (y - program.centre)])

    lowest = np.full(program.centre.size, -np.inf)
    for body in range(program.bodies):
        lowest[10 * body : 10 * body + 4] = SMALLEST
    lowest[list(program.nonnegative)] = SMALLEST
    found = least_squares(residual, _start(program), bounds=(lowest, np.inf), ftol=1e-6, max_nfev=500)
    if not found.success or not np.isfinite(found.x).all():
        raise EstimationError(f"neither the cone solver nor the fallback converged: {found.message}")
    return _unknowns(program, found.x)


def _unknowns(program: ConeProgram, u: Floats) -> Floats:
    """Y (p,) from log-Cholesky unknowns u (p,)."""
    y = u.copy()
    for body in range(program.bodies):
        part = slice(10 * body, 10 * body + 10)
        L = np.diag(np.exp(u[part][:4]))
        L[_LOWER] = u[part][4:]
        y[part] = svec(program.margin * np.eye(4) + L @ L.T)
    held = list(program.nonnegative)
    y[held] = np.exp(u[held])
    return y


def _start(program: ConeProgram) -> Floats:
    """The unknowns of the centre."""
    u = program.centre.copy()
    for body in range(program.bodies):
        part = slice(10 * body, 10 * body + 10)
        excess = unsvec(program.centre[part]) - program.margin * np.eye(4)
        L = np.linalg.cholesky(excess)
        u[part] = np.concatenate([np.log(np.diagonal(L)), L[_LOWER]])
    held = list(program.nonnegative)
    u[held] = np.log(np.maximum(program.centre[held], 0.1))
    return u
