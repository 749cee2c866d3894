"""The whole identified model as two recorded functions: where its memory begins, and one step of it.

Terms with memory remember numbers from sample to sample (`dynid.terms.base.Term.begin` and `advance`), and terms that
depend on the links' torques need these. Generated code carries the model in this form, so that a controller computes
the torques that were judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.dynamics.inertia_matrix import gravity_torque
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.lazy import cached_property
from dynid.links.identify import Identification
from dynid.robot.model import Robot
from dynid.tape import Tape, record
from dynid.terms.base import Reference, Term


@dataclass(frozen=True, eq=False)
class PresentState:
    """One sample of a robot's motion, as numbers or recorded scalars; see `dynid.terms.base.PresentMotion`."""

    robot: Robot
    q: Any
    """(n,) joint positions [rad or m]."""
    dq: Any
    """(n,) joint velocities [rad/s or m/s]."""
    ddq: Any
    """(n,) joint accelerations [rad/s^2 or m/s^2]."""
    period_s: Any
    """Time since the sample before [s]."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints, in the order of q."""
        return self.robot.joint_names

    @property
    def gravity(self) -> Floats:
        """(3,) gravity [m/s^2] in the root link's frame."""
        return self.robot.gravity

    def torque(self, reference: Reference) -> Any:
        """(n,) torque of the whole robot with the reference's parameters [N m or N]."""
        return newton_euler(self.robot, reference.theta, self.q, self.dq, self.ddq)

    def gravity_torque(self, reference: Reference, gravity: Floats) -> Any:
        """(n,) torque that holds the links' weights under a gravity (3,) [N m or N]."""
        return gravity_torque(self.robot.with_gravity(gravity), reference.theta, self.q)


@dataclass(frozen=True, eq=False)
class WholeModel:
    """A robot, its further terms, and the identified parameters of both."""

    robot: Robot
    """Geometry and kinds of terms."""
    theta: Floats
    """(p,) parameters of the robot, in the order of `Robot.parameter_vector`."""
    terms: tuple[Term, ...]
    """Further terms, each with its identified parameter."""

    @classmethod
    def of(cls, fit: Identification) -> WholeModel:
        """The model that predicts the torques of an identification; see `Identification.torque`."""
        values = fit.estimate.values[fit.base.rank :].tolist()
        terms = tuple(term.with_value(value) for term, value in zip(fit.terms, values, strict=True))
        return cls(fit.robot, fit.torque_parameters, terms)

    @property
    def memory_size(self) -> int:
        """Count of numbers that are remembered from sample to sample; one that is not used if there are none."""
        return max(1, self.places[-1])

    @cached_property
    def places(self) -> list[int]:
        """Index of the first number of each term in the memory, and the end."""
        return list(accumulate((term.memory_size for term in self.terms), initial=0))

    @cached_property
    def start(self) -> Tape:
        """Inputs q, dq (n,) of the first sample; output ``memory`` (k,)."""
        n = self.robot.dof

        def begin(q: Any, dq: Any) -> dict[str, Any]:
            state = PresentState(self.robot, q, dq, np.zeros(n), 0.0)
            remembered = [number for term in self.terms for number in term.begin(state)]
            return {"memory": np.array(remembered or [0.0])}

        return record(begin, q=(n,), dq=(n,))

    @cached_property
    def step(self) -> Tape:
        """Inputs q, dq, ddq (n,), ``period`` (1,) [s], ``memory`` (k,); outputs ``torque`` (n,) and ``next`` (k,)."""
        n = self.robot.dof

        def advance(q: Any, dq: Any, ddq: Any, period: Any, memory: Any) -> dict[str, Any]:
            state = PresentState(self.robot, q, dq, ddq, period[0])
            torque = list(newton_euler(self.robot, self.theta, q, dq, ddq))
            remembered: list[Any] = []
            for term, (first, last) in zip(self.terms, pairwise(self.places), strict=True):
                columns, numbers = term.advance(state, list(memory[first:last]))
                remembered += numbers
                for joint, column in columns.items():
                    torque[joint] = torque[joint] + term.value * column
            return {"torque": np.array(torque), "next": np.array(remembered or [memory[0]])}

        return record(advance, q=(n,), dq=(n,), ddq=(n,), period=(1,), memory=(self.memory_size,))
