"""The two models of an identified robot: one set of links, two frictions.

The rich model has the links and the friction that predicts best: with memory, with the load, by another law of viscous
friction. The plain model has the same links with rotor inertia, Coulomb and viscous friction and an offset, refitted to
the same samples, and what the user stated: exactly what a simulator's file holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.dynamics.inertia_matrix import gravity_torque
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors
from dynid.estimation.linear.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.physical.conic import ConeProgram, solve_cone_program
from dynid.estimation.physical.feasible import noise_factor
from dynid.estimation.physical.nearest import with_possible_links
from dynid.estimation.physical.passivity import Passivity, all_terms
from dynid.estimation.physical.prior import PriorCoordinates
from dynid.estimation.rows import torque_along, torque_of_terms
from dynid.lazy import cached_property
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.tape import Tape, record
from dynid.terms.base import Reference, StateTerm, Term


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
class Model:
    """A robot, its parameters, and further terms of its torques with theirs."""

    robot: Robot
    """Geometry, and the kinds of the robot's own terms."""
    theta: Floats
    """(p,) parameters of the robot, in the order of `Robot.parameter_vector`."""
    terms: tuple[Term, ...] = ()
    """Further terms, each with its identified parameter."""
    rate_hz: float | None = None
    """Sampling rate of the logs that were identified [Hz]; friction with memory needs a rate."""

    def torque(self, experiment: Experiment) -> Floats:
        """(N, n) torques of an experiment's motion [N m or N], column by column as the experiment's own."""
        run = experiment.matched(self.robot)
        torque = torque_along(self.robot, self.theta, run)
        if self.terms:
            values = np.array([term.value for term in self.terms])
            torque += torque_of_terms(self.robot, [t.with_value(0.0) for t in self.terms], values, run)
        return experiment.as_recorded(torque, self.robot)

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *, rate_hz: float | None = None) -> Floats:
        """(N, n) torques of samples of one log in time order [N m or N].

        Args:
            q: (N, n) positions [rad or m].
            dq: (N, n) velocities [rad/s or m/s].
            ddq: (N, n) accelerations [rad/s^2 or m/s^2].
            rate_hz: Sampling rate, for friction with memory [Hz]; that of the identified logs by default.
        """
        motion = [np.atleast_2d(np.asarray(channel, dtype=float)) for channel in (q, dq, ddq)]
        rows, width = motion[0].shape
        if width != self.robot.dof or any(channel.shape != (rows, width) for channel in motion):
            shapes = ", ".join(str(channel.shape) for channel in motion)
            raise ArgumentError(f"q, dq, ddq have the shapes {shapes}", remedy=f"Give (N, {self.robot.dof}) each.")
        rate = rate_hz or self.rate_hz or 1.0
        states = Experiment(
            time=np.arange(rows) / rate, q=motion[0], dq=motion[1], ddq=motion[2],
            effort=np.zeros((rows, width)), valid=np.ones((rows, width), dtype=bool),
            segment=np.zeros(rows, dtype=np.int64), rate_hz=rate, joint_names=self.robot.joint_names,
        )  # fmt: skip
        return self.torque(states)

    @property
    def identified(self) -> Robot:
        """The robot with its parameters, as simulators accept it, and those further terms that a robot can carry."""
        carried = [term for term in self.terms if isinstance(term, StateTerm)]
        return with_possible_links(self.robot, self.theta).with_terms(*carried, keep=True)

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
        """Where its memory begins: inputs q, dq (n,) of the first sample; output ``memory`` (k,)."""
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


def refit_friction(equations: Factors, links: Floats) -> Floats:
    """(p + k,) parameters of the plain model: the links as they are, the robot's own and the stated terms refitted.

    Args:
        equations: The equations of the plain model.
        links: (p,) standard parameters; those of the links count.
    """
    robot, first = equations.robot, 10 * equations.robot.dof
    data = least_squares_estimate(equations, refined_weights(equations), "")
    factor = noise_factor(equations, data)
    prior = PriorCoordinates.of(equations, factor.scale[equations.base.rank :])
    sizes = np.diagonal(prior.from_scaled)[first:]
    passivity = Passivity.of(robot.joint_names, all_terms(equations))
    program = ConeProgram(
        matrix=factor.R @ equations.grouping[:, first:] * sizes,
        target=factor.z - factor.R @ equations.grouping[:, :first] @ links[:first],
        centre=prior.centre[first:],
        pull=prior.pull[first:],
        constraints=passivity.constraints(sizes, 0),
    )
    y = solve_cone_program(program)
    y[list(passivity.nonnegative)] = np.maximum(y[list(passivity.nonnegative)], 0.0)
    return np.concatenate([links[:first], sizes * y])


def valued(terms: Sequence[Term], values: Floats) -> tuple[Term, ...]:
    """Terms with their parameters."""
    return tuple(term.with_value(value) for term, value in zip(terms, values.tolist(), strict=True))
