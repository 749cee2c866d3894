"""The rich and the plain model of an identified robot: the same links with two descriptions of friction.

The rich model has the friction that predicts best: with memory, with the load, by another law over speed. The plain
model is what a simulator's file can hold: rotor inertia, Coulomb and viscous friction and an offset, and the terms that
the user stated. `refit_friction` fits it to the same samples with the links of the rich model.

Models come in two forms: `Model.torque` computes whole experiments; `Model.start` and `Model.step` are tapes for code
that runs sample by sample and carries the memory of friction along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.dynamics.inertia_matrix import gravity_torque
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.errors import ArgumentError
from dynid.estimators.equations import Factors
from dynid.estimators.linear.least_squares import least_squares_estimate, refined_weights
from dynid.estimators.physical.conic import ConeProgram, solve_cone_program
from dynid.estimators.physical.feasible import noise_factor
from dynid.estimators.physical.nearest import with_possible_links
from dynid.estimators.physical.passivity import Passivity, all_terms
from dynid.estimators.physical.prior import PriorCoordinates
from dynid.estimators.rows import torque_along, torque_of_terms
from dynid.lazy import cached_property
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.tape import Tape, record
from dynid.terms.base import Reference, StateTerm, Term


@dataclass(frozen=True, eq=False)
class PresentState:
    """One sample of a robot's motion, as numbers or as scalars of a tape; see `dynid.terms.base.PresentMotion`."""

    robot: Robot
    """The robot."""
    q: Any
    """(n,) joint positions [rad or m]."""
    dq: Any
    """(n,) joint velocities [rad/s or m/s]."""
    ddq: Any
    """(n,) joint accelerations [rad/s^2 or m/s^2]."""
    period_s: Any
    """Time since the previous sample [s]."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints, in the order of q."""
        return self.robot.joint_names

    @property
    def gravity(self) -> Floats:
        """(3,) gravity [m/s^2] in the root link's frame."""
        return self.robot.gravity

    def torque(self, reference: Reference) -> Any:
        """Compute the torque (n,) of the whole robot with the reference's parameters [N m or N]."""
        return newton_euler(self.robot, reference.theta, self.q, self.dq, self.ddq)

    def gravity_torque(self, reference: Reference, gravity: Floats) -> Any:
        """Compute the torque (n,) that holds the links' weights under a gravity (3,) in m/s^2 [N m or N]."""
        return gravity_torque(self.robot.with_gravity(gravity), reference.theta, self.q)


@dataclass(frozen=True, eq=False)
class Model:
    """A robot with identified parameters, and further terms with theirs."""

    robot: Robot
    """Geometry, and the kinds of the robot's own terms; its parameter values do not count."""
    theta: Floats
    """(p,) parameters of the links and the robot's own terms, in the order of `Robot.parameter_vector`."""
    terms: tuple[Term, ...] = ()
    """Terms besides the robot's own, each with its identified parameter."""
    rate_hz: float | None = None
    """Sampling rate of the logs that were identified [Hz]; friction with memory needs a rate."""

    def torque(self, experiment: Experiment) -> Floats:
        """Compute the torques (N, n) of an experiment's motion, in the order of its joints [N m or N]."""
        run = experiment.matched(self.robot)
        torque = torque_along(self.robot, self.theta, run)
        if self.terms:
            values = np.array([term.value for term in self.terms])
            torque += torque_of_terms(self.robot, self.terms, values, run)
        return experiment.as_recorded(torque, self.robot)

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *, rate_hz: float | None = None) -> Floats:
        """Compute the torques (N, n) of samples of one log in time order [N m or N].

        Args:
            q: (N, n) positions [rad or m].
            dq: (N, n) velocities [rad/s or m/s].
            ddq: (N, n) accelerations [rad/s^2 or m/s^2].
            rate_hz: Sampling rate, for friction with memory [Hz]; that of the identified logs by default.

        Raises:
            ArgumentError: The arrays do not fit the robot.
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
        """The robot with its parameters, links made physically possible as simulators demand.

        Of the further terms it carries those that depend on the present motion only, without memory or load.
        """
        carried = [term for term in self.terms if isinstance(term, StateTerm)]
        return with_possible_links(self.robot, self.theta).with_terms(*carried, keep=True)

    @property
    def memory_size(self) -> int:
        """Count k of numbers that friction remembers from sample to sample; 1, unused, if it remembers none."""
        return max(1, self.places[-1])  # tapes need an input of at least one number

    @cached_property
    def places(self) -> list[int]:
        """Index of each term's first number in the memory, and behind them the length of the memory."""
        return list(accumulate((term.memory_size for term in self.terms), initial=0))

    @cached_property
    def start(self) -> Tape:
        """Tape that makes the memory before the first sample: inputs q, dq (n,) of it; output ``memory`` (k,)."""
        n = self.robot.dof

        def begin(q: Any, dq: Any) -> dict[str, Any]:
            state = PresentState(self.robot, q, dq, np.zeros(n), 0.0)
            remembered = [number for term in self.terms for number in term.begin(state)]
            return {"memory": np.array(remembered or [0.0])}

        return record(begin, q=(n,), dq=(n,))

    @cached_property
    def step(self) -> Tape:
        """Tape of one sample.

        Inputs q, dq, ddq (n,), ``period`` (1,) since the previous sample [s], ``memory`` (k,); outputs ``torque`` (n,)
        and ``next`` (k,), the memory for the next sample.
        """
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
    """Fit the terms of the plain model to given links, physically consistent and drawn to the prior.

    Args:
        equations: The equations of the plain model.
        links: (p,) standard parameters, of which those of the links are kept.

    Returns:
        (p + k,) the parameters of the links, of the robot's own terms and of the k stated terms.
    """
    robot = equations.robot
    first = 10 * robot.dof  # place of the first term's parameter: each link has ten
    data = least_squares_estimate(equations, refined_weights(equations), "")
    factor = noise_factor(equations, data)
    prior = PriorCoordinates.of(equations, factor.scale[equations.base.rank :])
    sizes = np.diagonal(prior.from_scaled)[first:]  # units of the unknowns y of the program below
    passivity = Passivity.of(robot.joint_names, all_terms(equations))
    program = ConeProgram(
        matrix=factor.R @ equations.grouping[:, first:] * sizes,
        target=factor.z - factor.R @ equations.grouping[:, :first] @ links[:first],
        centre=prior.centre[first:],
        pull=prior.pull[first:],
        constraints=passivity.constraints(sizes, 0),
    )
    y = solve_cone_program(program)
    # the solver ends up to its tolerance below zero
    y[list(passivity.nonnegative)] = np.maximum(y[list(passivity.nonnegative)], 0.0)
    return np.concatenate([links[:first], sizes * y])


def with_values(terms: Sequence[Term], values: Floats) -> tuple[Term, ...]:
    """Give terms their parameter values (k,)."""
    return tuple(term.with_value(value) for term, value in zip(terms, values.tolist(), strict=True))
