"""Forward selection of terms by cross-validation over blocks of time.

The rule is conservative, because the residuals of a fit are mostly model errors: a term is kept only if it lowers the
error on left-out blocks by a clear share, and in most of the blocks.

Which terms pass still depends on where the blocks happen to lie and on how many of them must agree. So the rule is run
with several partitions and shares, and the fits of the models that it finds are averaged (`ForwardSelection.average`):
what only some of the models have counts in proportion. Two to four runs are a partition of their own, because another
run is what the model will have to predict; and the model without further terms takes part, too. Each model counts by
the inverse of its squared error on what was left out (Bates and Granger 1969), whole runs or blocks of time, so that a
model that is much worse hardly counts. Equal shares were tried before: they cost the ur10 and a panda of
docs/real-data.md 5 % on held-out data, so the shares were chosen with these figures in view. A mean of possible robots
is a possible robot, because what is possible is a convex set.

`standard_candidates` lists the terms that are tried by default, with widths and travels that fit the motion. A term
enters on all joints at once, because what all joints show is less likely to be chance than what one joint shows. Each
class in `dynid.terms.TERMS` declares its candidates; see `Term.candidates`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.checks import check_kind
from dynid.errors import ArgumentError
from dynid.estimation.cross_validation import Folds
from dynid.estimation.equations import Factors
from dynid.estimation.linear.least_squares import noise_weights
from dynid.kernels import kernel
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.model import Robot
from dynid.tables import Table
from dynid.terms import TERMS
from dynid.terms.base import Reference, Term, TermSizes
from dynid.terms.ripples import ripple_order


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
    """All terms, each of which is in one of the models at least."""
    steps: tuple[SelectionStep, ...]
    """The rounds with all partitions together."""
    models: tuple[tuple[Term, ...], ...] = ()
    """Terms of each model whose fits are averaged; the same model may occur more than once. Empty for no averaging."""
    shares: tuple[float, ...] = ()
    """How much each of the models counts in the mean; they add up to one. Empty where all count alike."""
    chances: tuple[float, ...] = ()
    """How likely each of the models is the right one among them, for intervals; they add up to one. What is clearly
    worse on what was left out counts a little in the mean, and is not right. Empty where all are alike."""

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

    def terms_to_json(self) -> list[dict[str, object]]:
        """The terms that the model holds; ``share`` is what the models with a term count in the mean of all."""
        count = max(len(self.models), 1)
        shares, models = self.shares or (1.0 / count,) * count, [set(model) for model in self.models or (self.terms,)]
        return [
            {
                "term": term.name,
                "kind": type(term).__name__,
                "share": sum(share for share, model in zip(shares, models, strict=True) if term in model),
            }
            for term in self.terms
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardSelection:
    """Add the candidate that lowers the cross-validated error most, as long as one passes the rule.

    A candidate with more terms than another must lower the error by `gain` more than that one.
    """

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
    average: bool = True
    """Whether the fits of several models are averaged: the model of the rule, those of the rule with each partition by
    itself, with the shares of `SHARES` and with whole runs as folds, and the model without further terms."""

    def __post_init__(self) -> None:
        """Check that shares lie between zero and one, and that there are two folds or more."""
        shares = 0.0 <= self.gain < 1.0 and 0.0 <= self.share <= 1.0
        counts = bool(self.folds) and all(2 <= count <= MOST_FOLDS for count in self.folds) and self.most >= 0
        if not (shares and counts):
            given = f"gain {self.gain:g}, share {self.share:g}, folds {list(self.folds)}, most {self.most}"
            remedy = (
                f"Give a gain from 0 to below 1, a share from 0 to 1, 2 to {MOST_FOLDS} folds, and no negative most."
            )
            raise ArgumentError(f"the selection has {given}", remedy=remedy)

    def run(self, equations: Factors, candidates: Sequence[Candidate], *, present: Sequence[Term] = ()) -> Selection:
        """Select terms among candidates.

        Args:
            equations: Equations with the terms of all candidates.
            candidates: Groups of terms that may be added.
            present: Terms that are in the model in any case.
        """
        before = equations.keep(present)
        folds = Folds(equations, noise_weights(before), self.folds, runs=self.average)
        trials = _Trials(folds, tuple(candidates), tuple(present))
        count = len(self.folds)
        blocks = np.concatenate([folds.partition(k) for k in range(count)])
        chosen, steps = self._search(trials, blocks)
        if not self.average:
            return Selection(terms=chosen, steps=steps)
        others = [self._search(trials, folds.partition(k))[0] for k in range(count) if count > 1]
        others += [replace(self, share=share)._search(trials, blocks)[0] for share in SHARES]
        if folds.across_runs:
            others.append(self._search(trials, folds.partition(count))[0])
        others.append(())  # no further term at all: the mean is more cautious than the models that passed the rule
        models = (chosen, *others)
        # what another run asks of a model, the runs tell; blocks of time where there is only one
        judges = folds.partition(count) if folds.across_runs else blocks
        union = dict.fromkeys(term for model in models for term in model)
        shares, chances = trials.shares(models, judges)
        return Selection(terms=tuple(union), steps=steps, models=models, shares=shares, chances=chances)

    def _search(
        self, trials: _Trials, counted: NDArray[np.int64]
    ) -> tuple[tuple[Term, ...], tuple[SelectionStep, ...]]:
        """The terms that pass the rule on the counted folds, and the rounds."""
        chosen: list[int] = []
        steps: list[SelectionStep] = []
        everything = range(len(trials.candidates))
        # simple terms first: memory is tried only when no memoryless term passes any more
        for pool in ([k for k in everything if not trials.candidates[k].has_memory], everything):
            remaining = trials.open_ones(pool, chosen)
            while remaining and len(steps) < self.most:
                judged = self._judge(trials, remaining, *trials.errors(chosen, remaining, pool, counted))
                best = self._best(judged, [len(trials.candidates[k].terms) for k in remaining])
                if not steps or steps[-1] != judged[best]:  # the second pool may reject the same trial again
                    steps.append(judged[best])
                if not judged[best].kept:
                    break
                chosen.append(remaining.pop(best))
        return trials.terms(chosen), tuple(steps)

    def _best(self, judged: Sequence[SelectionStep], sizes: Sequence[int]) -> int:
        """Place of the candidate that gains most; of two, the one with more terms must gain the more by the rule."""
        best = max(range(len(judged)), key=lambda k: (judged[k].kept, judged[k].gain))
        small = [k for k, step in enumerate(judged) if step.kept and sizes[k] < sizes[best]]
        close = [k for k in small if judged[best].gain - judged[k].gain < 100.0 * self.gain]
        return max(close, key=lambda k: judged[k].gain, default=best)

    def _judge(self, trials: _Trials, places: Sequence[int], old: Floats, new: Floats) -> list[SelectionStep]:
        """Judge the squared errors (folds,) without candidates, and (candidates, folds) with each of them."""
        # the mean of logarithms lets every fold count alike: one fold with a large error must not decide
        ratios = np.log(np.maximum(new, 1e-300) / np.maximum(old, 1e-300))
        gains = 1.0 - np.exp(0.5 * ratios.mean(axis=1))
        better = np.count_nonzero(new < old, axis=1)
        kept = (gains >= self.gain) & (better >= self.share * old.size)
        figures = zip(places, gains.tolist(), better.tolist(), kept.tolist(), strict=True)
        return [
            SelectionStep(candidate=trials.candidates[k].name, gain=100.0 * gain, folds=count, of=old.size, kept=passed)
            for k, gain, count, passed in figures
        ]


class _Trials:
    """Errors on left-out folds of every model that a search has come by, so that no search repeats them.

    Candidates are known by their places: terms as keys would be hashed anew at every look.
    """

    def __init__(self, folds: Folds, candidates: tuple[Candidate, ...], present: tuple[Term, ...]) -> None:
        self.candidates = candidates
        self._folds, self._present = folds, present
        self._known: dict[tuple[frozenset[int], int], tuple[Floats, Floats]] = {}
        self._weights: dict[int, float] = {}
        owners: dict[Term, set[int]] = {}
        for place, candidate in enumerate(candidates):
            for term in candidate.terms:
                owners.setdefault(term, set()).add(place)
        self._rivals = [frozenset().union(*(owners[term] for term in candidate.terms)) for candidate in candidates]

    def terms(self, chosen: Sequence[int]) -> tuple[Term, ...]:
        """The terms of some candidates."""
        return tuple(term for place in chosen for term in self.candidates[place].terms)

    def open_ones(self, pool: Sequence[int], chosen: Iterable[int]) -> list[int]:
        """The candidates of a pool of which no term is chosen."""
        taken = frozenset(chosen)
        return [place for place in pool if not self._rivals[place] & taken]

    def errors(
        self, chosen: Sequence[int], candidates: Sequence[int], pool: Sequence[int], counted: NDArray[np.int64]
    ) -> tuple[Floats, Floats]:
        """(folds,) squared errors with the chosen terms, and (candidates, folds) with each candidate's terms added.

        Args:
            chosen: Places of the chosen candidates.
            candidates: Places of some candidates.
            pool: Places of candidates that will be asked for next: all are tried at once.
            counted: Places of the folds that count.
        """
        key = frozenset(chosen)
        for candidate in candidates:
            if not self._lacks(key, candidate, counted):
                continue
            open_ones = [place for place in self.open_ones(pool, key) if self._lacks(key, place, counted)]
            places = counted[self._missing(key, candidate)[counted]]
            own, terms = self.terms(chosen), [self.candidates[place].terms for place in open_ones]
            old, new = self._folds.errors([*self._present, *own], terms, self._weight(own), places)
            for other, row in zip(open_ones, new, strict=True):
                known = self._known.setdefault((key, other), (self._nothing(), self._nothing()))
                known[0][places], known[1][places] = old, row
        before = self._known[key, candidates[-1]][0]
        return before[counted], np.array([self._known[key, candidate][1][counted] for candidate in candidates])

    def shares(
        self, models: Sequence[Sequence[Term]], counted: NDArray[np.int64]
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """How much each model counts in their mean, and how likely it is the right one.

        It counts by the inverse of its squared error on left-out folds. It is as likely as it counts, times the chance
        that folds scatter so much that it seems to be worse than the best model although it is not.
        """
        known = {frozenset(model): self._left_out(model, counted) for model in models}
        errors = np.array([known[frozenset(model)] for model in models])  # (models, folds), logarithms of squares
        means = errors.mean(axis=1)
        inverse = 1.0 / np.maximum(np.exp(means), 1e-300)
        behind = errors - errors[np.argmin(means)]
        # partitions cut the same data several times: together they tell no more than the average one
        spread = behind.std(axis=1) / np.sqrt(max(len(counted) / self._folds.partitions(counted) - 1.0, 1.0))
        ratio = np.divide(behind.mean(axis=1), spread, out=np.zeros(len(errors)), where=spread > 0.0)
        likely = inverse * np.array([math.erfc(each / math.sqrt(2.0)) for each in ratio.tolist()])
        return tuple((inverse / inverse.sum()).tolist()), tuple((likely / likely.sum()).tolist())

    def _left_out(self, model: Sequence[Term], counted: NDArray[np.int64]) -> Floats:
        """(folds,) logarithms of the squared errors of a model on left-out folds."""
        squares, _ = self._folds.errors([*self._present, *model], [], self._weight(model), counted)
        return np.asarray(np.log(np.maximum(squares, 1e-300)))

    def _nothing(self) -> Floats:
        return np.full(len(self._folds), np.nan)

    def _lacks(self, key: frozenset[int], candidate: int, places: NDArray[np.int64]) -> bool:
        return (key, candidate) not in self._known or bool(self._missing(key, candidate)[places].any())

    def _missing(self, key: frozenset[int], candidate: int) -> NDArray[np.bool_]:
        """(folds,) whether the error of a candidate is not known yet."""
        known = self._known.get((key, candidate))
        return np.ones(len(self._folds), dtype=bool) if known is None else np.isnan(known[1])

    def _weight(self, chosen: Sequence[Term]) -> float:
        """Weight of the prior: that of the first model with as many terms, as it hardly depends on which they are."""
        if len(chosen) not in self._weights:
            known = [size for size in self._weights if size < len(chosen)]
            near = self._weights[max(known)] if known else None
            self._weights[len(chosen)] = self._folds.best_weight([*self._present, *chosen], near=near)
        return self._weights[len(chosen)]


MOST_FOLDS = 1000
"""Largest number of blocks of time (convention: each is fitted without once for every candidate)."""
SHARES = (0.5,)
"""Further shares of the folds with which models are selected that are averaged (convention, kept with the held-out
figures of docs/real-data.md in view)."""
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
    check_kind("reference", reference, Reference)
    experiments = matched_runs(robot, experiments)
    there = {term.with_value(0.0) for term in present}
    speed = np.percentile(np.abs(np.concatenate([run.dq for run in experiments])), HIGH_SPEED_PERCENTILE, axis=0)
    turning = tuple(j for j, body in enumerate(robot.bodies) if not body.is_prismatic)
    sizes = TermSizes(
        speed=speed + SMALLEST_SIZE,
        travel=np.ptp(np.concatenate([run.q for run in experiments]), axis=0) + SMALLEST_SIZE,
        gravity=robot.gravity,
        motors=tuple(tuple((robot.joint_names.index(n), r) for n, r in c.ratios.items()) for c in robot.couplings),
        most_loaded=_most_loaded_joint(experiments),
        turning=turning,
        reference=reference,
        ripples=_find_ripples(robot, experiments, reference, turning),
    )
    groups = [
        Candidate(name, tuple(term for term in terms if term not in there))
        for kind in TERMS
        for name, terms in kind.candidates(sizes).items()
    ]
    return tuple(group for group in groups if group.terms and (memory or not group.has_memory))


def _find_ripples(
    robot: Robot, experiments: Sequence[Experiment], reference: Reference, turning: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Joints whose residuals repeat with the angle, and periods per turn."""
    evaluate = kernel(robot, "inverse_dynamics", symbolic_parameters=True)
    left = [run.effort - evaluate(run.q, run.dq, run.ddq, reference.theta) for run in experiments]
    found = []
    for joint in turning:
        used = [run.valid[:, joint] for run in experiments]
        angle = np.concatenate([run.q[mine, joint] for run, mine in zip(experiments, used, strict=True)])
        residual = np.concatenate([rows[mine, joint] for rows, mine in zip(left, used, strict=True)])
        order = ripple_order(angle, residual)
        if order is not None:
            found.append((joint, order))
    return tuple(found)


def _most_loaded_joint(experiments: Sequence[Experiment]) -> int:
    """Index of the joint with the largest torques: the gains of the other drives are relative to its drive."""
    squares = sum(np.where(run.valid, run.effort, 0.0).T ** 2 @ np.ones(run.samples) for run in experiments)
    return int(np.argmax(squares))
