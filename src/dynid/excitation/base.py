"""Functions with gradients: recorded functions of the robot's state, and limits as functions of a motion.

A `Constraint` maps a motion at N samples to its *excess* (N, m): how far each of m quantities is beyond its limit, in
units of the limit; negative inside. Its pullback turns a cotangent (N, m) into a cotangent of the motion, so that a
design gets the gradient of all limits in one pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.excitation.trajectories.trajectory import Motion
from dynid.lazy import cached_property
from dynid.tape import Program, compile_tape, record, vjp


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
        self._forward = compile_tape(record(function, **{state: (dof,) for state in states}))
        self._memory: dict[Program, dict[str, Floats]] = {}

    def __call__(self, *states: Floats) -> Floats:
        """Values (N, *shape) at states (N, n)."""
        return self._run(self._forward, states)["output"]

    def pullback(self, cotangent: Floats, *states: Floats) -> dict[str, Floats]:
        """Gradient (N, n), by state, of ``sum(cotangent * value)``; cotangent (N, *shape)."""
        return self._run(self._backward, (*states, cotangent))

    @cached_property
    def _backward(self) -> Program:
        return compile_tape(vjp(self._forward.tape, "output", self.states))

    def _run(self, program: Program, inputs: tuple[Floats, ...]) -> dict[str, Floats]:
        samples = len(inputs[0])
        memory = self._memory.get(program)
        if memory is None or any(len(array) != samples for array in memory.values()):
            memory = {output.name: np.empty((samples, *output.shape)) for output in program.tape.outputs}
            self._memory[program] = memory
        program(*inputs, out=memory)
        return memory


@dataclass(frozen=True)
class Constraint(ABC):
    """One kind of limit on m quantities of a motion."""

    name: str
    """The limited quantity: ``position``, ``velocity``, ``torque``, ``self-collision``, ..."""
    where: tuple[str, ...]
    """(m,) the joint, wall or pair of links of each column."""
    scale: Floats
    """(m,) size of the limit: excess times scale is in ``units``."""
    units: tuple[str, ...]
    """(m,) SI unit of each quantity."""

    @abstractmethod
    def excess(self, motion: Motion) -> Floats:
        """(N, m) distance beyond the limit in units of the limit, negative inside."""

    @abstractmethod
    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Gradient of ``sum(cotangent * excess)`` with respect to the motion; call `excess` on it first."""

    def closest(self, motion: Motion) -> Floats:
        """(m,) the largest excess of each quantity over the motion."""
        return np.asarray(self.excess(motion).max(axis=0))


@dataclass(frozen=True)
class RecordedConstraint(Constraint):
    """A constraint on a recorded function of the state."""

    function: Any
    """The `Differentiable` that is limited; None for the motion itself."""

    def states(self, motion: Motion) -> tuple[Floats, ...]:
        """The states that the function depends on, each (N, n)."""
        named = {"q": motion.q, "dq": motion.dq, "ddq": motion.ddq}
        return tuple(named[state] for state in self.function.states)

    def values(self, motion: Motion) -> Floats:
        """The function along the motion (N, ...)."""
        return np.asarray(self.function(*self.states(motion)))

    def pull(self, motion: Motion, cotangent: Floats) -> Motion:
        """Gradient of ``sum(cotangent * values)`` with respect to the motion."""
        gradient = self.function.pullback(cotangent, *self.states(motion))
        zero = np.zeros_like(motion.q)
        return Motion(gradient["q"], gradient.get("dq", zero), gradient.get("ddq", zero), zero)
