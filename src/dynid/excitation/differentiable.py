"""Functions of a robot's state with compiled gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.tape import Program, compile_tape, record
from dynid.tape.adjoint import gradient

__all__ = ["Differentiable"]

Floats = NDArray[np.float64]


class Differentiable:
    """A recorded function of q, dq, ddq (or of some of them), run forwards and backwards.

    Results are written into memory that is kept between calls with the same number of samples: a design calls the same
    function thousands of times, and fresh pages cost more than the arithmetic. Use or copy them before the next call.
    """

    def __init__(self, function: Callable[..., Any], dof: int, *states: str) -> None:
        """Record and compile.

        Args:
            function: Called with one array of scalars (n,) per state; returns an array.
            dof: Number of joints n.
            *states: The states it depends on, named like its arguments.
        """
        self.states = states
        self._function = function
        self._shapes: dict[str, tuple[int, ...]] = {state: (dof,) for state in states}
        self._forward = compile_tape(record(function, **self._shapes))
        self._memory: dict[Program, dict[str, Floats]] = {}

    def __call__(self, *states: Floats) -> Floats:
        """Values (N, *shape) at states (N, n)."""
        return self._run(self._forward, states)["output"]

    def pullback(self, cotangent: Floats, *states: Floats) -> dict[str, Floats]:
        """Gradient (N, n), by state, of ``sum(cotangent * value)``; cotangent (N, *shape)."""
        return self._run(self._backward, (*states, cotangent))

    @cached_property
    def _backward(self) -> Program:
        (output,) = self._forward.tape.outputs

        def weighted(cotangent: Any, **states: Any) -> Any:
            return np.sum(cotangent * self._function(**states))

        tape = record(weighted, **self._shapes, cotangent=output.shape)
        return compile_tape(gradient(tape, "output", self.states))

    def _run(self, program: Program, inputs: tuple[Floats, ...]) -> dict[str, Floats]:
        samples = len(inputs[0])
        memory = self._memory.get(program)
        if memory is None or any(len(array) != samples for array in memory.values()):
            memory = {output.name: np.empty((samples, *output.shape)) for output in program.tape.outputs}
            self._memory[program] = memory
        program(*inputs, out=memory)
        return memory
