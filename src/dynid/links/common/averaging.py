"""The mean of the fits of several models: what only some of them have counts in proportion.

Selection finds slightly different models with slightly different rules, and none of them is the true one. Their mean
predicts better than most of them alone. Each model is a choice among the columns of the widest one, so the mean is a
parameter vector of the widest model; and what is possible (bodies, rotors, friction that takes power) is a convex set,
so the mean of possible robots is possible.

Which terms are right is uncertain, too. Each model has a best guess and a spread of its errors
(`dynid.estimation.physical.prior_bias`), and a chance to be the right one: small where it is clearly worse on what was
left out. The errors of the mean are those about the guesses of the models, by their chances; the distance of the mean
from the mean of guesses is known, because a model that has no chance counts a little in the mean of the fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.intervals.score_covariance import BlockWeights
from dynid.estimation.physical.feasible import FeasibleSolution, FeasibleWLS, feasible_parameters
from dynid.estimation.physical.prior_bias import Draw, drawn_spread
from dynid.estimation.selection import Selection
from dynid.findings import Finding
from dynid.terms.base import Term

NO_CHANCE = 1e-3
"""Chance of a model below which it is not counted among those that may be right (convention)."""


def average_models(equations: Factors, settings: FeasibleWLS, widest: Estimate, selection: Selection) -> Estimate:
    """Average the fits of the selected models, each by its share.

    Joints and prior have the same weights in all models: those of the widest one.

    Args:
        equations: Equations with the terms of all models, those of the selection last.
        settings: How each model is fitted.
        widest: The fit of all terms together.
        selection: The models.
    """
    present = equations.terms[: len(equations.terms) - len(selection.terms)]
    shares = _by_model(selection, selection.shares)
    variances = widest.noise_std**2
    weights = BlockWeights(1.0 / (variances * widest.inflation), variances, widest.inflation)
    models = []
    together = replace(equations, information=equations.information.as_one())  # weights are those of the widest model
    for model in shares:
        part = together.keep((*present, *model))
        pull = widest.extras["prior_weight"]
        models.append((part, feasible_parameters(part, part.information.weight(weights.joints), pull, settings)))
    size = len(equations.base.layout)
    thetas = np.zeros((len(models), size + len(equations.terms)))
    for theta, (part, fit) in zip(thetas, models, strict=True):
        theta[[*range(size), *(size + place for place in equations.term_places(part.terms))]] = fit.theta
    mean = np.array(list(shares.values())) @ thetas
    values = equations.grouping @ mean
    chances = np.array(list(_by_model(selection, selection.chances or selection.shares).values()))
    if any(len(fit.program.equal) for _, fit in models):
        away = (thetas - mean) @ equations.grouping.T
        covariance, bias = widest.covariance + away.T @ (chances[:, None] * away), widest.bias
    else:
        likely = [(c, *model) for c, model in zip(chances.tolist(), models, strict=True) if c > NO_CHANCE]
        covariance, bias = _mixture(equations, likely, weights, widest, values)
    message = (
        f"{len(shares)} sets of further terms predict left-out parts of the data about equally well: the result is "
    )
    message += "the mean of the fits with each of them"
    note = Finding(code="averaged-models", severity="note", where="estimate", message=message)
    findings = (*widest.findings, note)
    return replace(widest, values=values, standard=mean[:size], covariance=covariance, bias=bias, findings=findings)


def _by_model(selection: Selection, numbers: Sequence[float]) -> dict[tuple[Term, ...], float]:
    """The sum of the numbers of each model, which may occur more than once; all alike where there are none.

    Two searches may come by the same terms in another order, which is the same model: the first order counts.
    """
    count = len(selection.models)
    known: dict[frozenset[Term], tuple[Term, ...]] = {}
    sums: dict[tuple[Term, ...], float] = {}
    for given, number in zip(selection.models, numbers or (1.0 / count,) * count, strict=True):
        model = known.setdefault(frozenset(given), given)
        sums[model] = sums.get(model, 0.0) + number
    return sums


def _mixture(
    equations: Factors,
    models: Sequence[tuple[float, Factors, FeasibleSolution]],
    weights: BlockWeights,
    widest: Estimate,
    values: Floats,
) -> tuple[Floats, Floats]:
    """Covariance (b, b) and bias (b,) of an estimate, if one of some models is right.

    Args:
        equations: Equations with the terms of all models.
        models: Chance, equations and fit of each.
        weights: Weights of the joints in all fits.
        widest: The fit of all terms together: what it leaves open stays so.
        values: (b,) the estimate.
    """
    rank, size = equations.base.rank, len(equations.names)
    chances = np.array([chance for chance, _, _ in models])
    chances /= chances.sum()
    guesses, inner = np.zeros((len(models), size)), np.zeros((size, size))
    for chance, guess, (_, part, fit) in zip(chances, guesses, models, strict=True):
        places = [*range(rank), *(rank + place for place in equations.term_places(part.terms))]
        draw = Draw(part.grouping @ fit.from_scaled, fit.program.centre, fit.program.pull)
        mine = part.grouping @ fit.theta
        # the fits know all blocks of time as one; errors need them
        spread = drawn_spread(equations.keep(part.terms), weights, draw, mine, widest.prior_dominated)
        guess[places] = mine - spread.bias
        inner[np.ix_(places, places)] += chance * spread.around_mean
    best = chances @ guesses
    away = guesses - best
    bias = np.where(widest.undetermined | np.isin(widest.names, widest.prior_dominated), 0.0, values - best)
    covariance = inner + away.T @ (chances[:, None] * away) + np.outer(bias, bias)
    covariance[widest.undetermined, widest.undetermined] = np.inf
    return covariance, bias
