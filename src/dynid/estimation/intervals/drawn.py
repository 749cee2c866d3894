"""The errors of an estimate that a prior drew and constraints hold: noise, prior and shift, each a covariance.

With unknowns y, base parameters ``beta = Q y``, the information ``N`` of the data in units of their noise and the
prior's information W on y, the solution responds to the scores g of the data by ``d beta = H g`` with
``H = Q A^-1 Q'``, ``A = Q' N Q + W``. Its covariance is that of the scores through H, read from blocks of time
(`score_covariance`), and that of the prior, ``Q A^-1 W A^-1 Q'``: the prior is a measurement with the errors that its
weight states. Constraints move the solution; all of that shift counts as an error. Equalities are knowledge: only what
they leave free is uncertain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from dynid.arrays import Floats
from dynid.decompositions import lstsq
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.intervals.score_covariance import BlockWeights, score_covariance
from dynid.information import Factor


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """The prior around which unknowns y are estimated."""

    to_base: Floats
    """(b, p) base parameters and terms = to_base @ y"""
    centre: Floats
    """(p,) the prior's y"""
    pull: Floats
    """(p,) the prior's information on each y"""
    equal: Floats
    """(e, p) rows of ``equal @ y == value``"""
    value: Floats
    """(e,)"""


def drawn_estimate(equations: Factors, data: Estimate, factor: Factor, draw: Draw, values: Floats) -> Estimate:
    """What the data alone say, moved to the values (b,) that a prior drew, with the errors that this leaves.

    Args:
        equations: The equations.
        data: The estimate of the data alone: noise, and what they leave open.
        factor: The equations in units of the noise.
        draw: The prior.
        values: (b,) the estimate.
    """
    free, start = np.eye(draw.pull.size), draw.centre
    if len(draw.equal):
        free = linalg.null_space(draw.equal)
        start = start + lstsq(draw.equal, draw.value - draw.equal @ start)
    M = factor.R @ draw.to_base
    A = free.T @ (M.T @ M + np.diag(draw.pull)) @ free
    C = linalg.cho_factor(A + 1e-14 * np.trace(A) / len(A) * np.eye(len(A)))
    answer = free @ linalg.cho_solve(C, free.T)  # A^-1 within what is free
    gradient = M.T @ (factor.z - M @ start) + draw.pull * (draw.centre - start)
    without_constraints = draw.to_base @ (start + answer @ gradient)
    response = draw.to_base @ answer  # (b, p)
    root = linalg.solve_triangular(_lower(C), free.T @ draw.to_base.T, lower=True)
    triangle = np.asarray(np.linalg.qr(root, mode="r"))  # H = triangle' triangle
    weights = BlockWeights(1.0 / (data.noise_std**2 * data.inflation), data.noise_std**2, data.inflation)
    covariance = score_covariance(equations, values, triangle.T, weights)
    covariance += (response * draw.pull) @ response.T
    shift = np.where(data.undetermined, 0.0, values - without_constraints)
    covariance += np.outer(shift, shift)
    with np.errstate(divide="ignore"):
        by_prior = np.einsum("ij,j,ij->i", draw.to_base, 1.0 / draw.pull, draw.to_base)
    dominated = ~data.undetermined & (np.diagonal(data.covariance) > by_prior)
    covariance[data.undetermined, data.undetermined] = np.inf
    return replace(
        data,
        values=values,
        covariance=covariance,
        prior_dominated=tuple(name for name, mine in zip(data.names, dominated.tolist(), strict=True) if mine),
    )


def _lower(factorised: tuple[Floats, bool]) -> Floats:
    """The lower Cholesky factor from `scipy.linalg.cho_factor`."""
    matrix, is_lower = factorised
    return np.tril(matrix if is_lower else matrix.T)
