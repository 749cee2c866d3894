"""What is known of the parameters of servos: covariance, and what is open, with values at bounds counted as free.

A value at a bound is no estimate. The others are found as if it were the truth; their intervals must allow for it.
With the equations A of all entries, i those inside their bounds and b those at bounds, released values move the others
by ``R = -A_ii^-1 A_ib`` each, and are themselves known to ``C = (A^-1)_bb``: the inverse of A has ``A_ii^-1 + R C R'``
for the entries i (inverse by blocks). From the solution the released values go to ``C (g_b + R' g_i)``, g the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.judgement.servo_covariance import TimeBlocks, servo_covariance
from dynid.actuators.servo_identifiability import (
    SIGNED,
    OpenDirection,
    entry_sizes,
    find_open_directions,
    see_directions,
)
from dynid.actuators.servo_model import Entry
from dynid.arrays import Floats

Marks = NDArray[np.bool_]
NORMAL_95 = 1.96
"""Standard deviations of a 95 % interval of the normal distribution."""


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What releasing values from their bounds does to the others."""

    growth: Floats
    """(P, P) covariance that it adds, per variance of a residual; zero in rows of the released ones."""
    shift: Floats
    """(P,) where it moves them, in the units of the entries."""


def release_bounds(equations: tuple[Floats, Floats], score: Floats, inside: Marks, freed: Marks) -> Release:
    """Release some values from their bounds.

    Args:
        equations: (P, P) ``J' J``, with priors, and (P,) what they add to its diagonal.
        score: (P,) ``J' residuals``.
        inside: (P,) entries inside their bounds.
        freed: (P,) entries at bounds that are released; the others stay.
    """
    P, (A, prior) = len(score), equations
    growth, shift = np.zeros((P, P)), np.zeros(P)
    i, b = np.flatnonzero(inside), np.flatnonzero(freed)
    if not (i.size and b.size):
        return Release(growth, shift)
    both = np.concatenate([i, b])
    response = -see_directions(A[np.ix_(i, i)], prior[i]).inverse @ A[np.ix_(i, b)]  # R
    spread = see_directions(A[np.ix_(both, both)], prior[both]).inverse[i.size :, i.size :]  # C
    growth[np.ix_(i, i)] = response @ spread @ response.T
    shift[i] = response @ spread @ (score[b] + response.T @ score[i])
    return Release(growth, shift)


def judge_knowledge(
    blocks: TimeBlocks, entries: Sequence[Entry], values: Floats, at_bound: Marks
) -> tuple[Floats, tuple[OpenDirection, ...], float]:
    """Covariance (P, P) of the entries inside their bounds, zero elsewhere; what is open; variance of a residual.

    A value at a bound counts as free where the others are judged: the covariance has what its release would add, and
    the distance by which it would move them. Where that is more than half of a 95 % interval, and the bound is one of
    the search, the interval would rest on the bound: the entry is open. The variance of a residual is raised for what
    lasts in time.

    Args:
        blocks: What the motions say.
        entries: The entries of the model.
        values: (P,) their values.
        at_bound: (P,) which of them stand at a bound.
    """
    A, score, inside = blocks.information, blocks.scores.sum(axis=0), ~at_bound
    spreads = np.array([1.0 if entry.prior is None else entry.prior[1] for entry in entries])
    weights = np.sqrt(blocks.prior) / spreads  # the prior is the variance of a residual times this
    covariance, variance = np.zeros_like(A), float(np.mean(blocks.variances))
    if inside.any():
        seen = see_directions(A[np.ix_(inside, inside)], weights[inside])
        kinds = tuple(entry.kind for entry, is_in in zip(entries, inside, strict=True) if is_in)
        told = servo_covariance(blocks, np.flatnonzero(inside).tolist(), seen.root, kinds)
        residual = float((np.sqrt(blocks.prior) * spreads).max(initial=0.0))
        covariance[np.ix_(inside, inside)] = told + residual * seen.assumed @ seen.assumed.T
        variance = _widened(variance, seen.root, np.diagonal(told))
    searched = at_bound & ~_is_physical(entries, values)
    loose = release_bounds((A, weights), score, inside, searched)
    moved = np.sqrt(variance * np.diagonal(loose.growth) + loose.shift**2)
    tied = inside & (moved > NORMAL_95 * np.sqrt(np.diagonal(covariance)))
    free = release_bounds((A, weights), score, inside, at_bound)
    covariance = covariance + variance * free.growth + np.outer(free.shift, free.shift)
    directions = find_open_directions(entries, values, A, (weights, covariance))
    opened = {name for direction in directions for name in direction.names}
    tied &= np.array([entry.name not in opened and entry.prior is None for entry in entries])
    share = np.where(searched, np.abs(see_directions(A, weights).correlation), 0.0)  # (P, P)
    changes = moved / entry_sizes(entries, values)
    return covariance, directions + _tied_to_bounds(entries, changes, np.flatnonzero(tied), share), variance


def _widened(variance: float, root: Floats, found: Floats) -> float:
    """The variance of a residual, raised as the covariance is in the median over the entries."""
    plain = variance * np.sum(root**2, axis=1)
    ratios = found[plain > 0.0] / plain[plain > 0.0]
    return variance * max(1.0, float(np.median(ratios)) if ratios.size else 1.0)


def _is_physical(entries: Sequence[Entry], values: Floats) -> Marks:
    """(P,) which entries stand at zero because they cannot be negative: such a bound is knowledge."""
    pairs = zip(entries, values, strict=True)
    return np.array([entry.lower == 0.0 >= value and entry.kind not in SIGNED for entry, value in pairs], dtype=bool)


def _tied_to_bounds(
    entries: Sequence[Entry], changes: Floats, places: NDArray[np.int64], share: Floats
) -> tuple[OpenDirection, ...]:
    """Entries that are only known if another one's bound is the truth, by that other one."""
    partner = share.argmax(axis=1)
    groups = [[int(k) for k in places if partner[k] == b] for b in dict.fromkeys(partner[places].tolist())]
    return tuple(
        OpenDirection(
            tuple(entries[k].name for k in group),
            tuple(float(changes[k]) for k in group),
            note=f"only known together with {entries[partner[group[0]]].name}, which stands at a bound",
        )
        for group in groups
    )
