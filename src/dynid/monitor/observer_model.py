"""The momentum observer as recorded functions: where its state begins, and one step of it.

The robot obeys ``dp/dt = tau + C^T dq - g - friction + external`` with ``p = M dq``. The observer
``r = K (p - integral(tau + C^T dq - g - friction + r))`` obeys ``dr/dt = K (external - r)``: it follows the torque from
outside with the time constant 1 / K and needs no acceleration. Over one period this is, exactly for a torque that is
constant within it,

    e = (p - p_before) / period - (b + b_before) / 2,    r = keep r_before + (1 - keep) e,    keep = exp(-K period),

with b = tau + C^T dq - g - friction. The integral itself is never formed: it would grow without end and lose digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.dynamics.energy import momentum_balance
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.lazy import cached_property
from dynid.links.identify import Identification
from dynid.links.rich.models import Model, PresentState
from dynid.robot.model import Robot
from dynid.tape import Tape, record
from dynid.terms.base import RecordableTerm, Term


@dataclass(frozen=True, eq=False)
class ObserverModel:
    """The model of an observer: a robot, its further terms, and the parameters of both.

    Terms that depend on the torques of the links see these without the part of the accelerations, which an observer
    does not know.
    """

    whole: Model

    @classmethod
    def of(cls, source: Robot | Identification) -> ObserverModel:
        """The observer of a robot with its parameter values, or of an identification with all its terms."""
        if isinstance(source, Identification):
            return cls(source.rich)
        return cls(Model(source, source.parameter_vector))

    @property
    def robot(self) -> Robot:
        """Geometry and kinds of terms."""
        return self.whole.robot

    @property
    def theta(self) -> Floats:
        """(p,) parameters of the robot."""
        return self.whole.theta

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further terms, each with its parameter."""
        return self.whole.terms

    @property
    def state_size(self) -> int:
        """Count of numbers in the state: momentum, balance and external torque (n,) each, then the memory (k,)."""
        return 3 * self.robot.dof + self.whole.memory_size

    @cached_property
    def term_inertia(self) -> Floats:
        """(n, n) inertia of the further terms: rotors that move several joints, for example."""
        M = np.zeros((self.robot.dof, self.robot.dof))
        for term in self.terms:
            if isinstance(term, RecordableTerm):
                for (j, k), factor in term.inertia(term.acts_on(self.robot.joint_names)).items():
                    M[j, k] += term.value * factor
        return M

    def momentum_and_force(self, q: Any, dq: Any) -> tuple[Any, Any]:
        """Momentum (n,), and ``C^T dq - g`` less the robot's own friction (n,); scalar-agnostic."""
        balance = momentum_balance(self.robot, self.theta, q, dq)
        own = term_torque(self.robot, self.theta, q, dq, np.zeros(self.robot.dof))
        return balance["momentum"] + self.term_inertia @ dq, balance["force"] - own

    @cached_property
    def start(self) -> Tape:
        """Inputs q, dq, ``torque`` (n,) of the first sample; output ``state``."""
        n = self.robot.dof

        def begin(q: Any, dq: Any, torque: Any) -> dict[str, Any]:
            state = PresentState(self.robot, q, dq, np.zeros(n), 0.0)
            memory = [number for term in self.terms for number in term.begin(state)] or [0.0]
            momentum, balance, _ = self._advance(q, dq, torque, 0.0, memory)
            return {"state": np.concatenate([momentum, balance, np.zeros(n), np.array(memory)])}

        return record(begin, q=(n,), dq=(n,), torque=(n,))

    @cached_property
    def step(self) -> Tape:
        """Inputs q, dq, ``torque`` (n,), ``period`` [s] and ``keep`` [-] (1,), ``state``; output ``next``."""
        n = self.robot.dof

        def advance(q: Any, dq: Any, torque: Any, period: Any, keep: Any, state: Any) -> dict[str, Any]:
            momentum, balance, memory = self._advance(q, dq, torque, period[0], list(state[3 * n :]))
            change = (momentum - state[:n]) * (1.0 / period[0])
            outside = change - (balance + state[n : 2 * n]) * 0.5
            external = outside + (state[2 * n : 3 * n] - outside) * keep[0]
            return {"next": np.concatenate([momentum, balance, external, np.array(memory)])}

        return record(advance, q=(n,), dq=(n,), torque=(n,), period=(1,), keep=(1,), state=(self.state_size,))

    def _advance(self, q: Any, dq: Any, torque: Any, period: Any, memory: list[Any]) -> tuple[Any, Any, list[Any]]:
        """Momentum (n,), balance (n,) and the next memory of one sample."""
        momentum, force = self.momentum_and_force(q, dq)
        balance = list(torque + force)
        state = PresentState(self.robot, q, dq, np.zeros(self.robot.dof), period)
        remembered: list[Any] = []
        for term, (first, last) in zip(self.terms, pairwise(self.whole.places), strict=True):
            columns, numbers = term.advance(state, memory[first:last])
            remembered += numbers
            for joint, column in columns.items():
                balance[joint] = balance[joint] - term.value * column
        return momentum, np.array(balance), remembered or memory[:1]
