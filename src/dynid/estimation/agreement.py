"""Whether several runs agree: parameters that are other in one run than in the others.

A run may have been recorded with a load in the gripper, with a drifted offset, with cold gears, or with another gain of
a drive. Each such cause adds columns that act in this run only. What these columns gain follows from the reduced
equations: with the cross products A_r of the run and A of all runs, and columns C_r that are combinations D of the
run's own columns,

    gain = g' M^-1 g,    g = D' (b_r - A_r beta),    M = D' (A_r - A_r A^-1 A_r) D,    change = M^-1 g

The same gain of every block of time within a run tells how much of it is usual: residuals are correlated in time and
models have errors, so that the gains of blocks, not the noise of samples, set the scale.

An offset may also drift within a run. Its column, weighted by the place of each block in time, stands beside those
of the unknowns, and only this cause moves it, so that a drift competes with all other causes in the same unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.decompositions import eigh
from dynid.estimation.equations import Factors
from dynid.estimation.intervals.quantiles import f_probability
from dynid.findings import Finding
from dynid.terms.motors import Offset

__all__ = ["check_runs"]

Floats = NDArray[np.float64]
CHANCE = 1e-3
"""Probability that runs which agree are reported as different, over all causes and runs of an identification; far out,
usual gains scatter more than by the law of F, so that it is two or three times as large."""
MOST_CAUSES = 4
"""Largest number of causes that are named for one run (convention)."""
PARSIMONY = 4.0
"""Gain per parameter, in units of the usual gain, that a cause must pay for (convention: as four in Mallows' Cp)."""
RESOLUTION = 1e-10
"""Relative eigenvalue of scaled cross products below which a direction is not determined (rounding, squared)."""
ROUNDING = 1e-12
"""Share of the squared torque below which residuals are rounding (double precision)."""
FEWEST_BLOCKS = 3
"""Smallest number of blocks of a run that can tell what is usual (convention)."""


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
    runs = [_Run.of(equations, number, equations.blocks[number]) for number in long_ones]
    weights, causes, m = _weights(runs), list(_causes(equations)), len(equations.names)
    usual = _usual_gains(runs, weights, causes, m)
    degrees = [sum(len(run.blocks) - (2 if cause.is_drift else 1) for run in runs) for cause in causes]
    level = (CHANCE / (len(runs) * len(causes)), degrees)
    found: list[Finding] = []
    slight: list[Finding] | None = None
    while runs:
        whole = _weigh(np.sum([run.total for run in runs], axis=0), weights, m)
        changes = [_Changes.of(run.total, whole, weights, causes) for run in runs]
        answers = [_explain(each, causes, usual, level) for each in changes]
        if slight is None:
            explained = zip(runs, changes, (named for _, named in answers), strict=True)
            slight = [note for each in explained for note in _slight_offsets(equations, *each, causes, usual, degrees)]
        worst = max(range(len(runs)), key=lambda k: answers[k][0])
        if len(runs) == 2 and not any(entry.cause.is_drift for entry in answers[worst][1]):
            worst = 1  # of two runs that differ, neither is the odd one
        if not answers[worst][1]:
            break
        found += _report(equations, runs[worst], answers[worst][1], two=len(runs) == 2)
        del runs[worst]  # the others are compared without it
        if len(runs) == 1:  # it differs from no other, and still may drift
            usual = [gain if cause.is_drift else np.inf for gain, cause in zip(usual, causes, strict=True)]
    return (*found, *(slight or ()))


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Cross products of a run for each joint, in all and block by block.

    The columns are those of the unknowns, then one for the drift of each offset, then the torque.
    """

    number: int
    blocks: Floats
    """(blocks, n, m + d + 1, m + d + 1)"""
    total: Floats

    @classmethod
    def of(cls, equations: Factors, number: int, segments: Sequence[int]) -> _Run:
        information = equations.information
        size = len(information.columns) + 1
        present = set(information.segments)
        blocks, times = [], []
        for place, segment in enumerate(segments):
            if segment not in present:
                continue
            table = np.zeros((information.dof, size, size))
            for joint, support in enumerate(information.supports):
                R, places = information.factor(joint, segment), [*support, size - 1]
                table[joint][np.ix_(places, places)] = R.T @ R
            blocks.append(table)
            times.append((2 * place + 1) / len(segments) - 1.0)
        stack = np.array(blocks).reshape(len(blocks), information.dof, size, size)
        stack = _with_drifts(stack, np.array(times), _offsets(equations))
        return cls(number, stack, stack.sum(axis=0))


def _offsets(equations: Factors) -> list[int]:
    """Places of the unknowns that are offsets."""
    robot, columns = equations.robot, equations.base.columns
    first = 10 * robot.dof
    return [
        place
        for place, column in enumerate(columns)
        if column >= first and isinstance(robot.terms[column - first].term, Offset)
    ]


def _with_drifts(blocks: Floats, times: Floats, offsets: Sequence[int]) -> Floats:
    """Cross products of blocks with columns of some unknowns that grow with time, before the torque.

    Args:
        blocks: (blocks, n, m + 1, m + 1)
        times: (blocks,) middle of each block in time; the run lasts from -1 to 1.
        offsets: Places of the d unknowns.

    Returns:
        (blocks, n, m + d + 1, m + d + 1)
    """
    m = blocks.shape[-1] - 1
    order = [*range(m), *offsets, m]
    wider = blocks.take(order, axis=-2).take(order, axis=-1)
    wider[..., m:-1, :] *= times[:, None, None, None]
    wider[..., m:-1] *= times[:, None, None, None]
    return wider


@dataclass(frozen=True, slots=True, eq=False)
class _Cause:
    """A change of some parameters in one run only, or of the gain of one joint's torque."""

    name: str
    unit: str
    directions: Floats
    """(m + d, k) change of the unknowns and of the drifts per unit; no columns for a gain."""
    joint: int | None = None
    """Index of the joint whose gain it is."""
    is_load: bool = False
    """Whether it is a load on one of the last bodies."""
    is_link: bool = False
    """Whether it is a change of a link between two joints: of its inertia, or of its length."""
    steady: int | None = None
    """Number of the cause that is this one without its last column: the offset that here drifts."""

    @property
    def is_drift(self) -> bool:
        """Whether it changes with time."""
        return self.steady is not None

    @property
    def size(self) -> int:
        """Number of columns."""
        return 1 if self.joint is not None else self.directions.shape[1]


def _causes(equations: Factors) -> Iterator[_Cause]:
    """What may differ between runs: parameters of terms, drifts, loads on the last bodies, links, gains of drives."""
    base, robot, offsets = equations.base, equations.robot, _offsets(equations)
    first, m = 10 * robot.dof, len(equations.names)
    size = m + len(offsets)
    terms = [place for place, column in enumerate(base.columns) if column >= first]
    for place in terms:
        yield _Cause(base.names[place], base.units[place], np.eye(size)[:, [place]])
    for number, place in enumerate(offsets, start=m):
        # nobody knows at what time a drifting offset is that of the other runs: it is a line, not through zero
        line = np.eye(size)[:, [place, number]]
        yield _Cause(base.names[place], base.units[place], line, steady=terms.index(place))
    parents = {body.parent for body in robot.bodies}
    for j, body in enumerate(robot.bodies):
        change = np.zeros((size, 10))
        change[: base.rank] = base.grouping[:, 10 * j : 10 * j + 10]
        # a longer link shifts all that it carries, as another mass at its end or another inertia of the next link would
        if np.any(change):
            yield _Cause(body.joint.child, "kg", change, is_load=j not in parents, is_link=j in parents)
    for j, name in enumerate(robot.joint_names):
        yield _Cause(name, "", np.zeros((size, 0)), joint=j)


def _weights(runs: Sequence[_Run]) -> Floats:
    """(n,) inverse residual variance of each joint, every run fitted by itself, so that differences do not count."""
    joints = len(runs[0].total)
    torque = np.maximum(np.sum([run.total[:, -1, -1] for run in runs], axis=0), 1e-300)
    weights = 1.0 / torque
    for _ in range(2):
        squares = np.zeros(joints)
        for run in runs:
            beta = np.append(_solve(*_weigh(run.total, weights)), -1.0)
            squares += np.einsum("i,jik,k->j", beta, run.total, beta)
        weights = 1.0 / np.maximum(
            squares, ROUNDING * np.array([sum(r.total[j, -1, -1] for r in runs) for j in range(joints)]) + 1e-300
        )
    return np.asarray(weights)


def _weigh(total: Floats, weights: Floats, count: int | None = None) -> tuple[Floats, Floats]:
    """Cross products of the columns, or of the first of them, and with the torque, over all joints."""
    table = np.einsum("j,jik->ik", weights, total)
    columns = slice(total.shape[-1] - 1 if count is None else count)
    return table[columns, columns], table[columns, -1]


def _inverse(A: Floats) -> Floats:
    """Inverses of semidefinite cross products (..., k, k) within the directions that they determine."""
    scale = np.sqrt(np.maximum(np.diagonal(A, axis1=-2, axis2=-1), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)
    values, vectors = eigh(A / (scale[..., :, None] * scale[..., None, :]))
    good = values > RESOLUTION * np.maximum(values[..., -1:], 1e-300)
    rows = vectors / scale[..., :, None]
    factors = np.where(good, 1.0 / np.where(good, values, 1.0), 0.0)
    return np.asarray((rows * factors[..., None, :]) @ np.swapaxes(rows, -1, -2))


def _solve(A: Floats, b: Floats) -> Floats:
    return np.asarray(_inverse(A) @ b)


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """What all causes change in a part of the data, or in each of several parts by itself."""

    g: Floats
    """(..., K) of the K columns of all causes together"""
    M: Floats
    """(..., K, K)"""
    places: tuple[range, ...]
    """Columns of each cause."""

    @classmethod
    def of(cls, parts: Floats, whole: tuple[Floats, Floats], weights: Floats, causes: Sequence[_Cause]) -> _Changes:
        """The changes in parts with cross products (..., n, size + 1, size + 1).

        Args:
            parts: The parts.
            whole: (m, m) cross products of the first columns of all data, which are fitted, and (m,) with the torque.
            weights: (n,) of the joints.
            causes: The causes, gains of drives last.
        """
        m, size = len(whole[1]), parts.shape[-1] - 1
        inverse, beta = np.zeros((size, size)), np.zeros(size)
        inverse[:m, :m] = _inverse(whole[0])
        beta[:m] = inverse[:m, :m] @ whole[1]
        weighted = weights[:, None, None] * parts[..., :-1, :]
        together = weighted.sum(axis=-3)
        D = np.concatenate([cause.directions for cause in causes], axis=1)
        drives = [cause.joint for cause in causes if cause.joint is not None]
        # a gain adds beta to the unknowns that its joint feels, any other cause its directions to those of all joints
        own = weighted[..., drives, :, :-1] @ beta  # (..., drives, size)
        moved = np.concatenate([together[..., :-1] @ D, np.swapaxes(own, -1, -2)], axis=-1)  # (..., size, K)
        crossed, alone = own @ D, own @ beta
        k, K = D.shape[1], moved.shape[-1]
        S = np.zeros((*moved.shape[:-2], K, K))
        S[..., :k, :k] = D.T @ moved[..., :k]
        S[..., k:, :k], S[..., :k, k:] = crossed, np.swapaxes(crossed, -1, -2)
        S[..., range(k, K), range(k, K)] = alone
        left = together[..., -1] - together[..., :-1] @ beta
        g = np.concatenate([left @ D, weighted[..., -1][..., drives, :] @ beta - alone], axis=-1)
        ends = np.cumsum([cause.size for cause in causes]).tolist()
        places = tuple(range(end - cause.size, end) for cause, end in zip(causes, ends, strict=True))
        M = S - np.swapaxes(moved, -1, -2) @ inverse @ moved
        # what the fit of all data has already, as the offset of a run that is alone, is rounding
        new = np.diagonal(M, axis1=-2, axis2=-1) > RESOLUTION * np.diagonal(S, axis1=-2, axis2=-1)
        return cls(g * new, M * new[..., :, None] * new[..., None, :], places)

    def gain(self, *chosen: int) -> _Gain:
        """What some causes together gain."""
        columns = [place for cause in chosen for place in self.places[cause]]
        g, M = self.g[..., columns], self.M[..., columns, :][..., columns]
        inverse = _inverse(M)
        change = (inverse @ g[..., None])[..., 0]
        rank = np.rint(np.einsum("...ij,...ji->...", inverse, M))
        return _Gain(float(np.sum(g * change)), int(rank.sum()), change, inverse)


class _Gain(NamedTuple):
    """What a change gains."""

    value: float
    """In all parts together"""
    rank: int
    """Its degrees of freedom"""
    change: Floats
    """(..., k)"""
    covariance: Floats
    """(..., k, k) of the change"""


def _usual_gains(runs: Sequence[_Run], weights: Floats, causes: Sequence[_Cause], m: int) -> list[float]:
    """For each cause the mean gain per degree of freedom when a block differs from the rest of its run.

    Without model errors it is one in units of the noise, as the weights give the sum of squares of all samples the size
    one. What drifts within a run is usual for all that does not drift; a drift is compared with what is left beside it.
    """
    usual = [np.inf] * len(causes)
    for drifting, fitted in ((False, m), (True, None)):
        places = [place for place, cause in enumerate(causes) if cause.is_drift == drifting]
        if not places:
            continue
        alike = [causes[place] for place in places]
        within = [_Changes.of(run.blocks, _weigh(run.total, weights, fitted), weights, alike) for run in runs]
        for number, place in enumerate(places):
            found = [changes.gain(number) for changes in within]
            if ranks := sum(gain.rank for gain in found):
                usual[place] = sum(gain.value for gain in found) / ranks
    return usual


@dataclass(frozen=True, slots=True, eq=False)
class _Named:
    """A cause that explains a part of what is special about a run."""

    cause: _Cause
    change: Floats
    """(k,) of its columns; of a drift the slope, from the middle of the run to its end"""
    deviations: float
    """Its size in standard deviations."""


def _explain(
    changes: _Changes, causes: Sequence[_Cause], usual: Sequence[float], level: tuple[float, Sequence[int]]
) -> tuple[float, list[_Named]]:
    """What the causes gain that together explain what is special about a run, and these, the strongest first.

    Args:
        changes: What the causes change in the run.
        causes: Possible causes.
        usual: For each cause the usual gain.
        level: Probability of a false alarm, and for each cause the degrees of freedom of the usual gain.
    """
    limit, degrees = level
    chosen: list[int] = []
    before, used, score = 0.0, 0, 0.0
    while len(chosen) < MOST_CAUSES:
        best, best_score, best_gain, best_rank = -1, 0.0, before, used
        for place in range(len(causes)):
            if place in chosen or not 0.0 < usual[place] < np.inf:
                continue
            gain, rank, *_ = changes.gain(*chosen, place)
            # causes compete in one unit, that of the noise: the true one explains most, whatever is usual for it
            worth = gain - before - PARSIMONY * (rank - used) * usual[place]
            if worth <= best_score:
                continue
            less, fewer = before, used
            if (steady := causes[place].steady) is not None:  # a line must surely explain more than a step
                less, fewer, *_ = changes.gain(*chosen, steady)
            more, own = (gain - less) / usual[place], rank - fewer
            if own > 0 and f_probability(max(more, 0.0) / own, own, degrees[place] * own) <= limit:
                best, best_score, best_gain, best_rank = place, worth, gain, rank
        if best < 0:
            break
        chosen.append(best)
        before, used, score = best_gain, best_rank, score + best_score
    if not chosen:
        return 0.0, []

    chosen = _needed(chosen, changes, usual)
    _, _, change, covariance = changes.gain(*chosen)
    named, end = [], 0
    for k in chosen:
        end += causes[k].size
        part = slice(end - (1 if causes[k].is_drift else causes[k].size), end)  # of a line its slope
        spread = covariance[part, part] * usual[k]
        size = np.sqrt(max(float(change[part] @ _inverse(spread) @ change[part]), 0.0))
        named.append(_Named(causes[k], change[part], float(size)))
    return score, named


def _slight_offsets(
    equations: Factors,
    run: _Run,
    changes: _Changes,
    named: Sequence[_Named],
    causes: Sequence[_Cause],
    usual: Sequence[float],
    degrees: Sequence[int],
) -> Iterator[Finding]:
    """Note offsets that differ beside what is named of a run, judged among the offsets of all runs alone.

    To give runs offsets of their own accuses nobody, so that other causes need not share the chance of a mistake.
    """
    chosen = [place for place, cause in enumerate(causes) if any(entry.cause is cause for entry in named)]
    offsets = {cause.steady for cause in causes if cause.steady is not None}
    told = {*chosen, *(causes[place].steady for place in chosen)}
    before, used = changes.gain(*chosen)[:2] if chosen else (0.0, 0)
    limit = CHANCE / max(len(equations.blocks) * len(offsets), 1)
    found = []
    for place in sorted(offsets - told):
        gain, rank, change, covariance = changes.gain(*chosen, place)
        own = rank - used
        if not 0.0 < usual[place] < np.inf or own < 1:
            continue
        more = max(gain - before, 0.0) / usual[place]
        if f_probability(more / own, own, degrees[place] * own) <= limit:
            spread = max(float(covariance[-1, -1]) * usual[place], 1e-300)
            found.append(_Named(causes[place], change[-1:], abs(float(change[-1])) / float(np.sqrt(spread))))
    if found:
        name = _name_of(equations, run)
        yield Finding(
            code="runs-differ",
            severity="note",
            where=name,
            message=f"{name} seems to have offsets of its own: {'; '.join(map(_describe, found))}",
            evidence={entry.cause.name: entry.deviations for entry in found},
            remedy='Runs get their own offsets by per_run = ["offset"], the default for runs in memory.',
        )


def _needed(chosen: Sequence[int], changes: _Changes, usual: Sequence[float]) -> list[int]:
    """The causes without those that a later one has made superfluous."""
    kept = list(chosen)
    for place in chosen[:-1]:
        others = [k for k in kept if k != place]
        more, less = changes.gain(*kept), changes.gain(*others)
        if (more.value - less.value) / usual[place] <= PARSIMONY * (more.rank - less.rank):
            kept = others
    return kept


def _report(equations: Factors, run: _Run, named: Sequence[_Named], *, two: bool) -> Iterator[Finding]:
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
        remedy = (
            "Identify runs with different loads separately." if any(entry.cause.is_load for entry in differences)
            else "Identify the runs separately, or find out what changed between them."
        )  # fmt: skip
        others = "the other run" if two else "the other runs"
        yield Finding(
            code="runs-differ",
            severity="warning",
            where=name,
            message=f"{name} differs from {others}: {'; '.join(map(_describe, differences))}",
            evidence={entry.cause.name: entry.deviations for entry in differences},
            remedy=f"{remedy} The intervals hold for runs that agree.",
        )


def _name_of(equations: Factors, run: _Run) -> str:
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
    whole = 2.0 if cause.is_drift else 1.0  # from the beginning to the end, not from the middle
    return f"{cause.name} by {whole * entry.change[0]:+.3g} {cause.unit} ({sure})"
