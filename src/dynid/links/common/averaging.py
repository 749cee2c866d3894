"""The mean of the fits of several models: what only some of them have counts in proportion.

Selection finds slightly different models with slightly different rules, and none of them is the true one. Their mean
predicts better than most of them alone. Each model is a choice among the columns of the widest one, so the mean is a
parameter vector of the widest model; and what is possible (bodies, rotors, friction that takes power) is a convex set,
so the mean of possible robots is possible.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.selection import Selection
from dynid.findings import Finding

__all__ = ["average_models"]


def average_models(equations: Factors, estimator: Estimator, widest: Estimate, selection: Selection) -> Estimate:
    """Average the fits of the selected models.

    Args:
        equations: Equations with the terms of all models, those of the selection last.
        estimator: Fits each model.
        widest: The fit of all terms together, whose covariance is kept: no model knows less than it.
        selection: The models.
    """
    present = equations.terms[: len(equations.terms) - len(selection.terms)]
    counts, rank = Counter(selection.models), equations.base.rank
    values, standard = np.zeros(widest.values.size), np.zeros(len(equations.base.layout))
    is_whole = widest.standard is not None
    for model, count in counts.items():
        share = count / counts.total()
        if set(model) == set(selection.terms):
            fit, places = widest, list(range(widest.values.size))
        else:
            terms = (*present, *model)
            fit = estimator.solve(equations.keep(terms))
            places = [*range(rank), *(rank + equations.terms.index(term) for term in terms)]
        values[places] += share * fit.values
        is_whole = is_whole and fit.standard is not None
        standard += share * fit.standard if fit.standard is not None else 0.0
    message = f"the fits of {counts.total()} models that selection found, {len(counts)} of them different, are averaged"
    note = Finding(code="averaged-models", severity="note", where="estimate", message=message)
    return replace(widest, values=values, standard=standard if is_whole else None, findings=(*widest.findings, note))
