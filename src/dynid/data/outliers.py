"""Samples that cannot be true: absurd values, one-tick spikes, clipped torques, wrapped angles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["absurd_samples", "longest_spike", "saturated_samples", "unwrap_angles"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LONGEST_SPIKE = 3
"""A spike lasts at most this many samples ..."""
LONGEST_SPIKE_S = 0.012
"""... and this long [s]: at a low rate three samples may be a true movement."""
SPIKE_SIGMAS = 12.0
"""How far a spike stands out, in units of the sample-to-sample scatter."""
SPIKE_OF_RANGE = 0.05
"""... and as a share of the signal's range; smaller ones do no harm after filtering."""
SURVEY = 20_000
"""Samples from which range and scatter of a channel are taken; more would not change them."""
PLATEAU = 4
"""Samples in a row at the same extreme value that count as clipping."""


def longest_spike(time: Floats) -> int:
    """How many samples a spike may last at the rate of these stamps (N,) [s]."""
    steps = np.abs(np.diff(time[np.isfinite(time)]))
    period = float(np.median(steps)) if steps.size else 0.0
    return int(np.clip(LONGEST_SPIKE_S / max(period, 1e-12), 1, LONGEST_SPIKE))


def absurd_samples(x: Floats, longest: int = LONGEST_SPIKE) -> Mask:
    """Which samples (N, k) are too far from everything, or leave the signal for `longest` samples and come back.

    A jump that stays (dry friction changing its sign) is no spike. NaN counts as no finding.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        return (
            np.column_stack([_absurd_column(column, longest) for column in x.T])
            if x.size
            else np.zeros(x.shape, dtype=bool)
        )


def _absurd_column(x: Floats, longest: int) -> Mask:
    bad = np.zeros(x.shape, dtype=bool)
    present = np.flatnonzero(np.isfinite(x))
    if present.size < 2 * LONGEST_SPIKE + 2:
        return bad
    y = x[present]
    every = max(1, y.size // SURVEY)
    low, middle, high = np.percentile(y[::every], [2.0, 50.0, 98.0])
    span = high - low
    outside = np.abs(y - middle) > 20.0 * max(span, 1e-9 * max(abs(middle), 1.0))
    outside &= np.abs(y - middle) > 1e-6  # a joint at rest may show a flickering last digit
    curvature = y[1:-1:every] - 0.5 * (y[:-2:every] + y[2::every])
    scatter = 1.4826 * float(np.median(np.abs(curvature - np.median(curvature))))
    threshold = max(SPIKE_SIGMAS * scatter, SPIKE_OF_RANGE * span, 1e-9 * max(abs(middle), 1e-6))
    bad[present] = outside | _spikes(y, threshold, longest)
    return bad


def _spikes(y: Floats, threshold: float, longest: int) -> Mask:
    """Short excursions that return to where they left."""
    found = np.zeros(y.shape, dtype=bool)
    steps = np.abs(np.diff(y, prepend=y[0]))
    if not (steps > threshold).any():
        return found
    for width in range(1, longest + 1):
        before, after = y[: -width - 1], y[width + 1 :]
        rise, fall = y[1:-width] - before, y[width:-1] - after
        height = np.minimum(np.abs(rise), np.abs(fall))
        hit = (rise * fall > 0.0) & (height > threshold) & (np.abs(after - before) < 0.4 * height)
        first = np.flatnonzero(hit) + 1
        # the ordinary steps nearby are the yardstick: how much the signal moves by itself
        nearby = np.concatenate([first[:, None] - [1, 2, 3], first[:, None] + width + [1, 2, 3]], axis=1)
        local = np.median(steps[np.clip(nearby, 0, y.size - 1)], axis=1) if first.size else np.zeros(0)
        first = first[height[first - 1] > 8.0 * local]
        for offset in range(width):
            found[first + offset] = True
    return found


def saturated_samples(x: Floats) -> Mask:
    """Which samples (N, k) lie on a plateau, four or more equal ones, at the channel's largest or smallest value.

    Only a signal that otherwise scatters from sample to sample can be called clipped.
    """
    return np.column_stack([_saturated_column(column) for column in x.T]) if x.size else np.zeros(x.shape, dtype=bool)


def _saturated_column(x: Floats) -> Mask:
    found = np.zeros(x.shape, dtype=bool)
    present = np.flatnonzero(np.isfinite(x))
    if present.size < 10 * PLATEAU:
        return found
    y = x[present]
    span = float(y.max() - y.min())
    if span == 0.0 or np.mean(np.diff(y) == 0.0) > 0.5:
        return found
    for extreme in (y.max(), y.min()):
        at = np.abs(y - extreme) <= 1e-9 * span
        runs = run_lengths(at)
        plateau = at & (runs >= PLATEAU)
        # one plateau alone may be the motion's own turning point in a coarse signal
        if np.count_nonzero(plateau) >= 2 * PLATEAU:
            found[present] |= plateau
    return found


def run_lengths(mask: Mask) -> NDArray[np.int64]:
    """(N,) for every True the number of Trues in its run; 0 elsewhere."""
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False].astype(np.int8)))
    lengths = np.zeros(mask.size, dtype=np.int64)
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        lengths[start:stop] = stop - start
    return lengths


def unwrap_angles(q: Floats, turn: float = 2.0 * np.pi) -> tuple[Floats, NDArray[np.int64]]:
    """Undo jumps by whole turns: q (N, n) continued, and (n,) how many jumps were undone.

    Only jumps within 0.5 rad of a whole turn are; anything else is left for the spike test.
    """
    steps = np.diff(q, axis=0)
    if not (np.abs(steps) > 0.5 * turn).any():
        return q.copy(), np.zeros(q.shape[1], dtype=np.int64)
    turns = np.round(steps / turn)
    near = (turns != 0) & (np.abs(turns) < 100) & (np.abs(steps - turns * turn) < 0.5 * turn / (2 * np.pi))
    turns = np.where(near & np.isfinite(steps), turns, 0.0)
    result = q.copy()
    result[1:] -= turn * np.cumsum(turns, axis=0)
    return result, np.count_nonzero(turns, axis=0)
