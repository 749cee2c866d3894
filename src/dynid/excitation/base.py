"""Functions of a motion with their gradients, and the base class of limits on them.

A `Constraint` maps a motion at N samples to its *excess* (N, m): how far each of m quantities is beyond its limit, in
units of the limit; negative within. Gradients are computed backwards: ``pullback`` takes the gradient of some sum by
the values of a function (the *cotangent*) and returns the gradient by the motion, so that a design gets the gradient of
all limits in one pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.excitation.trajectories.trajectory import Motion
from dynid.lazy import cached_property
from dynid.tape import Program, compile_tape, record, vjp


@dataclass(frozen=True)
class Derivative:
    """The motion itself, or one of its derivatives, as a function of a motion."""

    order: int
    """0 for positions, 1 for velocities, 2 for accelerations, 3 for jerks."""

    def __call__(self, motion: Motion) -> Floats:
        """Return the values (N, n)."""
        return motion[self.order]

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Compute the gradient by the motion from that by the values (N, n)."""
        zero = np.zeros_like(motion.q)
        return Motion(*(cotangent if order == self.order else zero for order in range(4)))


class Recorded:
    """A function of q, dq, ddq (or of some of them), recorded as a tape and run forwards and backwards."""

    def __init__(self, function: Callable[..., Any], dof: int, *states: str) -> None:
        """Record and compile.

        Args:
            function: Called with one array of scalars (n,) per state; returns an array.
            dof: Number of joints n.
            *states: The states it depends on, named like its arguments.
        """
        self._states = states
        self._forward = compile_tape(record(function, **{state: (dof,) for state in states}))

    @cached_property
    def _backward(self) -> Program:
        """Program of the gradients by the states, for a cotangent."""
        return compile_tape(vjp(self._forward.tape, "output", self._states))

    def __call__(self, motion: Motion) -> Floats:
        """Compute the values (N, ...)."""
        return np.asarray(self._forward(*(getattr(motion, state) for state in self._states)))

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Compute the gradient by the motion from that by the values (N, ...)."""
        found = self._backward(*(getattr(motion, state) for state in self._states), cotangent)
        gradients = found if isinstance(found, dict) else {self._states[0]: found}
        zero = np.zeros_like(motion.q)
        return Motion(*(gradients.get(state, zero) for state in Motion._fields))


Quantity = Derivative | Recorded
"""A function of a motion, with values (N, ...), and its gradient."""


@dataclass(frozen=True, slots=True)
class Margin:
    """Smallest distance of a motion to one limit."""

    limit: str
    """Name of the constraint: ``position``, ``velocity``, ``torque``, ..."""
    where: str
    """Name of the joint, wall or pair of links."""
    margin: float
    """The distance, negative beyond the limit, in ``unit``."""
    relative: float
    """The margin as a share of the limit (of 0.1 m for distances between bodies)."""
    unit: str
    """SI unit of ``margin``."""


@dataclass(frozen=True, kw_only=True)
class Constraint(ABC):
    """One kind of limit on m quantities of a motion."""

    name: str
    """The limited quantity: ``position``, ``velocity``, ``torque``, ``self-collision``, ..."""
    where: tuple[str, ...]
    """(m,) name of the joint, wall or pair of links of each column."""
    scale: Floats
    """(m,) size of the limit: excess times scale is in ``units``."""
    units: tuple[str, ...]
    """(m,) SI unit of each quantity."""
    quantity: Quantity
    """The limited function of the motion."""
    by_build: tuple[str, ...] = ()
    """Phrases that name what is left out because the robot's build violates the limit at every position of the joints,
    such as two links that always overlap."""

    @abstractmethod
    def beyond(self, values: Floats) -> Floats:
        """Compute how far values (N, ...) of the quantity are beyond the limit (N, m), in ``units``."""

    @abstractmethod
    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        """Compute the gradient (N, ...) of ``sum(cotangent * beyond)`` by the values; cotangent (N, m)."""

    def excess(self, motion: Motion) -> Floats:
        """Compute the distance beyond the limit (N, m) in units of the limit, negative within."""
        return self.beyond(self.quantity(motion)) / self.scale

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Compute the gradient of ``sum(cotangent * excess)`` by the motion."""
        return self.quantity.pullback(motion, self.slope(self.quantity(motion), cotangent / self.scale))

    def closest(self, motion: Motion) -> Floats:
        """Compute the largest excess (m,) of each quantity over the motion."""
        return np.asarray(self.excess(motion).max(axis=0))

    def margins(self, excess: Floats) -> list[Margin]:
        """Turn the largest excess (m,) of each quantity into margins."""
        return [
            Margin(self.name, where, float(-share * scale), float(-share), unit)
            for where, share, scale, unit in zip(self.where, excess, self.scale, self.units, strict=True)
        ]
