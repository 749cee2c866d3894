"""Derivatives of a simulated second-order system with respect to its parameters, tick after tick.

See `dynid.tape.llvm_variation` for the equations; NumPy runs the same where there is no compiler.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dynid.tape.llvm_variation import PADDING, variation_module
from dynid.tape.program import Backend, compiles

__all__ = ["Linearisation", "Variation", "padded"]

Floats = npt.NDArray[np.float64]
_ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 9)


def padded(parameters: int) -> int:
    """Columns that so many parameters take."""
    return parameters + -parameters % PADDING


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linearisation:
    """The derivatives along some ticks of a run; all arrays C-contiguous."""

    laws: Floats
    """(ticks, n + m, 2 n + m) of held inputs and new memory with respect to positions, velocities, memory"""
    stiffness: Floats
    """(steps, 4, n, n) of the bias with respect to positions"""
    damping: Floats
    """(steps, 4, n, n) with respect to velocities"""
    columns: Floats
    """(steps, 4, n, B) with respect to the parameters"""
    mobility: Floats
    """(steps, 4, n, n) inverse inertia"""


class Variation:
    """The recursion for n joints, m numbers of memory and B parameters, ready to run."""

    def __init__(self, dof: int, memory: int, width: int, backend: Backend = "auto") -> None:
        """Compile, or load from the cache; ``width`` is `padded`."""
        self.dof, self.memory, self.width = dof, memory, width
        self._entry = None
        if not compiles(backend):
            return
        from dynid.tape.llvm_engine import host, load_code

        key = f"variation {dof} {memory} {width}"
        self._code = load_code(key, lambda: (variation_module(dof, memory, width, host()), 2))
        self._entry = _ENTRY(self._code.address("run"))

    def run(self, S: Floats, along: Linearisation, *, period: float, first: int, every: int) -> Floats:
        """Carry S (2 n + m, B) through some ticks, in place.

        Args:
            S: derivatives of positions, velocities and memory at the first of these ticks.
            along: the linearisation of these ticks.
            period: time from tick to tick [s].
            first: number of the first tick; those whose number is a multiple of ``every`` are recorded.
            every: ticks per record.

        Returns:
            (K, 2 n, B) derivatives of positions and of held inputs at the recorded ticks.
        """
        ticks = len(along.laws)
        substeps = len(along.stiffness) // ticks
        h = period / substeps
        records = np.empty((len(range(-first % every, ticks, every)), 2 * self.dof, self.width))
        if self._entry is None:
            self._interpret(S, along, h, first, every, records)
            return records
        counts, steps = np.array([ticks, substeps, first, every]), np.array([0.5 * h, h, h / 6.0, h / 3.0])
        tables = (along.laws, along.stiffness, along.damping, along.columns, along.mobility)
        self._entry(*(array.ctypes.data for array in (S, *tables, counts, steps, records)))
        return records

    def _interpret(self, S: Floats, along: Linearisation, h: float, first: int, every: int, records: Floats) -> None:
        n, ticks = self.dof, len(along.laws)
        substeps = len(along.stiffness) // ticks

        def rate(X: Floats, held: Floats, step: int, stage: int) -> Floats:
            slopes = along.stiffness[step, stage] @ X[:n] + along.damping[step, stage] @ X[n:]
            rest = held - slopes - along.columns[step, stage]
            return np.concatenate([X[n:], along.mobility[step, stage] @ rest])

        noted = 0
        for k in range(ticks):
            decided = along.laws[k] @ S
            held = decided[:n]
            if (first + k) % every == 0:
                records[noted, :n], records[noted, n:] = S[:n], held
                noted += 1
            for step in range(k * substeps, (k + 1) * substeps):
                X = S[: 2 * n].copy()
                k1 = rate(X, held, step, 0)
                k2 = rate(X + 0.5 * h * k1, held, step, 1)
                k3 = rate(X + 0.5 * h * k2, held, step, 2)
                k4 = rate(X + h * k3, held, step, 3)
                S[: 2 * n] = X + h / 6.0 * (k1 + k4) + h / 3.0 * (k2 + k3)
            S[2 * n :] = decided[n:]
