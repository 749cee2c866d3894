"""What a limit is: a function of a motion with its gradient.

A constraint maps a motion at N samples to its *excess* (N, m): how far each of m quantities is beyond its limit, in
units of the limit; negative inside. Its pullback turns a cotangent (N, m) into one of the motion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.differentiable import Differentiable
from dynid.excitation.trajectories.trajectory import Motion

__all__ = ["Constraint", "RecordedConstraint"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Constraint(ABC):
    """One kind of limit."""

    name: str
    """What it limits."""
    where: tuple[str, ...]
    """(m,) the joint, wall or pair of each column."""
    scale: Floats
    """(m,) size of the limit: excess times scale is in ``units``."""
    units: tuple[str, ...]
    """(m,)"""

    @abstractmethod
    def excess(self, motion: Motion) -> Floats:
        """(N, m), positive beyond the limit."""

    @abstractmethod
    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Gradient of ``sum(cotangent * excess)`` with respect to the motion; call `excess` on it first."""

    def closest(self, motion: Motion) -> Floats:
        """(m,) the largest excess of each quantity over the motion."""
        return np.asarray(self.excess(motion).max(axis=0))


@dataclass(frozen=True)
class RecordedConstraint(Constraint):
    """A constraint on a recorded function of the state."""

    function: Differentiable

    def states(self, motion: Motion) -> tuple[Floats, ...]:
        """The states that the function depends on, each (N, n)."""
        named = {"q": motion.q, "dq": motion.dq, "ddq": motion.ddq}
        return tuple(named[state] for state in self.function.states)

    def values(self, motion: Motion) -> Floats:
        """The function along the motion (N, ...)."""
        return self.function(*self.states(motion))

    def pull(self, motion: Motion, cotangent: Floats) -> Motion:
        """Gradient of ``sum(cotangent * values)`` with respect to the motion."""
        gradient = self.function.pullback(cotangent, *self.states(motion))
        zero = np.zeros_like(motion.q)
        return Motion(gradient["q"], gradient.get("dq", zero), gradient.get("ddq", zero), zero)
