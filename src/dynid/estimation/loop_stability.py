"""Which parameters make a simulated loop that is stable: neither its integration nor its sampling may chatter.

An estimate that underrates the inertia of a light joint makes a robot whose friction is too stiff for the integrator's
step, or whose damping is too strong for the law's rate. Its torques may still be near the measured ones; its motion is
not, and derivatives along it grow without bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.closed_loop.laws import ControlLaw, Tracked
from dynid.closed_loop.simulate import LoopSimulator
from dynid.tape import Program

__all__ = ["LoopStability", "law_damping"]

Floats = NDArray[np.float64]
INTEGRATED = 2.6
"""Largest step times rate of decay that the fourth-order method follows; beyond 2.78 it is unstable."""
SAMPLED = 1.6
"""Largest control period times rate of decay; beyond 2 a sampled law overshoots by more than it corrects."""
NUDGE = 1e-6
"""Share of the speed at which friction is full by which joints are moved to find its slope at rest."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopStability:
    """What a simulated loop can follow."""

    friction: Floats
    """(n, n, b) torque per velocity at rest, per unit of each base parameter"""
    damping: Floats
    """(n, n) torque of the law per velocity"""
    step_s: float
    """Of the integrator [s]"""
    period_s: float
    """Of the law [s]"""

    @classmethod
    def of(cls, simulator: LoopSimulator, columns: Program) -> LoopStability:
        """Linearise friction and law at rest.

        Args:
            simulator: Of the loop.
            columns: ``(q, dq, ddq) -> (n, b)``, friction smoothed.
        """
        loop, n = simulator.loop, simulator.loop.dof
        nudge = NUDGE * min(loop.smooth_below)
        moving = np.concatenate([nudge * np.eye(n), -nudge * np.eye(n)])
        rest = np.zeros_like(moving)
        ahead, behind = np.split(np.asarray(columns(rest, moving, rest)), 2)
        friction = (ahead - behind).transpose(1, 0, 2) / (2.0 * nudge)
        damping = law_damping(loop.law, n, loop.period_s, loop.reference.q[0])
        return cls(friction, damping, loop.period_s / simulator.substeps, loop.period_s)

    def holds(self, inertia: Floats, beta: Floats) -> bool:
        """Whether inertia matrices (K, n, n) are possible, and friction and law slow enough for them."""
        if np.linalg.eigvalsh(inertia)[:, 0].min() <= 0.0:
            return False
        fastest = [
            float(np.abs(np.linalg.eigvals(np.linalg.solve(inertia, np.broadcast_to(slope, inertia.shape)))).max())
            for slope in (self.friction @ beta, self.damping)
        ]
        return fastest[0] * self.step_s < INTEGRATED and fastest[1] * self.period_s < SAMPLED


def law_damping(law: ControlLaw, dof: int, period_s: float, q: Floats | None = None) -> Floats:
    """(n, n) torque of a law per velocity, at rest on its reference (n,)."""
    place, memory = np.zeros(dof) if q is None else q, np.zeros(law.memory_size(dof))

    def torque(dq: Floats) -> Floats:
        seen = Tracked(place, dq, place, np.zeros(dof), np.zeros(dof))
        return np.asarray(law.torque(seen, memory, period_s)[0], dtype=float)

    return np.stack([(torque(-unit) - torque(unit)) / 2e-6 for unit in 1e-6 * np.eye(dof)], axis=1)
