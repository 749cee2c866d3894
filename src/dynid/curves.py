"""Curves through samples: cubic splines, running medians, first-order lags, and where a curve is lowest.

SciPy has all of them, in packages whose import alone takes up to a second of processor time, more than most commands
need for their work (docs/decisions.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import lapack

GOLDEN = 0.5 * (3.0 - 5.0**0.5)
"""Share of an interval at which a golden section cuts it (derivation: what is left is cut at the same ratio)."""
NEAREST = 1.5e-8
"""Relative distance below which two places have the same value within rounding (derivation: root of the precision)."""
LAG_ROWS = 64
"""Rows that a lag treats as one product (experiment: from 32 to 128 it takes the same time)."""


class CubicSpline:
    """The twice differentiable cubic through samples whose third derivative has no jump at the second and last but one.

    Through three samples goes a parabola, through two a line.
    """

    coefficients: Floats
    """(N - 1, 4, k) of 1, t, t^2, t^3 with the time t since the first sample of an interval."""

    def __init__(self, time: Floats, values: Floats) -> None:
        """Find the slopes.

        Args:
            time: (N,) increasing, at least two.
            values: (N, k) samples, finite.
        """
        step = np.diff(time)[:, None]
        chord = np.diff(values, axis=0) / step
        slope = _slopes(step, chord)
        turn = (slope[:-1] + slope[1:] - 2.0 * chord) / step
        self._time = time
        # one row per interval: the cubic's four coefficients of every column, side by side, so that they are read once
        self.coefficients = np.stack([values[:-1], slope[:-1], (chord - slope[:-1]) / step - turn, turn / step], axis=1)

    def __call__(self, at: Floats) -> Floats:
        """Values (M, k) at some instants (M,); beyond the ends the outer cubics continue."""
        place = np.clip(np.searchsorted(self._time, at, side="right") - 1, 0, len(self.coefficients) - 1)
        t = (at - self._time[place])[:, None]
        cubic = self.coefficients[place]
        return np.asarray(cubic[:, 0] + t * (cubic[:, 1] + t * (cubic[:, 2] + t * cubic[:, 3])))


def _slopes(step: Floats, chord: Floats) -> Floats:
    """Slopes (N, k) at the samples from the steps (N - 1, 1) and the slopes of the chords (N - 1, k)."""
    if len(step) == 1:
        return np.concatenate([chord, chord])
    if len(step) == 2:
        bend = (chord[1] - chord[0]) / (step[0] + step[1])
        return np.stack([chord[0] - bend * step[0], chord[0] + bend * step[0], chord[1] + bend * step[1]])
    h = step[:, 0]
    first, last = h[0] + h[1], h[-1] + h[-2]
    start = ((h[0] + 2.0 * first) * h[1] * chord[0] + h[0] ** 2 * chord[1]) / first
    end = (h[-1] ** 2 * chord[-2] + (2.0 * last + h[-1]) * h[-2] * chord[-1]) / last
    # the equations of the two ends, solved for the outer slopes, leave equations whose diagonal outweighs the rest
    diagonal, right = 2.0 * (h[:-1] + h[1:]), 3.0 * (step[1:] * chord[:-1] + step[:-1] * chord[1:])
    diagonal[0] -= first
    diagonal[-1] -= last
    right[0] -= start
    right[-1] -= end
    inner = lapack().dgtsv(h[2:], diagonal, h[:-2], right)[3]
    return np.concatenate([(start - first * inner[0])[None] / h[1], inner, (end - last * inner[-1])[None] / h[-2]])


def running_median(x: Floats, width: int) -> Floats:
    """Median of the `width` rows (odd) around each row of x (N, k); the ends are continued by their mirror image."""
    padded = np.pad(x, ((width // 2, width // 2), (0, 0)), mode="symmetric")
    rows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(padded, width, axis=0))
    rows.partition(width // 2, axis=-1)
    return rows[..., width // 2].copy()


def lag_exponentially(x: Floats, keep: float) -> Floats:
    """The recursion ``y_t = keep y_(t-1) + (1 - keep) x_t`` over rows of x (N,) or (N, k), settled before the first."""
    flat = x.reshape(len(x), -1)
    rows = -(-len(flat) // LAG_ROWS)
    blocks = np.zeros((rows * LAG_ROWS, flat.shape[1]))
    blocks[: len(flat)] = flat
    age = np.arange(LAG_ROWS)[:, None] - np.arange(LAG_ROWS)
    weights = np.where(age >= 0, (1.0 - keep) * keep ** np.maximum(age, 0), 0.0)
    result = np.matmul(weights, blocks.reshape(rows, LAG_ROWS, -1))
    fading = keep ** np.arange(1.0, LAG_ROWS + 1.0)[:, None]
    result += fading * _enter_blocks(flat[:1], result[:-1, -1], float(fading[-1, 0]))[:, None]
    return np.asarray(result.reshape(rows * LAG_ROWS, -1)[: len(flat)].reshape(x.shape))


def _enter_blocks(first: Floats, ends: Floats, keep: float) -> Floats:
    """What enters each block (B, k) of a lag: the first value, then what is kept of it and the last end (B - 1, k).

    This is the same recursion over fewer rows, but for the factor of its inputs.
    """
    if len(ends) > LAG_ROWS and keep < 1.0:
        return lag_exponentially(np.concatenate([first, ends / (1.0 - keep)]), keep)
    entering = [first[0]]
    for end in ends:
        entering.append(keep * entering[-1] + end)
    return np.array(entering)


def lowest_point(
    cost: Callable[[float], float], low: float, high: float, *, accuracy: float, most_trials: int = 500
) -> tuple[float, float]:
    """A place within an interval where a function is lowest, and its value there.

    Brent's method: parabolas through the three best places so far, golden sections where these do not converge. The
    ends themselves are never tried.

    Args:
        cost: The function.
        low: Lower end.
        high: Upper end.
        accuracy: Distance to which the place is found.
        most_trials: Largest number of calls.
    """
    best = second = third = low + GOLDEN * (high - low)
    at_best = at_second = at_third = cost(best)
    move = before = 0.0
    for _ in range(most_trials - 1):
        middle, near = 0.5 * (low + high), NEAREST * abs(best) + accuracy / 3.0
        if abs(best - middle) <= 2.0 * near - 0.5 * (high - low):
            break
        parabola = _parabola_step((best, second, third), (at_best, at_second, at_third)) if abs(before) > near else None
        inside = parabola is not None and abs(parabola) < abs(0.5 * before) and low < best + parabola < high
        if parabola is not None and inside:
            before, move = move, parabola
            if min(best + move - low, high - best - move) < 2.0 * near:
                move = near if middle >= best else -near
        else:
            before = (low if best >= middle else high) - best
            move = GOLDEN * before
        trial = best + (move if abs(move) >= near else near if move >= 0.0 else -near)
        found = cost(trial)
        if found <= at_best:
            low, high = (best, high) if trial >= best else (low, best)
            best, second, third, at_best, at_second, at_third = trial, best, second, found, at_best, at_second
            continue
        low, high = (trial, high) if trial < best else (low, trial)
        if found <= at_second or second == best:
            second, third, at_second, at_third = trial, second, found, at_second
        elif found <= at_third or third in (best, second):
            third, at_third = trial, found
    return best, at_best


def _parabola_step(places: tuple[float, float, float], costs: tuple[float, float, float]) -> float | None:
    """From the first place to the lowest point of the parabola through three points; None if it has none."""
    x, w, v = places
    r, q = (x - w) * (costs[0] - costs[2]), (x - v) * (costs[0] - costs[1])
    p, q = (x - v) * q - (x - w) * r, 2.0 * (q - r)
    return None if q == 0.0 else -p / q
