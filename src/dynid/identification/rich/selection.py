"""Select the mechanisms of rich friction that a robot has, by cross-validation.

Mechanisms enter one by one. Each round adds to the model the mechanism that predicts left-out stretches best, if it
lowers their error by at least `LEAST_GAIN` and the decrease is significant (`LARGEST_P_VALUE`); otherwise selection
ends. So a robot may also keep the plain model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from scipy import stats

from dynid.array_types import Floats
from dynid.estimators.equations import Samples, build_equations
from dynid.estimators.folds import Folds
from dynid.identification.rich.mechanisms import Mechanism
from dynid.tables import Table
from dynid.terms.base import Term

LEAST_GAIN = 0.005
"""Smallest relative decrease of the error on left-out stretches for which a mechanism is accepted (effect)."""
LARGEST_P_VALUE = 0.2
"""p-value up to which a mechanism is accepted: Wilcoxon's signed-rank test, over the left-out stretches, of the
hypothesis that it does not lower their error (level)."""


@dataclass(frozen=True, slots=True)
class Round:
    """Best mechanism of one round of the selection, and the decision on it."""

    mechanism: str
    """Its name."""
    gain: float
    """Decrease of the error on left-out stretches against the round before [%]."""
    kept: bool
    """Whether it was added; the first one that is not ends the selection."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """Course and result of a selection."""

    rounds: tuple[Round, ...]
    """The rounds in their order, also the last one that added nothing."""
    terms: tuple[Term, ...]
    """The terms of the mechanisms that were kept."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the mechanisms that were kept."""
        return tuple(found.mechanism for found in self.rounds if found.kept)

    def table(self) -> Table:
        """Show one row per round."""
        rows = [(found.mechanism, found.gain, "kept" if found.kept else "left out") for found in self.rounds]
        return Table.of(["mechanism", "gain %", "decision"], rows)

    def to_json(self) -> list[dict[str, object]]:
        """Return the rounds as values that JSON can hold."""
        return [{"mechanism": found.mechanism, "gain_percent": found.gain, "kept": found.kept} for found in self.rounds]


def select_mechanisms(equations: Samples, menu: Sequence[Mechanism], weights: Floats) -> tuple[Samples, Selection]:
    """Select mechanisms by cross-validation.

    Args:
        equations: The equations of the plain model.
        menu: The mechanisms to choose from.
        weights: (n,) inverse variance of each joint's residuals; the variance is that of independent samples, so
            multiplied by the autocorrelation factor.

    Returns:
        The equations with the terms of the selected model, and the selection.
    """
    plain_terms = equations.terms
    tried = [term for mechanism in menu for term in mechanism.terms]
    # reduced once with the terms of all mechanisms; the fits take the columns that they need
    wide = build_equations(
        equations.robot,
        equations.experiments,
        base=equations.base,
        terms=[*plain_terms, *tried],
        band_hz=equations.band_hz,
    )
    folds = Folds(wide, weights)
    chosen: tuple[Term, ...] = ()
    error_before = folds.errors(plain_terms)
    rounds: list[Round] = []
    candidates = list(menu)
    while candidates:
        trials = [(mechanism, folds.errors((*plain_terms, *chosen, *mechanism.terms))) for mechanism in candidates]
        # sums and means of logarithms let every stretch count alike, however large its torques are
        mechanism, error = min(trials, key=lambda trial: float(np.log(trial[1]).sum()))
        log_ratios = np.log(error / error_before)
        gain = 1.0 - exp(0.5 * log_ratios.mean())  # half: the errors are squared torques
        p_value = stats.wilcoxon(log_ratios, alternative="less").pvalue
        kept = gain >= LEAST_GAIN and p_value <= LARGEST_P_VALUE
        rounds.append(Round(mechanism.name, 100.0 * gain, bool(kept)))
        if not kept:
            break
        chosen = (*chosen, *mechanism.terms)
        error_before = error
        candidates.remove(mechanism)
    return wide.keep((*plain_terms, *chosen)), Selection(rounds=tuple(rounds), terms=chosen)
