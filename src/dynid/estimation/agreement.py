"""Whether several runs agree: parameters that are other in one run than in the others.

A run may have been recorded with a load in the gripper, with a drifted offset, with cold gears, or with another gain of
a drive. Each such cause adds columns that act in this run only. What these columns gain follows from the reduced
equations: with the cross products A_r of the run and A of all runs, and columns C_r that are combinations D of the
run's own columns,

    gain = g' M^-1 g,    g = D' (b_r - A_r beta),    M = D' (A_r - A_r A^-1 A_r) D,    change = M^-1 g

The same gain of every block of time within a run tells how much of it is usual: residuals are correlated in time and
models have errors, so that the gains of blocks, not the noise of samples, set the scale.

An offset may also drift within a run: then the changes that the blocks of the run ask for lie on a line. They are
fitted by a line, and what is left over sets the scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    runs = [_Run.of(equations, number, blocks) for number, blocks in enumerate(equations.blocks) if len(blocks)]
    runs = [run for run in runs if len(run.blocks) >= FEWEST_BLOCKS]
    if len(runs) < 2:
        return ()
    weights, causes = _weights(runs), list(_causes(equations))
    within = [_Changes.of(run.blocks, _weigh(run.total, weights), weights, causes) for run in runs]
    trends = {
        cause.name: [_Trend.of(changes, place) for changes in within]
        for place, cause in enumerate(causes)
        if cause.is_offset
    }
    usual = [_usual_gain(within, place) for place in range(len(causes))]
    level = (CHANCE / (len(runs) * (len(causes) + len(trends))), sum(len(run.blocks) - 1 for run in runs))
    units = {cause.name: cause.unit for cause in causes}
    found = list(_drifting(equations, runs, trends, units, level))
    while len(runs) > 1:
        whole = _weigh(np.sum([run.total for run in runs], axis=0), weights)
        tested = runs[1:] if len(runs) == 2 else runs  # of two runs that differ, neither is the odd one
        answers = [_explain(_Changes.of(run.total, whole, weights, causes), causes, usual, level) for run in tested]
        worst = max(range(len(tested)), key=lambda k: answers[k][0])
        if not answers[worst][1]:
            break
        found.append(_report(equations, tested[worst], answers[worst][1], two=len(runs) == 2))
        runs.remove(tested[worst])  # the others are compared without it
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Cross products of a run for each joint, columns and torque, in all and block by block."""

    number: int
    blocks: Floats
    """(blocks, n, m + 1, m + 1)"""
    total: Floats

    @classmethod
    def of(cls, equations: Factors, number: int, segments: Sequence[int]) -> _Run:
        information = equations.information
        size = len(information.columns) + 1
        present = set(information.segments)
        blocks = []
        for segment in segments:
            if segment not in present:
                continue
            table = np.zeros((information.dof, size, size))
            for joint, support in enumerate(information.supports):
                R, places = information.factor(joint, segment), [*support, size - 1]
                table[joint][np.ix_(places, places)] = R.T @ R
            blocks.append(table)
        stack = np.array(blocks).reshape(len(blocks), information.dof, size, size)
        return cls(number, stack, stack.sum(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class _Cause:
    """A change of some parameters in one run only, or of the gain of one joint's torque."""

    name: str
    unit: str
    directions: Floats
    """(m, k) change of the unknowns per unit; (m, 0) for a gain."""
    joint: int | None = None
    """Index of the joint whose gain it is."""
    is_load: bool = False
    """Whether it is a load on one of the last bodies."""
    is_link: bool = False
    """Whether it is a change of a link between two joints: of its inertia, or of its length."""
    is_offset: bool = False

    @property
    def size(self) -> int:
        """Number of columns."""
        return 1 if self.joint is not None else self.directions.shape[1]


def _causes(equations: Factors) -> Iterator[_Cause]:
    """What may differ between runs: parameters of terms, loads on the last bodies, other links, gains of drives."""
    base, robot, size = equations.base, equations.robot, len(equations.names)
    first = 10 * robot.dof
    for place, (column, name, unit) in enumerate(zip(base.columns, base.names, base.units, strict=True)):
        if column >= first:
            is_offset = isinstance(robot.terms[column - first].term, Offset)
            yield _Cause(name, unit, np.eye(size)[:, place : place + 1], is_offset=is_offset)
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
            squares, 1e-12 * np.array([sum(r.total[j, -1, -1] for r in runs) for j in range(joints)]) + 1e-300
        )
    return np.asarray(weights)


def _weigh(total: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Cross products (m, m) of the columns and (m,) with the torque, over all joints."""
    table = np.einsum("j,jik->ik", weights, total)
    return table[:-1, :-1], table[:-1, -1]


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
        """The changes in parts with cross products (..., n, m + 1, m + 1).

        Args:
            parts: The parts.
            whole: (m, m) cross products of the columns of all data, and (m,) with the torque.
            weights: (n,) of the joints.
            causes: The causes, gains of drives last.
        """
        inverse = _inverse(whole[0])
        beta = inverse @ whole[1]
        weighted = weights[:, None, None] * parts[..., :-1, :]
        together = weighted.sum(axis=-3)
        D = np.concatenate([cause.directions for cause in causes], axis=1)
        drives = [cause.joint for cause in causes if cause.joint is not None]
        # a gain adds beta to the unknowns that its joint feels, any other cause its directions to those of all joints
        own = weighted[..., drives, :, :-1] @ beta  # (..., drives, m)
        moved = np.concatenate([together[..., :-1] @ D, np.swapaxes(own, -1, -2)], axis=-1)  # (..., m, K)
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
        return cls(g, S - np.swapaxes(moved, -1, -2) @ inverse @ moved, places)

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


def _usual_gain(within: Sequence[_Changes], cause: int) -> float:
    """Mean gain per degree of freedom when a block differs from the rest of its run; one without model errors.

    It is in units of the noise, as the weights give the sum of squares of all samples the size one.

    Args:
        within: What the causes change in each block of every run.
        cause: Number of the cause.
    """
    found = [changes.gain(cause) for changes in within]
    ranks = sum(gain.rank for gain in found)
    return sum(gain.value for gain in found) / ranks if ranks else np.inf


@dataclass(frozen=True, slots=True, eq=False)
class _Trend:
    """Changes of one parameter that the blocks of a run ask for, and the line through them."""

    slope: float
    """Change from the middle to the end of the run."""
    gain: float
    """What the line gains, in units of the noise."""
    left_over: float
    """What the blocks would gain beside the line."""
    blocks: int

    @classmethod
    def of(cls, blocks: _Changes, cause: int) -> _Trend:
        """The trend of a cause with one column."""
        column = blocks.places[cause][0]
        g, M = blocks.g[:, column], blocks.M[:, column, column]
        known = np.asarray(M / max(float(M.max(initial=0.0)), 1e-300) > RESOLUTION)
        place, change, weight = (
            np.linspace(-1.0, 1.0, len(g))[known],
            (g / np.where(known, M, 1.0))[known],
            M[known],
        )
        if place.size < FEWEST_BLOCKS:
            return cls(0.0, 0.0, 0.0, 0)
        centred = place - float(weight @ place / weight.sum())
        lever = float(weight @ centred**2)
        slope = float(weight @ (centred * change)) / lever
        return cls(slope, slope**2 * lever, float(weight @ (change - slope * centred) ** 2), place.size)


def _left_over(trends: Sequence[_Trend]) -> float:
    """Mean gain of a block beside the line through all blocks of its run; one without model errors."""
    degrees = sum(max(trend.blocks - 2, 0) for trend in trends)
    return sum(trend.left_over for trend in trends) / degrees if degrees else np.inf


def _drifting(
    equations: Factors,
    runs: Sequence[_Run],
    trends: Mapping[str, Sequence[_Trend]],
    units: Mapping[str, str],
    level: tuple[float, int],
) -> Iterator[Finding]:
    """Report runs within which offsets drift."""
    for place, run in enumerate(runs):
        surely = {}
        for name, each in trends.items():
            usual, degrees = _left_over(each), sum(max(trend.blocks - 2, 0) for trend in each)
            ratio = each[place].gain / max(usual, 1e-300) if np.isfinite(usual) and usual > 0.0 else 0.0
            if degrees and f_probability(ratio, 1, degrees) <= level[0]:
                surely[name] = (each[place].slope, float(np.sqrt(ratio)))
        if surely:
            ordered = sorted(surely.items(), key=lambda item: -item[1][1])
            parts = [f"{key} by {2.0 * slope:+.3g} {units[key]} ({size:.2g} standard deviations)"
                     for key, (slope, size) in ordered]  # fmt: skip
            yield Finding(
                code="run-drifts",
                severity="warning",
                where=(name := _name_of(equations, run)),
                message=f"offsets drift from the beginning to the end of {name}: {'; '.join(parts)}",
                evidence={key: size for key, (_, size) in ordered},
                remedy='Let the drives warm up, or give runs a trend of their own (per_run = ["trend"]).',
            )


@dataclass(frozen=True, slots=True, eq=False)
class _Named:
    """A cause that explains a part of what is special about a run."""

    cause: _Cause
    change: Floats
    deviations: float
    """Its size in standard deviations."""


def _explain(
    changes: _Changes, causes: Sequence[_Cause], usual: Sequence[float], level: tuple[float, int]
) -> tuple[float, list[_Named]]:
    """What the causes gain that together explain what is special about a run, and these, the strongest first.

    Args:
        changes: What the causes change in the run.
        causes: Possible causes.
        usual: For each cause the usual gain.
        level: Probability of a false alarm, and degrees of freedom of the usual gains.
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
            more, own = (gain - before) / usual[place], rank - used
            if own <= 0 or f_probability(max(more, 0.0) / own, own, degrees * own) > limit:
                continue
            # causes compete in one unit, that of the noise: the true one explains most, whatever is usual for it
            worth = (more - PARSIMONY * own) * usual[place]
            if worth > best_score:
                best, best_score, best_gain, best_rank = place, worth, gain, rank
        if best < 0:
            break
        chosen.append(best)
        before, used, score = best_gain, best_rank, score + best_score
    if not chosen:
        return 0.0, []

    chosen = _needed(chosen, changes, usual)
    _, _, change, covariance = changes.gain(*chosen)
    named, start = [], 0
    for k in chosen:
        part = slice(start, start + causes[k].size)
        start = part.stop
        spread = covariance[part, part] * usual[k]
        size = np.sqrt(max(float(change[part] @ _inverse(spread) @ change[part]), 0.0))
        named.append(_Named(causes[k], change[part], float(size)))
    return score, named


def _needed(chosen: Sequence[int], changes: _Changes, usual: Sequence[float]) -> list[int]:
    """The causes without those that a later one has made superfluous."""
    kept = list(chosen)
    for place in chosen[:-1]:
        others = [k for k in kept if k != place]
        more, less = changes.gain(*kept), changes.gain(*others)
        if (more.value - less.value) / usual[place] <= PARSIMONY * (more.rank - less.rank):
            kept = others
    return kept


def _report(equations: Factors, run: _Run, named: Sequence[_Named], *, two: bool) -> Finding:
    parts = [_describe(entry) for entry in named]
    name = _name_of(equations, run)
    others = "the other run" if two else "the other runs"
    loads = any(entry.cause.is_load for entry in named)
    remedy = (
        "Identify runs with different loads separately." if loads
        else "Identify the runs separately, or find out what changed between them."
    )  # fmt: skip
    return Finding(
        code="runs-differ",
        severity="warning",
        where=name,
        message=f"{name} differs from {others}: {'; '.join(parts)}",
        evidence={entry.cause.name: entry.deviations for entry in named},
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
    return f"{cause.name} by {entry.change[0]:+.3g} {cause.unit} ({sure})"
