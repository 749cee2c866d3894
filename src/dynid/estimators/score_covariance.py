"""The covariance of solutions of reduced equations, without and with a prior (' is the transpose).

The least-squares estimators call `score_covariance`, the estimator `feasible` calls `posterior_estimate`. Both take
`Factors`: the equations as triangles of QR decompositions, one for each joint and block of time.

Without a prior (`score_covariance`): the score of a block of time s is ``g_s = W_s' e_s`` with its equations W_s and
residuals e_s. The scatter of the scores over the blocks gives the covariance (sandwich estimator). With the triangle
R_s of ``[W_s y_s]`` the scores are ``g_s = -R_s' (R_s [beta; -1])`` without their last entry, so that logs in memory
and logs read in pieces give the same.

With a prior and constraints (`posterior_estimate`): with scaled unknowns y, base parameters ``beta = Q y``, the
information N of the data in units of their noise and the prior's information W on y, the solution responds to scores
by ``d beta = H g`` with ``H = Q A^-1 Q'``, ``A = Q' N Q + W``. Three covariances are added:

- that of the scores through H, from the blocks of time;
- that of the prior, ``Q A^-1 W A^-1 Q'``: the prior is a measurement with the errors that its weight states;
- the square of the shift by which inequalities moved the solution.

Equality constraints are knowledge: only what they leave free is uncertain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dynid.array_types import Floats
from dynid.data_reduction.factor import Factor
from dynid.decompositions import lstsq, solve_upper, svd
from dynid.estimators.equations import Factors
from dynid.estimators.estimate import Estimate
from dynid.estimators.score_sums import ScoreSums, wave_number

OPEN = 1e-6
"""A parameter is undetermined if its entry in a unit vector of the null space of the equations, with columns scaled to
length one, is larger than this (convention: above rounding)."""


def solution_root(factor: Factor) -> tuple[Floats, NDArray[np.bool_]]:
    """Compute a root of the inverse of the information ``A = R' R`` of equations.

    Args:
        factor: The weighted triangle R of b columns; its `scale` holds their lengths, its `rank` and `resolution` tell
            which singular values are rounding.

    Returns:
        (b, r) matrix L with ``L L' = A^-1`` and zero rows for undetermined parameters; (b,) which ones these are.
    """
    scale = np.where(np.isfinite(factor.scale), factor.scale, 1.0)
    if factor.rank == len(factor.columns):
        return solve_upper(factor.R, np.eye(scale.size)), np.zeros(scale.size, dtype=bool)
    _, values, Vt = svd(factor.R / scale)
    shown = values > factor.resolution * max(values[0], 1e-300)
    undetermined = np.any(np.abs(Vt[~shown]) > OPEN, axis=0)
    root = (Vt[shown] / values[shown, None]).T / scale[:, None]
    root[undetermined] = 0.0
    return root, undetermined


def score_covariance(
    equations: Factors, beta: Floats, root: Floats, weights: Floats, variances: Floats, inflation: Floats
) -> Floats:
    """Compute the covariance (b, b) of a solution of weighted equations.

    Variances are enlarged for each parameter's own degrees of freedom, see `ScoreSums.covariance`.

    Args:
        equations: The equations.
        beta: (b,) the solution.
        root: (b, r) matrix L of `solution_root`, or a root of another response ``H = L L'`` of the solution to scores.
        weights: (n,) weight of each joint's squared residuals.
        variances: (n,) variance of each joint's residuals.
        inflation: (n,) autocorrelation factor: number of samples that are worth an independent one.
    """
    information = equations.information
    # a segment is the number of a block of time; -1 for blocks of no known run
    run_of = {segment: run for run, blocks in enumerate(equations.blocks) for segment in blocks}
    sums = ScoreSums(
        root,
        counts=information.samples.sum(axis=1).astype(float),
        runs=np.array([run_of.get(segment, -1) for segment in information.segments], dtype=np.int64),
        waves=wave_number(float(np.mean(equations.counts / inflation))),
    )
    vectors = [np.append(beta[list(support)], -1.0) for support in information.supports]
    roots = [root[list(support)] for support in information.supports]
    for place, segment in enumerate(information.segments):
        factors = [information.rows(joint, segment) for joint in range(len(roots))]
        lengths = [len(R) for R in factors]
        size = np.sqrt(np.repeat(weights, lengths))
        # the equations of all joints in this block, in the coordinates of the root: (rows, r)
        Z = size[:, None] * np.vstack([R[:, :-1] @ rows for R, rows in zip(factors, roots, strict=True)])
        negative_residual = size * np.concatenate([R @ vector for R, vector in zip(factors, vectors, strict=True)])
        sums.add(place, Z, -negative_residual, np.repeat(weights * variances * inflation, lengths))
    return sums.covariance(unknown_kinds(equations))


def unknown_kinds(equations: Factors) -> tuple[str, ...]:
    """List the kind (b + k,) of each unknown: ``link``, or the class of its term."""
    links = 10 * equations.robot.dof  # each link has ten parameters, and terms stand behind them
    term_kinds: Sequence[str] = [type(own.term).__name__ for own in equations.robot.terms]
    base = ["link" if column < links else term_kinds[column - links] for column in equations.base.columns]
    return (*base, *(type(term).__name__ for term in equations.terms))


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """A prior on scaled unknowns y (p,), and equality constraints."""

    to_base: Floats
    """(b, p) the matrix Q: base parameters and terms = to_base @ y."""
    centre: Floats
    """(p,) mean of each unknown."""
    pull: Floats
    """(p,) information (inverse variance) on each unknown."""
    equal: Floats
    """(e, p) left side of the constraints ``equal @ y == value``."""
    value: Floats
    """(e,) right side of the constraints."""


def posterior_estimate(equations: Factors, data: Estimate, factor: Factor, prior: Prior, values: Floats) -> Estimate:
    """Give the values (b,) of a constrained estimate with a prior their covariance.

    Args:
        equations: The equations.
        data: The least-squares estimate without prior: its noise, and the parameters that it leaves undetermined.
        factor: The equations in units of the noise.
        prior: The prior and the equality constraints.
        values: (b,) the values, found with the prior and with all constraints, also inequalities.
    """
    free = np.eye(prior.pull.size)  # columns span the directions of y that equalities leave free
    start = prior.centre
    if len(prior.equal):
        free = linalg.null_space(prior.equal)
        start = start + lstsq(prior.equal, prior.value - prior.equal @ start)
    # minimise |M y - z|^2 + sum pull (y - centre)^2 over y = start + free u, in closed form
    M = factor.R @ prior.to_base
    A = free.T @ (M.T @ M + np.diag(prior.pull)) @ free
    C = np.linalg.cholesky(A + 1e-14 * np.trace(A) / len(A) * np.eye(len(A)))  # 1e-14: rounding must not break it
    inverse = free @ linalg.cho_solve((C, True), free.T)  # A^-1 within the free directions
    gradient = M.T @ (factor.z - M @ start) + prior.pull * (prior.centre - start)
    without_inequalities = prior.to_base @ (start + inverse @ gradient)
    response = prior.to_base @ inverse  # (b, p)
    root = linalg.solve_triangular(C, free.T @ prior.to_base.T, lower=True)
    triangle = np.asarray(np.linalg.qr(root, mode="r"))  # H = triangle' triangle
    variances = data.noise_std**2
    weights = 1.0 / (variances * data.inflation)
    covariance = score_covariance(equations, values, triangle.T, weights, variances, data.inflation)
    covariance += (response * prior.pull) @ response.T  # of the prior
    shift = np.where(data.undetermined, 0.0, values - without_inequalities)
    covariance += np.outer(shift, shift)
    # the prior dominates a parameter if it alone has a smaller variance than the data alone
    with np.errstate(divide="ignore"):
        prior_variances = np.einsum("ij,j,ij->i", prior.to_base, 1.0 / prior.pull, prior.to_base)
    is_dominated = ~data.undetermined & (np.diagonal(data.covariance) > prior_variances)
    covariance[data.undetermined, data.undetermined] = np.inf
    return replace(
        data,
        values=values,
        covariance=covariance,
        prior_dominated=tuple(
            name for name, by_prior in zip(data.names, is_dominated.tolist(), strict=True) if by_prior
        ),
    )
