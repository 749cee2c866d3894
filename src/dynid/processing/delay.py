"""The delay of the torques against the motion, to a fraction of a sampling period.

Whatever the parameters, torque is a linear combination of known functions of the motion. The delay is the shift at
which such a combination explains the torque best: the combination is projected out for every trial shift, so that no
parameter need be known and none can hide a part of the delay.

Dry friction changes sharply at a reversal, which reveals a delay best, if it changes there as the functions of the
motion say. Under feedback it does not: a joint sticks while its controller raises the torque. `DelayTrials` can leave
the reversals out; gate/model_delay.py decides whether they may serve.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar

from dynid.arrays import Floats
from dynid.decompositions import eigh, svd
from dynid.errors import DataError
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth, Smoothing

_Cost = Callable[[float], float]

MOST_ROWS = 3000
"""Largest number of samples that are used (convention) ..."""
MOST_SAMPLES = 200_000
"""... and of those that they are picked from (convention: some minutes of a quick log)."""
BLOCKS = 10
"""Number of blocks of time for the standard error by the jackknife (convention)."""
PERIODS_PER_SHIFT = 3.0
"""Sampling periods between the shifts of the table (derivation: the light low-pass leaves nothing quicker than twenty
periods) ..."""
FEWEST_SHIFTS, MOST_SHIFTS = 25, 100
"""... and smallest and largest number of shifts a side (convention)."""
FEWEST_ROWS = 50
"""Smallest number of samples of a stretch, and of a joint (convention)."""
CLEARLY_SMALLER = 0.97
"""Ratio of two residuals below which the first is clearly the smaller one (convention)."""
EXPLAINS_BETTER = 0.98
"""Ratio of two residuals below which the model of the first explains the torques better (convention; with 0.97 sharp
friction won on the clean clock of panda_gaz at a ratio of 0.970 to 0.974, and torques that are in time looked 38 ms
late)."""
LIKELY_STDERRS, SURE_STDERRS = 3.0, 5.0
"""Standard errors from zero beyond which a delay is likely, and sure (convention)."""
END_STDERRS = 2.0
"""Standard errors that a delay must lie inside the range that is tried (convention): costs may be lower beyond it."""
SMALLEST_PERIODS = 0.1
"""Smallest delay that counts, in sampling periods, however small its standard error (convention)."""
SLOW = 0.2
"""Speed of a joint, as a share of its rms speed, below which it may stick or creep ..."""
NEAR_PERIODS = 1.0
"""... and time around it in which the low-pass of the torques smears what happens there, in periods of its cutoff. Both
chosen with the loops of tests/campaigns/loop_delays.py: half the time left a mean error of 1.4 to 2.8 ms, the whole
0.1 to 0.4."""
LIGHT_CUTOFF_RATIO = 0.05
"""Cutoff over sampling rate of the light low-pass for unfiltered torques (convention)."""
FINEST_PERIODS = 1e-4
"""Part of a sampling period to which the best shift is found (convention)."""
WELL_CONDITIONED = 1e-6
"""Relative eigenvalue of scaled cross products from which on they give columns that are orthonormal to 1e-10."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """A delay with its uncertainty."""

    seconds: float
    """Delay of the torques behind the positions [s]."""
    stderr_s: float
    """Standard error [s]."""
    residual_before: float
    """Unexplained share of the torque (rms) without a shift."""
    residual_after: float
    """Unexplained share of the torque (rms) with the delay removed."""
    period_s: float
    """Sampling period [s]."""

    @property
    def likely(self) -> bool:
        """Whether the delay is probably not zero: worth reporting, not worth changing the data."""
        return self._beyond(LIKELY_STDERRS)

    @property
    def sure(self) -> bool:
        """Whether the delay is surely not zero."""
        return self._beyond(SURE_STDERRS)

    def _beyond(self, standard_errors: float) -> bool:
        return abs(self.seconds) > max(standard_errors * self.stderr_s, SMALLEST_PERIODS * self.period_s)

    @property
    def matters(self) -> bool:
        """Whether removing the delay clearly reduces the unexplained share."""
        return self.residual_after < CLEARLY_SMALLER * self.residual_before

    @property
    def clear(self) -> bool:
        """Whether the delay is surely not zero, and matters."""
        return self.sure and self.matters

    def explains_better_than(self, other: Delay) -> bool:
        """Whether this delay, with another model of the motion, leaves less unexplained than another one."""
        return self.residual_after < EXPLAINS_BETTER * other.residual_after


def motion_basis(experiment: Experiment, rows: NDArray[np.int64]) -> list[Floats]:
    """For every joint, functions of the motion (M, m) that approximately span its torque without a model."""
    q, dq, ddq = experiment.q[rows], experiment.dq[rows], experiment.ddq[rows]
    shared = np.hstack([np.ones((rows.size, 1)), ddq, np.sin(q), np.cos(q)])
    tilt = np.cumsum(q, axis=1)  # sums of angles: the tilt of links whose axes are parallel
    shared = np.hstack([shared, np.sin(tilt), np.cos(tilt)])
    sign = experiment.smooth(np.sign(experiment.dq))[rows]
    return [np.hstack([shared, dq[:, [j]], sign[:, [j]]]) for j in range(q.shape[1])]


def estimate_delay(experiment: Experiment, bases: Sequence[Floats] | None = None, *, max_delay_s: float = 0.1) -> Delay:
    """Estimate the delay of the torques of an experiment.

    Args:
        experiment: The experiment, processed with ``effort_delay_s=0``. Each joint uses those of the `timed_samples` at
            which its equation counts.
        bases: Per joint (M, m) functions of the motion that span its torque, at the rows
            ``delay_rows(timed_samples(experiment), max_delay_s)``, such as a regressor's columns; `motion_basis` by
            default.
        max_delay_s: Largest delay that is tried, in either direction [s].

    Raises:
        DataError: The experiment is too short.

    Example:
        >>> abs(dynid.processing.estimate_delay(run).seconds) < 0.05
        True
    """
    trials = DelayTrials.of(timed_samples(experiment), max_delay_s)
    bases = bases or motion_basis(trials.part, trials.rows)
    return trials.explain([orthonormal(bases[j] * trials.valid[:, [j]]) for j in trials.joints]).best_shift()[0]


@dataclass(frozen=True, eq=False)
class DelayTrials:
    """The torques of an experiment at every trial shift, and the best shift for given functions of the motion."""

    part: Experiment
    """The `timed_samples` of an experiment."""
    rows: NDArray[np.int64]
    """(M,) rows of `part` that are used."""
    valid: NDArray[np.bool_]
    """(M, n) whether a joint's equation counts in these rows."""
    joints: list[int]
    """The k joints that are used."""
    shifts: Floats
    """(S,) shifts that are tried [s], equally spaced."""
    torque: _TorqueAtTime
    """The torques at the rows for any shift."""

    @classmethod
    def of(cls, part: Experiment, max_delay_s: float) -> DelayTrials:
        """Shift the torques of `timed_samples` by up to a delay [s] in either direction; reversals count.

        Raises:
            DataError: No joint has enough samples.
        """
        rows = delay_rows(part, max_delay_s)
        valid = part.valid[rows]
        joints = np.flatnonzero(valid.sum(axis=0) >= FEWEST_ROWS).tolist()
        if not joints:
            raise DataError(
                "no joint moves long enough without a gap to estimate a delay",
                remedy=f"It needs {2 * max_delay_s:g} s and {FEWEST_ROWS} samples; give a smaller max_delay_s.",
            )
        count = int(np.clip(max_delay_s * part.rate_hz / PERIODS_PER_SHIFT, FEWEST_SHIFTS, MOST_SHIFTS))
        shifts = np.linspace(-max_delay_s, max_delay_s, 2 * count + 1)
        return cls(part, rows, valid, joints, shifts, _TorqueAtTime(part, rows, shifts))

    def without_reversals(self, fewest: int, explained: Collection[int] = ()) -> DelayTrials | None:
        """The same trials without the rows in which a joint is slow or turns round.

        Args:
            fewest: Smallest number of rows with which a joint is used.
            explained: Joints whose reversals count all the same.

        Returns:
            The trials; None if no joint has so many rows left.
        """
        left_out = near_reversals(self.part)[self.rows]
        left_out[:, list(explained)] = False
        valid = self.valid & ~left_out
        joints = [j for j in self.joints if valid[:, j].sum() >= max(fewest, FEWEST_ROWS)]
        return replace(self, valid=valid, joints=joints) if joints else None

    def explain(self, orthonormal_bases: Sequence[Floats]) -> ExplainedTrials:
        """Explain the torques at all shifts by functions of the motion.

        Args:
            orthonormal_bases: For each of the joints, orthonormal columns (M, m) that should explain its torque, zero
                in the rows that do not count.
        """
        pairs = zip(self.joints, orthonormal_bases, strict=True)
        return ExplainedTrials(self, [_ExplainedJoint(self, j, Q) for j, Q in pairs])


class _ExplainedJoint:
    """One joint's torques at every shift, explained by orthonormal columns.

    Cross products of torques and columns by block of time give the unexplained squares of every block and shift; one
    more column changes them by a few products.
    """

    def __init__(self, trials: DelayTrials, joint: int, Q: Floats) -> None:
        self.joint, self.counts, self.Q = joint, trials.valid[:, joint], Q
        self.edges = np.linspace(0, trials.rows.size, BLOCKS + 1).astype(int).tolist()
        self.shifted = trials.torque.at_shifts(joint)  # (S, M)
        pieces = [(self.shifted[:, first:last], Q[first:last]) for first, last in pairwise(self.edges)]
        along = np.stack([y @ columns for y, columns in pieces])  # (BLOCKS, S, m)
        self.whole = along.sum(axis=0)
        shared = [columns.T @ columns for _, columns in pieces]
        squares = [np.square(y) @ kept for (y, _), kept in zip(pieces, self._by_block(), strict=True)]
        explained = [
            np.einsum("sm,sm->s", self.whole, 2.0 * part - self.whole @ product)
            for part, product in zip(along, shared, strict=True)
        ]
        self.unexplained: Floats = np.asarray(squares) - np.asarray(explained)  # (BLOCKS, S)
        self._left: dict[int, Floats] = {}

    def _by_block(self) -> list[Floats]:
        return [self.counts[first:last].astype(float) for first, last in pairwise(self.edges)]

    def costs(self, column: Floats | None) -> Floats:
        """(BLOCKS, S) unexplained squares, with one more column (M,) that is orthonormal to the others, if given."""
        if column is None:
            return self.unexplained
        pieces = [(slice(first, last), column[first:last]) for first, last in pairwise(self.edges)]
        along = np.stack([self.shifted[:, rows] @ part for rows, part in pieces])
        shared = np.stack([self.Q[rows].T @ part for rows, part in pieces])
        sizes = np.array([part @ part for _, part in pieces])
        whole = along.sum(axis=0)
        change = whole * (sizes[:, None] * whole - 2.0 * (along - shared @ self.whole.T))
        return np.asarray(self.unexplained + change)

    def unexplained_cubics(self, torque: _TorqueAtTime, step: int, column: Floats | None) -> Floats:
        """(4, 4) products of what the columns do not explain of the coefficients of the torques some periods later.

        Args:
            torque: The torques.
            step: Whole periods.
            column: (M,) one more column that is orthonormal to the others, if given.
        """
        if step not in self._left:  # other columns are tried about the same shifts
            self._left[step] = unexplained_part(torque.cubics(self.joint, step) * self.counts[:, None], self.Q)
        left = self._left[step]
        along = np.zeros(4) if column is None else column @ left
        return left.T @ left - np.outer(along, along)

    def freedom(self, torque: _TorqueAtTime, shift: float, column: Floats | None) -> float:
        """Number of independent values of what is not explained at a shift [s], less that of the columns."""
        step, powers = torque.place(shift)
        left = unexplained_part((torque.cubics(self.joint, step) @ powers) * self.counts, self.Q)
        if column is not None:
            left = unexplained_part(left, column[:, None])
        return float(independent_values(left[:, None], self.counts[:, None])[0]) - self.width(column)

    def width(self, column: Floats | None) -> int:
        """Number of columns."""
        return int(self.Q.shape[1]) + (column is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnexplainedSquares:
    """What functions of the motion do not explain of one joint's torques."""

    mean: float
    """Mean square, enlarged by what a fit takes away from few independent values."""
    freedom: float
    """Number of independent values behind it."""


@dataclass(frozen=True, eq=False)
class ExplainedTrials:
    """Trial shifts of the torques, explained by functions of the motion."""

    trials: DelayTrials
    parts: list[_ExplainedJoint]
    """One for each of the joints."""

    def best_shift(self, *alternatives: Sequence[Floats | None] | None) -> tuple[Delay, int]:
        """Find the shift at which functions of the motion explain the torques best.

        Args:
            alternatives: For each of the joints one more column (M,), orthonormal to its others, or None; nothing for
                no further columns. Of several alternatives the one serves that leaves least.

        Returns:
            The delay, and the number of the alternative.
        """
        searches = [_ShiftSearch(self.trials, self._with(columns)) for columns in alternatives or (None,)]
        best = min(range(len(searches)), key=lambda k: searches[k].residual(searches[k].shift))
        return searches[best].delay(), best

    def unexplained_squares(
        self, shift: float, columns: Sequence[Floats | None] | None = None
    ) -> dict[int, UnexplainedSquares]:
        """For each of the joints, what is not explained at a shift [s].

        Args:
            shift: The shift [s].
            columns: As in `best_shift`.
        """
        torque = self.trials.torque
        step, powers = torque.place(shift)
        found = {}
        for part, column in self._with(columns):
            squares = float(powers @ part.unexplained_cubics(torque, step, column) @ powers)
            freedom = max(part.freedom(torque, shift, column), 1.0)
            taken = 1.0 + part.width(column) / freedom
            found[part.joint] = UnexplainedSquares(mean=taken * squares / int(part.counts.sum()), freedom=freedom)
        return found

    def _with(self, columns: Sequence[Floats | None] | None) -> list[tuple[_ExplainedJoint, Floats | None]]:
        return list(zip(self.parts, columns or [None] * len(self.parts), strict=True))


class _ShiftSearch:
    """The shift of the torques that leaves least unexplained by the columns of all joints together."""

    def __init__(self, trials: DelayTrials, pairs: list[tuple[_ExplainedJoint, Floats | None]]) -> None:
        self._trials, self._pairs, torque = trials, pairs, trials.torque
        # unexplained squares by joint, block of time and shift: (k, BLOCKS, S)
        self._costs = np.maximum([part.costs(column) for part, column in pairs], 0.0)
        # squares of the torque about its mean, the denominator of the shares
        total = np.array([torque.at_rows(p.joint)[p.counts].var() * p.counts.sum() for p, _ in pairs])
        # each joint weighs by the inverse of its smallest residual sum of squares
        self._weight = 1.0 / np.maximum(self._costs.sum(axis=1).min(axis=1), 1e-12 * total + 1e-300)
        self._whole = max(float(total @ self._weight), 1e-300)
        self._products: dict[int, Floats] = {}
        table = np.einsum("kbs,k->s", self._costs, self._weight)
        self.shift: float = _minimise(self._unexplained, trials.shifts, table, trials.part.rate_hz)

    def residual(self, shift: float) -> float:
        """Unexplained share of the torque (rms) at a shift [s]."""
        return float(np.sqrt(self._unexplained(shift) / self._whole))

    def _unexplained(self, shift: float) -> float:
        step, powers = self._trials.torque.place(shift)
        if step not in self._products:
            there = [part.unexplained_cubics(self._trials.torque, step, column) for part, column in self._pairs]
            self._products[step] = np.tensordot(self._weight, there, axes=1)
        return float(powers @ self._products[step] @ powers)

    def delay(self) -> Delay:
        """The best shift with its standard error."""
        trials, shift = self._trials, self.shift
        freedom = sum(part.freedom(trials.torque, shift, column) for part, column in self._pairs)
        by_time = np.einsum("kbs,k->sb", self._costs, self._weight)
        by_joint = np.einsum("kbs,k->sk", self._costs, self._weight)
        finest = min(1.0 / trials.part.rate_hz, float(trials.shifts[1] - trials.shifts[0]))
        # scatter over time and over joints, added as independent, but no less than the curvature of the costs says
        stderr = max(
            float(np.hypot(_scatter(by_time, trials.shifts), _scatter(by_joint, trials.shifts))),
            _error_by_curvature(self._unexplained, shift, finest, freedom),
        )
        inside = abs(shift) + END_STDERRS * stderr <= trials.shifts[-1]
        return Delay(
            seconds=shift,
            stderr_s=stderr if inside else np.inf,
            residual_before=self.residual(0.0),
            residual_after=self.residual(shift),
            period_s=1.0 / trials.part.rate_hz,
        )


def _error_by_curvature(cost: _Cost, shift: float, step: float, freedom: float) -> float:
    """Standard error of the lowest point of a sum of squares, infinite where it does not rise towards no shift.

    Args:
        cost: The sum of squares at a shift [s].
        shift: Where it is lowest [s].
        step: Smallest distance over which the rise is measured [s].
        freedom: Number of independent values behind the sum.
    """
    other = 0.0 if abs(shift) > step else shift - np.copysign(step, shift)
    rise = cost(other) / max(cost(shift), 1e-300) - 1.0
    return float(abs(other - shift) / np.sqrt(max(freedom, 1.0) * rise)) if rise > 0.0 else np.inf


def independent_values(signals: Floats, counts: Floats | NDArray[np.bool_]) -> Floats:
    """(k,) number of independent values that signals (M, k), evenly spaced in time, have where they count (M, k).

    A signal of M samples with the spectrum S has ``M (sum S)^2 / sum S^2 / F`` independent values, F frequencies: M for
    white noise, twice bandwidth times duration behind a low-pass. Single lines of a spectrum scatter, which doubles the
    sum of their squares.
    """
    power = np.abs(np.fft.rfft(signals * counts, axis=0)) ** 2
    twice = np.full(len(power), 2.0)  # a line stands for the one of the negative frequency, too ...
    twice[0] = 1.0
    if len(signals) % 2 == 0:
        twice[-1] = 1.0  # ... but for the mean and the highest one
    lines = (twice @ power) ** 2 / np.maximum(0.5 * (twice @ power**2), 1e-300)
    return np.asarray(counts.sum(axis=0) * np.minimum(lines / len(signals), 1.0))


def unexplained_part(y: Floats, Q: Floats) -> Floats:
    """The part of y that orthonormal columns Q do not span."""
    return np.asarray(y - Q @ (Q.T @ y))


def _scatter(costs: Floats, shifts: Floats) -> float:
    """Standard error of where the sum of costs (S, parts) is lowest, by the jackknife over its parts.

    The parts (blocks of time, or joints) differ in everything that the functions of the motion do not explain, so this
    error also holds for a poor model. It is infinite if a lowest point lies at the end of the searched range.
    """
    if costs.shape[1] == 1:
        return 0.0  # one part: no scatter known
    whole = costs.sum(axis=1)
    lowest = [_lowest(shifts, whole - part) for part in costs.T]
    return float(np.sqrt((len(lowest) - 1) * np.var(lowest))) if np.isfinite(lowest).all() else np.inf


def _lowest(shifts: Floats, cost: Floats) -> float:
    """Where a parabola through the lowest point of a table and its two neighbours is lowest; infinite at its ends."""
    k = int(np.argmin(cost))
    if k in (0, shifts.size - 1):
        return np.inf
    left, middle, right = cost[k - 1 : k + 2]
    return float(shifts[k] + 0.5 * (shifts[1] - shifts[0]) * (left - right) / max(left - 2.0 * middle + right, 1e-300))


def timed_samples(experiment: Experiment) -> Experiment:
    """The samples from which a delay is estimated: all `known_stretches` except short ones, of long logs some parts.

    Unfiltered torques go through a light low-pass. Dry friction changes sharply and reveals a delay best, so a strong
    filter would waste it; but values interpolated between noisy samples scatter less than the samples, so without any
    filter a shift by half a period would win.
    """
    part = known_stretches(experiment.parts(MOST_SAMPLES, BLOCKS))
    part = part.rows(np.flatnonzero(np.bincount(part.segment)[part.segment] >= FEWEST_ROWS))
    if part.smoothing is not None or part.samples == 0:
        return part
    light = Smoothing(rate_hz=part.rate_hz, cutoff_hz=LIGHT_CUTOFF_RATIO * part.rate_hz, low_pass=Butterworth())
    part = replace(part, smoothing=light)
    return replace(part, effort=part.smooth(part.effort))


def known_stretches(experiment: Experiment) -> Experiment:
    """The samples at which all torques are known; the segments are their gap-free stretches."""
    known = np.asarray(np.isfinite(experiment.effort).all(axis=1))
    borders = (np.diff(experiment.segment) != 0) | (known[1:] != known[:-1])
    stretch = np.cumsum(np.concatenate([[0], borders])[: known.size])
    return replace(experiment, segment=stretch).rows(np.flatnonzero(known))


def delay_rows(part: Experiment, max_delay_s: float) -> NDArray[np.int64]:
    """The rows of `timed_samples` at which the shifted torques are known, too, thinned to at most MOST_ROWS."""
    margin = int(np.ceil(max_delay_s * part.rate_hz)) + 2
    inner = np.flatnonzero(np.minimum(*_from_edges(part.segment)) >= margin)
    return inner[:: max(1, -(-inner.size // MOST_ROWS))]


def near_reversals(part: Experiment) -> NDArray[np.bool_]:
    """(N, n) whether a joint is slow or turns round about that time; unfiltered torques count as lightly filtered."""
    slow = np.abs(part.dq) < SLOW * np.sqrt(np.mean(part.dq**2, axis=0))
    slow[1:] |= np.sign(part.dq[1:]) != np.sign(part.dq[:-1])
    light = LIGHT_CUTOFF_RATIO * part.rate_hz
    cutoff = light if part.smoothing is None else part.smoothing.cutoff_hz
    around = 0 if cutoff is None else int(np.ceil(NEAR_PERIODS * part.rate_hz / cutoff))
    return np.asarray(count_ahead(np.pad(slow, ((around, around), (0, 0))), 2 * around + 1) > 0)


def count_ahead(marks: NDArray[np.bool_], rows: int) -> NDArray[np.int32]:
    """(N - rows + 1, n) how many of some rows, from each on, are marked (N, n)."""
    count = np.zeros((len(marks) + 1, marks.shape[1]), dtype=np.int32)
    np.cumsum(marks, axis=0, out=count[1:])
    return np.asarray(count[rows:] - count[:-rows])


def _from_edges(segment: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of samples of its segment before each sample (N,), and after it."""
    _, first, inverse, count = np.unique(segment, return_index=True, return_inverse=True, return_counts=True)
    before = np.arange(segment.size) - first[inverse]
    return before, count[inverse] - 1 - before


class _TorqueAtTime:
    """The torque of an experiment as a function of time, at some of its rows.

    Samples are equally spaced within a stretch, so a shift moves all rows by the same number of whole periods and the
    same part of one: the torques at a shift are a cubic in that part, with coefficients that are looked up.
    """

    def __init__(self, part: Experiment, rows: NDArray[np.int64], shifts: Floats) -> None:
        self._rows, self._rate_hz, self._shifts = rows, part.rate_hz, shifts
        self._known: dict[int, Floats] = {}
        apart = np.unique(np.diff(rows))
        self._stride = int(apart[0]) if apart.size == 1 else None  # evenly spaced rows need not be picked one by one
        self._cubics = np.zeros((part.effort.shape[1], part.samples, 4))
        for stretch in np.unique(part.segment[rows]):
            there = np.flatnonzero(part.segment == stretch)
            spline = CubicSpline(np.arange(float(there.size)), part.effort[there])
            self._cubics[:, there[:-1]] = spline.c[::-1].transpose(2, 1, 0)

    def place(self, shift: float) -> tuple[int, Floats]:
        """Whole periods of a shift [s], and the powers (4,) of the part of a period that is left."""
        periods = shift * self._rate_hz
        step = int(np.floor(periods))
        return step, np.asarray((periods - step) ** np.arange(4.0))

    def cubics(self, joint: int, step: int) -> Floats:
        """(M, 4) coefficients of a joint's torque, some whole periods after each row, in powers of a period's parts."""
        if self._stride is None:
            return np.take(self._cubics[joint], self._rows + step, axis=0)
        first, last = int(self._rows[0]) + step, int(self._rows[-1]) + step
        return np.asarray(self._cubics[joint, first : last + 1 : self._stride])

    def at_rows(self, joint: int) -> Floats:
        """(M,) a joint's torques, not shifted."""
        return np.asarray(self._cubics[joint, self._rows, 0])

    def at_shifts(self, joint: int) -> Floats:
        """(S, M) a joint's torques at all shifts."""
        if joint not in self._known:
            known = self._known[joint] = np.empty((self._shifts.size, self._rows.size))
            for row, shift in zip(known, self._shifts.tolist(), strict=True):
                step, powers = self.place(shift)
                np.matmul(self.cubics(joint, step), powers, out=row)
        return self._known[joint]


def orthonormal(basis: Floats) -> Floats:
    """Orthonormal columns (M, r) that span the given ones (M, m); none if all of them are zero."""
    length = np.linalg.norm(basis, axis=0)
    is_nonzero = length > 1e-12 * max(length.max(initial=0.0), 1e-300)
    if not is_nonzero.any():
        return np.empty((len(basis), 0))
    kept = basis[:, is_nonzero] / length[is_nonzero]
    values, vectors = eigh(kept.T @ kept)
    if values[0] > WELL_CONDITIONED * values[-1]:
        return np.asarray(kept @ (vectors / np.sqrt(values)))
    U, s, _ = svd(kept, full_matrices=False)
    return np.asarray(U[:, s > 1e-9 * s[0]])


def _minimise(cost: _Cost, shifts: Floats, table: Floats, rate_hz: float) -> float:
    """The shift of lowest cost [s]: about the lowest of a table (S,), period by period, never beyond the grid.

    The torques are known only up to the largest delay, and at one set of coefficients for all shifts within a period.
    """
    k = int(np.argmin(table))
    low, high = (rate_hz * float(shifts[i]) for i in (max(k - 1, 0), min(k + 1, shifts.size - 1)))
    start = _lowest(shifts, table)
    period = int(np.floor(rate_hz * (start if np.isfinite(start) else float(shifts[k]))))
    first_period, last_period = int(np.floor(low)), int(np.ceil(high)) - 1
    period, before = min(max(period, first_period), last_period), None
    while True:
        ends = max(low, float(period)), min(high, period + 1.0)
        search = minimize_scalar(
            lambda periods: cost(periods / rate_hz), bounds=ends, method="bounded", options={"xatol": FINEST_PERIODS}
        )
        place = float(search.x)
        towards = int(place > ends[1] - 2.0 * FINEST_PERIODS) - int(place < ends[0] + 2.0 * FINEST_PERIODS)
        following = period + towards
        if towards == 0 or following == before or not first_period <= following <= last_period:
            return place / rate_hz
        period, before = following, period
