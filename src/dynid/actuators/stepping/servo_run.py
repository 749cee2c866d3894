"""A chain of servos run through many steps in machine code, with the derivatives of its positions; NumPy otherwise."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.stepping.llvm_steps import carry_module, steps_module
from dynid.actuators.stepping.servo_step import ServoPlant, slope_tape, step_tape
from dynid.arrays import Floats
from dynid.loop.derivative_columns import pad_width
from dynid.tape import Program, compile_tape
from dynid.tape.program import Backend, compiles

Flags = NDArray[np.int64]
CHUNK = 512
"""Steps that are linearised at a time, so that their tables fit into the cache. Convention."""
_STEPS = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)
_CARRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 6, ctypes.c_int64)


class ServoRun:
    """The steps of a plant and their derivatives, ready to run."""

    def __init__(self, plant: ServoPlant, backend: Backend = "auto") -> None:
        """Compile the steps, or load them from the cache; the derivatives follow when they are first needed."""
        self.plant, self._backend = plant, backend
        n = plant.dof
        self.width = pad_width(plant.cells + 2 * n)
        self._tape = step_tape(plant)
        self._steps = self._carry = None
        self._slopes: Program | None = None
        if compiles(backend):
            from dynid.tape.llvm.engine import host, load_code

            key = f"servo steps {self._tape.fingerprint}"
            self._code = load_code(key, lambda: (steps_module(self._tape, host()), 1), printers=_PRINTERS)
            self._steps = _STEPS(self._code.address("run"))
            sizes = (n, plant.state, self.width)
            key = f"servo derivatives {sizes}"
            self._second = load_code(key, lambda: (carry_module(*sizes, host()), 2), printers=_PRINTERS)
            self._carry = _CARRY(self._second.address("run"))

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
        if self._steps is None:
            step = compile_tape(self._tape, "numpy")
            for k, sample in enumerate(samples):
                trace[k + 1] = step(trace[k], sample, given, parameters)
            return trace
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
        if self._slopes is None:
            self._slopes = compile_tape(slope_tape(plant, self.width), self._backend)
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
            steps = np.ascontiguousarray(samples[part, 0])
            count = int(noted[part].sum())
            self._follow(S, steps, found["transition"], columns, noted[part], out[done : done + count])
            done += count
        return out[:, :, : plant.cells + n]

    def _follow(self, S: Floats, steps: Floats, transition: Floats, columns: Floats, noted: Flags, out: Floats) -> None:
        """Carry the derivatives S (s, width) through some steps, in place."""
        if self._carry is not None:
            arrays = (S, steps, transition, columns, np.ascontiguousarray(noted), out)
            self._carry(*(array.ctypes.data for array in arrays), len(steps))
            return
        n, done = self.plant.dof, 0
        for k, h in enumerate(steps):
            new = transition[k] @ S + columns[k]
            S[:n] += 0.5 * h * (S[n : 2 * n] + new[:n])
            S[n:] = new
            if noted[k]:
                out[done] = S[:n]
                done += 1


@lru_cache(maxsize=32)
def compiled_run(plant: ServoPlant, backend: Backend = "auto") -> ServoRun:
    """The compiled steps of a plant; equal plants share them."""
    return ServoRun(plant, backend)


_PRINTERS = Path(__file__).parent
