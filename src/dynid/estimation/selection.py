"""Which terms the torques really contain: forward selection by cross-validation over blocks of time.

The rule is conservative, because the residuals of a fit are mostly model errors: a term is kept only if it lowers the
error on left-out blocks by a clear part, and in most of the blocks ([Izaguirre1992] would call it significant).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.cross_validation import Folds
from dynid.estimation.equations import Factors
from dynid.estimation.linear.least_squares import least_squares_estimate, refined_weights
from dynid.tables import Table
from dynid.terms.base import Term

__all__ = ["Candidate", "ForwardSelection", "Selection", "SelectionStep"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Terms that enter together or not at all."""

    name: str
    terms: tuple[Term, ...]

    @property
    def has_memory(self) -> bool:
        """Whether one of the terms has."""
        return any(term.has_memory for term in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionStep:
    """One round of the selection: the candidate that helped most."""

    candidate: str
    gain: float
    """By how much it lowered the cross-validated error of the joints it acts on [%]."""
    folds: int
    """In how many folds it helped."""
    of: int
    """How many folds there were."""
    kept: bool
    """Whether that was enough."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """What was selected, and how."""

    terms: tuple[Term, ...]
    steps: tuple[SelectionStep, ...]

    def table(self) -> Table:
        """One row per round."""
        rows = [(s.candidate, s.gain, f"{s.folds} of {s.of}", "kept" if s.kept else "left out") for s in self.steps]
        return Table.of(["term", "gain %", "folds better", ""], rows)

    def to_json(self) -> list[dict[str, object]]:
        """For machines."""
        return [
            {"term": s.candidate, "gain_percent": s.gain, "folds_better": s.folds, "folds": s.of, "kept": s.kept}
            for s in self.steps
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardSelection:
    """Add the candidate that lowers the cross-validated error most, as long as one passes the rule."""

    gain: float = 0.01
    """Smallest relative gain in the error of the joints concerned, left-out blocks only."""
    share: float = 2.0 / 3.0
    """Smallest share of the folds in which it must help."""
    folds: tuple[int, ...] = (8, 12, 24)
    """Into how many blocks of time a run is cut, one of which is left out in turn; several runs are left out whole."""
    most: int = 60
    """Largest number of rounds."""

    def __post_init__(self) -> None:
        """Refuse rules without meaning."""
        if not (0.0 <= self.gain < 1.0 and 0.0 <= self.share <= 1.0 and all(count >= 2 for count in self.folds)):
            raise ArgumentError(f"a selection needs a gain and a share below one, and two folds or more, not {self}")

    def run(self, equations: Factors, candidates: Sequence[Candidate], *, present: Sequence[Term] = ()) -> Selection:
        """Select among candidates whose terms are all part of the equations.

        Args:
            equations: Reduced with the terms of all candidates.
            candidates: What may be added.
            present: Terms that are in the model anyway.
        """
        before = equations.keep(present)
        plain = least_squares_estimate(before, refined_weights(before), "before selection")
        folds = Folds(equations, 1.0 / (plain.noise_std**2 * plain.inflation), self.folds)
        chosen: list[Term] = []
        steps: list[SelectionStep] = []
        tried: dict[Candidate, SelectionStep] = {}
        # the simple before the complex: memory is tried only once no memoryless term passes any more
        for pool in ([c for c in candidates if not c.has_memory], list(candidates)):
            remaining = [c for c in pool if not set(c.terms) & set(chosen)]
            while remaining and len(steps) < self.most:
                # the second pool begins with the terms that the first ended with: what was tried beside them stands
                new = [candidate for candidate in remaining if candidate not in tried]
                tried |= zip(new, self._trials(folds, [*present, *chosen], new), strict=True)
                best = max(remaining, key=lambda candidate: (tried[candidate].kept, tried[candidate].gain))
                steps.append(tried[best])
                if not tried[best].kept:
                    break
                chosen.extend(best.terms)
                remaining.remove(best)
                tried = {}
        return Selection(terms=tuple(chosen), steps=tuple(steps))

    def _trials(self, folds: Folds, chosen: list[Term], remaining: list[Candidate]) -> list[SelectionStep]:
        weight = folds.best_weight(chosen)
        old, new = folds.errors(chosen, [candidate.terms for candidate in remaining], weight)
        return [self._trial(candidate.name, old, row) for candidate, row in zip(remaining, new, strict=True)]

    def _trial(self, name: str, old: Floats, new: Floats) -> SelectionStep:
        """Judge the squared errors (folds,) without and with a candidate."""
        # every fold counts alike: one fold with a large error must not decide
        gain = 1.0 - float(np.exp(0.5 * np.mean(np.log(np.maximum(new, 1e-300) / np.maximum(old, 1e-300)))))
        better = int(np.count_nonzero(new < old))
        kept = gain >= self.gain and better >= self.share * len(old)
        return SelectionStep(candidate=name, gain=100.0 * gain, folds=better, of=len(old), kept=kept)
