"""Experiments brought into a control loop: by its law and the commanded motion, or by what is assumed of them.

Where the law is not known, a stiff PD law is taken; where the commanded motion is not known, the measured one,
low-passed. Either is said in the estimate's notes, beside what the test of the law finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import tee

import numpy as np
from numpy.typing import NDArray

from dynid.closed_loop.laws import ControlLaw, assumed_law
from dynid.closed_loop.loop import Loop, Reference, TimeFunction
from dynid.data.recording import Experiment
from dynid.errors import ArgumentError
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.feasible import FeasibleWLS
from dynid.estimation.loop_survey import SHORTEST_S
from dynid.estimation.problem import Problem, build_problem
from dynid.robot.model import Robot

__all__ = ["InLoop", "SplinedMotion", "with_loop"]

Floats = NDArray[np.float64]
BANDWIDTH_HZ = 8.0
"""Of the assumed law's position loops [Hz]."""
ASSUMED_HZ = 4000.0
"""Rate of an assumed law, at least [Hz]."""
USUAL_HZ = 1000.0
"""Rate of a given law, at least, where it is not given [Hz]."""
LONGEST = 2**16
"""Control instants of a piece of a streamed log."""
LOCAL = 32
"""Samples on either side beyond which a spline does not feel what follows, to rounding."""
POSES = 64
"""Samples at which the inertia that scales an assumed law is taken, at most."""


class SplinedMotion:
    """The cubic spline through positions that come piece by piece; times are asked for in order."""

    def __init__(self, parts: Iterable[tuple[Floats, Floats]]) -> None:
        """Nothing is read yet.

        Args:
            parts: Consecutive times (K,) [s] and positions (K, n) [rad or m].
        """
        self._parts = iter(parts)
        self._time, self._q = np.zeros(0), np.zeros((0, 0))

    def __call__(self, time: Floats) -> tuple[Floats, Floats, Floats]:
        """(N, n) positions, velocities and accelerations at times (N,).

        Raises:
            ArgumentError: The positions do not cover them.
        """
        from scipy.interpolate import CubicSpline

        while self._time.size < 2 or self._time[-1] < time[-1] + self._reach:
            part = next(self._parts, None)
            if part is None:
                break
            self._take(*part)
        slack = 0.01 * self._reach / LOCAL
        if self._time.size < 2 or self._time[0] > time[0] + slack or self._time[-1] < time[-1] - slack:
            raise ArgumentError(
                "the commanded positions do not cover the log", remedy="Give them for every sample of the log."
            )
        self._drop(int(np.searchsorted(self._time, time[0] - self._reach)))
        gaps = np.flatnonzero(np.diff(self._time) > 3.0 * self._reach / LOCAL) + 1
        first = int(gaps[gaps <= np.searchsorted(self._time, time[0] + slack)].max(initial=0))
        last = int(gaps[self._time[gaps] > time[-1]].min(initial=self._time.size))
        hole = gaps[(gaps > first) & (gaps < last)]
        if hole.size:
            start, end = self._time[hole[0] - 1 : hole[0] + 1]
            raise ArgumentError(
                f"commanded positions are missing between {start:.4g} and {end:.4g} s, where the log goes on",
                remedy="Fill them in, or cut the log there.",
            )
        spline = CubicSpline(self._time[first:last], self._q[first:last])
        return spline(time), spline(time, 1), spline(time, 2)

    def _take(self, time: Floats, q: Floats) -> None:
        """Add samples that are numbers and later than all before."""
        known = np.isfinite(time) & np.isfinite(q).all(axis=1)
        time, q = time[known], q[known]
        before = np.maximum.accumulate(np.append(self._time[-1:] if self._time.size else -np.inf, time))[:-1]
        later = time > before
        self._time = np.concatenate([self._time, time[later]])
        self._q = np.concatenate([self._q, q[later]]) if self._q.size else q[later]

    @property
    def _reach(self) -> float:
        """LOCAL sampling periods [s]."""
        return LOCAL * float(np.median(np.diff(self._time[: 2 * LOCAL]))) if self._time.size > 1 else 0.0

    def _drop(self, count: int) -> None:
        """Forget the first samples, but for a few."""
        self._time, self._q = self._time[max(0, count - 1) :], self._q[max(0, count - 1) :]


def with_loop(
    pieces: Iterable[Experiment],
    motion: TimeFunction | None = None,
    *,
    law: ControlLaw,
    rate_hz: float | None = None,
    longest: int = LONGEST,
) -> Iterator[Experiment]:
    """The consecutive pieces of a log, gap-free and not too long, each with the part of the loop that made it.

    A stretch behind a gap starts from its measured state; pieces that follow one another make one simulation.

    Args:
        pieces: Of a processed log; see `dynid.process_stream`.
        motion: What was commanded: times (N,) in order -> (q, dq, ddq); the measured motion by default.
        law: The control law.
        rate_hz: Its rate [Hz]; the log's, or the lowest multiple of it from 1 kHz on.
        longest: Most control instants of a piece.
    """
    if motion is None:
        pieces, ahead = tee(pieces)
        motion = SplinedMotion((piece.time, piece.q) for piece in ahead)
    last_s = -np.inf
    for piece in pieces:
        factor = control_factor(piece.rate_hz, rate_hz or USUAL_HZ, exact=rate_hz is not None)
        rate = factor * piece.rate_hz
        for rows in _cut(piece, max(2, longest // factor)):
            part = piece.rows(rows)
            joined = part.time[0] - last_s < 1.5 / part.rate_hz
            start_s = last_s if joined else float(part.time[0])
            last_s = float(part.time[-1])
            instants = start_s + np.arange(round((last_s - start_s) * rate) + 1) / rate
            q, dq, ddq = motion(instants)
            reference = Reference(q=q, dq=dq, ddq=ddq, rate_hz=rate)
            yield replace(part, loop=Loop(law=law, reference=reference, start_s=start_s, q0=part.q[0], dq0=part.dq[0]))


def control_factor(log_hz: float, rate_hz: float, *, exact: bool) -> int:
    """Control periods per sample of a log.

    Args:
        log_hz: Rate of the log [Hz].
        rate_hz: Of the control law, or what it should be at least [Hz].
        exact: Which of the two it is.

    Raises:
        ArgumentError: The control rate is no multiple of the log's.
    """
    ratio = rate_hz / log_hz
    if not exact:
        return max(1, int(np.ceil(ratio - 1e-6)))
    if ratio < 0.98 or abs(ratio - round(ratio)) > 0.02 * ratio:
        near = max(1, int(np.ceil(ratio))) * log_hz
        raise ArgumentError(
            f"a control rate of {rate_hz:g} Hz is no multiple of the log's {log_hz:.6g} Hz",
            remedy=f"Give a whole multiple, such as {near:.6g} Hz, or resample the log.",
        )
    return round(ratio)


def _cut(piece: Experiment, longest: int) -> Iterator[slice]:
    """Its gap-free stretches, none of them too long."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(piece.segment)) + 1, [piece.samples]])
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        for first in range(start, stop, longest):
            yield slice(first, min(first + longest, stop))


@dataclass(frozen=True, slots=True, kw_only=True)
class InLoop(Estimator):
    """An estimator of the loop for experiments that do not tell theirs."""

    estimator: Estimator
    """`InstrumentalVariables`, `DIDIM`, `CLOE` or `CLIE`"""
    law: ControlLaw | None = None
    """The control law; a stiff PD law by default, which the notes say"""
    rate_hz: float | None = None
    """Of the law [Hz], a multiple of the log's rate; taken to be high by default, which the notes say"""
    motions: Sequence[Callable[[], TimeFunction]] = ()
    """What was commanded, one for each experiment or streamed log: starts a function of times (N,) in order ->
    (q, dq, ddq). The measured motion, low-passed, by default, which the notes say."""

    def solve(self, problem: Problem) -> Estimate:
        """Estimate the base parameters.

        Raises:
            ArgumentError: There is no gap-free stretch of a second, or the law has other joints.
            EstimationError: As the estimator does.
        """
        possible = FeasibleWLS(prior_weight=1.0).solve(problem).standard
        assert possible is not None
        robot = problem.robot.with_parameters(possible)  # laws and steps scale with a robot near the data
        law = self.law or assumed_law(robot, BANDWIDTH_HZ, q=_poses(problem.experiments))
        estimate = self.estimator.solve(self._looped(problem, robot, law))
        return replace(estimate, notes=(*self._assumptions(problem), _verdict(estimate), *estimate.notes))

    def _looped(self, problem: Problem, robot: Robot, law: ControlLaw) -> Problem:
        """The problem with loops."""
        rate = self.rate_hz or self._control_hz(problem)
        starts = self.motions or (None,) * len(problem.experiments)
        if problem.streamed:

            def brought(log: Callable[[], Iterable[Experiment]], start: Callable[[], TimeFunction] | None) -> Streamed:
                return lambda: with_loop(log(), start and start(), law=law, rate_hz=rate)

            logs = tuple(brought(log, start) for log, start in zip(problem.logs, starts, strict=True))
            first = tuple(next(iter(log())) for log in logs)
            return replace(problem, robot=robot, logs=logs, experiments=first)
        runs = []
        for run, start in zip(problem.experiments, starts, strict=True):
            motion = start and start()
            parts = with_loop([run], motion, law=law, rate_hz=rate, longest=np.iinfo(np.int64).max)
            runs += [part for part in parts if part.samples > SHORTEST_S * part.rate_hz]
        if not runs:
            raise ArgumentError(
                f"no gap-free stretch is longer than {SHORTEST_S:g} s: nothing can be simulated",
                remedy="Give a log with fewer gaps, or allow longer ones (max_gap_s), or use weighted least squares.",
            )
        return build_problem(robot, runs, base=problem.base)

    def _control_hz(self, problem: Problem) -> float:
        log_hz = max(run.rate_hz for run in problem.experiments)
        return log_hz * control_factor(log_hz, ASSUMED_HZ if self.law is None else USUAL_HZ, exact=False)

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        notes = []
        if self.law is None:
            notes.append(f"assumed: the control law is not known, a stiff PD law of {BANDWIDTH_HZ:g} Hz stands for it")
        if not self.motions:
            notes.append("assumed: the commanded motion is not known, the measured one, low-passed, stands for it")
        if self.rate_hz is None:
            notes.append(f"assumed: the control rate is not known, {self._control_hz(problem):g} Hz stand for it")
        return tuple(notes)


Streamed = Callable[[], Iterable[Experiment]]


def _verdict(estimate: Estimate) -> str:
    """What the test of the law came to; its findings are notes of their own."""
    if estimate.extras.get("controller_mismatch", 0.0) > 0.0:
        return "control law: doubted, so is what follows from it; weighted least squares needs no law"
    return "control law: the measured torques and positions do not speak against it"


def _poses(runs: Sequence[Experiment]) -> Floats:
    """(K, n) some of the measured positions."""
    every = max(1, sum(run.samples for run in runs) // POSES)
    return np.concatenate([run.q[::every] for run in runs])
