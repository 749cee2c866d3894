"""Simulated robots: equations of motion, recorded once and compiled for single states, with two integrators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from dynid.arrays import Floats
from dynid.checks import as_number
from dynid.decompositions import eigenvalues
from dynid.dynamics.inertia_matrix import composite_inertia_matrix
from dynid.dynamics.inverse_dynamics import rigid_body_torque, term_torque
from dynid.dynamics.symmetric_solve import solve_symmetric
from dynid.errors import ArgumentError, EstimationError
from dynid.kernels import inertia_matrix
from dynid.lazy import cached_property
from dynid.loop.smooth_friction import replace_signs
from dynid.robot.model import Robot
from dynid.tape import Tape, compile_single, record
from dynid.terms.smoothing import gradual_sign

STABLE = 1.5
"""Largest product of step and decay rate; the classical fourth-order method is unstable beyond 2.785, and half of that
is accurate."""


def motion_tape(robot: Robot) -> Tape:
    """Record ``(state, torque) -> rate``: the state (2 n + 1,) holds positions, velocities and the work."""
    n = robot.dof

    def rate(state: Any, torque: Any) -> Any:
        return _rate(robot, state, torque)

    return record(rate, state=(2 * n + 1,), torque=(n,))


def _rate(robot: Robot, state: Any, torque: Any) -> Any:
    n, theta = robot.dof, robot.parameter_vector
    q, dq, rest = state[:n], state[n : 2 * n], np.zeros(robot.dof)
    acting = torque - term_torque(robot, theta, q, dq, rest)
    bias = rigid_body_torque(robot, theta, q, dq, rest)
    ddq = solve_symmetric(composite_inertia_matrix(robot, theta, q), acting - bias)
    return np.concatenate([dq, ddq, np.array([acting @ dq])])


def smooth_signs(tape: Tape, speed: float) -> Tape:
    """Replace every ``sign(x)`` of a program by ``tanh(x / speed)``, which an integrator can follow."""
    return replace_signs(tape, lambda v, _: gradual_sign(v, speed))


def runge_kutta(rate: Callable[[Any], Any], state: Any, h: Any) -> Any:
    """Advance a state by one step of length ``h`` of the classical fourth-order method; scalar-agnostic."""
    k1 = rate(state)
    k2 = rate(state + k1 * (0.5 * h))
    k3 = rate(state + k2 * (0.5 * h))
    k4 = rate(state + k3 * h)
    return state + (k1 + (k2 + k3) * 2.0 + k4) * (h * (1.0 / 6.0))


class Plant(ABC):
    """A robot that moves under piecewise constant torques."""

    def __init__(self, robot: Robot, *, friction_speed: float = 0.05) -> None:
        """Prepare the simulation.

        Args:
            robot: The robot with its true parameter values.
            friction_speed: Speed below which dry friction decreases to zero [rad/s or m/s]. Smaller values need smaller
                steps, because friction then stops a light joint within microseconds.
        """
        self.robot = robot
        self.friction_speed = as_number("friction_speed", friction_speed, above=0.0)

    @abstractmethod
    def advance(self, state: Floats, torque: Floats, duration: float) -> Floats:
        """Advance the state (2 n + 1,) by ``duration`` [s] under a constant torque (n,) [N m or N]."""

    def steps(self, duration: float) -> list[float]:
        """Divide ``duration`` into equal steps [s] that are short enough to follow friction."""
        parts = max(1, int(np.ceil(duration * self._friction_rate / STABLE)))
        return [duration / parts] * parts

    @cached_property
    def _friction_rate(self) -> float:
        """Fastest rate at which dry friction stops a joint [1/s]; it bounds the step of an explicit integrator."""
        robot, theta, rest = self.robot, self.robot.parameter_vector, np.zeros(self.robot.dof)
        pushes = [np.asarray(term_torque(robot, theta, rest, rest + v, rest), dtype=float) for v in (1.0, -1.0)]
        slope = np.abs(pushes[0] - pushes[1]) / (2.0 * self.friction_speed)
        q = np.random.default_rng(0).uniform(-np.pi, np.pi, (16, robot.dof))
        try:
            mobility = np.linalg.inv(inertia_matrix(robot, q))
        except np.linalg.LinAlgError as error:
            raise ArgumentError(
                f"robot '{robot.name}' has a joint that moves nothing with inertia, so its motion is not defined",
                remedy="Give its links a mass, or its joints a RotorInertia.",
            ) from error
        return float(np.abs(eigenvalues(mobility * slope)).max())


class RungeKuttaPlant(Plant):
    """A plant with fixed fourth-order steps; a whole step is one compiled program."""

    @cached_property
    def _step(self) -> Any:
        robot, n = self.robot, self.robot.dof

        def step(state: Any, torque: Any, duration: Any) -> Any:
            return runge_kutta(lambda now: _rate(robot, now, torque), state, duration[0])

        tape = record(step, state=(2 * n + 1,), torque=(n,), duration=(1,))
        return compile_single(smooth_signs(tape, self.friction_speed))

    def advance(self, state: Floats, torque: Floats, duration: float) -> Floats:
        for step in self.steps(duration):
            state = self._step(state, torque, np.array([step]))
        return state


class AdaptivePlant(Plant):
    """A plant with steps of variable size, chosen by error control (SciPy's DOP853)."""

    tolerance = 1e-10
    """Relative and absolute tolerance of each step; a convention, far below the sensors' resolution."""

    @cached_property
    def _derivative(self) -> Any:
        return compile_single(smooth_signs(motion_tape(self.robot), self.friction_speed))

    def advance(self, state: Floats, torque: Floats, duration: float) -> Floats:
        derivative = self._derivative
        solution = solve_ivp(
            lambda _, x: derivative(x, torque),
            (0.0, duration),
            state,
            "DOP853",
            rtol=self.tolerance,
            atol=self.tolerance,
        )
        if not solution.success:
            raise EstimationError(f"the simulation stopped: {solution.message}")
        final: Floats = solution.y[:, -1].copy()
        return final
