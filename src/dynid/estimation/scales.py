"""Widths, travels and lags fitted to the data: what a feature's column depends on nonlinearly.

For fixed scales the equations are linear, so the smallest residual is a function of the scales alone (variable
projection, Golub and Pereyra 1973). Scales of one joint hardly act on another's, so they are searched one by one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.features import Feature, ScaledFeature
from dynid.estimation.linear.least_squares import refined_weights
from dynid.estimation.problem import Problem, build_problem
from dynid.estimation.samples import refuse_streamed

__all__ = ["fitted_scales"]

Floats = NDArray[np.float64]
EVALUATIONS = 14
"""Trials per feature: they narrow a factor of 16 down to a few percent."""


def fitted_scales(problem: Problem, *, span: float = 4.0, rounds: int = 1) -> Problem:
    """The problem with the scales of its features where the weighted residual is smallest.

    Args:
        problem: With features; those without a scale stay.
        span: By which factor a scale may change, both ways, per round.
        rounds: How often to go through all features.

    Raises:
        ArgumentError: The span is not above one.
    """
    from scipy.optimize import minimize_scalar

    if not span > 1.0 or rounds < 1:
        raise ArgumentError(f"a span of {span} in {rounds} rounds", remedy="Give a factor above one, such as 4.")
    refuse_streamed(problem)
    weights = refined_weights(problem)
    features = list(problem.features)

    def residual(place: int, log_scale: float) -> float:
        trial = _scaled(features[place], float(np.exp(log_scale)))
        others = [*features[:place], trial, *features[place + 1 :]]
        return _rebuilt(problem, others).information.weight(weights).residual

    for _ in range(rounds):
        for place, feature in enumerate(features):
            if not isinstance(feature, ScaledFeature):
                continue
            middle, reach = np.log(feature.scale), np.log(span)
            found = minimize_scalar(
                lambda x, place=place: residual(place, x),
                bounds=(middle - reach, middle + reach),
                method="bounded",
                options={"maxiter": EVALUATIONS, "xatol": 0.02},
            )
            if found.fun < residual(place, middle):
                features[place] = _scaled(feature, float(np.exp(found.x)))
    return _rebuilt(problem, features)


def _scaled(feature: Feature, scale: float) -> Feature:
    assert isinstance(feature, ScaledFeature)
    return replace(feature, scale=scale)


def _rebuilt(problem: Problem, features: list[Feature]) -> Problem:
    blocks = max(len(segments) for segments in problem.blocks)
    return build_problem(
        problem.robot,
        problem.experiments,
        base=problem.base,
        features=features,
        band_hz=problem.band_hz,
        blocks=blocks,
    )
