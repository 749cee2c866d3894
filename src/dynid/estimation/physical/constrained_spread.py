"""What constraints and a prior do to the uncertainty of an estimate.

- *Equalities* (known bodies, symmetries) are knowledge: only what they leave free is uncertain.
- *Inequalities and the prior* move the estimate away from what the data alone say. How far that is an error of theirs,
  `prior_bias` asks the data. Here, where equalities hold, all of the shift counts as one: intervals then hold
  whether the prior is right or not; they are wider than those of a believer, who would take its word for data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import lstsq, svd
from dynid.estimation.cross_validation import Weighing
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.intervals.score_covariance import BlockWeights, score_covariance, solution_root
from dynid.estimation.linear.least_squares import sandwich
from dynid.estimation.physical.prior_bias import Draw, drawn_spread
from dynid.information import Factor


def within_equalities(
    equations: Factors, plain: Estimate, weights: Floats, to_base: Floats, equal: Floats, value: Floats
) -> Estimate:
    """The weighted least-squares estimate under ``equal @ y == value``, with the covariance that is left.

    Args:
        equations: The equations.
        plain: Its estimate without constraints; returned where there are none.
        weights: (n,) weights of the joints.
        to_base: (b, p) base parameters and terms = to_base @ y.
        equal: (e, p)
        value: (e,)
    """
    if not len(equal):
        return plain
    factor = equations.information.weight(weights)
    _, singular, Vt = svd(equal)
    rank = int(np.sum(singular > 1e-9 * singular[0]))
    start = to_base @ lstsq(equal, value)
    scale = np.where(factor.scale > 0.0, factor.scale, 1.0)
    U, size, _ = svd(scale[:, None] * (to_base @ Vt[rank:].T), full_matrices=False)
    free = U[:, size > 1e-9 * max(float(size[0]) if size.size else 0.0, 1e-300)] / scale[:, None]
    inner = _restricted(factor, free, start)
    root, open_ones = solution_root(inner)
    undetermined = np.any(np.abs(free[:, open_ones]) * scale[:, None] > 1e-6, axis=1)
    values = start + free @ inner.solve(minimum_norm=True)
    noise = BlockWeights(weights, plain.noise_std**2, plain.inflation)
    covariance = score_covariance(equations, values, free @ root, noise)
    covariance[undetermined, undetermined] = np.inf
    return replace(plain, values=values, covariance=covariance, undetermined=undetermined)


def _restricted(factor: Factor, free: Floats, start: Floats) -> Factor:
    """The equations of c, where the parameters are ``start + free @ c``."""
    rows = np.column_stack([factor.R @ free, factor.z - factor.R @ start])
    k = free.shape[1]
    R = np.asarray(np.linalg.qr(np.vstack([rows, np.zeros((k + 1, k + 1))]), mode="r"))
    residual = factor.residual + float(R[k, k] ** 2)
    return replace(factor, columns=tuple(range(k)), R=R[:k, :k].copy(), z=R[:k, k].copy(), residual=residual)


def shifted_estimate(estimate: Estimate, values: Floats) -> Estimate:
    """The estimate moved to other values (b,), the shift counted among its errors."""
    shift = np.where(estimate.undetermined, 0.0, values - estimate.values)
    return replace(estimate, values=values, covariance=estimate.covariance + np.outer(shift, shift), bias=shift)


def drawn_estimate(
    equations: Factors, weighing: Weighing, draw: Draw, values: Floats, dominated: tuple[str, ...]
) -> Estimate:
    """The estimate of the data alone moved to the values (b,) that a prior drew, with the errors that this leaves.

    Args:
        equations: The equations.
        weighing: Weights of data and prior, and what the data alone say.
        draw: The prior.
        values: (b,) the estimate.
        dominated: Parameters that the prior knows better than the data.
    """
    plain = weighing.plain
    weights = BlockWeights(weighing.weights / plain.inflation, plain.noise_std**2, plain.inflation)
    found = drawn_spread(equations, weights, draw, values, dominated)
    return replace(
        plain, values=values, covariance=found.mean_squares, undetermined=found.undetermined, bias=found.bias
    )


def prior_dominated(plain: Estimate, held: Estimate, factor: Factor, to_base: Floats, pull: Floats) -> tuple[str, ...]:
    """Names of base parameters and terms that the prior alone knows better than the data alone.

    Both variances are in the units of the solved equations. Where the prior's is the smaller one, the data give
    less than half of the parameter's precision; so what the data alone know as well as data and prior together is never
    named, however much the prior sharpens what it is correlated with.

    Args:
        plain: Estimate of the data alone.
        held: The same within equalities: what these leave less uncertain is their word, not the prior's.
        factor: Weighted equations of the base parameters and terms.
        to_base: (b, p) base parameters and terms = to_base @ y.
        pull: (p,) the prior's information on each y.
    """
    prior = (to_base**2 / np.maximum(pull, 1e-24)).sum(axis=1)
    data = np.diagonal(sandwich(factor, factor)[0])
    known = np.isfinite(plain.stderr) & (plain.stderr > 0.0)
    left = np.divide(held.stderr, plain.stderr, out=np.ones(data.size), where=known) ** 2
    named = held.undetermined | (prior < data * left)
    return tuple(name for name, flag in zip(plain.names, named, strict=True) if flag)
