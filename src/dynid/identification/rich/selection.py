"""Which mechanisms of rich friction a robot has: one cross-validation.

Mechanisms enter one by one, the one that predicts left-out stretches best first, as long as it lowers their error by a
share worth having and more surely than by chance. A model that predicts no better than the plain one is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from dynid.arrays import Floats
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.folds import Folds
from dynid.identification.rich.mechanisms import Mechanism
from dynid.tables import Table
from dynid.terms.base import Term

GAIN = 0.005
"""Smallest relative decrease of the error on left-out stretches that is worth a mechanism (effect)."""
LEVEL = 0.2
"""Probability by which a mechanism that does nothing passes, by Wilcoxon's signed ranks over the stretches (level)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One mechanism that was tried."""

    mechanism: str
    gain: float
    """Decrease of the error on left-out stretches [%]."""
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """The mechanisms that were kept."""

    steps: tuple[Step, ...]
    terms: tuple[Term, ...]
    """The terms of the mechanisms that were kept."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the mechanisms."""
        return tuple(step.mechanism for step in self.steps if step.kept)

    def table(self) -> Table:
        """One row per mechanism that was tried."""
        rows = [(s.mechanism, s.gain, "kept" if s.kept else "left out") for s in self.steps]
        return Table.of(["mechanism", "gain %", ""], rows)

    def to_json(self) -> list[dict[str, object]]:
        """The mechanisms that were tried as values that JSON can hold."""
        return [{"mechanism": s.mechanism, "gain_percent": s.gain, "kept": s.kept} for s in self.steps]


def select_mechanisms(equations: Samples, menu: Sequence[Mechanism], weights: Floats) -> tuple[Samples, Selection]:
    """Choose mechanisms by cross-validation.

    Args:
        equations: The equations of the plain model.
        menu: The mechanisms.
        weights: (n,) inverse variance of each joint's residuals, raised by their correlation in time.

    Returns:
        The equations with the terms of the last model, and what was chosen.
    """
    present = equations.terms
    tried = [term for mechanism in menu for term in mechanism.terms]
    wide = build_equations(
        equations.robot, equations.experiments, base=equations.base, terms=[*present, *tried], band_hz=equations.band_hz
    )
    folds = Folds(wide, weights)
    chosen: tuple[Term, ...] = ()
    before = folds.errors(present)
    steps: list[Step] = []
    left = list(menu)
    while left:
        trials = [(mechanism, folds.errors((*present, *chosen, *mechanism.terms))) for mechanism in left]
        mechanism, error = min(trials, key=lambda trial: float(np.log(trial[1]).sum()))
        ratios = np.log(error / before)  # the mean of logarithms lets every stretch count alike
        gain = 1.0 - float(np.exp(0.5 * ratios.mean()))
        chance = stats.wilcoxon(ratios, alternative="less").pvalue
        kept = gain >= GAIN and chance <= LEVEL
        steps.append(Step(mechanism.name, 100.0 * gain, bool(kept)))
        if not kept:
            break
        chosen, before = (*chosen, *mechanism.terms), error
        left.remove(mechanism)
    return wide.keep((*present, *chosen)), Selection(steps=tuple(steps), terms=chosen)
