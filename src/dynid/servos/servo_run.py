"""Simulate a chain of servos through K time steps in machine code, and differentiate its positions.

`ServoRun` is called by servo_simulator.py with the commands of a log and parameters; n is the number of joints. The
step itself and its derivatives are *tapes* (recorded programs, servo_step.py), compiled by LLVM; the loops over the
steps are LLVM code written here as text.

Derivatives S of the state with respect to the parameters are carried from step to step (forward sensitivities): after a
step they are ``transition S + columns``, with the derivatives of the step with respect to the state (``transition``)
and to the parameters themselves (``columns``). Both tables are computed for many steps at a time, the recursion
follows.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.servos.servo_step import ServoPlant, slope_tape, step_tape
from dynid.tape import Program, compile_tape
from dynid.tape.llvm.engine import Host, host, load_code
from dynid.tape.llvm.functions import GROUP, PASSES, print_function
from dynid.tape.llvm.ir import Writer, declarations
from dynid.tape.tape import Tape

Flags = NDArray[np.int64]

CHUNK = 512
"""Number of steps that are linearised at a time (convention: their tables fit into the cache)."""


class ServoRun:
    """The compiled steps of a plant (robot, drive law and kinds of parameters), and their derivatives."""

    def __init__(self, plant: ServoPlant) -> None:
        """Compile the code, or load it from the cache; the tape of the derivatives is compiled at first use."""
        self.plant = plant
        tape = step_tape(plant)
        # columns of S: parameters, commanded positions, commanded velocities, and zeros up to whole registers
        self.width = pad_width(plant.parameter_count + 2 * plant.dof)
        sizes = (plant.dof, plant.state_size, self.width)
        folder = Path(__file__).parent
        self._code = (  # the code must live as long as its entries are called
            load_code(f"servo steps {tape.fingerprint}", lambda: steps_module(tape, host()), printers=folder),
            load_code(f"servo derivatives {sizes}", lambda: carry_module(*sizes, host()), printers=folder),
        )
        self._steps = self._code[0].entry("run", 5)  # functions of 5 and of 7 arguments
        self._carry = self._code[1].entry("run", 7)

    @cached_property
    def _slopes(self) -> Program:
        """Compile the derivatives of one step, ``transition`` and ``columns``; the program takes many at a time."""
        return compile_tape(slope_tape(self.plant, self.width))

    def trace(self, start: Floats, samples: Floats, gains: Floats, parameters: Floats) -> Floats:
        """Simulate K steps.

        Args:
            start: (s,) first state: encoder readings [rad or m], velocities, and integrals of the position errors if
                the drive law has them.
            samples: (K, 1 + 3 n) length of the step [s], commanded positions, commanded velocities, and 1 for each
                drive that is enabled.
            gains: (4 n,) kp, kd, ki and supply voltage of the drives during the motion.
            parameters: (kinds n,) parameters, n of each kind.

        Returns:
            (K + 1, s) the first state, and the state after each step.
        """
        trace = np.empty((len(samples) + 1, self.plant.state_size))
        trace[0] = start
        arrays = (trace, samples, np.ascontiguousarray(gains), np.ascontiguousarray(parameters))
        self._steps(*(array.ctypes.data for array in arrays), len(samples))
        return trace

    def derivatives(
        self,
        trace: Floats,
        samples: Floats,
        gains: Floats,
        parameters: Floats,
        command_slopes: tuple[Floats, Floats],
        noted: Flags,
    ) -> Floats:
        """Compute the derivatives of the positions after some steps, with the first state fixed.

        Args:
            trace: (K + 1, s) states from `trace`.
            samples: (K, 1 + 3 n) as for `trace`.
            gains: (4 n,) as for `trace`.
            parameters: (kinds n,) as for `trace`.
            command_slopes: Derivatives of the commanded positions, and of the commanded velocities, with respect to the
                delay of the joint, (K, n) each.
            noted: (K,) 1 for each of the N steps after which the derivatives are wanted, 0 for others.

        Returns:
            (N, n, kinds n + n) derivatives of the positions with respect to the parameters, then to each joint's delay.
        """
        plant = self.plant
        n = plant.dof
        # columns of the commanded positions, which become those of the delays, and of the commanded velocities
        delays = slice(plant.parameter_count, plant.parameter_count + n)
        velocities = slice(plant.parameter_count + n, plant.parameter_count + 2 * n)
        S = np.zeros((plant.state_size, self.width))
        out = np.empty((int(noted.sum()), n, self.width))
        done = 0
        has_velocity_slopes = bool(command_slopes[1].any())
        for first in range(0, len(samples), CHUNK):
            part = slice(first, first + CHUNK)
            # new velocities of each step, and the tables (K', r, s) and (K', r, width) of the steps of this chunk
            later = np.ascontiguousarray(trace[1:][part, n : 2 * n])
            found = self._slopes(trace[:-1][part], samples[part], gains, parameters, later)
            columns = found["columns"]
            # chain rule: a delay changes the commanded position and velocity of a step
            columns[:, :, delays] *= command_slopes[0][part, None, :]
            if has_velocity_slopes:
                columns[:, :, delays] += columns[:, :, velocities] * command_slopes[1][part, None, :]
            columns[:, :, velocities] = 0.0
            steps = np.ascontiguousarray(samples[part, 0])
            count = int(noted[part].sum())
            flags = np.ascontiguousarray(noted[part])
            arrays = (S, steps, found["transition"], columns, flags, out[done : done + count])
            self._carry(*(array.ctypes.data for array in arrays), len(steps))
            done += count
        return out[:, :, : plant.parameter_count + n]


@lru_cache(maxsize=32)
def compiled_run(plant: ServoPlant) -> ServoRun:
    """Return the compiled steps of a plant; equal plants share them."""
    return ServoRun(plant)


_MEMORY = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
"""Declarations of LLVM's own functions that set and copy memory."""


def steps_module(step: Tape, host: Host) -> str:
    """Write the LLVM module that repeats the step: for all k, row k + 1 of the trace is the step from row k.

    Its entry is ``void run(ptr trace, ptr samples, ptr gains, ptr parameters, i64 steps)``. The trace has one row more
    than there are steps; the caller writes its first row.

    Args:
        step: The tape of the step.
        host: The processor that the code is for; it says whether there is a fused multiply-add.
    """
    state, sample = step.inputs[0].size, step.inputs[1].size
    return f"""{declarations(1)}{PASSES}{_MEMORY}
{print_function("step", step, host.fused)}
define void @run(ptr %trace, ptr %samples, ptr %gains, ptr %parameters, i64 %steps) {{
entry:
br label %loop
loop:
%k = phi i64 [ 0, %entry ], [ %k_next, %loop ]
%from_at = mul i64 %k, {state}
%from = getelementptr inbounds double, ptr %trace, i64 %from_at
%to = getelementptr inbounds double, ptr %from, i64 {state}
%sample_at = mul i64 %k, {sample}
%sample = getelementptr inbounds double, ptr %samples, i64 %sample_at
call void @step(ptr %from, ptr %sample, ptr %gains, ptr %parameters, ptr %to)
%k_next = add i64 %k, 1
%more = icmp ult i64 %k_next, %steps
br i1 %more, label %loop, label %end
end:
ret void
}}
"""


def carry_module(dof: int, state: int, width: int, host: Host) -> str:
    """Write the LLVM module that carries the derivatives S (state, width) through many steps.

    Its entry is ``void run(ptr S, ptr steps, ptr transition, ptr columns, ptr noted, ptr out, i64 count)``. In each
    step the rows of S after the first n become ``transition S + columns``. The first n rows, those of positions, change
    by the mean of old and new velocities times the length of the step. After a step with a number other than zero in
    ``noted`` (i64) the first n rows are copied to the next place in ``out``.

    The code of one step works on one register of columns at a time (`Columns`): all rows of S in these columns are
    loaded, then each new row is computed and stored. A double has 8 bytes.

    Args:
        dof: Number of joints n.
        state: Number of rows of S.
        width: Number of columns of S, whole registers.
        host: The processor that the code is for: doubles in a register, and whether there is a fused multiply-add.
    """
    rows = state - dof
    lanes = min(GROUP, 2 * host.lanes)
    w = Columns(lanes, host.fused)
    S = w.here("%S")
    columns = w.here("%columns")
    before = [w.load(S, 8 * width * j) for j in range(state)]  # S before the step
    half = w.binary("fmul", w.splat("%step", 0), w.constant(0.5))
    for i in range(rows):
        total = w.load(columns, 8 * width * i)
        for j in range(state):
            total = w.multiply_add(w.splat("%transition", 8 * (i * state + j)), before[j], total)
        w.store(total, S, 8 * width * (dof + i))
        if i < dof:  # row i of the new velocities is complete: so is row i of the positions
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


def pad_width(columns: int) -> int:
    """Round a number of columns up to whole vector registers of the widest kind, 512 bits."""
    return columns + -columns % GROUP


class Columns(Writer):
    """Writes the body of a loop over the columns of matrices, one vector register of columns at a time.

    Texts that are returned are names of LLVM values.
    """

    def __init__(self, lanes: int, fused: bool) -> None:
        """Start with an empty body; ``lanes`` doubles are in a register, ``fused`` allows multiply-add."""
        super().__init__(lanes)
        self.fused = fused

    def multiply_add(self, left: str, right: str, addend: str) -> str:
        """Write ``left * right + addend``."""
        if self.fused:
            return self.fma(left, right, addend)
        return self.binary("fadd", self.binary("fmul", left, right), addend)

    def splat(self, base: str, offset: int) -> str:
        """Write the load of one number into every lane of a register."""
        one = self.value(f"load double, ptr {self.address(base, offset)}, align 8")
        first = self.value(f"insertelement {self.kind} poison, double {one}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.value(f"shufflevector {self.kind} {first}, {self.kind} poison, {zeros}")

    def here(self, base: str) -> str:
        """Write the pointer to the present column of a row."""
        return self.value(f"getelementptr inbounds double, ptr {base}, i64 %c")

    def loop(self, name: str, arguments: str, count: int) -> str:
        """Wrap the code written so far into a function (its LLVM text) that runs it for so many columns."""
        return f"""
define internal void @{name}({arguments}) {{
entry:
br label %loop
loop:
%c = phi i64 [ 0, %entry ], [ %c_next, %loop ]
{self.text()}
%c_next = add i64 %c, {self.lanes}
%more = icmp ult i64 %c_next, {count}
br i1 %more, label %loop, label %end
end:
ret void
}}"""
