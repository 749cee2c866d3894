"""The error of an estimate that a prior draws away from what the data alone say.

The weight of the prior is chosen for good predictions. It says little of how good the prior is: where the data decide,
a prior that is 20 times worse than its weight says predicts as well. How good it is, its distance from what the data
alone say tells. With the data's estimate b of covariance C, and a prior p whose links and terms have the covariances
S1 and S2 by its weight, the distance ``x = p - b`` has the covariance ``T + C``, ``T = t1 S1 + t2 S2``. The factors t
are those of the largest likelihood (variance components; Harville 1977). A prior of the covariance T gives

    the best guess  b + (1 - K) x,   K = T (T + C)^-1,   with the covariance  K C K' + (1 - K) T (1 - K)'

(empirical Bayes; Efron and Morris 1973). The estimate itself stands a known distance m away from that guess, by the
prior's weight and by constraints, so its error is normal around m (`dynid.estimation.intervals.displaced`). Where the
data decide, K is one and m is zero: the interval is that of the data. Where the prior is as good as its weight says, m
is zero: the interval is that of a believer. Where it is bad, K is one and m is all that the prior moved: nothing of its
word counts.

Of what the prior knows better than the data, nothing can tell how good it is. All of its shift counts as an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.equations import Factors
from dynid.estimation.intervals.score_covariance import BlockWeights, score_covariances, solution_root
from dynid.estimation.intervals.waves import student_factor

__all__ = ["Draw", "Evidence", "Spread", "drawn_spread", "weigh_evidence"]

Floats = NDArray[np.float64]
ROUNDS = 20
"""Most steps towards the factors of a prior (convention); more change them by less than their own uncertainty."""
TINY = 1e-300
"""What stands for zero in a denominator."""
CONTRADICTED = 2.0
"""Distance of the best guess from what the data say of a parameter, in standard deviations, from which on they
contradict the prior there, whatever it is elsewhere: what the distance is larger by counts as an error (convention)."""
SETTLED = 0.01
"""Relative change of the factors below which a step has changed nothing (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """The prior around which unknowns y are estimated."""

    to_base: Floats
    """(b, p) base parameters and terms = to_base @ y"""
    centre: Floats
    """(p,) the prior's y"""
    pull: Floats
    """(p,) the prior's information on each y"""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The errors of an estimate: normal with a known mean."""

    around_mean: Floats
    """(b, b) covariance"""
    bias: Floats
    """(b,) the mean"""
    undetermined: NDArray[np.bool_]
    """(b,)"""

    @property
    def mean_squares(self) -> Floats:
        """(b, b) with the squares of the mean; infinite where the data determine nothing."""
        squares = self.around_mean + np.outer(self.bias, self.bias)
        squares[self.undetermined, self.undetermined] = np.inf
        return squares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What the data alone say of b parameters, and how good the prior is.

    Matrices (r, r) are in coordinates of what the data determine, in which their equations are the unit matrix:
    parameters = root @ coordinates.
    """

    beta: Floats
    """(b,) parameters of the data alone"""
    root: Floats
    """(b, r)"""
    forth: Floats
    """(r, b) inverse of ``root`` on what the data determine"""
    undetermined: NDArray[np.bool_]
    """(b,)"""
    distance: Floats
    """(r,) prior minus what the data say"""
    sampling: Floats
    """(r, r) covariance of what the data say"""
    average: Floats
    """(r, r) its mean over all directions: few waves of time show it, and single directions are chance"""
    own: Floats
    """(b,) standard deviation of each parameter by its own degrees of freedom over that by ``sampling``"""
    variances: Floats
    """(b,) of ``beta``, each by its own degrees of freedom"""
    stated: Floats
    """(r, r) covariance of the prior by its weight"""
    prior: Floats
    """(r, r) covariance of the prior, as its distance from the data shows it"""


def drawn_spread(
    equations: Factors, weights: BlockWeights, draw: Draw, values: Floats, dominated: Sequence[str]
) -> Spread:
    """The errors of an estimate that a prior drew, and constraints hold, at values (b,).

    Args:
        equations: The equations.
        weights: Their weights in the estimate.
        draw: The prior.
        values: (b,) the estimate.
        dominated: Parameters that the prior knows better than the data: all of their shift counts as an error.
    """
    said = weigh_evidence(equations, weights, draw)
    root, undetermined, own, x, C, T = said.root, said.undetermined, said.own, said.distance, said.sampling, said.prior
    rest = np.linalg.solve(T + said.average, said.average).T  # 1 - K
    drawn = root @ rest
    free = root - drawn  # root @ K
    by_prior = drawn @ T
    around_mean = np.outer(own, own) * (free @ C @ free.T) + by_prior @ drawn.T
    away = drawn @ x  # of the guess from what the data say
    beta, each = said.beta, said.variances
    bias = np.where(undetermined, 0.0, values - beta - away)
    expected = np.sum((by_prior + drawn @ C) * drawn, axis=1)
    contradicted = away**2 > CONTRADICTED**2 * expected
    variance = np.diagonal(around_mean)
    larger = variance + np.where(contradicted, away**2 - expected, 0.0)
    # the data alone and all of the shift, where nothing tells how good the prior is
    cautious = np.isin(equations.names, dominated) & ~undetermined
    larger = np.where(cautious, np.maximum(each + (values - beta) ** 2, variance + bias**2), larger)
    larger = np.where(undetermined, variance, larger)
    return Spread(_enlarged(around_mean, larger), np.where(cautious, 0.0, bias), undetermined)


def weigh_evidence(equations: Factors, weights: BlockWeights, draw: Draw) -> Evidence:
    """What the data alone say, and how good the prior is.

    Args:
        equations: The equations.
        weights: Their weights in the estimate.
        draw: The prior.
    """
    factor = equations.information.weight(weights.joints)
    root, undetermined = solution_root(factor)
    beta = factor.solve(minimum_norm=True)
    sampling, each = score_covariances(equations, beta, root, weights)
    forth = (factor.R @ root).T @ factor.R  # (r, b) inverse of root on what the data determine
    stated = _stated(forth @ draw.to_base / np.sqrt(draw.pull), 10 * equations.robot.dof)
    C = forth @ sampling @ forth.T
    distance = forth @ (draw.to_base @ draw.centre - beta)
    average = np.eye(len(distance)) * max(float(np.trace(C)) / max(len(distance), 1), TINY)
    return Evidence(
        beta=beta,
        root=root,
        forth=forth,
        undetermined=undetermined,
        distance=distance,
        sampling=C,
        average=average,
        own=_ratio(np.diagonal(each), np.diagonal(sampling)),
        variances=np.diagonal(each),
        stated=np.sum(stated, axis=0),
        prior=shown_variance(distance, average, stated),
    )


def _enlarged(covariance: Floats, variances: Floats) -> Floats:
    """(b, b) covariance with these variances (b,), none of them smaller than its own; correlations stay."""
    own = np.diagonal(covariance)
    scale = _ratio(variances, own)
    return np.asarray(covariance * np.outer(scale, scale) + np.diag(np.where(own > 0.0, 0.0, variances)))


def _ratio(above: Floats, below: Floats) -> Floats:
    """(b,) ratios of standard deviations, from variances; one where there is none."""
    return np.asarray(np.sqrt(np.divide(above, below, out=np.ones_like(below), where=below > 0.0)))


def _stated(rows: Floats, links: int) -> list[Floats]:
    """(r, r) covariances of the prior's links and of its terms by its weight, in coordinates (r, p) of unit priors."""
    parts = (rows[:, :links], rows[:, links:])
    return [part @ part.T for part in parts if np.any(part)]


def shown_variance(distance: Floats, sampling: Floats, stated: Sequence[Floats]) -> Floats:
    """(r, r) covariance of a prior, as its distance from the data shows it.

    It is the sum of the stated parts, each times a factor of one or more: the most likely one (by the fixed point of
    Harville 1977), raised by Student's t, because few directions show it.

    Args:
        distance: (r,) prior minus what the data say.
        sampling: (r, r) covariance of what the data say.
        stated: (r, r) covariances of the prior by its weight, part by part.
    """
    factors = np.ones(len(stated))
    for _ in range(ROUNDS):
        W = np.linalg.inv(sampling + np.tensordot(factors, stated, axes=1))
        seen = W @ distance
        ratio = [float(seen @ part @ seen) / max(float(np.sum(W * part)), TINY) for part in stated]
        before, factors = factors, np.maximum(factors * ratio, 1.0)
        if np.all(np.abs(factors - before) <= SETTLED * before):
            break
    # the variance of a factor is 2 / freedom of its square, by the information on it
    freedom = [
        float(np.sum((W @ part) * (W @ part).T)) * factor**2 for part, factor in zip(stated, factors, strict=True)
    ]
    return np.asarray(np.tensordot(factors * student_factor(freedom) ** 2, stated, axes=1))
