"""Logs larger than memory in their control loops: streamed and simulated anew for every trial, piece by piece.

One pass over each log (`survey`) finds out what the simulation must know beforehand. The simulated loop is sequential:
its state and the memory of the law are carried from piece to piece as long as the reference of one piece continues that
of the piece before; otherwise the simulation starts anew. Only a window of measurement and simulation is in memory: a
block of samples and what low-passes and differences see beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.closed_loop.instrument_noise import end_window_at
from dynid.estimation.closed_loop.loop_runs import (
    ALIGNED,
    FORGOTTEN,
    LoopRun,
    LoopRuns,
    SimulatedMotion,
    linearise_stability,
    require_loop,
)
from dynid.estimation.closed_loop.loop_search import LoopSearch
from dynid.estimation.closed_loop.loop_stability import LoopStability, loop_simulator
from dynid.estimation.equations import LoopedRuns, StreamedLogs
from dynid.estimation.scores import BESIDE, Block, cut
from dynid.kernels import kernel
from dynid.loop.integrator.rollout import Runs
from dynid.loop.loop import Loop, ReferenceMotion
from dynid.loop.simulator import LoopSimulator
from dynid.processing.experiment import Experiment

SHORTEST_S = 1.0
"""Stretches shorter than this are not simulated: low-passes and differences would see only ends [s]. Convention."""
POSES = 32
"""Least number of poses of a log at which the inertia matrix is checked; shorter logs give all theirs. Convention."""


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
        """Number of samples of all stretches."""
        return sum(stretch.samples for stretch in self.stretches)

    def pieces(self) -> Iterator[Experiment]:
        """The stream, started anew."""
        return (piece for piece in self.log() if piece.samples)

    def finer(self, factor: int) -> LogSurvey:
        """The same with more steps of the integrator between control instants."""
        steps = factor * self.simulator.substeps
        simulator = LoopSimulator(self.simulator.arm, self.simulator.loop, substeps=steps)
        return replace(self, simulator=simulator, stability=linearise_stability(simulator, self.poses), fineness=factor)


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
        loop = require_loop(piece)
        rate = loop.reference.rate_hz
        if self._loop is None:
            self._first, self._loop = piece, loop
        elif rate != self._loop.reference.rate_hz:
            raise _misalignment_error(piece)
        place = (piece.time - loop.start_s) * rate
        if place[0] < -0.5 or place[-1] > len(loop.reference.q) - 0.5:
            raise ArgumentError(
                f"the samples of '{piece.source}' are not within its reference motion",
                remedy="Give every piece a reference that covers it; check Loop.start_s.",
            )
        offset = self._place_reference(piece, loop)
        ticks = offset + np.round(place).astype(np.int64)
        if np.abs(place - (ticks - offset)).max() > ALIGNED or np.any(np.diff(ticks) <= 0):
            raise _misalignment_error(piece)
        log_hz = piece.rate_hz if piece.derivation is None else piece.derivation.smoothing.rate_hz
        period = max(1, round(rate / log_hz))
        steps = np.diff(ticks, prepend=self._last_tick)
        self._every = int(np.gcd.reduce(np.append(steps, [ticks[0], period, self._every])))
        self._cut(piece)
        self._last_tick, self._last_s = int(ticks[-1]), float(piece.time[-1])
        self._keep(piece.q)

    def _place_reference(self, piece: Experiment, loop: Loop) -> int:
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
            linearise_stability(simulator, poses),
            poses,
            first.rate_hz,
            self._every,
            period // self._every,
            filter_reach(first),
        )


def filter_reach(run: Experiment) -> int:
    """Samples on either side of a block that its wide rows' low-passes and differences see."""
    filters = (run.smoothing, None if run.derivation is None else run.derivation.smoothing)
    settling = max((smoothing.settling_s for smoothing in filters if smoothing is not None), default=0.0)
    return 2 * BESIDE + int(np.ceil(FORGOTTEN * settling * run.rate_hz))


def _misalignment_error(piece: Experiment) -> ArgumentError:
    return ArgumentError(
        f"the samples of '{piece.source}' are not taken at control instants of one loop",
        remedy="Give Loop.start_s, or references whose rate is one multiple of the log's.",
    )


CHANNELS = ("time", "q", "dq", "ddq", "effort", "valid")


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A block of a streamed log and the samples beside it, measured and simulated."""

    run: LoopRun
    """The window's samples in their loop"""
    motion: SimulatedMotion
    block: Block
    """Which of the window's samples are the block's"""
    fade: Floats
    """(N,) of the window's samples: rises and falls at the ends of every gap-free stretch"""

    @property
    def valid(self) -> NDArray[np.bool_]:
        """(N, n) of the block's samples: whether they count."""
        return self.run.run.valid[self.block.rows]


class Sums(ABC):
    """What is kept of a simulation of all logs; it grows window by window."""

    def __init__(self, equations: StreamedLogs, beta: Floats) -> None:
        """Nothing is seen yet of the simulation with parameters (b,)."""
        n = equations.robot.dof
        self.equations, self.beta = equations, beta
        self._squares, self._total = np.zeros(n), np.zeros(n)
        self._low, self._high, self._away = np.full(n, np.inf), np.full(n, -np.inf), 0.0

    def see(self, window: Window) -> None:
        """Add a window's block."""
        run, rows, valid = window.run.run, window.block.rows, window.valid
        effort = np.where(valid, np.nan_to_num(run.effort[rows]), 0.0)
        self._squares += (np.where(valid, effort - window.motion.torque[rows], 0.0) ** 2).sum(axis=0)
        self._total += (effort**2).sum(axis=0)
        self._low, self._high = np.minimum(self._low, run.q[rows].min(0)), np.maximum(self._high, run.q[rows].max(0))
        self._away = max(self._away, float(np.abs(window.motion.q[rows] - run.q[rows]).max()))
        self.add(window)

    @abstractmethod
    def add(self, window: Window) -> None:
        """Add what the method needs of a window's block."""

    @property
    def misfit(self) -> float:
        """As `LoopRuns.misfit`."""
        return float((self._squares / np.maximum(self._total, 1e-300)).sum())

    @property
    def follows(self) -> bool:
        """Whether the simulated robot stayed near the measured positions."""
        return self._away < 1.0 + float((self._high - self._low).max())


Kept = TypeVar("Kept", bound=Sums)


@dataclass(frozen=True, slots=True, eq=False)
class StreamSearch(LoopSearch[Kept], Generic[Kept]):
    """All streamed logs in their loops."""

    equations: StreamedLogs
    logs: tuple[LogSurvey, ...]
    size: int
    """Samples of a block"""
    gather: Callable[[StreamedLogs, Floats], Kept]
    """Makes the sums of a simulation"""

    @classmethod
    def of(cls, equations: StreamedLogs, size: int, gather: Callable[[StreamedLogs, Floats], Kept]) -> Self:
        """Go through the logs once and prepare the simulators.

        Raises:
            ArgumentError: A log has no loop.
        """
        return cls(equations, tuple(survey(equations, log) for log in equations.logs), size, gather)

    @property
    def rate_hz(self) -> float:
        """Sampling rate of the longest log [Hz]."""
        return max(self.logs, key=lambda log: log.samples).rate_hz

    def beginnings(self) -> LoopRuns:
        """What was kept of the logs, in its loops."""
        known = self.equations
        beginnings = LoopedRuns(
            robot=known.robot,
            base=known.base,
            information=known.information,
            blocks=known.blocks,
            excerpts=known.excerpts,
        )
        runs = LoopRuns.of(beginnings)
        pairs = zip(runs.runs, self.logs, strict=True)
        return replace(runs, runs=tuple(run.finer(log.fineness) if log.fineness > 1 else run for run, log in pairs))

    def finer(self, factor: int) -> Self:
        """The same with more steps of the integrator between control instants."""
        return replace(self, logs=tuple(log.finer(factor) for log in self.logs))

    def attempt(self, beta: Floats, near: Kept | None = None) -> Kept | None:
        """What is kept of a simulation; None where the loop is not stable or the robot leaves its reference."""
        evaluate = kernel(self.equations.robot, "inertia_matrix", symbolic_parameters=True)
        theta = self.equations.representative(beta)
        if not all(log.stability.holds(evaluate(log.poses, theta), beta) for log in self.logs):
            return None
        sums = self.gather(self.equations, beta)
        try:
            for window in self.windows(beta):
                sums.see(window)
        except EstimationError:
            return None
        return sums if sums.follows else None

    def misfit(self, motions: Kept) -> float:
        """Squares of measured minus simulated torques over those of the measured ones, summed over the joints."""
        return motions.misfit

    def windows(self, beta: Floats) -> Iterator[Window]:
        """All blocks of all logs, simulated with base parameters (b,).

        Raises:
            EstimationError: The robot runs away.
        """
        for log in self.logs:
            yield from _log_windows(log, beta, self.size)


def _log_windows(log: LogSurvey, beta: Floats, size: int) -> Iterator[Window]:
    pieces = log.pieces()
    for stretch in log.stretches:
        if stretch.samples <= SHORTEST_S * log.rate_hz:
            for _ in _first(pieces, stretch.pieces):
                pass
            continue
        follower: _Follower | None = None
        for piece in _first(pieces, stretch.pieces):
            follower = follower or _Follower(log, stretch, beta, size, piece)
            follower.take(piece)
            yield from follower.ready(last=False)
        if follower is None:
            continue
        follower.finish()
        yield from follower.ready(last=True)


def _first(pieces: Iterator[Experiment], count: int) -> Iterator[Experiment]:
    for _ in range(count):
        try:
            yield next(pieces)
        except StopIteration as error:
            raise _stream_changed_error() from error


def _stream_changed_error() -> ArgumentError:
    return ArgumentError(
        "the log is shorter than when it was read first", remedy="Give streams that give the same pieces every time."
    )


class _Follower:
    """The simulation of one stretch of a log, and the samples and records that are still needed."""

    def __init__(self, log: LogSurvey, stretch: Stretch, beta: Floats, size: int, first: Experiment) -> None:
        self._log, self._stretch, self._beta = log, stretch, beta
        self._blocks = list(cut([stretch.samples], size))
        loop = require_loop(first)
        self._state, self._memory = loop.start, loop.start_memory
        self._tick = 0
        """The next one to simulate, counted from the stretch's first"""
        self._records: list[Floats] = []
        self._first_record = 0
        self._measured: dict[str, list[NDArray[Any]]] = {name: [] for name in (*CHANNELS, "record")}
        self._first_sample = self._samples = 0
        self._last, self._loop = first, loop

    def take(self, piece: Experiment) -> None:
        """Take in a piece, and simulate up to its last sample."""
        loop = require_loop(piece)
        offset = round((loop.start_s - self._stretch.origin_s) * loop.reference.rate_hz)
        ticks = offset + np.round((piece.time - loop.start_s) * loop.reference.rate_hz).astype(np.int64)
        self._simulate(loop, offset, int(ticks[-1]) + 1)
        for name in CHANNELS:
            self._measured[name].append(getattr(piece, name))
        self._measured["record"].append(ticks // self._log.every)
        self._samples, self._last, self._loop = self._samples + piece.samples, piece, loop

    def finish(self) -> None:
        """Go on behind the last sample, as far as its low-pass saw."""
        loop, made = self._loop, self._last.derivation
        rate = loop.reference.rate_hz
        beyond = 0.0 if made is None else made.smoothing.settling_s * rate
        offset = round((loop.start_s - self._stretch.origin_s) * rate)
        self._simulate(loop, offset, min(self._tick + int(np.ceil(beyond)), offset + len(loop.reference.q)))

    def _simulate(self, loop: Loop, offset: int, stop: int) -> None:
        """Simulate the ticks up to `stop`; the reference of the piece's loop begins at tick `offset`."""
        every, simulator, reference = self._log.every, self._log.simulator, loop.reference
        between = min(-(-self._tick // every) * every, stop)
        for start, end in ((self._tick, between), (between, stop)):  # to the next record, and on from there
            if start >= end:
                continue
            rows = slice(start - offset, end - offset)
            wanted = np.concatenate([reference.q[rows], reference.dq[rows], reference.ddq[rows]], axis=1)
            runs = simulator.resume(self._beta, self._state, self._memory, wanted, every=every)
            self._state, self._memory, self._tick = runs.last_state[0], runs.last_memory[0], end
            if start % every == 0:
                self._records.append(
                    np.concatenate([getattr(runs, name)[0] for name in ("state", "held", "rate", "memory")], axis=1)
                )

    def ready(self, *, last: bool) -> Iterator[Window]:
        """Windows of which everything is there; what no later one needs is dropped."""
        reach = self._log.reach
        while self._blocks and (last or self._blocks[0].rows.stop + reach <= self._samples):
            block = self._blocks.pop(0)
            self._join()
            lo, hi = max(0, block.rows.start - reach), min(self._samples, block.rows.stop + reach)
            yield self._window(block, lo, hi)
            if self._blocks:
                self._drop(max(0, self._blocks[0].rows.start - reach))
        if last and (self._blocks or self._samples != self._stretch.samples):
            raise _stream_changed_error()

    def _join(self) -> None:
        self._records = [_concatenate(self._records)]
        self._measured = {name: [_concatenate(parts)] for name, parts in self._measured.items()}

    def _drop(self, sample: int) -> None:
        """Forget what lies before a sample."""
        rows = sample - self._first_sample
        record = int(self._measured["record"][0][rows]) if sample else 0
        self._measured = {name: [parts[0][rows:].copy()] for name, parts in self._measured.items()}
        self._records = [self._records[0][record - self._first_record :].copy()]
        self._first_sample, self._first_record = sample, record

    def _window(self, block: Block, lo: int, hi: int) -> Window:
        log, rows = self._log, slice(lo - self._first_sample, hi - self._first_sample)
        channels: dict[str, Any] = {name: parts[0][rows] for name, parts in self._measured.items()}
        record = channels.pop("record")
        first = int(record[0]) if lo else 0
        stop = None if hi == self._stretch.samples else int(record[-1]) + 1 - self._first_record
        runs = _as_runs(self._records[0][first - self._first_record : stop], log.simulator)
        samples = np.arange(lo, hi)
        segment = np.searchsorted(self._stretch.edges, samples, side="right") - 1
        run = replace(self._last, segment=segment, wrench=None, loop=None, **channels)
        window = LoopRun(run, log.simulator, log.every, record - first, log.stability, log.stride)
        n = run.q.shape[1]
        state, rate, at = runs.state[0], runs.rate[0], window.rows
        motion = SimulatedMotion(state[at, :n], state[at, n : 2 * n], rate[at, n : 2 * n], runs.held[0, at], runs)
        inside = (slice(part.start - lo, part.stop - lo) for part in (block.rows, block.wide))
        return Window(window, motion, Block(0, *inside), end_window_at(self._stretch.edges, run.rate_hz, samples))


def _concatenate(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    found = list(parts)
    return found[0] if len(found) == 1 else np.concatenate(found)


def _as_runs(table: Floats, simulator: LoopSimulator) -> Runs:
    """Records (K, ...) as the simulation of a window."""
    s, u = 2 * simulator.loop.dof + 1, simulator.loop.dof
    state, held, rate, memory = np.split(table[None], [s, s + u, 2 * s + u], axis=2)
    return Runs(
        state=state,
        held=held,
        rate=rate,
        memory=memory,
        last_state=state[:, -1],
        last_memory=memory[:, -1],
        step_counts=np.zeros(0, dtype=np.int64),
    )
