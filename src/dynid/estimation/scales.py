"""Widths, travels and lags fitted to the data: what a term's column depends on nonlinearly.

For fixed scales the equations are linear, so the smallest residual is a function of the scales alone (variable
projection, Golub and Pereyra 1973). Scales of one joint hardly act on another's, so they are searched one by one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.features import Feature, ScaledFeature
from dynid.estimation.linear.least_squares import refined_weights

__all__ = ["fitted_scales"]

Floats = NDArray[np.float64]
EVALUATIONS = 14
"""Trials per term: they narrow a factor of 16 down to a few percent."""


def fitted_scales(equations: Samples, *, span: float = 4.0, rounds: int = 1) -> Samples:
    """The equations with the scales of its terms where the weighted residual is smallest.

    Args:
        equations: With terms; those without a scale stay.
        span: By which factor a scale may change, both ways, per round.
        rounds: How often to go through all terms.

    Raises:
        ArgumentError: The span is not above one.
    """
    from scipy.optimize import minimize_scalar

    if not span > 1.0 or rounds < 1:
        raise ArgumentError(f"a span of {span} in {rounds} rounds", remedy="Give a factor above one, such as 4.")
    weights = refined_weights(equations)
    terms = list(equations.terms)

    def residual(place: int, log_scale: float) -> float:
        trial = _scaled(terms[place], float(np.exp(log_scale)))
        others = [*terms[:place], trial, *terms[place + 1 :]]
        return _rebuilt(equations, others).information.weight(weights).residual

    for _ in range(rounds):
        for place, term in enumerate(terms):
            if not isinstance(term, ScaledFeature):
                continue
            middle, reach = np.log(term.scale), np.log(span)
            found = minimize_scalar(
                lambda x, place=place: residual(place, x),
                bounds=(middle - reach, middle + reach),
                method="bounded",
                options={"maxiter": EVALUATIONS, "xatol": 0.02},
            )
            if found.fun < residual(place, middle):
                terms[place] = _scaled(term, float(np.exp(found.x)))
    return _rebuilt(equations, terms)


def _scaled(term: Feature, scale: float) -> Feature:
    assert isinstance(term, ScaledFeature)
    return replace(term, scale=scale)


def _rebuilt(equations: Samples, terms: list[Feature]) -> Samples:
    blocks = max(len(segments) for segments in equations.blocks)
    return build_equations(
        equations.robot,
        equations.experiments,
        base=equations.base,
        terms=terms,
        band_hz=equations.band_hz,
        blocks=blocks,
    )
