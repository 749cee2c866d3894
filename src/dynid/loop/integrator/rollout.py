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

import numpy as np
import numpy.typing as npt

from dynid.errors import ArgumentError
from dynid.loop.integrator.llvm_rollout import LoopSizes, loop_module
from dynid.loop.integrator.runge_kutta import RK4, Positions, Scheme, split_rate
from dynid.tape.program import Backend, compile_tape, compiles
from dynid.tape.tape import Tape

__all__ = ["Rollout", "Runs"]

Floats = npt.NDArray[np.float64]
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
    stages: Floats | None = None
    """(L, sum of step_counts, stages, 2, s) the trace: state and rate at every stage; None without a trace."""


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
        *,
        period: float,
        ticks: int,
        every: int = 1,
        substeps: int = 1,
        offsets: npt.ArrayLike = 0,
        into: npt.ArrayLike | None = None,
        trace: bool = False,
    ) -> Runs:
        """Run as many runs as there are lanes.

        Args:
            state: (L, s) or (s,) states at the first tick.
            memory: (L, m) or (m,) memory of the law at the first tick.
            parameters: (L, p) or (p,) parameters of the rate.
            samples: (M, r) rows for the law.
            period: Time from tick to tick [s].
            ticks: Number of ticks.
            every: Ticks per record; the first tick is recorded.
            substeps: Largest number of steps per tick.
            offsets: (L,) or () row of the samples at the first tick.
            into: (L,) ascending rows of the first records in one common table: where runs overlap, the end of a run
                replaces the beginning of the next. By default each run has a table of its own.
            trace: Whether states and rates of every stage are kept.
        """
        rows, count = np.empty((2, self.lanes), dtype=np.int64), -(-ticks // every)
        rows[0], rows[1] = offsets, count * np.arange(self.lanes) if into is None else into
        first, last = min(rows[0].tolist()), max(rows[0].tolist())
        if ticks < 1 or every < 1 or substeps < 1 or first < 0 or last + ticks > len(samples):
            raise ArgumentError(
                f"{ticks} ticks from row {last} of {len(samples)} samples, {substeps} steps each",
                remedy="Give as many samples as ticks, and one step or more.",
            )
        x, z, p = (np.empty((k, self.lanes)) for k in (self.sizes.state, self.sizes.memory, self.parameters))
        x.T[:], z.T[:], p.T[:] = state, memory, parameters
        given = np.ascontiguousarray(samples, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != self.sizes.sample:
            raise ArgumentError(f"samples have shape {given.shape}, expected (M, {self.sizes.sample})")
        records = np.empty((int(rows[1, -1]) + count, self.sizes.record))
        shape = (ticks * substeps, self.scheme.stages, 2, self.sizes.state, self.lanes)
        stages = np.zeros(shape) if trace else None
        step_counts = np.empty(ticks, dtype=np.int64)
        if self.backend == "llvm":
            steps, counts = self._steps(period, substeps), np.array([ticks, every, substeps])
            arrays = (x, z, p, given, rows, counts, steps, records, step_counts)
            self._entry(*map(self._address, arrays), None if stages is None else self._address(stages))
        else:
            self._interpret(x, z, p, given, rows, records, step_counts, stages, (every, substeps), period)
        return self._results(
            records.reshape(self.lanes if into is None else 1, -1, self.sizes.record), x, z, step_counts, stages
        )

    def _steps(self, period: float, most: int) -> Floats:
        """Nodes and weights of the steps, repeated for every lane; kept for the next run."""
        if self._last_steps[0] != (period, most):
            self._last_steps = (period, most), np.repeat(self.scheme.table(period, most), self.lanes)
        return self._last_steps[1]

    def _results(
        self, table: Floats, x: Floats, z: Floats, step_counts: npt.NDArray[np.int64], stages: Floats | None
    ) -> Runs:
        s, u = self.sizes.state, self.sizes.held
        return Runs(
            state=table[:, :, :s],
            held=table[:, :, s : s + u],
            rate=table[:, :, s + u : 2 * s + u],
            memory=table[:, :, 2 * s + u :],
            last_state=x.T,
            last_memory=z.T,
            step_counts=step_counts,
            stages=None if stages is None else stages[: step_counts.sum()].transpose(4, 0, 1, 2, 3),
        )

    def _interpret(
        self,
        x: Floats,
        z: Floats,
        p: Floats,
        samples: Floats,
        rows: npt.NDArray[np.int64],
        records: Floats,
        step_counts: npt.NDArray[np.int64],
        stages: Floats | None,
        counts: tuple[int, int],
        period: float,
    ) -> None:
        """Run the same loop tick by tick with NumPy."""
        (every, most), done, positions = counts, 0, Positions.of(self._rate)
        places, repeated = list(positions.places), self.scheme.repeated
        control, rate = compile_tape(self._control, "numpy"), compile_tape(self._rate, "numpy")
        pace = compile_tape(self._pace, "numpy") if self._pace else None
        state, memory, parameters = x.T.copy(), z.T.copy(), p.T.copy()
        for k in range(len(step_counts)):
            decided = control(state, memory, samples[rows[0] + k])
            held = decided["held"]
            rates = rate(state, held, parameters)
            if k % every == 0:
                records[rows[1] + k // every] = np.concatenate((state, held, rates, memory), axis=1)
            memory = decided["memory"]
            step_counts[k] = most if pace is None else np.clip(np.ceil(pace(state, rates).max()), 1, most)
            h = period / step_counts[k]
            for _ in range(step_counts[k]):
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
        x[:], z[:] = state.T, memory.T
