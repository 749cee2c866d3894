"""Samples that cannot be true (absurd values, spikes, clipped torques, wrapped angles), and standstill."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.processing.cutoff import LONGEST, MOVES, SHORTEST, shows_motion

Mask = NDArray[np.bool_]

LONGEST_SPIKE = 3
"""Longest spike in samples ..."""
LONGEST_SPIKE_S = 0.012
"""... and in time [s]: at a low rate three samples may be a true motion. Both are conventions."""
SPIKE_SIGMAS = 12.0
"""Smallest height of a spike in units of the sample-to-sample scatter ..."""
SPIKE_OF_RANGE = 0.05
"""... and as a share of the signal's range; smaller spikes do no harm after filtering. Both are conventions."""
SURVEY = 2_000
"""Number of samples that give the range and the scatter of a channel (convention: more would hardly change them)."""
PLATEAU = 4
"""Number of equal extreme samples in a row that count as clipping (convention)."""


def longest_spike(time: Floats) -> int:
    """Largest number of samples of a spike at the rate of time stamps (N,) [s]."""
    first = time[:SURVEY]
    steps = np.abs(np.diff(first[np.isfinite(first)]))
    period = float(np.median(steps)) if steps.size else 0.0
    return int(np.clip(LONGEST_SPIKE_S / max(period, 1e-12), 1, LONGEST_SPIKE))


def absurd_samples(x: Floats, longest: int = LONGEST_SPIKE) -> Mask:
    """Which samples (N, k) are too far from everything, or leave the signal for `longest` samples and come back.

    A jump that stays (dry friction changing its sign) is no spike. NaN counts as no finding.
    """
    bad = np.zeros(x.shape, dtype=bool)
    for k, column in enumerate(np.ascontiguousarray(x.T)):
        finite = np.isfinite(column)
        present = slice(None) if finite.all() else np.flatnonzero(finite)
        y = column[present]
        fewest = 2 * LONGEST_SPIKE + 2  # a spike and as many samples on both sides
        if y.size < fewest:
            continue
        with np.errstate(over="ignore"):
            middle, far, threshold = _yardsticks(y)
            found = (np.abs(y - middle) > far) | _spikes(y, threshold, longest)
            if found.any() and np.count_nonzero(~found) >= fewest:
                # many spikes widen the yardsticks, so that those side by side would not count as far
                middle, far, _ = _yardsticks(y[~found])
                found |= np.abs(y - middle) > far
        bad[present, k] = found
    return bad


def _yardsticks(y: Floats) -> tuple[float, float, float]:
    """Middle of a signal (N,), the distance from it that is absurd, and the step that may be a spike's."""
    every = max(1, len(y) // SURVEY)
    low, middle, high = np.quantile(y[::every], (0.02, 0.5, 0.98)).tolist()
    span, size = high - low, abs(middle)
    far = max(20.0 * max(span, 1e-9 * max(size, 1.0)), 1e-6)  # at rest the last digit may flicker
    curvature = y[1:-1:every] - 0.5 * (y[:-2:every] + y[2::every])
    scatter = 1.4826 * float(np.median(np.abs(curvature - np.median(curvature))))
    return middle, far, max(SPIKE_SIGMAS * scatter, SPIKE_OF_RANGE * span, 1e-9 * max(size, 1e-6))


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
    return np.column_stack([_saturated_column(column) for column in np.ascontiguousarray(x.T)])


def _saturated_column(x: Floats) -> Mask:
    found = np.zeros(x.shape, dtype=bool)
    present = np.flatnonzero(np.isfinite(x))
    if present.size < 10 * PLATEAU:
        return found
    y = x[present]
    span = float(y.max() - y.min())
    at_end = [np.abs(y - extreme) <= 1e-9 * span for extreme in (y.max(), y.min())]
    if span == 0.0 or max(np.count_nonzero(at) for at in at_end) < 2 * PLATEAU:
        return found
    at_ends = at_end[0] | at_end[1]
    between = np.diff(y)[~(at_ends[1:] & at_ends[:-1])]  # steps that do not stay at the ends, where all is alike
    if between.size == 0 or np.mean(between == 0.0) > 0.5:
        return found
    still = np.append(False, np.diff(y) == 0.0)
    rests = run_lengths(still | np.append(still[1:], False)) * ~at_ends
    for at in at_end:
        runs = run_lengths(at)
        plateau = at & (runs >= PLATEAU)
        # a single plateau may be a turning point of the motion in a coarse signal; and a signal without noise stands
        # still wherever the robot does, not at its ends alone
        if np.count_nonzero(plateau) >= 2 * PLATEAU and not _has_such_rests(rests, runs):
            found[present] |= plateau
    return found


def _has_such_rests(rests: NDArray[np.int64], runs: NDArray[np.int64]) -> bool:
    """Whether a signal stands still elsewhere as often as at an end, and at least half as long.

    Args:
        rests: (N,) for each sample the length of the stretch of equal ones around it; zero at the ends.
        runs: (N,) for each sample the length of the plateau around it, zero elsewhere.
    """
    long = 0.5 * float(runs.max())
    return float(np.sum(1.0 / rests[rests >= long])) >= float(np.sum(1.0 / runs[runs >= long]))


def run_lengths(mask: Mask) -> NDArray[np.int64]:
    """(N,) for every True the number of Trues in its run; 0 elsewhere."""
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False].astype(np.int8)))
    lengths = np.zeros(mask.size, dtype=np.int64)
    runs = edges[1::2] - edges[::2]
    lengths[mask] = np.repeat(runs, runs)
    return lengths


def long_runs(mask: Mask, samples: float) -> Mask:
    """Where a mask (N, n) is True for at least so many samples on end."""
    return mask & np.column_stack([run_lengths(own) >= samples for own in mask.T])


def unwrap_angles(q: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Undo jumps by whole turns: q (N, n) continued, and (n,) how many jumps were undone.

    Only jumps within 0.5 rad of a whole turn are undone; all others are left for the spike test. Without any jump the
    result is q itself.
    """
    turn, steps = 2.0 * np.pi, np.diff(q, axis=0)
    if not (np.abs(steps) > np.pi).any():
        return q, np.zeros(q.shape[1], dtype=np.int64)
    turns = np.round(steps / turn)
    near = (turns != 0) & (np.abs(turns) < 100) & (np.abs(steps - turns * turn) < 0.5)
    turns = np.where(near & np.isfinite(steps), turns, 0.0)
    result = q.copy()
    result[1:] -= turn * np.cumsum(turns, axis=0)
    return result, np.count_nonzero(turns, axis=0)


def rest_thresholds(dq: Floats, measured: Sequence[Floats], rate_hz: float) -> Floats:
    """(n,) speed below which each joint rests [rad/s or m/s], so that dry friction is anywhere between its two limits.

    It is 1 % of the 99th percentile of the joint's speed, at least 0.001, and infinite for a joint that does not move
    above its noise.

    Args:
        dq: (N, n) velocities.
        measured: Gap-free stretches (N_i, n) of positions before any filter.
        rate_hz: Sampling rate of both [Hz].
    """
    usual = np.maximum(0.01 * np.percentile(np.abs(dq[:: max(1, len(dq) // 20_000)]), 99.0, axis=0), 1e-3)
    return np.where(_moves_above_noise(measured, rate_hz), usual, np.inf)


def _moves_above_noise(stretches: Sequence[Floats], rate_hz: float) -> Mask:
    """(n,) whether a joint travels far above the noise of its second differences, or moves by its spectrum."""
    if min(map(len, stretches)) < SHORTEST:
        return np.ones(stretches[0].shape[1], dtype=bool)
    span = np.max([x.max(axis=0) for x in stretches], axis=0) - np.min([x.min(axis=0) for x in stretches], axis=0)
    bends = [np.mean(np.diff(x[:LONGEST], 2, axis=0) ** 2, axis=0) for x in stretches]
    moving = np.asarray(span > MOVES * np.sqrt(np.max(bends, axis=0) / 6.0))
    for stretch in stretches:
        if not moving.all():
            moving[~moving] = shows_motion(stretch[:LONGEST, ~moving], rate_hz)
    return moving
