"""Forward selection of terms by cross-validation over blocks of time.

The rule is conservative, because the residuals of a fit are mostly model errors: a term is kept only if it lowers the
error on left-out blocks by a clear share, and in most of the blocks.

`standard_candidates` lists the terms that are tried by default, with widths and travels that fit the motion. A term
enters on all joints at once, because what all joints show is less likely to be chance than what one joint shows. Each
class in `dynid.terms.TERMS` declares its candidates; see `Term.candidates`.
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
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.tables import Table
from dynid.terms import TERMS
from dynid.terms.base import Reference, Term, TermSizes

__all__ = ["Candidate", "ForwardSelection", "Selection", "SelectionStep", "standard_candidates"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Terms that enter together or not at all."""

    name: str
    terms: tuple[Term, ...]

    @property
    def has_memory(self) -> bool:
        """Whether one of the terms depends on the past of the motion."""
        return any(term.has_memory for term in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionStep:
    """One round of the selection: the candidate that helped most."""

    candidate: str
    gain: float
    """Decrease of the cross-validated error of all joints together [%]."""
    folds: int
    """Number of folds in which the candidate lowered the error."""
    of: int
    """Number of all folds."""
    kept: bool
    """Whether the candidate passed the rule."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """The selected terms, and the rounds of the selection."""

    terms: tuple[Term, ...]
    steps: tuple[SelectionStep, ...]

    def table(self) -> Table:
        """One row per round."""
        rows = [(s.candidate, s.gain, f"{s.folds} of {s.of}", "kept" if s.kept else "left out") for s in self.steps]
        return Table.of(["term", "gain %", "folds better", ""], rows)

    def to_json(self) -> list[dict[str, object]]:
        """The rounds as values that JSON can hold."""
        return [
            {"term": s.candidate, "gain_percent": s.gain, "folds_better": s.folds, "folds": s.of, "kept": s.kept}
            for s in self.steps
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardSelection:
    """Add the candidate that lowers the cross-validated error most, as long as one passes the rule."""

    gain: float = 0.01
    """Smallest relative decrease of the error on left-out blocks that keeps a candidate (experiment: the rule, that is
    `gain`, `share` and `folds`, was developed on the logs of docs/real-data.md, which are no blind test for it)."""
    share: float = 2.0 / 3.0
    """Smallest share of the folds in which a candidate must lower the error."""
    folds: tuple[int, ...] = (8, 12, 24)
    """Numbers of blocks of time into which the runs together are cut, each block left out in turn; several partitions
    count together. Of five runs or more, each is left out as a whole."""
    most: int = 60
    """Largest number of rounds (convention: more than there are candidates)."""

    def __post_init__(self) -> None:
        """Check that shares lie between zero and one, and that there are two folds or more."""
        if not (0.0 <= self.gain < 1.0 and 0.0 <= self.share <= 1.0 and all(count >= 2 for count in self.folds)):
            raise ArgumentError(f"a selection needs a gain and a share below one, and two folds or more, not {self}")

    def run(self, equations: Factors, candidates: Sequence[Candidate], *, present: Sequence[Term] = ()) -> Selection:
        """Select terms among candidates.

        Args:
            equations: Equations with the terms of all candidates.
            candidates: Groups of terms that may be added.
            present: Terms that are in the model in any case.
        """
        before = equations.keep(present)
        plain = least_squares_estimate(before, refined_weights(before), "before selection")
        folds = Folds(equations, 1.0 / (plain.noise_std**2 * plain.inflation), self.folds)
        chosen: list[Term] = []
        steps: list[SelectionStep] = []
        tried: dict[Candidate, SelectionStep] = {}
        # simple terms first: memory is tried only when no memoryless term passes any more
        for pool in ([c for c in candidates if not c.has_memory], list(candidates)):
            remaining = [c for c in pool if not set(c.terms) & set(chosen)]
            while remaining and len(steps) < self.most:
                # trials beside the same chosen terms stay valid, also from the first pool to the second
                new = [candidate for candidate in remaining if candidate not in tried]
                tried |= zip(new, self._trials(folds, [*present, *chosen], new), strict=True)
                best = max(remaining, key=lambda candidate: (tried[candidate].kept, tried[candidate].gain))
                if not steps or steps[-1] is not tried[best]:  # the second pool may reject the same trial again
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
        # the mean of logarithms lets every fold count alike: one fold with a large error must not decide
        gain = 1.0 - float(np.exp(0.5 * np.mean(np.log(np.maximum(new, 1e-300) / np.maximum(old, 1e-300)))))
        better = int(np.count_nonzero(new < old))
        kept = gain >= self.gain and better >= self.share * len(old)
        return SelectionStep(candidate=name, gain=100.0 * gain, folds=better, of=len(old), kept=kept)


HIGH_SPEED_PERCENTILE = 95.0
"""Percentile of a joint's speeds that counts as its high speed (convention)."""
SMALLEST_SIZE = 1e-9
"""Added to speeds and travels, so that a joint at rest has a scale too [rad, rad/s, m or m/s] (convention)."""


def standard_candidates(
    robot: Robot,
    experiments: Sequence[Experiment],
    reference: Reference,
    *,
    memory: bool = True,
    present: Sequence[Term] = (),
) -> tuple[Candidate, ...]:
    """List the groups of terms that selection tries by default: the candidates of every class in `dynid.terms.TERMS`.

    Args:
        robot: The robot; friction of its couplings' motors is included.
        experiments: The motion, which sets the scales of speeds and travels.
        reference: Parameters that give approximately the right torques, for example of an earlier fit.
        memory: Whether the samples follow one another in time, so that friction with memory makes sense.
        present: Terms that are in the model in any case, such as springs; they are not tried again.

    Example:
        >>> reference = dynid.terms.Reference(robot.parameter_vector)
        >>> dynid.estimation.standard_candidates(robot, [run], reference)[0].name
        'smooth sign 0.02'
    """
    there = {term.with_value(0.0) for term in present}
    speed = np.percentile(np.abs(np.concatenate([run.dq for run in experiments])), HIGH_SPEED_PERCENTILE, axis=0)
    sizes = TermSizes(
        speed=speed + SMALLEST_SIZE,
        travel=np.ptp(np.concatenate([run.q for run in experiments]), axis=0) + SMALLEST_SIZE,
        gravity=robot.gravity,
        motors=tuple(tuple((robot.joint_names.index(n), r) for n, r in c.ratios.items()) for c in robot.couplings),
        most_loaded=_most_loaded_joint(experiments),
        reference=reference,
    )
    groups = [
        Candidate(name, tuple(term for term in terms if term not in there))
        for kind in TERMS
        for name, terms in kind.candidates(sizes).items()
    ]
    return tuple(group for group in groups if group.terms and (memory or not group.has_memory))


def _most_loaded_joint(experiments: Sequence[Experiment]) -> int:
    """Index of the joint with the largest torques: the gains of the other drives are relative to its drive."""
    squares = sum(np.where(run.valid, run.effort, 0.0).T ** 2 @ np.ones(run.samples) for run in experiments)
    return int(np.argmax(squares))
