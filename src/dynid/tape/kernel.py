"""`Kernel`: a recorded function of a robot's state, callable for many states and, with less overhead, for one.

`dynid.compiled` makes kernels of the equations of motion; the machine code is made when a kernel is called first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.lazy import cached_property
from dynid.tape.count import OperationCount
from dynid.tape.count import count as count_operations
from dynid.tape.program import Program, compile_single, compile_tape
from dynid.tape.tape import Tape


@dataclass(frozen=True, eq=False)
class Kernel:
    """One function of a robot's state, recorded, and compiled when first called."""

    name: str
    """Name of the function, such as ``inverse_dynamics``."""
    tape: Tape
    """The recorded program."""

    @cached_property
    def program(self) -> Program:
        """The function of many states."""
        return compile_tape(self.tape)

    @property
    def count(self) -> OperationCount:
        """Multiplications, additions and so on for one state."""
        return count_operations(self.tape)

    @cached_property
    def single(self) -> Callable[..., Floats]:
        """The function for one state, with an overhead of some hundred nanoseconds: ``single(q, dq, ddq[, out])``."""
        return compile_single(self.tape, program=lambda: self.program)

    def __call__(self, *states: ArrayLike, out: Any = None) -> Any:
        """Evaluate for one state (n,) or many (N, n); see `dynid.tape.Program`."""
        return self.program(*states, out=out)
