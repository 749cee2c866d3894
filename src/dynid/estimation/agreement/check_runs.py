"""Whether several runs agree: parameters that are other in one run than in the others.

A run may have been recorded with a load in the gripper, with a drifted offset, with cold gears, or with another gain of
a drive. Each such cause adds columns that act in this run only. What these columns gain follows from the reduced
equations: with the cross products A_r of the run and A of all runs, and columns C_r that are combinations D of the
run's own columns,

    gain = g' M^-1 g,    g = D' (b_r - A_r beta),    M = D' (A_r - A_r A^-1 A_r) D,    change = M^-1 g

The same gain of every block of time within a run tells how much of it is usual: residuals are correlated in time and
models have errors, so that the gains of blocks, not the noise of samples, set the scale. The longer errors are
correlated, the longer are the blocks, and the more of the errors a fit to one run takes up: a run of 200 independent
values and 60 unknowns hides more than half of them.

An offset may also drift within a run. Its column, weighted by the place of each block in time, stands beside those
of the unknowns, and only this cause moves it, so that a drift competes with all other causes in the same unit.

Offsets may differ between all runs. What differs most over all runs is named first: an offset becomes its run's own,
and the run stays among the others; anything else accuses its run, which is left out of the comparison. All offsets
together compete with each other cause, so that what offsets explain accuses nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.agreement.changes import (
    Cause,
    Changes,
    independent_values,
    inverse_of,
    list_causes,
    usual_gains,
    weigh,
    weigh_joints,
)
from dynid.estimation.agreement.run_tables import Run, free_offsets
from dynid.estimation.equations import Factors
from dynid.estimation.intervals.quantiles import f_probability
from dynid.estimation.intervals.waves import wave_number
from dynid.findings import Finding

Own = dict[int, tuple[int, ...]]
"""Number of a run -> causes that are offsets which it has for itself."""
CHANCE = 1e-3
"""Probability that runs which agree are reported as different, over all causes and runs of an identification; far out,
usual gains scatter more than by the law of F, so that it is two or three times as large."""
OWN_CHANCE = 0.05
"""Probability that runs which agree get an offset of their own (convention: the usual level). It accuses nobody, and a
needless offset costs less than a wrong one."""
MOST_CAUSES = 4
"""Largest number of causes that are named for one run (convention)."""
PARSIMONY = 4.0
"""Gain per parameter, in units of the usual gain, that a cause must pay for (convention: as four in Mallows' Cp)."""
LOAD_SHARE = 0.9
"""Share of what another inertia of a link explains that a load must explain to be named instead (convention): what an
arm holds changes from run to run, its links do not. A load on the axis of the last joint looks the same as another
inertia of the link before."""
FEWEST_BLOCKS = 3
"""Smallest number of blocks of a run that can tell what is usual (convention)."""
SPENT = 2.0
"""Independent values of a run that each of its unknowns takes up: its fit makes residuals smaller, and what is left of
them less correlated. By simulated runs that agree, of noise correlated over 0.1 to 1 s in runs of 8 s."""
FEWEST_VALUES = 3.0
"""Independent values of a run for each of its unknowns that are needed to compare it (convention). Errors that are
correlated for as long as a run seem to have hardly fewer, since its fit takes up all slow ones."""


def check_runs(equations: Factors) -> tuple[Finding, ...]:
    """Report runs whose parameters differ from those of the others, and in what.

    Args:
        equations: The equations of two runs or more; of a single run there is nothing to compare.
    """
    present = set(equations.information.segments)
    long_ones = [
        number for number, blocks in enumerate(equations.blocks) if len(present.intersection(blocks)) >= FEWEST_BLOCKS
    ]
    if len(long_ones) < 2:
        return ()
    runs = [Run.of(equations, number, equations.blocks[number]) for number in long_ones]
    comparison = _Comparison.of(equations, runs)
    if not comparison.is_possible:  # fewer unknowns leave more to compare
        return check_runs(equations.keep(())) if equations.terms else (_not_compared(equations, comparison),)
    found: list[Finding] = []
    slight: list[Finding] = []
    own: Own = {run.number: () for run in runs}
    while runs:
        changes = comparison.changes(runs, own)
        worst, step = comparison.next_step(runs, changes, own, range(len(comparison.causes)), comparison.level)
        if not step.causes:
            break
        number = runs[worst].number
        if comparison.offsets.keys() >= set(step.causes):
            own[number] += step.causes
            continue
        if (offsets := comparison.free_more_offsets(runs, own)).worth > step.worth:
            own = offsets.own
            continue
        chosen = comparison.complete(changes[worst], (*own[number], *step.causes))
        named = comparison.name(changes[worst], chosen)
        found += _report(equations, runs[worst], named, two=len(runs) == 2)
        slight += _slight_offsets(equations, comparison, runs[worst], changes[worst], named)
        del runs[worst]  # the others are compared without it
        own = {run.number: () for run in runs}
        if len(runs) == 1:  # it differs from no other, and still may drift
            comparison = comparison.of_drifts_alone()
    own = comparison.needed_offsets(runs, own)
    for run, each in zip(runs, comparison.changes(runs, own), strict=True):
        named = comparison.name(each, own[run.number])
        found += _report(equations, run, named, two=len(runs) == 2)
        slight += _slight_offsets(equations, comparison, run, each, named)
    return (*found, *slight)


@dataclass(frozen=True, slots=True, eq=False)
class _Named:
    """A cause that explains a part of what is special about a run."""

    cause: Cause
    change: Floats
    """(k,) of its columns; of a drift the slope, from the middle of the run to its end"""
    deviations: float
    """Its size in standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """How runs are compared."""

    weights: Floats
    """(n,) of the joints"""
    causes: Sequence[Cause]
    offsets: Mapping[int, int]
    """Number of each cause that is an offset -> its place among the unknowns."""
    usual: tuple[float, ...]
    """For each cause the usual gain."""
    degrees: tuple[int, ...]
    """For each cause the degrees of freedom of the usual gain."""
    level: float
    """Probability of a false alarm of one cause in one run."""
    offset_level: float
    """The same among offsets alone, with which other causes compete."""
    own_level: float
    """Probability that one offset is given to one run for itself though it is that of the others."""
    unknowns: int
    """Number of columns that are fitted to all runs."""
    independent: float
    """Number of independent values of a run."""

    @property
    def is_possible(self) -> bool:
        """Whether a fit to one run leaves enough of its residuals to tell what is usual."""
        return self.independent > FEWEST_VALUES * self.unknowns

    @classmethod
    def of(cls, equations: Factors, runs: Sequence[Run]) -> _Comparison:
        weights, causes, m = weigh_joints(runs), list(list_causes(equations)), len(equations.names)
        steady = sorted({cause.steady for cause in causes if cause.steady is not None})
        waves = wave_number(independent_values(runs, weights, m) / len(weights))
        cut = [run.cut_into(waves + 2) for run in runs]
        independent = independent_values(cut, weights, m)
        left = max(1.0 - SPENT * m / independent, 1e-300)
        return cls(
            weights=weights,
            causes=causes,
            offsets={place: int(np.argmax(causes[place].directions)) for place in steady},
            usual=tuple(gain / left for gain in usual_gains(cut, weights, causes, m)),
            degrees=tuple(sum(len(run.blocks) - (2 if cause.is_drift else 1) for run in cut) for cause in causes),
            level=CHANCE / (len(runs) * len(causes)),
            offset_level=CHANCE / max(len(runs) * len(steady), 1),
            own_level=OWN_CHANCE / max((len(runs) if len(runs) > 2 else 1) * len(steady), 1),
            unknowns=m,
            independent=independent,
        )

    def of_drifts_alone(self) -> _Comparison:
        """The same for a run without others, in which only drifts can be seen."""
        usual = (gain if cause.is_drift else np.inf for gain, cause in zip(self.usual, self.causes, strict=True))
        return replace(self, usual=tuple(usual))

    def changes(self, runs: Sequence[Run], own: Own) -> list[Changes]:
        """What all causes change in each run, beside the others, which have some offsets for themselves.

        Args:
            runs: The runs.
            own: Their own offsets.
        """
        freed = [free_offsets(run.total, [self.offsets[place] for place in own[run.number]]) for run in runs]
        wholes = [
            weigh(np.sum([run.total, *freed[:k], *freed[k + 1 :]], axis=0), self.weights, self.unknowns)
            for k, run in enumerate(runs)
        ]
        return [
            Changes.of(run.total, whole, self.weights, self.causes) for run, whole in zip(runs, wholes, strict=True)
        ]

    def chance(self, place: int, gain: float, rank: int) -> float:
        """Probability that a cause of a number of degrees of freedom gains so much though nothing differs."""
        if rank < 1 or not 0.0 < self.usual[place] < np.inf:
            return 1.0
        return f_probability(max(gain, 0.0) / self.usual[place] / rank, rank, self.degrees[place] * rank)

    def next_step(
        self, runs: Sequence[Run], changes: Sequence[Changes], own: Own, candidates: Iterable[int], level: float
    ) -> tuple[int, _Step]:
        """The run of which one cause of several explains most beside its own offsets, as its place, and this cause."""
        steps = [
            self._strongest(each, own[run.number], candidates, level) for run, each in zip(runs, changes, strict=True)
        ]
        worst = max(range(len(runs)), key=lambda k: steps[k].worth)
        if len(runs) == 2 and not any(self.causes[place].is_drift for place in steps[worst].causes):
            worst = 1  # of two runs that differ, neither is the odd one
        return worst, steps[worst]

    def free_more_offsets(self, runs: Sequence[Run], own: Own) -> _Freed:
        """Give runs further offsets of their own, each time the one that explains most, until nothing more is sure."""
        freed, worth = dict(own), 0.0
        while True:
            worst, step = self.next_step(runs, self.changes(runs, freed), freed, self.offsets, self.offset_level)
            if not step.causes:
                return _Freed(worth, freed)
            freed[runs[worst].number] += step.causes
            worth += step.worth

    def needed_offsets(self, runs: Sequence[Run], own: Own) -> Own:
        """Own offsets without those that are not sure beside the others."""
        kept = dict(own)
        while True:
            chances = []
            for run, each in zip(runs, self.changes(runs, kept), strict=True):
                mine = kept[run.number]
                for place in mine:
                    others = tuple(k for k in mine if k != place)
                    more, less = each.gain(*mine), each.gain(*others)
                    chance = self.chance(place, more.value - less.value, more.rank - less.rank)
                    chances.append((chance, run.number, others))
            if not chances or (least := max(chances))[0] <= self.level:
                return kept
            kept[least[1]] = least[2]

    def complete(self, changes: Changes, chosen: Sequence[int]) -> list[int]:
        """Add to causes those that explain the rest of a run, and leave out what becomes superfluous."""
        kept = list(chosen)
        every = range(len(self.causes))
        while len(kept) < MOST_CAUSES and (more := self._strongest(changes, kept, every, self.level)).causes:
            kept += more.causes
        return _needed(kept, changes, self.usual)

    def _strongest(self, changes: Changes, chosen: Sequence[int], candidates: Iterable[int], level: float) -> _Step:
        """The cause of several that explains most beside those that are chosen, if one surely explains something."""
        before, used, *_ = changes.gain(*chosen)
        best, load = _Step(0.0, ()), _Step(0.0, ())
        for place in candidates:
            if place in chosen or not 0.0 < self.usual[place] < np.inf:
                continue
            cause = self.causes[place]
            gain, rank, *_ = changes.gain(*chosen, place)
            # causes compete in one unit, that of the noise: the true one explains most, whatever is usual for it
            worth = gain - before - PARSIMONY * (rank - used) * self.usual[place]
            if worth <= (load if cause.is_load else best).worth:
                continue
            less, fewer = before, used
            if cause.steady is not None:  # a line must surely explain more than a step
                less, fewer, *_ = changes.gain(*chosen, cause.steady)
            if self.chance(place, gain - less, rank - fewer) <= level:
                load = _Step(worth, (place,)) if cause.is_load else load
                best = max(best, _Step(worth, (place,)))
        is_link = any(self.causes[place].is_link for place in best.causes)
        return load if is_link and load.worth > LOAD_SHARE * best.worth else best

    def name(self, changes: Changes, chosen: Sequence[int]) -> list[_Named]:
        """The causes that explain a run together, with their sizes."""
        if not chosen:
            return []
        _, _, change, covariance = changes.gain(*chosen)
        named, end = [], 0
        for k in chosen:
            cause = self.causes[k]
            end += cause.size
            part = slice(end - (1 if cause.is_drift else cause.size), end)  # of a line its slope
            spread = covariance[part, part] * self.usual[k]
            size = np.sqrt(max(float(change[part] @ inverse_of(spread) @ change[part]), 0.0))
            named.append(_Named(cause, change[part], float(size)))
        return named


class _Step(NamedTuple):
    """Causes that explain more of a run."""

    worth: float
    """What they gain beyond what they must pay for."""
    causes: tuple[int, ...]
    """Their numbers; empty where nothing explains more."""


class _Freed(NamedTuple):
    """Offsets that runs have for themselves."""

    worth: float
    """What the new ones gain beyond what they must pay for."""
    own: Own


def _not_compared(equations: Factors, comparison: _Comparison) -> Finding:
    values, unknowns = comparison.independent, comparison.unknowns
    return Finding(
        code="runs-untestable",
        severity="note",
        where="model",
        message=f"whether the {len(equations.blocks)} logs agree cannot be told: their errors are correlated in time, "
        f"so that a log has about {values:.0f} independent values for {unknowns} unknowns",
        evidence={"independent values": values, "unknowns": float(unknowns)},
        remedy="Record longer logs, or compare results of single logs.",
    )


def _slight_offsets(
    equations: Factors, comparison: _Comparison, run: Run, changes: Changes, named: Sequence[_Named]
) -> Iterator[Finding]:
    """Note offsets that differ beside what is named of a run, judged among the offsets of all runs alone."""
    causes = comparison.causes
    chosen = [place for place, cause in enumerate(causes) if any(entry.cause is cause for entry in named)]
    told = {*chosen, *(causes[place].steady for place in chosen)}
    before, used, *_ = changes.gain(*chosen)
    found = []
    for place in comparison.offsets:
        gain, rank, change, covariance = changes.gain(*chosen, place)
        if place not in told and comparison.chance(place, gain - before, rank - used) <= comparison.own_level:
            spread = max(float(covariance[-1, -1]) * comparison.usual[place], 1e-300)
            found.append(_Named(causes[place], change[-1:], abs(float(change[-1])) / float(np.sqrt(spread))))
    if found:
        name = _name_of(equations, run)
        yield Finding(
            code="runs-differ",
            severity="note",
            where=name,
            message=f"{name} seems to have offsets of its own: {'; '.join(map(_describe, found))}",
            evidence={entry.cause.name: entry.deviations for entry in found},
            remedy='per_run = ["offset"] gives every run its own offsets; the default "auto" those that surely differ.',
        )


def _needed(chosen: Sequence[int], changes: Changes, usual: Sequence[float]) -> list[int]:
    """The causes without those that a later one has made superfluous."""
    kept = list(chosen)
    for place in chosen[:-1]:
        others = [k for k in kept if k != place]
        more, less = changes.gain(*kept), changes.gain(*others)
        if (more.value - less.value) / usual[place] <= PARSIMONY * (more.rank - less.rank):
            kept = others
    return kept


def _report(equations: Factors, run: Run, named: Sequence[_Named], *, two: bool) -> Iterator[Finding]:
    """Report what drifts within a run, and in what else it differs from the others."""
    name = _name_of(equations, run)
    if drifts := [entry for entry in named if entry.cause.is_drift]:
        yield Finding(
            code="run-drifts",
            severity="warning",
            where=name,
            message=f"offsets drift from the beginning to the end of {name}: {'; '.join(map(_describe, drifts))}",
            evidence={entry.cause.name: entry.deviations for entry in drifts},
            remedy='Let the drives warm up, or give runs a trend of their own (per_run = ["trend"]).',
        )
    if differences := [entry for entry in named if not entry.cause.is_drift]:
        is_load = any(entry.cause.is_load for entry in differences)
        remedy = (
            "Identify runs with different loads separately." if is_load
            else "Identify the runs separately, or find out what changed between them."
        )  # fmt: skip
        others = "the other run" if two else "the other runs"
        yield Finding(
            code="run-load" if is_load else "runs-differ",
            severity="warning",
            where=name,
            message=f"{name} differs from {others}: {'; '.join(map(_describe, differences))}",
            evidence={entry.cause.name: entry.deviations for entry in differences},
            remedy=f"{remedy} The intervals hold for runs that agree.",
        )


def _name_of(equations: Factors, run: Run) -> str:
    source = Path(equations.excerpts[run.number].source).name if run.number < len(equations.excerpts) else ""
    return source or f"run {run.number + 1}"


def _describe(entry: _Named) -> str:
    cause, sure = entry.cause, f"{entry.deviations:.2g} standard deviations"
    if cause.is_load:
        return f"as if {cause.name} held {entry.change[9]:.3g} kg more ({sure})"
    if cause.is_link:
        return f"as if {cause.name} had another inertia, or as if it or the link that carries it were longer ({sure})"
    if cause.joint is not None:
        return f"as if the torque of {cause.name} were measured {1.0 + entry.change[0]:.3g} times as large ({sure})"
    if cause.parts:
        sizes = (
            f"{name} by {change:+.3g} {unit}" for (name, unit), change in zip(cause.parts, entry.change, strict=True)
        )
        return f"{cause.name}: {', '.join(sizes)} ({sure})"
    whole = 2.0 if cause.is_drift else 1.0  # from the beginning to the end, not from the middle
    return f"{cause.name} by {whole * entry.change[0]:+.3g} {cause.unit} ({sure})"
