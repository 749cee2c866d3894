"""Samples that cannot be true (absurd values, spikes, clipped torques, wrapped angles), and standstill.

Before a log is filtered, `make_uniform` (uniform.py) marks its faults by these functions and leaves the marked samples
out. Input are raw positions or torques (N, n), output are masks of the same shape, True for samples with the fault:

- `absurd_samples`: far away from all others, or a spike of one to three samples;
- `saturated_samples`: on a plateau at the largest or smallest value, as a torque limit of the drive makes it;
- `unwrap_angles` repairs angles that jump by whole turns.

`rest_thresholds` gives the speeds below which joints count as resting, for process.py: the sign of dry friction is not
known at rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.processing.cutoff import LONGEST, MOTION_TO_NOISE, SHORTEST, shows_motion

Mask = NDArray[np.bool_]

LONGEST_SPIKE = 3
"""Longest spike, as a number of samples (convention)."""
LONGEST_SPIKE_S = 0.012
"""Longest spike in time [s] (convention): at a low rate three samples may be a true motion."""
SPIKE_SIGMAS = 12.0
"""Smallest height of a spike in standard deviations of the scatter from sample to sample (convention)."""
SPIKE_RANGE_SHARE = 0.05
"""Smallest height of a spike as a share of the signal's range (convention): smaller ones do no harm after filtering."""
SURVEY_SAMPLES = 2_000
"""Number of samples from which range and scatter of a channel are taken (convention: more would hardly change them)."""


def longest_spike(time: Floats) -> int:
    """Find the largest number of samples of a spike, for the rate that time stamps (N,) [s] show."""
    first = time[:SURVEY_SAMPLES]
    steps = np.abs(np.diff(first[np.isfinite(first)]))
    period = float(np.median(steps)) if steps.size else 0.0
    return int(np.clip(LONGEST_SPIKE_S / max(period, 1e-12), 1, LONGEST_SPIKE))


def absurd_samples(x: Floats, longest: int = LONGEST_SPIKE) -> Mask:
    """Mark samples (N, k) that are too far from all others, and spikes of at most `longest` samples.

    A step from which the signal does not return (dry friction changing its sign) is no spike. NaN is not marked.
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
            middle, far, smallest_spike = _scales(y)
            found = (np.abs(y - middle) > far) | _spikes(y, smallest_spike, longest)
            if found.any() and np.count_nonzero(~found) >= fewest:
                # many spikes widen the range: again without those that were found
                middle, far, _ = _scales(y[~found])
                found |= np.abs(y - middle) > far
        bad[present, k] = found
    return bad


def _scales(y: Floats) -> tuple[float, float, float]:
    """Take the scales of a signal y (N,) without NaN, from about `SURVEY_SAMPLES` of its samples.

    Returns:
        Its median, the distance from it that is absurd, and the smallest height of a spike, all in the signal's unit.
    """
    every = max(1, len(y) // SURVEY_SAMPLES)
    low, middle, high = np.quantile(y[::every], (0.02, 0.5, 0.98)).tolist()
    span = high - low
    digits = 1e-7 * max(abs(middle), 1.0)  # by which a signal at rest may change
    curvature = y[1:-1:every] - 0.5 * (y[:-2:every] + y[2::every])  # each sample less the mean of its neighbours
    # 1.4826 turns the median absolute deviation of normal noise into its standard deviation
    scatter = 1.4826 * float(np.median(np.abs(curvature - np.median(curvature))))
    # absurd: 20 ranges away (convention)
    return middle, 20.0 * max(span, digits), max(SPIKE_SIGMAS * scatter, SPIKE_RANGE_SHARE * span, digits)


def _spikes(y: Floats, threshold: float, longest: int) -> Mask:
    """Mark excursions (N,) of at most `longest` samples that return to the value before them.

    Args:
        y: (N,) a signal without NaN.
        threshold: Smallest height of a spike.
        longest: Largest number of samples of a spike.
    """
    found = np.zeros(y.shape, dtype=bool)
    steps = np.abs(np.diff(y, prepend=y[0]))
    if not (steps > threshold).any():
        return found
    for width in range(1, longest + 1):  # spikes of this number of samples, at every place where one may begin
        before = y[: -width - 1]
        after = y[width + 1 :]
        rise = y[1:-width] - before
        fall = y[width:-1] - after
        height = np.minimum(np.abs(rise), np.abs(fall))
        # it comes back to within 0.4 of its height (convention)
        hit = (rise * fall > 0.0) & (height > threshold) & (np.abs(after - before) < 0.4 * height)
        first = np.flatnonzero(hit) + 1  # index of the first sample of each spike
        # a spike is far higher than the three steps before and after it, by which the signal moves there by itself
        nearby = np.concatenate([first[:, None] - [1, 2, 3], first[:, None] + width + [1, 2, 3]], axis=1)
        local = np.median(steps[np.clip(nearby, 0, y.size - 1)], axis=1) if first.size else np.zeros(0)
        first = first[height[first - 1] > 8.0 * local]  # far higher: eight times (convention)
        for offset in range(width):
            found[first + offset] = True
    return found


def saturated_samples(x: Floats) -> Mask:
    """Mark samples (N, k) on plateaus (four or more equal samples) at the channel's largest or smallest value.

    A signal that rarely changes from sample to sample anyway (coarse steps), or rests as often between its extremes (a
    robot that stands still), is not called clipped.
    """
    return np.column_stack([_saturated_column(column) for column in np.ascontiguousarray(x.T)])


def _saturated_column(x: Floats) -> Mask:
    """`saturated_samples` of one channel (N,)."""
    found = np.zeros(x.shape, dtype=bool)
    present = np.flatnonzero(np.isfinite(x))
    shortest = LONGEST_SPIKE + 1  # equal extreme samples in a row that are no spike, but clipped
    if present.size < 10 * shortest:
        return found
    y = x[present]
    span = float(y.max() - y.min())
    at_end = [np.abs(y - extreme) <= 1e-9 * span for extreme in (y.max(), y.min())]
    if span == 0.0:
        return found
    at_ends = at_end[0] | at_end[1]
    between = np.diff(y)[~(at_ends[1:] & at_ends[:-1])]  # all steps but those from one extreme sample to the next
    if between.size == 0 or np.mean(between == 0.0) > 0.5:
        return found
    is_repeated = np.append(False, np.diff(y) == 0.0)
    # for each sample the number of equal samples around it, itself included; 0 at the extremes
    rests = run_lengths(is_repeated | np.append(is_repeated[1:], False))
    rests[at_ends] = 0
    for at in at_end:
        runs = run_lengths(at)
        plateau = at & (runs >= shortest)
        # a few samples may be a turning point of the motion in a coarse signal, so eight are asked for; a signal
        # without noise also rests where the robot stands still, which is not at its extremes alone
        if np.count_nonzero(plateau) >= 2 * shortest and not _rests_between_extremes(rests, runs):
            found[present] |= plateau
    return found


def _rests_between_extremes(rests: NDArray[np.int64], runs: NDArray[np.int64]) -> bool:
    """Test whether a signal rests between its extremes as often as at one of them.

    Only runs of at least half the length of the longest run at the extreme are counted.

    Args:
        rests: (N,) for each sample the length of the run of equal samples around it; zero at both extremes.
        runs: (N,) for each sample the length of the run at one extreme around it; zero elsewhere.
    """
    # each sample of a run of length L contributes 1 / L: the sums are numbers of runs
    long = 0.5 * float(runs.max())
    return float(np.sum(1.0 / rests[rests >= long])) >= float(np.sum(1.0 / runs[runs >= long]))


def run_lengths(mask: Mask) -> NDArray[np.int64]:
    """Count for every True of a mask (N,) the consecutive Trues around it, itself included, (N,); 0 elsewhere."""
    # where a run begins, and where it has ended, in turns
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False].astype(np.int8)))
    lengths = np.zeros(mask.size, dtype=np.int64)
    runs = edges[1::2] - edges[::2]
    lengths[mask] = np.repeat(runs, runs)
    return lengths


def long_runs(mask: Mask, samples: float) -> Mask:
    """Keep in every column of a mask (N, n) only the runs of at least so many samples."""
    return mask & np.column_stack([run_lengths(column) >= samples for column in mask.T])


def unwrap_angles(q: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Undo jumps of angles q (N, n) [rad] by whole turns.

    Only jumps within 0.5 rad of a whole turn, and by less than 100 turns, are undone (convention); all others are left
    for `absurd_samples`. Positions of sliding joints in m hardly ever jump by 6.28.

    Returns:
        Continuous angles (N, n); number of jumps undone per joint (n,).
    """
    turn = 2.0 * np.pi
    steps = np.diff(q, axis=0)
    turns = np.round(steps / turn)
    near = (turns != 0) & (np.abs(turns) < 100) & (np.abs(steps - turns * turn) < 0.5)
    turns = np.where(near & np.isfinite(steps), turns, 0.0)
    result = q.copy()
    result[1:] -= turn * np.cumsum(turns, axis=0)
    return result, np.count_nonzero(turns, axis=0)


def rest_thresholds(dq: Floats, measured: Sequence[Floats], rate_hz: float) -> Floats:
    """Find the speed (n,) below which each joint counts as resting [rad/s or m/s].

    It is 1 % of the 99th percentile of the joint's speed, at least 0.001 (conventions), and infinite for a joint that
    does not move above its noise.

    Args:
        dq: (N, n) velocities [rad/s or m/s].
        measured: Gap-free stretches (N_i, n) of positions before any filter [rad or m].
        rate_hz: Sampling rate of both [Hz].
    """
    # 20 000 samples suffice for a percentile
    usual = np.maximum(0.01 * np.percentile(np.abs(dq[:: max(1, len(dq) // 20_000)]), 99.0, axis=0), 1e-3)
    return np.where(_moves_above_noise(measured, rate_hz), usual, np.inf)


def _moves_above_noise(stretches: Sequence[Floats], rate_hz: float) -> Mask:
    """Test for each joint whether it moves, (n,): it travels far more than its noise, or its spectrum shows motion.

    The noise is taken from second differences: those of white noise have six times its variance.

    Args:
        stretches: Gap-free positions (N_i, n) [rad or m].
        rate_hz: Sampling rate [Hz].
    """
    if min(map(len, stretches)) < SHORTEST:  # too short to tell: no joint is left out
        return np.ones(stretches[0].shape[1], dtype=bool)
    span = np.max([x.max(axis=0) for x in stretches], axis=0) - np.min([x.min(axis=0) for x in stretches], axis=0)
    bends = [np.mean(np.diff(x[:LONGEST], 2, axis=0) ** 2, axis=0) for x in stretches]
    moving = np.asarray(span > MOTION_TO_NOISE * np.sqrt(np.max(bends, axis=0) / 6.0))
    for stretch in stretches:
        if not moving.all():
            moving[~moving] = shows_motion(stretch[:LONGEST, ~moving], rate_hz)
    return moving
