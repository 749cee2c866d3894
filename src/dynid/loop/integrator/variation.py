"""Derivatives of a simulated second-order system with respect to its parameters, tick after tick.

See `dynid.loop.integrator.llvm_variation` for the equations; NumPy does the same where there is no compiler.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dynid.arrays import Floats
from dynid.loop.integrator.llvm_variation import PADDING, variation_module
from dynid.loop.integrator.runge_kutta import RK4, Scheme
from dynid.tape.program import Backend, compiles

_ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 10)


def pad_width(parameters: int) -> int:
    """A number of parameters, rounded up to whole vector registers."""
    return parameters + -parameters % PADDING


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linearisation:
    """The linearised equations along some ticks of a run, stage by stage; all arrays C-contiguous."""

    step_counts: npt.NDArray[np.int64]
    """(ticks,) number of steps of every tick."""
    laws: Floats
    """(ticks, n + m, 2 n + m) derivatives of held inputs and new memory by positions, velocities, memory."""
    stiffness: Floats
    """(steps, stages, n, n) derivatives of the bias torque with respect to positions."""
    damping: Floats
    """(steps, stages, n, n) derivatives of the bias torque with respect to velocities."""
    columns: Floats
    """(steps, stages, n, B) derivatives of the bias torque with respect to the parameters."""
    mobility: Floats
    """(steps, stages, n, n) inverses of the inertia matrix."""


class Variation:
    """The recursion for n joints, m numbers of memory and B parameters, ready to run."""

    def __init__(self, dof: int, memory: int, width: int, scheme: Scheme = RK4, backend: Backend = "auto") -> None:
        """Compile, or load from the cache; ``width`` comes from `pad_width`, ``scheme`` is the one of the run."""
        self.dof, self.memory, self.width, self.scheme = dof, memory, width, scheme
        self._entry = None
        if not compiles(backend):
            return
        from dynid.tape.llvm.engine import host, load_code

        sizes = (dof, memory, width, scheme.repeated)
        printers = Path(__file__).parent
        self._code = load_code(f"variation {sizes}", lambda: (variation_module(*sizes, host()), 2), printers=printers)
        self._entry = _ENTRY(self._code.address("run"))

    def run(self, S: Floats, along: Linearisation, *, period: float, first: int, every: int) -> Floats:
        """Carry S (2 n + m, B) through some ticks, in place.

        Args:
            S: Derivatives of positions, velocities and memory at the first of these ticks; overwritten.
            along: The linearisation of these ticks.
            period: Time from tick to tick [s].
            first: Number of the first tick; ticks whose number is a multiple of ``every`` are recorded.
            every: Ticks per record.

        Returns:
            (K, 2 n, B) derivatives of positions and of held inputs at the recorded ticks.
        """
        ticks = len(along.laws)
        records = np.empty((len(range(-first % every, ticks, every)), 2 * self.dof, self.width))
        steps = self.scheme.table(period, int(along.step_counts.max()))
        if self._entry is None:
            self._interpret(S, along, steps, first, every, records)
            return records
        counts = np.array([ticks, first, every])
        tables = (along.laws, along.stiffness, along.damping, along.columns, along.mobility)
        self._entry(*(array.ctypes.data for array in (S, *tables, counts, along.step_counts, steps, records)))
        return records

    def _interpret(
        self, S: Floats, along: Linearisation, steps: Floats, first: int, every: int, records: Floats
    ) -> None:
        n, step = self.dof, 0

        def rate(X: Floats, held: Floats, stage: int) -> Floats:
            slopes = along.stiffness[step, stage] @ X[:n] + along.damping[step, stage] @ X[n:]
            rest = held - slopes - along.columns[step, stage]
            return np.concatenate([X[n:], along.mobility[step, stage] @ rest])

        noted = 0
        for k, count in enumerate(along.step_counts):
            decided = along.laws[k] @ S
            held = decided[:n]
            if (first + k) % every == 0:
                records[noted, :n], records[noted, n:] = S[:n], held
                noted += 1
            for _ in range(count):
                X, rates = S[: 2 * n].copy(), np.zeros((2 * n, self.width))
                here = X.copy()
                for stage, (node, weight) in enumerate(steps[count - 1]):
                    here[n:] = X[n:] + node * rates[n:]
                    if not self.scheme.repeated[stage]:
                        here[:n] = X[:n] + 0.5 * node * (X[n:] + here[n:])
                    rates = rate(here, held, stage)
                    S[: 2 * n] += weight * rates
                step += 1
            S[2 * n :] = decided[n:]
