"""A chain of servos run through many steps in machine code, with the derivatives of its positions."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.control_loop.llvm_loop import PADDING, Columns, pad_width
from dynid.servos.servo_step import ServoPlant, slope_tape, step_tape
from dynid.tape import Program, compile_tape
from dynid.tape.llvm.engine import Host, host, load_code
from dynid.tape.llvm.functions import PASSES, print_function
from dynid.tape.llvm.ir import declarations
from dynid.tape.tape import Tape

Flags = NDArray[np.int64]
CHUNK = 512
"""Steps that are linearised at a time, so that their tables fit into the cache. Convention."""


class ServoRun:
    """The steps of a plant and their derivatives, ready to run."""

    def __init__(self, plant: ServoPlant) -> None:
        """Compile the steps, or load them from the cache; the derivatives follow when they are first needed."""
        self.plant, tape = plant, step_tape(plant)
        self.width = pad_width(plant.cells + 2 * plant.dof)
        sizes = (plant.dof, plant.state, self.width)
        folder = Path(__file__).parent
        self._code = (
            load_code(f"servo steps {tape.fingerprint}", lambda: steps_module(tape, host()), printers=folder),
            load_code(f"servo derivatives {sizes}", lambda: carry_module(*sizes, host()), printers=folder),
        )
        self._steps, self._carry = self._code[0].entry("run", 5), self._code[1].entry("run", 7)

    @cached_property
    def _slopes(self) -> Program:
        return compile_tape(slope_tape(self.plant, self.width))

    def trace(self, start: Floats, samples: Floats, given: Floats, parameters: Floats) -> Floats:
        """(K + 1, s) states from the start (s,) through K steps.

        Args:
            start: (s,) first state.
            samples: (K, 1 + 3 n) step [s], commands, commanded velocities, enabled.
            given: (4 n,) gains and voltage of the motion.
            parameters: (kinds n,) parameters.
        """
        trace = np.empty((len(samples) + 1, self.plant.state))
        trace[0] = start
        arrays = (trace, samples, np.ascontiguousarray(given), np.ascontiguousarray(parameters))
        self._steps(*(array.ctypes.data for array in arrays), len(samples))
        return trace

    def derivatives(
        self,
        trace: Floats,
        samples: Floats,
        given: Floats,
        parameters: Floats,
        command_slopes: tuple[Floats, Floats],
        noted: Flags,
    ) -> Floats:
        """(noted, n, kinds n + n) derivatives of the positions after the noted steps.

        By the parameters, and by what moves the command of each joint (a delay); the first state is given.

        Args:
            trace: (K + 1, s) states from `trace`.
            samples: (K, 1 + 3 n) as for `trace`.
            given: (4 n,) as for `trace`.
            parameters: (kinds n,) as for `trace`.
            command_slopes: (K, n) changes of each command and of each commanded velocity by what moves it.
            noted: (K,) 1 for steps after which the derivatives are wanted, 0 for others.
        """
        plant, n = self.plant, self.plant.dof
        S = np.zeros((plant.state, self.width))
        out = np.empty((int(noted.sum()), n, self.width))
        done, rates_move = 0, bool(command_slopes[1].any())
        for first in range(0, len(samples), CHUNK):
            part = slice(first, first + CHUNK)
            later = np.ascontiguousarray(trace[1:][part, n : 2 * n])
            found = self._slopes(trace[:-1][part], samples[part], given, parameters, later)
            columns, moved = found["columns"], plant.cells + n
            columns[:, :, plant.cells : moved] *= command_slopes[0][part, None, :]
            if rates_move:
                rates = columns[:, :, moved : moved + n] * command_slopes[1][part, None, :]
                columns[:, :, plant.cells : moved] += rates
            columns[:, :, moved : moved + n] = 0.0
            steps, count = np.ascontiguousarray(samples[part, 0]), int(noted[part].sum())
            flags = np.ascontiguousarray(noted[part])
            arrays = (S, steps, found["transition"], columns, flags, out[done : done + count])
            self._carry(*(array.ctypes.data for array in arrays), len(steps))
            done += count
        return out[:, :, : plant.cells + n]


@lru_cache(maxsize=32)
def compiled_run(plant: ServoPlant) -> ServoRun:
    """The compiled steps of a plant; equal plants share them."""
    return ServoRun(plant)


_MEMORY = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def steps_module(step: Tape, host: Host) -> str:
    """The module with its entry ``run(ptr trace, ptr samples, ptr given, ptr parameters, i64 steps)``.

    The trace has one state more than there are steps; its first row is given.
    """
    state, sample = step.inputs[0].size, step.inputs[1].size
    return f"""{declarations(1)}{PASSES}{_MEMORY}
{print_function("step", step, host.fused)}
define void @run(ptr %trace, ptr %samples, ptr %given, ptr %parameters, i64 %steps) {{
entry:
br label %loop
loop:
%k = phi i64 [ 0, %entry ], [ %k_next, %loop ]
%from_at = mul i64 %k, {state}
%from = getelementptr inbounds double, ptr %trace, i64 %from_at
%to = getelementptr inbounds double, ptr %from, i64 {state}
%sample_at = mul i64 %k, {sample}
%sample = getelementptr inbounds double, ptr %samples, i64 %sample_at
call void @step(ptr %from, ptr %sample, ptr %given, ptr %parameters, ptr %to)
%k_next = add i64 %k, 1
%more = icmp ult i64 %k_next, %steps
br i1 %more, label %loop, label %end
end:
ret void
}}
"""


def carry_module(dof: int, state: int, width: int, host: Host) -> str:
    """The module with its entry ``run``, which carries derivatives S [state][width] through steps.

    ``void run(ptr S, ptr steps, ptr transition, ptr columns, ptr noted, ptr out, i64 count)``: the rows after the first
    n follow ``transition S + columns``; the first n, positions, move with the mean of old and new velocities times
    the step. After a step that is noted (i64, not zero) the first n rows are copied to the output.
    """
    rows, lanes = state - dof, min(PADDING, 2 * host.lanes)
    w = Columns(lanes, host.fused)
    S, columns = w.here("%S"), w.here("%columns")
    before = [w.load(S, 8 * width * j) for j in range(state)]
    half = w.binary("fmul", w.splat("%step", 0), w.constant(0.5))
    for i in range(rows):
        total = w.load(columns, 8 * width * i)
        for j in range(state):
            total = w.multiply_add(w.splat("%transition", 8 * (i * state + j)), before[j], total)
        w.store(total, S, 8 * width * (dof + i))
        if i < dof:
            moved = w.multiply_add(half, w.binary("fadd", before[dof + i], total), before[i])
            w.store(moved, S, 8 * width * i)
    carried = w.loop("carry", "ptr %S, ptr %step, ptr %transition, ptr %columns", width)
    return f"""{declarations(lanes)}{_MEMORY}{carried}
define void @run(ptr %S, ptr %steps, ptr %transitions, ptr %columns, ptr %noted, ptr %out, i64 %count) {{
entry:
br label %loop
loop:
%k = phi i64 [ 0, %entry ], [ %k_next, %next ]
%to = phi ptr [ %out, %entry ], [ %to_next, %next ]
%step = getelementptr inbounds double, ptr %steps, i64 %k
%transition_at = mul i64 %k, {rows * state}
%transition = getelementptr inbounds double, ptr %transitions, i64 %transition_at
%column_at = mul i64 %k, {rows * width}
%column = getelementptr inbounds double, ptr %columns, i64 %column_at
call void @carry(ptr %S, ptr %step, ptr %transition, ptr %column)
%noted_at = getelementptr inbounds i64, ptr %noted, i64 %k
%flag = load i64, ptr %noted_at, align 8
%wanted = icmp ne i64 %flag, 0
br i1 %wanted, label %note, label %next
note:
call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %S, i64 {8 * dof * width}, i1 false)
%to_more = getelementptr inbounds double, ptr %to, i64 {dof * width}
br label %next
next:
%to_next = phi ptr [ %to, %loop ], [ %to_more, %note ]
%k_next = add i64 %k, 1
%more = icmp ult i64 %k_next, %count
br i1 %more, label %loop, label %end
end:
ret void
}}
"""
