"""Cross-validation over stretches of time, for many sets of terms, from cross products alone.

Fold k leaves out the k-th stretch of every run, so that runs which repeat one motion lose the same part of it: the fit
never contains a repetition of what it predicts.

With the columns ``[W, y]`` of all equations (all terms, and the torque last) only the cross products
``[W, y]^T [W, y]`` of each fold are kept. They suffice for a fit with any part of the columns and for its squared error
on another fold. The fits have the prior of the estimator `feasible` and no negative friction; they only rank models.

The selection of friction terms in `dynid.identification` makes one `Folds` from equations with all candidate terms, and
calls `errors` for each set of terms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.estimators.equations import TIME_BLOCKS, Factors
from dynid.estimators.physical.passivity import placed_terms
from dynid.estimators.physical.prior import PriorCoordinates
from dynid.terms.base import Term


class Folds:
    """Cross products of all columns, fold by fold; `errors` fits without one fold after the other."""

    def __init__(self, equations: Factors, weights: Floats) -> None:
        """Group the blocks of time of the equations into folds.

        Args:
            equations: The equations, with the terms of all models that are to be compared.
            weights: (n,) weight of each joint's squared residuals in the fits.

        Raises:
            ArgumentError: All data lie in one fold.
        """
        information = equations.information
        # A segment is the number of a block of time, and its equations are the triangle of a QR decomposition. Each run
        # is divided into the same number of folds.
        fold_of = {
            segment: place * TIME_BLOCKS // max(len(run), 1)
            for run in equations.blocks
            for place, segment in enumerate(run)
        }
        used = [s for s, row in zip(information.segments, information.samples, strict=True) if row.any()]
        numbers = sorted({fold_of[segment] for segment in used})
        if len(numbers) < 2:
            raise ArgumentError("cross-validation needs two blocks of time or more", remedy="Use a longer log.")
        self._rank = equations.base.rank
        self._column_of = {term: self._rank + place for place, term in enumerate(equations.terms)}
        size = len(equations.names) + 1
        weighted = np.zeros((len(numbers), size, size))
        # (folds, size, size) unweighted: errors are counted in torque
        self._unweighted = np.zeros_like(weighted)
        for joint, support in enumerate(information.supports):
            places = np.array([*support, size - 1])  # columns that act on this joint, and the torque
            for segment in used:
                rows = information.rows(joint, segment)  # the triangle of these columns
                products = rows.T @ rows
                fold = numbers.index(fold_of[segment])
                weighted[fold][np.ix_(places, places)] += weights[joint] * products
                self._unweighted[fold][np.ix_(places, places)] += products
        whole = weighted.sum(axis=0)
        # (folds, size, size) what each fit sees: the prior and all folds but its own
        self._fitted = self._prior_products(equations, whole) + whole - weighted
        base = equations.base
        first = 10 * equations.robot.dof  # place of the first term's parameter: each link has ten
        own = [first + place for place, term in enumerate(placed_terms(equations.robot)) if term.is_non_negative]
        # columns of friction and rotors; `rows_alone` maps standard parameters that are base parameters by themselves
        self._nonnegative = [row for column, row in base.rows_alone.items() if column in own]
        self._nonnegative += [place for term, place in self._column_of.items() if term.is_non_negative]

    def _prior_products(self, equations: Factors, whole: Floats) -> Floats:
        """Compute the cross products (size, size) of the prior, written as equations ``[W, y]`` of unit noise.

        Args:
            equations: The equations.
            whole: (size, size) weighted cross products of all data, whose diagonal gives the sizes of the terms.
        """
        rank = self._rank
        rigid = equations.base.grouping.shape[1]
        lengths = np.sqrt(np.diagonal(whole))[rank:-1]
        prior = PriorCoordinates.of(equations, lengths)
        Q = equations.base.grouping @ prior.from_scaled[:rigid, :rigid]  # base parameters from scaled unknowns
        products = np.zeros_like(whole)
        products[:rank, :rank] = np.linalg.inv((Q / prior.pull[:rigid]) @ Q.T)  # inverse of the prior's covariance
        sizes = np.diagonal(prior.from_scaled)[rigid:]
        products[range(rank, len(whole) - 1), range(rank, len(whole) - 1)] = 1.0 / sizes**2
        products[:rank, -1] = products[-1, :rank] = products[:rank, :rank] @ (Q @ prior.centre[:rigid])
        return products

    def errors(self, terms: Sequence[Term]) -> Floats:
        """Compute the squared torque errors (folds,) of fits to all other folds [(N m)^2].

        Args:
            terms: The terms of the fits, a part of those of the equations.
        """
        columns = [*range(self._rank), *(self._column_of[term] for term in terms)]
        friction = [column for column in columns if column in self._nonnegative]
        free = [column for column in columns if column not in self._nonnegative]
        places = np.array([*free, *friction, self._unweighted.shape[1] - 1])
        part = np.ix_(places, places)
        return np.array(
            [
                _squared_error(fitted[part], left_out[part], len(free))
                for fitted, left_out in zip(self._fitted, self._unweighted)
            ]
        )


def _squared_error(fitted: Floats, left_out: Floats, free: int) -> float:
    """Fit to some cross products ``[W, y]^T [W, y]`` and compute the squared error on others.

    Args:
        fitted: (k + 1, k + 1) products to fit to.
        left_out: (k + 1, k + 1) products of the equations to predict.
        free: Number of unknowns of any sign; those behind them must not be negative.
    """
    R = np.linalg.cholesky(fitted[:-1, :-1]).T
    z = solve_triangular(R, fitted[:-1, -1], trans="T")
    # R is triangular: whatever the non-negative unknowns are, the free ones solve their own rows exactly
    friction = nnls(R[free:, free:], z[free:])[0] if free < len(R) else np.zeros(0)  # SciPy aborts without unknowns
    others = solve_triangular(R[:free, :free], z[:free] - R[:free, free:] @ friction)
    found = np.concatenate([others, friction, [-1.0]])
    return max(float(found @ left_out @ found), 1e-300)
