"""Runs of a sampled-data system through time, in machine code, or with NumPy where there is no compiler.

At every tick k a law reads the state, its own memory and a row of given samples, and sets an input that is held until
the next tick; in between the state follows its rate by Runge-Kutta steps:

    held, memory = control(state, memory, samples[k]);   d state / dt = rate(state, held, parameters)

The state at the tick and its rate decide how many steps the tick takes. Several independent runs (other parameters, or
other parts of the samples) are computed side by side, one per lane. See `dynid.loop.integrator` for the words.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.loop.integrator.llvm_rollout import LoopSizes, loop_module
from dynid.loop.integrator.runge_kutta import RK4, Positions, Scheme, split_rate
from dynid.tape.program import Backend, compile_tape, compiles
from dynid.tape.tape import Tape

_ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 10)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """The records of L runs at K recorded ticks."""

    state: Floats
    """(L, K, s) states at the ticks."""
    held: Floats
    """(L, K, u) inputs that are held from the tick to the next one."""
    rate: Floats
    """(L, K, s) rates of the state just after the tick."""
    memory: Floats
    """(L, K, m) memory of the law just before the tick."""
    last_state: Floats
    """(L, s) states one period after the last tick."""
    last_memory: Floats
    """(L, m) memory of the law after the last tick."""
    step_counts: npt.NDArray[np.int64]
    """(ticks,) number of steps of every tick."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TracedRuns(Runs):
    """Runs with their trace, for derivatives."""

    stages: Floats
    """(L, sum of step_counts, stages, 2, s) state and rate at every stage of every step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The ticks of a run."""

    period: float
    """Time from tick to tick [s]."""
    ticks: int
    """Number of ticks."""
    every: int = 1
    """Ticks per record; the first tick is recorded."""
    substeps: int = 1
    """Largest number of steps per tick."""

    @property
    def records(self) -> int:
        """Number of records."""
        return -(-self.ticks // self.every)


class _Buffers(NamedTuple):
    """The arrays that the compiled loop reads and writes; ``[element][lane]`` where a run has one vector."""

    x: Floats
    """(s, L) states: the first on entry, the last on return."""
    z: Floats
    """(m, L) memory of the law: the first on entry, the last on return."""
    p: Floats
    """(p, L) parameters."""
    samples: Floats
    """(M, r) rows for the law."""
    rows: npt.NDArray[np.int64]
    """(2, L) row of the samples, and row of the records, at the first tick."""
    records: Floats
    """(rows, record) the records of all lanes."""
    step_counts: npt.NDArray[np.int64]
    """(ticks,) number of steps of every tick."""


class Rollout:
    """A system ready to run.

    Attributes:
        lanes: Number of runs that are computed side by side.
        backend: ``llvm`` or ``numpy``.
    """

    def __init__(
        self,
        control: Tape,
        rate: Tape,
        lanes: int = 1,
        backend: Backend = "auto",
        *,
        pace: Tape | None = None,
        scheme: Scheme = RK4,
    ) -> None:
        """Compile, or load from the cache.

        Args:
            control: ``(state, memory, sample) -> {held, memory}``.
            rate: ``(state, held, parameters) -> rate``.
            lanes: Number of runs side by side; 0 for as many as a vector register holds.
            backend: As for `compile_tape`.
            pace: ``(state, rate) -> steps`` (1,), the number of steps that a tick needs; without it every tick takes
                the largest number.
            scheme: The Runge-Kutta method.
        """
        self._control, self._rate, self._pace, self.scheme = control, rate, pace, scheme
        state, memory, sample = (entry.size for entry in control.inputs)
        self.sizes = LoopSizes(state=state, memory=memory, sample=sample, held=control.outputs[0].size)
        if [entry.size for entry in rate.inputs[:2]] != [state, self.sizes.held] or rate.outputs[0].size != state:
            raise ArgumentError("the law and the rate do not fit: their states or inputs have different sizes")
        self.parameters = rate.inputs[2].size
        self._last_steps: tuple[tuple[float, int], Floats] = ((0.0, 0), np.empty(0))
        self.backend = "llvm" if compiles(backend) else "numpy"
        if self.backend == "numpy":
            self.lanes = lanes or 1
            return
        from dynid.tape.llvm.backend import address
        from dynid.tape.llvm.engine import host, load_code

        self._address = address
        self.lanes = lanes or host().lanes
        marks = (tape.fingerprint if tape else "" for tape in (control, pace, rate))
        key = f"loop {'|'.join(marks)}|{self.lanes}|{scheme.repeated}"

        def text() -> tuple[str, int]:
            return loop_module(control, pace, split_rate(rate), self.sizes, scheme.repeated, self.lanes, host()), 0

        self._code = load_code(key, text, printers=Path(__file__).parent)
        self._entry = _ENTRY(self._code.address("run"))

    def run(
        self,
        state: Floats,
        memory: Floats,
        parameters: Floats,
        samples: Floats,
        timing: Timing,
        *,
        offsets: npt.ArrayLike = 0,
        into: npt.ArrayLike | None = None,
    ) -> Runs:
        """Run as many runs as there are lanes.

        Args:
            state: (L, s) or (s,) states at the first tick.
            memory: (L, m) or (m,) memory of the law at the first tick.
            parameters: (L, p) or (p,) parameters of the rate.
            samples: (M, r) rows for the law.
            timing: The ticks, records and steps.
            offsets: (L,) or () row of the samples at the first tick.
            into: (L,) ascending rows of the first records in one common table: where runs overlap, the end of a run
                replaces the beginning of the next. By default each run has a table of its own.
        """
        rows = np.empty((2, self.lanes), dtype=np.int64)
        rows[0], rows[1] = offsets, timing.records * np.arange(self.lanes) if into is None else into
        buffers = self._buffers(state, memory, parameters, samples, rows, timing)
        self._execute(buffers, timing)
        return Runs(**self._columns(buffers, self.lanes if into is None else 1))

    def trace(self, state: Floats, memory: Floats, parameters: Floats, samples: Floats, timing: Timing) -> TracedRuns:
        """Run as many runs as there are lanes and keep states and rates of every stage; arguments as for `run`."""
        rows = np.stack([np.zeros(self.lanes, dtype=np.int64), timing.records * np.arange(self.lanes)])
        buffers = self._buffers(state, memory, parameters, samples, rows, timing)
        shape = (timing.ticks * timing.substeps, self.scheme.stages, 2, self.sizes.state, self.lanes)
        stages = np.zeros(shape)
        self._execute(buffers, timing, stages)
        stages = stages[: buffers.step_counts.sum()].transpose(4, 0, 1, 2, 3)
        return TracedRuns(**self._columns(buffers, self.lanes), stages=stages)

    def _buffers(
        self,
        state: Floats,
        memory: Floats,
        parameters: Floats,
        samples: Floats,
        rows: npt.NDArray[np.int64],
        timing: Timing,
    ) -> _Buffers:
        first, last = min(rows[0].tolist()), max(rows[0].tolist())
        if min(timing.ticks, timing.every, timing.substeps) < 1 or first < 0 or last + timing.ticks > len(samples):
            raise ArgumentError(
                f"{timing.ticks} ticks from row {last} of {len(samples)} samples, {timing.substeps} steps each",
                remedy="Give as many samples as ticks, and one step or more.",
            )
        x, z, p = (np.empty((k, self.lanes)) for k in (self.sizes.state, self.sizes.memory, self.parameters))
        x.T[:], z.T[:], p.T[:] = state, memory, parameters
        given = np.ascontiguousarray(samples, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != self.sizes.sample:
            raise ArgumentError(f"samples have shape {given.shape}, expected (M, {self.sizes.sample})")
        records = np.empty((int(rows[1, -1]) + timing.records, self.sizes.record))
        return _Buffers(x, z, p, given, rows, records, np.empty(timing.ticks, dtype=np.int64))

    def _execute(self, buffers: _Buffers, timing: Timing, stages: Floats | None = None) -> None:
        """Run the loop by machine code or NumPy; results go into the buffers, and the trace into ``stages``."""
        if self.backend == "numpy":
            self._interpret(buffers, timing, stages)
            return
        counts = np.array([timing.ticks, timing.every, timing.substeps])
        inputs = (buffers.x, buffers.z, buffers.p, buffers.samples, buffers.rows, counts)
        arrays = (*inputs, self._steps(timing.period, timing.substeps), buffers.records, buffers.step_counts)
        self._entry(*map(self._address, arrays), None if stages is None else self._address(stages))

    def _steps(self, period: float, most: int) -> Floats:
        """Nodes and weights of the steps, repeated for every lane; kept for the next run."""
        if self._last_steps[0] != (period, most):
            self._last_steps = (period, most), np.repeat(self.scheme.table(period, most), self.lanes)
        return self._last_steps[1]

    def _columns(self, buffers: _Buffers, tables: int) -> dict[str, Any]:
        """The fields of `Runs`, as views of the records."""
        s, u = self.sizes.state, self.sizes.held
        table = buffers.records.reshape(tables, -1, self.sizes.record)
        return {
            "state": table[:, :, :s],
            "held": table[:, :, s : s + u],
            "rate": table[:, :, s + u : 2 * s + u],
            "memory": table[:, :, 2 * s + u :],
            "last_state": buffers.x.T,
            "last_memory": buffers.z.T,
            "step_counts": buffers.step_counts,
        }

    def _interpret(self, buffers: _Buffers, timing: Timing, stages: Floats | None) -> None:
        """Run the same loop tick by tick with NumPy."""
        done, positions = 0, Positions.of(self._rate)
        places, repeated = list(positions.places), self.scheme.repeated
        control, rate = compile_tape(self._control, "numpy"), compile_tape(self._rate, "numpy")
        pace = compile_tape(self._pace, "numpy") if self._pace else None
        state, memory, parameters = buffers.x.T.copy(), buffers.z.T.copy(), buffers.p.T.copy()
        rows, most = buffers.rows, timing.substeps
        for k in range(timing.ticks):
            decided = control(state, memory, buffers.samples[rows[0] + k])
            held = decided["held"]
            rates = rate(state, held, parameters)
            if k % timing.every == 0:
                record = np.concatenate((state, held, rates, memory), axis=1)
                buffers.records[rows[1] + k // timing.every] = record
            memory = decided["memory"]
            wanted = np.full((self.lanes, 1), most)
            if pace is not None:
                wanted = np.clip(np.ceil(pace(state, rates)), 1, most).astype(np.int64).reshape(-1, 1)
            count = int(wanted.max())
            buffers.step_counts[k] = count
            for step in range(count):
                h = np.where(step < wanted, timing.period / wanted, 0.0)  # each lane takes its own steps, then waits
                start, here, rates = state, state, np.zeros_like(state)
                for i, (node, weight) in enumerate(zip(self.scheme.nodes, self.scheme.weights, strict=True)):
                    before, here = here, positions.moved(start, node * h, rates)
                    if repeated[i]:
                        here[:, places] = before[:, places]
                    rates = rate(here, held, parameters)
                    state = state + weight * h * rates
                    if stages is not None:
                        stages[done, i] = here.T, rates.T
                done += 1
        buffers.x[:], buffers.z[:] = state.T, memory.T
