"""Widths, travels and lags fitted to the data: what a term's column depends on nonlinearly.

For fixed scales the equations are linear, so the smallest residual is a function of the scales alone (variable
projection, Golub and Pereyra 1973). Scales of one joint hardly act on another's, so they are searched one by one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from dynid.curves import lowest_point
from dynid.errors import ArgumentError
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.linear.least_squares import refined_weights
from dynid.terms.base import ScaledTerm, Term

EVALUATIONS = 14
"""Trials per term and round (experiment: they narrow a factor of 16 down to a few percent)."""


def fit_scales(equations: Samples, *, span: float = 4.0, rounds: int = 1) -> Samples:
    """The equations with the scales of their terms where the weighted residual is smallest.

    Args:
        equations: The equations; terms without a scale stay as they are.
        span: Largest factor by which a scale may change in one round, up or down.
        rounds: How many times the search goes through all terms.

    Raises:
        ArgumentError: The span is not above one.

    Example:
        >>> smooth = [dynid.terms.SmoothSign(joint=0, scale=0.1)]
        >>> dynid.estimation.fit_scales(dynid.estimation.build_equations(robot, [run], terms=smooth))
        Samples('ddarm', 22 parameters, 1 logs)
    """
    if not span > 1.0 or rounds < 1:
        raise ArgumentError(f"a span of {span} in {rounds} rounds", remedy="Give a factor above one, such as 4.")
    weights = refined_weights(equations)
    terms = list(equations.terms)

    def residual(place: int, term: ScaledTerm, log_scale: float) -> float:
        trial = replace(term, scale=float(np.exp(log_scale)))
        others = [*terms[:place], trial, *terms[place + 1 :]]
        return _rebuilt(equations, others).information.weight(weights).residual

    for _ in range(rounds):
        for place, term in enumerate(terms):
            if not isinstance(term, ScaledTerm):
                continue
            middle, reach = np.log(term.scale), np.log(span)
            best, lowest = lowest_point(
                partial(residual, place, term), middle - reach, middle + reach, accuracy=0.02, most_trials=EVALUATIONS
            )
            if lowest < residual(place, term, middle):
                terms[place] = replace(term, scale=float(np.exp(best)))
    return _rebuilt(equations, terms)


def _rebuilt(equations: Samples, terms: list[Term]) -> Samples:
    blocks = max(len(segments) for segments in equations.blocks)
    return build_equations(
        equations.robot,
        equations.experiments,
        base=equations.base,
        terms=terms,
        band_hz=equations.band_hz,
        blocks=blocks,
    )
