"""The mean of the fits of several models: what only some of them have counts in proportion.

Selection finds slightly different models with slightly different rules, and none of them is the true one. Their mean
predicts better than most of them alone. Each model is a choice among the columns of the widest one, so the mean is a
parameter vector of the widest model; and what is possible (bodies, rotors, friction that takes power) is a convex set,
so the mean of possible robots is possible.

Which terms are right is uncertain, too: the spread of the fits about their mean counts among the errors of the mean.
Without it the intervals of friction covered 79 and 83 % in 8 runs of ddarm whose dry friction falls with speed
(tests/campaigns/selection_coverage.py).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.physical.feasible import FeasibleWLS, feasible_parameters
from dynid.estimation.selection import Selection
from dynid.findings import Finding
from dynid.terms.base import Term

__all__ = ["average_models"]


def average_models(equations: Factors, settings: FeasibleWLS, widest: Estimate, selection: Selection) -> Estimate:
    """Average the fits of the selected models, each by its share.

    Joints and prior have the same weights in all models: those of the widest one.

    Args:
        equations: Equations with the terms of all models, those of the selection last.
        settings: How each model is fitted.
        widest: The fit of all terms together; to its covariance comes the spread of the models about their mean.
        selection: The models.
    """
    present = equations.terms[: len(equations.terms) - len(selection.terms)]
    size = len(equations.base.layout)
    shares: dict[tuple[Term, ...], float] = {}
    count = len(selection.models)
    for model, share in zip(selection.models, selection.shares or (1.0 / count,) * count, strict=True):
        shares[model] = shares.get(model, 0.0) + share
    weights = 1.0 / (widest.noise_std**2 * widest.inflation)
    fits = []
    together = replace(equations, information=equations.information.as_one())  # weights are those of the widest model
    for model in shares:
        terms = (*present, *model)
        part = together.keep(terms)
        fit = feasible_parameters(part, part.information.weight(weights), widest.extras["prior_weight"], settings)
        theta = np.zeros(size + len(equations.terms))
        theta[[*range(size), *(size + equations.terms.index(term) for term in terms)]] = fit.theta
        fits.append(theta)
    parts = np.array(list(shares.values()))
    mean = parts @ np.array(fits)
    away = (np.array(fits) - mean) @ equations.grouping.T
    spread = away.T @ (parts[:, None] * away)
    message = (
        f"{len(shares)} sets of further terms predict left-out parts of the data about equally well: the result is "
    )
    message += "the mean of the fits with each of them"
    note = Finding(code="averaged-models", severity="note", where="estimate", message=message)
    return replace(
        widest,
        values=equations.grouping @ mean,
        standard=mean[:size],
        covariance=widest.covariance + spread,
        findings=(*widest.findings, note),
    )
