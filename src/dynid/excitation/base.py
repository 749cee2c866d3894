"""Functions with gradients: what a motion makes of the robot's state, and limits as functions of a motion.

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


@dataclass(frozen=True)
class Derivative:
    """The motion itself."""

    order: int
    """0 for positions, 1 for velocities, 2 for accelerations, 3 for jerks."""

    def __call__(self, motion: Motion) -> Floats:
        return motion[self.order]

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        zero = np.zeros_like(motion.q)
        return Motion(*(cotangent if order == self.order else zero for order in range(4)))


class Recorded:
    """A recorded function of q, dq, ddq (or of some of them), run forwards and backwards."""

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
        return compile_tape(vjp(self._forward.tape, "output", self._states))

    def __call__(self, motion: Motion) -> Floats:
        return np.asarray(self._forward(*(getattr(motion, state) for state in self._states)))

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        found = self._backward(*(getattr(motion, state) for state in self._states), cotangent)
        gradients = found if isinstance(found, dict) else {self._states[0]: found}
        zero = np.zeros_like(motion.q)
        return Motion(*(gradients.get(state, zero) for state in Motion._fields))


Quantity = Derivative | Recorded
"""A function of a motion, with values (N, ...), and its gradient."""


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a motion stays from one limit at its closest."""

    limit: str
    """Name of the constraint: ``position``, ``velocity``, ``torque``, ..."""
    where: str
    """The joint, wall or pair of links."""
    margin: float
    """Smallest distance to the limit, negative beyond it, in ``unit``."""
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
    """(m,) the joint, wall or pair of links of each column."""
    scale: Floats
    """(m,) size of the limit: excess times scale is in ``units``."""
    units: tuple[str, ...]
    """(m,) SI unit of each quantity."""
    quantity: Quantity
    """What is limited."""
    by_build: tuple[str, ...] = ()
    """Phrases for what is not checked because it is beyond the limit at every position of the joints."""

    @abstractmethod
    def beyond(self, values: Floats) -> Floats:
        """How far values (N, ...) of the quantity are beyond the limit (N, m), in ``units``."""

    @abstractmethod
    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        """Gradient (N, ...) of ``sum(cotangent * beyond)`` with respect to the values; cotangent (N, m)."""

    def excess(self, motion: Motion) -> Floats:
        """(N, m) distance beyond the limit in units of the limit, negative inside."""
        return self.beyond(self.quantity(motion)) / self.scale

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Gradient of ``sum(cotangent * excess)`` with respect to the motion."""
        return self.quantity.pullback(motion, self.slope(self.quantity(motion), cotangent / self.scale))

    def closest(self, motion: Motion) -> Floats:
        """(m,) the largest excess of each quantity over the motion."""
        return np.asarray(self.excess(motion).max(axis=0))

    def margins(self, excess: Floats) -> list[Margin]:
        """An excess (m,) as margins."""
        rows = zip(self.where, -excess, self.scale, self.units, strict=True)
        return [
            Margin(self.name, where, float(share * scale), float(share), unit) for where, share, scale, unit in rows
        ]
