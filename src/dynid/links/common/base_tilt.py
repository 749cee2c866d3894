"""A base tilt that selection finds: gravity is turned where it is large, and it is left out where the logs are unsure.

The links' mass moments about a vertical first axis act on no torque of a level robot. A tilt shows them, and logs often
do not tell how much of a torque is the tilt and how much these moments: such a tilt is no fact for a robot's file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.estimation.equations import Factors, Samples
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.least_squares import weighted_values
from dynid.estimation.selection import Selection
from dynid.findings import Finding
from dynid.terms.base import Term
from dynid.terms.load_dependent import BaseTilt

SHOWN = 2.5
"""Standard errors from which on a tilt is said to be there (convention)."""
EXACT_TILT = 0.02
"""Tilt of the base [rad] above which a term linear in it is off by more than 0.02 % of gravity (derivation: the cosine)
and gravity is turned instead."""


def is_tilted(equations: Factors) -> bool:
    """Whether a base tilt among the terms is so large that its term, linear in the angle, is not exact enough."""
    if not any(isinstance(term, BaseTilt) for term in equations.terms):
        return False
    values = weighted_values(equations)[equations.base.rank :].tolist()
    return any(
        isinstance(term, BaseTilt) and abs(value) > EXACT_TILT
        for term, value in zip(equations.terms, values, strict=True)
    )


def unsure_tilts(
    terms: Sequence[Term], selected: Sequence[Term], estimate: Estimate
) -> dict[Term, tuple[float, float]]:
    """Selected tilts of the base that may be none or large for all the logs tell: values and standard errors [rad].

    A tilt that is surely small stays, although it may be none: without it the held-out errors of the logs of
    docs/real-data.md rise, from 0.44 to 0.56 % for panda_gaz below 3 Hz (their standard errors are below 0.007 rad).

    Args:
        terms: The terms beside the robot's own, whose values are the last ones of the estimate.
        selected: Those of them that selection added.
        estimate: The estimate.
    """
    first = len(estimate.values) - len(terms)
    values, errors = estimate.values[first:].tolist(), estimate.stderr[first:].tolist()
    return {
        term: (value, error)
        for term, value, error in zip(terms, values, errors, strict=True)
        if isinstance(term, BaseTilt) and term in selected and SHOWN * error > max(abs(value), EXACT_TILT)
    }


def leave_out_tilts(equations: Samples, selection: Selection, terms: Sequence[Term]) -> tuple[Samples, Selection]:
    """The equations and the selection without some of the selected tilts."""
    kept = tuple(term for term in selection.terms if term not in terms)
    models = tuple(tuple(term for term in model if term not in terms) for model in selection.models)
    tilted = any(isinstance(term, BaseTilt) for term in kept)
    steps = tuple(
        replace(step, kept=step.kept and (tilted or step.candidate != BaseTilt.candidate)) for step in selection.steps
    )
    rest = equations.keep([term for term in equations.terms if term not in terms])
    return rest, replace(selection, terms=kept, models=models, steps=steps)


def note_unsure(tilts: Mapping[Term, tuple[float, float]]) -> Finding:
    """Say which tilts were left out."""
    degrees = {term.name[-1].lower(): np.rad2deg(pair) for term, pair in tilts.items()}
    texts = [
        f"{value:.2g} +- {2.0 * error:.2g} deg about horizontal axis {axis}" for axis, (value, error) in degrees.items()
    ]
    return Finding(
        code="untestable",
        severity="note",
        where="model",
        message=f"a tilt of the base by {' and '.join(texts)} would help to predict the logs, which do not "
        "determine it: there the base stays as the model states it",
        remedy="Measure how the robot stands, and give its gravity (gravity in the recipe).",
    )
