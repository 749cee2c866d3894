"""The delay of the torques against the motion, to a fraction of a sampling period.

Whatever the parameters, torque is a linear combination of known functions of the motion. The delay is the shift at
which such a combination explains the torque best: the combination is projected out for every trial shift, so that no
parameter need be known and none can hide a part of the delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.decompositions import svd
from dynid.errors import DataError
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth, Smoothing

__all__ = [
    "Delay",
    "DelayTrials",
    "delay_rows",
    "estimate_delay",
    "known_stretches",
    "motion_basis",
    "orthonormal",
    "timed_samples",
    "unexplained_part",
]

Floats = NDArray[np.float64]
_Cost = Callable[[float], float]

MOST_ROWS = 3000
"""Largest number of samples that are used (convention)."""
BLOCKS = 10
"""Number of blocks of time for the standard error by the jackknife (convention)."""
STEPS = (25, 100)
"""Smallest and largest number of shifts tried in either direction (convention: one per sampling period in between)."""
FEWEST_ROWS = 50
"""Smallest number of samples of a stretch, and of a joint (convention)."""
WORTH = 0.97
"""Share of the residual below which an explanation is worthwhile (convention)."""
LIGHT = 0.05
"""Cutoff over sampling rate of the light low-pass for unfiltered torques (convention)."""


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
        return self._beyond(3.0)

    @property
    def sure(self) -> bool:
        """Whether the delay is surely not zero."""
        return self._beyond(5.0)

    def _beyond(self, standard_errors: float) -> bool:
        return abs(self.seconds) > max(standard_errors * self.stderr_s, 0.1 * self.period_s)

    @property
    def matters(self) -> bool:
        """Whether removing the delay clearly reduces the unexplained share."""
        return self.residual_after < WORTH * self.residual_before

    @property
    def clear(self) -> bool:
        """Whether the delay is surely not zero, and matters."""
        return self.sure and self.matters

    def explains_better_than(self, other: Delay) -> bool:
        """Whether this delay leaves clearly less unexplained than another one."""
        return self.residual_after < WORTH * other.residual_after


def motion_basis(experiment: Experiment, rows: NDArray[np.int64]) -> list[Floats]:
    """For every joint, functions of the motion (M, m) that approximately span its torque without a model."""
    q, dq, ddq = experiment.q[rows], experiment.dq[rows], experiment.ddq[rows]
    shared = np.hstack([np.ones((rows.size, 1)), ddq, np.sin(q), np.cos(q)])
    tilt = np.cumsum(q, axis=1)
    shared = np.hstack([shared, np.sin(tilt), np.cos(tilt)])
    sign = experiment.smooth(np.sign(experiment.dq))[rows]
    return [np.hstack([shared, dq[:, [j]], sign[:, [j]]]) for j in range(q.shape[1])]


def estimate_delay(experiment: Experiment, bases: Sequence[Floats] | None = None, *, max_delay_s: float = 0.1) -> Delay:
    """Estimate the delay of the torques of an experiment.

    Args:
        experiment: Processed with ``effort_delay_s=0``; of its `timed_samples` those valid for a joint are used.
        bases: For every joint the functions (M, m) that span its torque at their `delay_rows`: the rows of a
            regressor; a model-free set by default.
        max_delay_s: Largest delay that is tried, in either direction [s].

    Raises:
        DataError: The experiment is too short.
    """
    trials = DelayTrials.of(timed_samples(experiment), max_delay_s)
    bases = bases or motion_basis(trials.part, trials.rows)
    return trials.best_shift([orthonormal(bases[j] * trials.valid[:, [j]]) for j in trials.joints])


@dataclass(frozen=True, eq=False)
class DelayTrials:
    """The torques of an experiment at every trial shift, and the best shift for given functions of the motion."""

    part: Experiment
    rows: NDArray[np.int64]
    """(M,) rows that are used."""
    valid: NDArray[np.bool_]
    """(M, n) whether a joint's equation counts in these rows."""
    joints: list[int]
    """The k joints that are used."""
    steps: Floats
    """(S,) shifts [s]."""
    moved: list[Floats]
    """For each of the joints (M, S) its torques at each shift, zero where they do not count."""
    torque: _TorqueAtTime

    @classmethod
    def of(cls, part: Experiment, max_delay_s: float) -> DelayTrials:
        rows = delay_rows(part, max_delay_s)
        valid = part.valid[rows]
        joints = np.flatnonzero(valid.sum(axis=0) >= FEWEST_ROWS).tolist()
        if not joints:
            raise DataError(
                "no joint moves long enough without a gap to estimate a delay",
                remedy=f"It needs {2 * max_delay_s:g} s and {FEWEST_ROWS} samples; give a smaller max_delay_s.",
            )
        count = int(np.clip(max_delay_s * part.rate_hz, *STEPS))
        steps = np.linspace(-max_delay_s, max_delay_s, 2 * count + 1)
        torque = _TorqueAtTime(part, rows)
        moved = np.stack([torque(shift) * valid for shift in steps])
        return cls(part, rows, valid, joints, steps, [np.ascontiguousarray(moved[:, :, j].T) for j in joints], torque)

    def best_shift(self, spanned: Sequence[Floats]) -> Delay:
        """The best shift where orthonormal functions (M, m) of each of the joints span its torque."""
        starts = np.linspace(0, self.rows.size, BLOCKS + 1).astype(int)[:-1]

        def unexplained(shift: float) -> Floats:
            return np.array(
                [np.sum(unexplained_part(y, Q) ** 2) for y, Q in zip(self._at(shift), spanned, strict=True)]
            )

        squares = (unexplained_part(y, Q) ** 2 for y, Q in zip(self.moved, spanned, strict=True))
        table = np.stack([np.add.reduceat(left, starts, axis=0) for left in squares])  # (k, BLOCKS, S)
        counted = zip(self._at(0.0), self.joints, strict=True)
        total = np.array([y[self.valid[:, j]].var() * self.valid[:, j].sum() for y, j in counted])
        weight = 1.0 / np.maximum(table.sum(axis=1).min(axis=1), 1e-12 * total + 1e-300)
        by_time, by_joint = np.einsum("kbs,k->sb", table, weight), np.einsum("kbs,k->sk", table, weight)
        shift = _minimise(lambda s: float(unexplained(s) @ weight), self.steps, by_joint.sum(axis=1))
        whole = max(float(total @ weight), 1e-300)
        return Delay(
            seconds=shift,
            stderr_s=float(np.hypot(_scatter(by_time, self.steps), _scatter(by_joint, self.steps))),
            residual_before=float(np.sqrt((unexplained(0.0) @ weight) / whole)),
            residual_after=float(np.sqrt((unexplained(shift) @ weight) / whole)),
            period_s=1.0 / self.part.rate_hz,
        )

    def _at(self, shift: float) -> Iterator[Floats]:
        """Each of the joints' torques (M,) at a shift [s], zero where they do not count."""
        values = self.torque(shift) * self.valid
        return (values[:, j] for j in self.joints)


def unexplained_part(y: Floats, Q: Floats) -> Floats:
    """The part of y that orthonormal columns Q do not span."""
    return np.asarray(y - Q @ (Q.T @ y))


def _scatter(costs: Floats, steps: Floats) -> float:
    """Standard error of where a sum of costs (S, k) is lowest, by the jackknife over its k terms.

    The terms (blocks of time, or joints) differ in everything that the functions of the motion do not explain, so this
    error also holds for a poor model. It is infinite if a lowest point lies at the end of the searched range.
    """
    whole = costs.sum(axis=1)
    places = [_lowest(steps, whole - term) for term in costs.T] if costs.shape[1] > 1 else [0.0]
    return float(np.sqrt((len(places) - 1) * np.var(places))) if np.isfinite(places).all() else np.inf


def _lowest(steps: Floats, cost: Floats) -> float:
    """Where a parabola through the three lowest points of a table is lowest; infinite at its ends."""
    k = int(np.argmin(cost))
    if k in (0, steps.size - 1):
        return np.inf
    left, middle, right = cost[k - 1 : k + 2]
    return float(steps[k] + 0.5 * (steps[1] - steps[0]) * (left - right) / max(left - 2.0 * middle + right, 1e-300))


def timed_samples(experiment: Experiment) -> Experiment:
    """The samples from which a delay is estimated: all `known_stretches` except short ones.

    Unfiltered torques go through a light low-pass. Dry friction changes sharply and reveals a delay best, so a strong
    filter would waste it; but values interpolated between noisy samples scatter less than the samples, so without any
    filter a shift by half a period would win.
    """
    part = known_stretches(experiment)
    part = part.rows(np.flatnonzero(np.bincount(part.segment)[part.segment] >= FEWEST_ROWS))
    if part.smoothing is not None or part.samples == 0:
        return part
    light = Smoothing(rate_hz=part.rate_hz, cutoff_hz=LIGHT * part.rate_hz, low_pass=Butterworth())
    part = replace(part, smoothing=light)
    return replace(part, effort=part.smooth(part.effort))


def known_stretches(experiment: Experiment) -> Experiment:
    """The samples at which all torques are known; the segments are their gap-free stretches."""
    known = np.asarray(np.isfinite(experiment.effort).all(axis=1))
    borders = (np.diff(experiment.segment) != 0) | (known[1:] != known[:-1])
    stretch = np.cumsum(np.concatenate([[0], borders])[: known.size])
    return replace(experiment, segment=stretch).rows(np.flatnonzero(known))


def delay_rows(part: Experiment, max_delay_s: float) -> NDArray[np.int64]:
    """The rows of `timed_samples` that are used: those at which the shifted torques are known, too."""
    margin = int(np.ceil(max_delay_s * part.rate_hz)) + 2
    inner = np.flatnonzero(np.minimum(*_from_edges(part.segment)) >= margin)
    return inner[:: max(1, -(-inner.size // MOST_ROWS))]


def _from_edges(segment: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of samples of its segment before each sample (N,), and after it."""
    _, first, inverse, count = np.unique(segment, return_index=True, return_inverse=True, return_counts=True)
    before = np.arange(segment.size) - first[inverse]
    return before, count[inverse] - 1 - before


class _TorqueAtTime:
    """The torque of an experiment as a function of time, at some of its rows."""

    def __init__(self, part: Experiment, rows: NDArray[np.int64]) -> None:
        from scipy.interpolate import CubicSpline

        self._pieces = []
        for stretch in np.unique(part.segment[rows]):
            there = part.segment == stretch
            self._pieces.append(
                (CubicSpline(part.time[there], part.effort[there]), part.time[rows[there[rows]]]),
            )

    def __call__(self, shift: float) -> Floats:
        """(M, n) torques a shift [s] after each row."""
        return np.concatenate([spline(time + shift) for spline, time in self._pieces])


def orthonormal(basis: Floats) -> Floats:
    """Orthonormal columns that span the given ones."""
    scale = np.linalg.norm(basis, axis=0)
    kept = basis[:, scale > 1e-12 * max(scale.max(), 1e-300)] / scale[scale > 1e-12 * max(scale.max(), 1e-300)]
    U, s, _ = svd(kept, full_matrices=False)
    return np.asarray(U[:, s > 1e-9 * s[0]])


def _minimise(cost: _Cost, steps: Floats, table: Floats) -> float:
    """The lowest point, first on the grid, then within two of its steps."""
    from scipy.optimize import minimize_scalar

    start, step = float(steps[int(np.argmin(table))]), float(steps[1] - steps[0])
    found = minimize_scalar(cost, bounds=(start - step, start + step), method="bounded", options={"xatol": 1e-4 * step})
    return float(found.x)
