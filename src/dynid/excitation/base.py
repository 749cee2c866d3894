"""Functions of a motion with their gradients, and the base class of limits on them.

The search for exciting motions evaluates every limit at N samples of a motion of n joints, with gradients. A `Quantity`
is a function of the motion, such as the joint torques; a `Constraint` (in `constraints`) bounds m components of one. It
maps the motion to its *excess* (N, m): how far each is beyond its limit, in units of the limit; negative within.

Gradients are computed backwards (reverse differentiation). For a scalar c that depends on the values v of a function,
the *cotangent* is dc/dv; ``pullback`` turns it into dc/dq, dc/d(dq) and so on. So a search gets the gradient of a sum
over all limits in one pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.excitation.trajectories.trajectory import PlannedMotion
from dynid.lazy import cached_property
from dynid.tape import Program, compile_tape, record, vjp


@dataclass(frozen=True)
class Derivative:
    """The motion itself, or one of its derivatives, as a function of a motion."""

    order: int
    """0 for positions, 1 for velocities, 2 for accelerations, 3 for jerks."""

    def __call__(self, motion: PlannedMotion) -> Floats:
        """Return the values (N, n)."""
        return motion[self.order]

    def pullback(self, motion: PlannedMotion, cotangent: Floats) -> PlannedMotion:
        """Compute the gradient of a scalar by the motion from its gradient by the values (N, n), the cotangent."""
        zero = np.zeros_like(motion.q)
        return PlannedMotion(*(cotangent if order == self.order else zero for order in range(4)))


class Recorded:
    """A function of q, dq, ddq (or of some of them), which is recorded as a program and differentiated backwards."""

    def __init__(self, function: Callable[..., Any], dof: int, *states: str) -> None:
        """Record and compile.

        Args:
            function: Called once, with one array of recorded scalars (n,) per state; returns an array of any shape.
            dof: Number of joints n.
            *states: Those of ``q``, ``dq``, ``ddq`` on which it depends, named like its arguments.
        """
        self._states = states
        self._forward = compile_tape(record(function, **{state: (dof,) for state in states}))

    @cached_property
    def _backward(self) -> Program:
        """Program from states and cotangent to the gradients by the states."""
        return compile_tape(vjp(self._forward.tape, "output", self._states))

    def __call__(self, motion: PlannedMotion) -> Floats:
        """Compute the values (N, ...)."""
        return np.asarray(self._forward(*(getattr(motion, state) for state in self._states)))

    def pullback(self, motion: PlannedMotion, cotangent: Floats) -> PlannedMotion:
        """Compute the gradient of a scalar by the motion from its gradient by the values (N, ...)."""
        found = self._backward(*(getattr(motion, state) for state in self._states), cotangent)
        gradients = found if isinstance(found, dict) else {self._states[0]: found}
        zero = np.zeros_like(motion.q)
        return PlannedMotion(*(gradients.get(state, zero) for state in PlannedMotion._fields))


Quantity = Derivative | Recorded
"""A function of a motion, with values (N, ...), and its gradient."""


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a motion stays away from one limit, where it comes closest."""

    limit: str
    """Name of the constraint: ``position``, ``velocity``, ``torque``, ..."""
    where: str
    """Name of the joint, wall or pair of links."""
    margin: float
    """The distance, negative beyond the limit, in ``unit``."""
    relative: float
    """The margin as a share of the limit (for distances between bodies, of 0.1 m)."""
    unit: str
    """SI unit of ``margin``."""


@dataclass(frozen=True, kw_only=True)
class Constraint(ABC):
    """One kind of limit on m quantities of a motion."""

    name: str
    """The limited quantity: ``position``, ``velocity``, ``torque``, ``self-collision``, ..."""
    where: tuple[str, ...]
    """(m,) name of the joint, wall or pair of links of each limit."""
    scale: Floats
    """(m,) size of each limit in ``units``, by which `excess` is divided."""
    units: tuple[str, ...]
    """(m,) SI unit of each quantity."""
    quantity: Quantity
    """The function of the motion that is limited."""
    by_build: tuple[str, ...] = ()
    """Phrases for the report that name what is not checked, because it violates the limit at every position of the
    joints, such as two links that always overlap."""

    @abstractmethod
    def beyond(self, values: Floats) -> Floats:
        """Compute how far values (N, ...) of the quantity are beyond the limit (N, m), in ``units``."""

    @abstractmethod
    def slope(self, values: Floats, cotangent: Floats) -> Floats:
        """Compute the gradient (N, ...) of the scalar ``sum(cotangent * beyond)`` by the values; cotangent (N, m)."""

    def excess(self, motion: PlannedMotion) -> Floats:
        """Compute the distance beyond the limit (N, m) in units of the limit, negative within."""
        return self.beyond(self.quantity(motion)) / self.scale

    def pullback(self, motion: PlannedMotion, cotangent: Floats) -> PlannedMotion:
        """Compute the gradient of the scalar ``sum(cotangent * excess)`` by the motion; cotangent (N, m)."""
        return self.quantity.pullback(motion, self.slope(self.quantity(motion), cotangent / self.scale))

    def closest(self, motion: PlannedMotion) -> Floats:
        """Compute the largest excess (m,) of each quantity over the motion."""
        return np.asarray(self.excess(motion).max(axis=0))

    def margins(self, excess: Floats) -> list[Margin]:
        """Turn the largest excess (m,) of each quantity into margins."""
        return [
            Margin(self.name, where, float(-share * scale), float(-share), unit)
            for where, share, scale, unit in zip(self.where, excess, self.scale, self.units, strict=True)
        ]
