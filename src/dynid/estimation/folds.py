"""Fits that leave stretches of time out, for any set of terms, from cross products alone.

Fold k lacks the k-th stretch of every run, so that runs which repeat one motion lose the same part of it: no left-out
stretch has a twin in the fit. The fits are drawn to the prior as `feasible` is, and no friction is negative; they only
rank models.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.estimation.equations import TIME_BLOCKS, Factors
from dynid.estimation.physical.passivity import own_terms
from dynid.estimation.physical.prior import PriorCoordinates
from dynid.terms.base import Term


class Folds:
    """Cross products of all columns, fold by fold, and the fits that leave one fold out."""

    def __init__(self, equations: Factors, weights: Floats) -> None:
        """Group the blocks of time of the equations into folds.

        Args:
            equations: The equations, with the terms of all models.
            weights: (n,) weight of each joint's squared residuals in the fits.
        """
        information, rank = equations.information, equations.base.rank
        fold_of = {
            segment: place * TIME_BLOCKS // max(len(run), 1)
            for run in equations.blocks
            for place, segment in enumerate(run)
        }
        used = [s for s, row in zip(information.segments, information.samples, strict=True) if row.any()]
        numbers = sorted({fold_of[segment] for segment in used})
        if len(numbers) < 2:
            raise ArgumentError("cross-validation needs two blocks of time or more", remedy="Use a longer log.")
        self._terms = {term: rank + place for place, term in enumerate(equations.terms)}
        self._rank, size = rank, len(equations.names) + 1
        self._weighted, self._torque = np.zeros((2, len(numbers), size, size))
        for joint, support in enumerate(information.supports):
            places = np.array([*support, size - 1])
            for segment in used:
                rows = information.rows(joint, segment)
                fold, square = numbers.index(fold_of[segment]), rows.T @ rows
                self._weighted[fold][np.ix_(places, places)] += weights[joint] * square
                self._torque[fold][np.ix_(places, places)] += square
        self._draw_to_prior(equations)
        base, first = equations.base, 10 * equations.robot.dof
        own = [first + place for place, term in enumerate(own_terms(equations.robot)) if term.is_non_negative]
        self._nonnegative = [row for column, row in base.rows_alone.items() if column in own]
        self._nonnegative += [place for term, place in self._terms.items() if term.is_non_negative]

    def _draw_to_prior(self, equations: Factors) -> None:
        """Add the prior's information on base parameters and terms to the cross products of all folds."""
        rank, rigid = equations.base.grouping.shape
        lengths = np.sqrt(np.diagonal(self._weighted.sum(axis=0)))[rank:-1]
        prior = PriorCoordinates.of(equations, lengths)
        Q = equations.base.grouping @ prior.from_scaled[:rigid, :rigid]
        pull = np.zeros_like(self._weighted[0])
        pull[:rank, :rank] = np.linalg.inv((Q / prior.pull[:rigid]) @ Q.T)
        sizes = np.diagonal(prior.from_scaled)[rigid:]
        pull[range(rank, len(pull) - 1), range(rank, len(pull) - 1)] = 1.0 / sizes**2
        pull[:rank, -1] = pull[-1, :rank] = pull[:rank, :rank] @ (Q @ prior.centre[:rigid])
        self._rest = pull + self._weighted.sum(axis=0) - self._weighted

    def errors(self, terms: Sequence[Term]) -> Floats:
        """(folds,) squared torque errors on what was left out [(N m)^2], by fits with some of the terms."""
        columns = [*range(self._rank), *(self._terms[term] for term in terms)]
        friction = [column for column in columns if column in self._nonnegative]
        free = [column for column in columns if column not in self._nonnegative]
        places = np.array([*free, *friction, self._torque.shape[1] - 1])
        part = np.ix_(places, places)
        return np.array(
            [_left_out(rest[part], torque[part], len(free)) for rest, torque in zip(self._rest, self._torque)]
        )


def _left_out(rest: Floats, torque: Floats, free: int) -> float:
    """Squared error on the left-out products of the fit to the rest, whose unknowns after the first ones are >= 0."""
    R = np.linalg.cholesky(rest[:-1, :-1]).T
    z = solve_triangular(R, rest[:-1, -1], trans="T")
    friction, _ = nnls(R[free:, free:], z[free:])
    others = solve_triangular(R[:free, :free], z[:free] - R[:free, free:] @ friction)
    found = np.concatenate([others, friction, [-1.0]])
    return max(float(found @ torque @ found), 1e-300)
