"""What must be known of a streamed log before its loop is simulated: found out by going through it once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.closed_loop.loop_blocks import BESIDE
from dynid.estimation.closed_loop.loop_runs import ALIGNED, FORGOTTEN, loop_of, stability_of
from dynid.estimation.closed_loop.loop_stability import LoopStability, loop_simulator
from dynid.estimation.equations import StreamedLogs
from dynid.loop.loop import Loop, ReferenceMotion
from dynid.loop.simulator import LoopSimulator
from dynid.processing.experiment import Experiment

__all__ = ["SHORTEST_S", "LogSurvey", "Stretch", "survey"]

Floats = NDArray[np.float64]
SHORTEST_S = 1.0
"""Stretches shorter than this are not simulated: low-passes and differences would see nothing but ends [s]."""
POSES = 32
"""Samples of a log at which inertia is looked at, at least, where it has so many."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Samples that one simulation follows without a break."""

    origin_s: float
    """Time of its first control instant [s]"""
    pieces: int
    samples: int
    edges: NDArray[np.int64]
    """First samples of its gap-free stretches, and the number of all samples"""


@dataclass(frozen=True, slots=True, eq=False)
class LogSurvey:
    """A streamed log, the simulator of its loop, and how it is cut."""

    log: Callable[[], Iterable[Experiment]]
    stretches: tuple[Stretch, ...]
    simulator: LoopSimulator
    stability: LoopStability
    poses: Floats
    """(K, n) of measured positions"""
    rate_hz: float
    every: int
    """Control periods per record of the simulation"""
    stride: int
    """Records per sample of the log, before samples were thinned out"""
    reach: int
    """Samples on either side of a block that its low-passes and differences see"""
    fineness: int = 1
    """By how much the integrator's steps were shortened"""

    @property
    def samples(self) -> int:
        """Of all stretches."""
        return sum(stretch.samples for stretch in self.stretches)

    def pieces(self) -> Iterator[Experiment]:
        """The stream, started anew."""
        return (piece for piece in self.log() if piece.samples)

    def finer(self, factor: int) -> LogSurvey:
        """The same with more steps of the integrator between control instants."""
        steps = factor * self.simulator.substeps
        simulator = LoopSimulator(self.simulator.arm, self.simulator.loop, substeps=steps)
        return replace(self, simulator=simulator, stability=stability_of(simulator, self.poses), fineness=factor)


def survey(equations: StreamedLogs, log: Callable[[], Iterable[Experiment]]) -> LogSurvey:
    """Go through a log.

    Raises:
        ArgumentError: A piece has no loop, or its samples are not at the loop's control instants.
    """
    seen = _Seen()
    for piece in log():
        if piece.samples:
            seen.take(piece)
    return seen.survey(equations, log)


class _Seen:
    """What was seen of a log so far."""

    def __init__(self) -> None:
        self._first: Experiment | None = None
        self._loop: Loop | None = None
        self._poses: list[Floats] = []
        self._apart, self._count, self._every = 1, 0, 0
        self._stretches: list[Stretch] = []
        self._edges: list[int] = []
        self._last_tick, self._last_s = 0, -np.inf

    def take(self, piece: Experiment) -> None:
        """Look at a piece."""
        loop = loop_of(piece)
        rate = loop.reference.rate_hz
        if self._loop is None:
            self._first, self._loop = piece, loop
        elif rate != self._loop.reference.rate_hz:
            raise _not_aligned(piece)
        place = (piece.time - loop.start_s) * rate
        if place[0] < -0.5 or place[-1] > len(loop.reference.q) - 0.5:
            raise ArgumentError(
                f"the samples of '{piece.source}' are not within its reference motion",
                remedy="Give every piece a reference that covers it; check Loop.start_s.",
            )
        offset = self._joined(piece, loop)
        ticks = offset + np.round(place).astype(np.int64)
        if np.abs(place - (ticks - offset)).max() > ALIGNED or np.any(np.diff(ticks) <= 0):
            raise _not_aligned(piece)
        log_hz = piece.rate_hz if piece.derivation is None else piece.derivation.smoothing.rate_hz
        period = max(1, round(rate / log_hz))
        steps = np.diff(ticks, prepend=self._last_tick)
        self._every = int(np.gcd.reduce(np.append(steps, [ticks[0], period, self._every])))
        self._cut(piece)
        self._last_tick, self._last_s = int(ticks[-1]), float(piece.time[-1])
        self._keep(piece.q)

    def _joined(self, piece: Experiment, loop: Loop) -> int:
        """Where the piece's reference begins, counted from the stretch's first control instant."""
        if self._stretches:
            place = (loop.start_s - self._stretches[-1].origin_s) * loop.reference.rate_hz
            if abs(place - round(place)) <= ALIGNED and round(place) <= self._last_tick + 1:
                return round(place)
        self._stretches.append(Stretch(loop.start_s, 0, 0, np.zeros(0, dtype=np.int64)))
        self._edges, self._last_tick, self._last_s = [], 0, -np.inf
        return 0

    def _cut(self, piece: Experiment) -> None:
        """Count the piece's samples, and note where gap-free stretches begin."""
        stretch = self._stretches[-1]
        begins = np.diff(piece.segment, prepend=piece.segment[0]) != 0
        begins[0] = piece.time[0] - self._last_s > 1.5 / piece.rate_hz
        self._edges += (stretch.samples + np.flatnonzero(begins)).tolist()
        samples = stretch.samples + piece.samples
        edges = np.array([*self._edges, samples], dtype=np.int64)
        self._stretches[-1] = Stretch(stretch.origin_s, stretch.pieces + 1, samples, edges)

    def _keep(self, q: Floats) -> None:
        """Keep some poses, evenly in time, whatever the length."""
        places = np.arange(-self._count % self._apart, len(q), self._apart)
        self._poses += list(q[places])
        self._count += len(q)
        while len(self._poses) > 2 * POSES:
            self._poses, self._apart = self._poses[::2], 2 * self._apart

    def survey(self, equations: StreamedLogs, log: Callable[[], Iterable[Experiment]]) -> LogSurvey:
        """What was found out."""
        first, loop = self._first, self._loop
        if first is None or loop is None:
            raise ArgumentError("the log has no sample", remedy="Give streams that give the same pieces every time.")
        poses = np.ascontiguousarray(self._poses)
        rest = np.zeros_like(poses)
        sketch = replace(
            loop,
            reference=ReferenceMotion(q=poses, dq=rest, ddq=rest, rate_hz=loop.reference.rate_hz),
            q0=None,
            dq0=None,
        )
        simulator = loop_simulator(equations, sketch)
        log_hz = first.rate_hz if first.derivation is None else first.derivation.smoothing.rate_hz
        period = max(1, round(loop.reference.rate_hz / log_hz))
        return LogSurvey(
            log,
            tuple(self._stretches),
            simulator,
            stability_of(simulator, poses),
            poses,
            first.rate_hz,
            self._every,
            period // self._every,
            reach_of(first),
        )


def reach_of(run: Experiment) -> int:
    """Samples on either side of a block that its wide rows' low-passes and differences see."""
    filters = (run.smoothing, None if run.derivation is None else run.derivation.smoothing)
    settling = max((smoothing.settling_s for smoothing in filters if smoothing is not None), default=0.0)
    return 2 * BESIDE + int(np.ceil(FORGOTTEN * settling * run.rate_hz))


def _not_aligned(piece: Experiment) -> ArgumentError:
    return ArgumentError(
        f"the samples of '{piece.source}' are not taken at control instants of one loop",
        remedy="Give Loop.start_s, or references whose rate is one multiple of the log's.",
    )
