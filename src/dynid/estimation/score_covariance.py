"""The covariance of solutions of reduced equations, from the scores of their blocks of time.

Only the factors of blocks are needed: ``W_s' e_s = R_s' (R_s [beta; -1])`` up to the sign. So it is the same for logs
in memory, streamed and merged ones.

An estimate that a prior drew and constraints hold has errors by noise, prior and shift, each a covariance. With
unknowns y, base parameters ``beta = Q y``, the information ``N`` of the data in units of their noise and the prior's
information W on y, the solution responds to the scores g of the data by ``d beta = H g`` with ``H = Q A^-1 Q'``, ``A =
Q' N Q + W``. Its covariance is that of the scores through H, read from blocks of time and that of the prior, ``Q A^-1 W
A^-1 Q'``: the prior is a measurement with the errors that its weight states. Constraints move the solution; all of that
shift counts as an error. Equalities are knowledge: only what they leave free is uncertain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dynid.arrays import Floats
from dynid.decompositions import lstsq, solve_upper, svd
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.score_sums import ScoreSums, wave_number
from dynid.information.factor import Factor

OPEN = 1e-6
"""Share of a parameter, columns scaled to length one, in a direction without equations that leaves it open."""


def solution_root(factor: Factor) -> tuple[Floats, NDArray[np.bool_]]:
    """(b, r) matrix L with ``L L' = A^-1`` for the equations ``A = R' R`` of a factor, and (b,) what is left open.

    Rows of what is left open are zero.
    """
    scale = np.where(np.isfinite(factor.scale), factor.scale, 1.0)
    if factor.rank == len(factor.columns):
        return solve_upper(factor.R, np.eye(scale.size)), np.zeros(scale.size, dtype=bool)
    _, values, Vt = svd(factor.R / scale)
    good = values > factor.resolution * max(values[0], 1e-300)
    undetermined = np.any(np.abs(Vt[~good]) > OPEN, axis=0)
    return (Vt[good] / values[good, None]).T / scale[:, None] * ~undetermined[:, None], undetermined


def score_covariance(
    equations: Factors, beta: Floats, root: Floats, weights: Floats, variances: Floats, inflation: Floats
) -> Floats:
    """(b, b) covariance of a solution of weighted equations, each parameter by its own degrees of freedom.

    Args:
        equations: The equations.
        beta: (b,) the solution.
        root: (b, r) matrix L as of `solution_root`; columns of known directions only, where the solution is restricted.
        weights: (n,) weight of each joint's squared residuals.
        variances: (n,) variance of each joint's residuals.
        inflation: (n,) autocorrelation factor: so many residuals are worth one that is independent.
    """
    information = equations.information
    run_of = {segment: run for run, blocks in enumerate(equations.blocks) for segment in blocks}
    sums = ScoreSums(
        root,
        counts=information.samples.sum(axis=1).astype(float),
        runs=np.array([run_of.get(segment, -1) for segment in information.segments], dtype=np.int64),
        waves=wave_number(float(np.mean(equations.counts / inflation))),
    )
    vectors = [np.append(beta[list(support)], -1.0) for support in information.supports]
    rows = [root[list(support)] for support in information.supports]
    for place, segment in enumerate(information.segments):
        factors = [information.rows(joint, segment) for joint in range(len(rows))]
        lengths = [len(R) for R in factors]
        size = np.sqrt(np.repeat(weights, lengths))
        Z = size[:, None] * np.vstack([R[:, :-1] @ mine for R, mine in zip(factors, rows, strict=True)])
        residual = size * np.concatenate([R @ vector for R, vector in zip(factors, vectors, strict=True)])
        sums.add(place, Z, -residual, np.repeat(weights * variances * inflation, lengths))
    return sums.covariance(unknown_kinds(equations))


def unknown_kinds(equations: Factors) -> tuple[str, ...]:
    """(b + k,) kind of each unknown: a link, or the class of its term."""
    links = 10 * equations.robot.dof
    placed: Sequence[str] = [type(own.term).__name__ for own in equations.robot.terms]
    base = ["link" if column < links else placed[column - links] for column in equations.base.columns]
    return (*base, *(type(term).__name__ for term in equations.terms))


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
    C = np.linalg.cholesky(A + 1e-14 * np.trace(A) / len(A) * np.eye(len(A)))
    answer = free @ linalg.cho_solve((C, True), free.T)  # A^-1 within what is free
    gradient = M.T @ (factor.z - M @ start) + draw.pull * (draw.centre - start)
    without_constraints = draw.to_base @ (start + answer @ gradient)
    response = draw.to_base @ answer  # (b, p)
    root = linalg.solve_triangular(C, free.T @ draw.to_base.T, lower=True)
    triangle = np.asarray(np.linalg.qr(root, mode="r"))  # H = triangle' triangle
    variances = data.noise_std**2
    weights = 1.0 / (variances * data.inflation)
    covariance = score_covariance(equations, values, triangle.T, weights, variances, data.inflation)
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
