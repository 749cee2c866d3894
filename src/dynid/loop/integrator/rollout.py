"""A sampled-data system run through time in machine code, or by NumPy where there is no compiler.

At every tick k a law reads the state, its own memory and a row of given samples, and sets an input that is held until
the next tick; in between the state follows its rate by Runge-Kutta steps:

    held, memory = control(state, memory, samples[k]);   d state / dt = rate(state, held, parameters)

As many steps are taken as the state at the tick and its rate ask for.

Several independent runs (other parameters, or other stretches of the samples) go side by side.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dynid.errors import ArgumentError
from dynid.loop.integrator.machine_loop import LoopSizes, loop_module
from dynid.loop.integrator.rollout_stage import RK4, Positions, Scheme, evaluations
from dynid.tape.program import Backend, compile_tape, compiles
from dynid.tape.tape import Tape

__all__ = ["Rollout", "Runs"]

Floats = npt.NDArray[np.float64]
_ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 10)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """What L runs did, at the ticks that were recorded (K of them)."""

    state: Floats
    """(L, K, s)"""
    held: Floats
    """(L, K, u) input from this tick on"""
    rate: Floats
    """(L, K, s) of the state just after the tick"""
    memory: Floats
    """(L, K, m) of the law, before the tick"""
    last_state: Floats
    """(L, s) one period after the last tick"""
    last_memory: Floats
    """(L, m)"""
    taken: npt.NDArray[np.int64]
    """(ticks,) steps of every tick"""
    stages: Floats | None = None
    """(L, sum of taken, stages, 2, s) state and rate at the stages of every step, where asked for"""


class Rollout:
    """A system ready to run.

    Attributes:
        lanes: runs that are computed side by side.
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
            lanes: runs side by side; 0 for as many as a vector register holds.
            backend: as for `compile_tape`.
            pace: ``(state, rate) -> steps`` (1,) wanted at a tick; as many as may be, without it.
            scheme: how the state follows its rate.
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
            return loop_module(control, pace, evaluations(rate), self.sizes, scheme.repeated, self.lanes, host()), 0

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
            state: (L, s) or (s,) at the first tick.
            memory: (L, m) or (m,) of the law.
            parameters: (L, p) or (p,).
            samples: (M, r) rows for the law.
            period: time from tick to tick [s].
            ticks: how many.
            every: ticks per record; the first one is recorded.
            substeps: Runge-Kutta steps per tick at most.
            offsets: (L,) or () row of the samples at the first tick.
            into: (L,) places of the first records in one table for all runs, which ascend: where runs overlap, the end
                of the one counts, not the beginning of the next. A table for each by default.
            trace: keep states and rates of every stage.
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
        taken = np.empty(ticks, dtype=np.int64)
        if self.backend == "llvm":
            steps, counts = self._steps(period, substeps), np.array([ticks, every, substeps])
            arrays = (x, z, p, given, rows, counts, steps, records, taken)
            self._entry(*map(self._address, arrays), None if stages is None else self._address(stages))
        else:
            self._interpret(x, z, p, given, rows, records, taken, stages, (every, substeps), period)
        return self._results(
            records.reshape(self.lanes if into is None else 1, -1, self.sizes.record), x, z, taken, stages
        )

    def _steps(self, period: float, most: int) -> Floats:
        """Nodes and weights in every lane; kept for the next run."""
        if self._last_steps[0] != (period, most):
            self._last_steps = (period, most), np.repeat(self.scheme.table(period, most), self.lanes)
        return self._last_steps[1]

    def _results(
        self, table: Floats, x: Floats, z: Floats, taken: npt.NDArray[np.int64], stages: Floats | None
    ) -> Runs:
        s, u = self.sizes.state, self.sizes.held
        return Runs(
            state=table[:, :, :s],
            held=table[:, :, s : s + u],
            rate=table[:, :, s + u : 2 * s + u],
            memory=table[:, :, 2 * s + u :],
            last_state=x.T,
            last_memory=z.T,
            taken=taken,
            stages=None if stages is None else stages[: taken.sum()].transpose(4, 0, 1, 2, 3),
        )

    def _interpret(
        self,
        x: Floats,
        z: Floats,
        p: Floats,
        samples: Floats,
        rows: npt.NDArray[np.int64],
        records: Floats,
        taken: npt.NDArray[np.int64],
        stages: Floats | None,
        counts: tuple[int, int],
        period: float,
    ) -> None:
        """The same loop, tick by tick with NumPy."""
        (every, most), done, positions = counts, 0, Positions.of(self._rate)
        places, repeated = list(positions.places), self.scheme.repeated
        control, rate = compile_tape(self._control, "numpy"), compile_tape(self._rate, "numpy")
        pace = compile_tape(self._pace, "numpy") if self._pace else None
        state, memory, parameters = x.T.copy(), z.T.copy(), p.T.copy()
        for k in range(len(taken)):
            decided = control(state, memory, samples[rows[0] + k])
            held = decided["held"]
            rates = rate(state, held, parameters)
            if k % every == 0:
                records[rows[1] + k // every] = np.concatenate((state, held, rates, memory), axis=1)
            memory = decided["memory"]
            taken[k] = most if pace is None else np.clip(np.ceil(pace(state, rates).max()), 1, most)
            h = period / taken[k]
            for _ in range(taken[k]):
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
