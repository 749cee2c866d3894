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

from dynid.arrays import Floats
from dynid.decompositions import svd
from dynid.estimation.equations import Factors
from dynid.estimation.intervals.score_covariance import BlockWeights, score_covariances, solution_root
from dynid.estimation.intervals.waves import student_factor

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
    average: float
    """Its mean over all directions: few waves of time show it, and single directions are chance"""
    own: Floats
    """(b,) standard deviation of each parameter by its own degrees of freedom over that by ``sampling``"""
    variances: Floats
    """(b,) of ``beta``, each by its own degrees of freedom"""
    stated: Floats
    """(r, p) root of the covariance of the prior by its weight"""
    prior: Floats
    """(r, p) root of that covariance, as its distance from the data shows it"""


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
    undetermined, beta, each = said.undetermined, said.beta, said.variances
    drawn, around_mean, expected = guess_best(said)
    away = drawn @ said.distance  # of the guess from what the data say
    bias = np.where(undetermined, 0.0, values - beta - away)
    contradicted = away**2 > CONTRADICTED**2 * expected
    variance = np.diagonal(around_mean)
    larger = variance + np.where(contradicted, away**2 - expected, 0.0)
    # the data alone and all of the shift, where nothing tells how good the prior is
    cautious = np.isin(equations.names, dominated) & ~undetermined
    larger = np.where(cautious, np.maximum(each + (values - beta) ** 2, variance + bias**2), larger)
    larger = np.where(undetermined, variance, larger)
    return Spread(_enlarged(around_mean, larger), np.where(cautious, 0.0, bias), undetermined)


def guess_best(said: Evidence) -> tuple[Floats, Floats, Floats]:
    """The best guess: the matrix (b, r) that draws it to the prior, its covariance (b, b), squares of draws to expect.

    T may be 1e16 times C in some directions. Its root tells the others, too; T itself would drown them in rounding.
    """
    U, s = _principal(said.prior)
    along = said.root @ U
    rest = said.average / (s**2 + said.average)  # 1 - K
    drawn, free = (along * rest) @ U.T, (along * (1.0 - rest)) @ U.T
    by_prior = along * (rest * s)
    covariance = np.outer(said.own, said.own) * (free @ said.sampling @ free.T) + by_prior @ by_prior.T
    expected = np.sum(by_prior**2, axis=1) + np.sum((drawn @ said.sampling) * drawn, axis=1)
    return drawn, covariance, expected


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
    rows, links = forth @ draw.to_base / np.sqrt(draw.pull), 10 * equations.robot.dof
    stated = [part for part in (rows[:, :links], rows[:, links:]) if np.any(part)]
    C = forth @ sampling @ forth.T
    distance = forth @ (draw.to_base @ draw.centre - beta)
    average = max(float(np.trace(C)) / max(len(distance), 1), TINY)
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
        stated=rows,
        prior=shown_root(distance, average, stated),
    )


def _enlarged(covariance: Floats, variances: Floats) -> Floats:
    """(b, b) covariance with these variances (b,), none of them smaller than its own; correlations stay."""
    own = np.diagonal(covariance)
    scale = _ratio(variances, own)
    return np.asarray(covariance * np.outer(scale, scale) + np.diag(np.where(own > 0.0, 0.0, variances)))


def _ratio(above: Floats, below: Floats) -> Floats:
    """(b,) ratios of standard deviations, from variances; one where there is none."""
    return np.asarray(np.sqrt(np.divide(above, below, out=np.ones_like(below), where=below > 0.0)))


def _principal(root: Floats) -> tuple[Floats, Floats]:
    """Directions (r, r), orthonormal, and standard deviations (r,) of a covariance with a root (r, p)."""
    narrow = max(len(root) - root.shape[1], 0)
    U, s, _ = svd(np.pad(root, ((0, 0), (0, narrow))), full_matrices=False)
    return U, s


def shown_root(distance: Floats, average: float, stated: Sequence[Floats]) -> Floats:
    """(r, p) root of the covariance of a prior, as its distance from the data shows it.

    The covariance is the sum of the stated ones, each times a factor of one or more: the most likely one (by the fixed
    point of Harville 1977), raised by Student's t, because few directions show it.

    Args:
        distance: (r,) prior minus what the data say.
        average: Variance of what the data say, in all directions.
        stated: (r, p_i) roots of the covariances of the prior by its weight, part by part.
    """
    factors = np.ones(len(stated))
    for _ in range(ROUNDS):
        U, s = _principal(_joined(distance, stated, factors))
        inverse = 1.0 / (s**2 + average)
        seen = U @ (inverse * (U.T @ distance))
        sides = [U.T @ part for part in stated]
        told = [max(float(inverse @ np.sum(side**2, axis=1)), TINY) for side in sides]
        ratio = [float(np.sum((seen @ part) ** 2)) / size for part, size in zip(stated, told, strict=True)]
        before, factors = factors, np.maximum(factors * ratio, 1.0)
        if np.all(np.abs(factors - before) <= SETTLED * before):
            break
    # the variance of a factor is 2 / freedom of its square, by the information on it
    halves = [np.sqrt(inverse)[:, None] * side for side in sides]
    freedom = [float(np.sum((half.T @ half) ** 2)) * factor**2 for half, factor in zip(halves, factors, strict=True)]
    return _joined(distance, stated, factors * student_factor(freedom) ** 2)


def _joined(distance: Floats, stated: Sequence[Floats], factors: Floats) -> Floats:
    """(r, p) root of the sum of covariances with roots (r, p_i), each times a factor."""
    parts = [np.sqrt(factor) * part for part, factor in zip(stated, factors.tolist(), strict=True)]
    return np.concatenate([np.zeros((len(distance), 0)), *parts], axis=1)
