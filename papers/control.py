"""Control with a model of the robot: open-loop and computed torque on a simulated arm, two rates, bandwidths.

Izaguirre et al. 1992, sections 3 and 7.2; Atkeson et al. 1986, section 4.2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dynid
from dynid.array_types import Floats
from dynid.control_loop.arm import replace_signs
from dynid.dynamics.forward_dynamics import solve_symmetric
from dynid.dynamics.inertia_matrix import composite_inertia_matrix
from dynid.dynamics.inverse_dynamics import rigid_body_torque, term_torque
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.tape import compile_single, record

FRICTION_SPEED = 0.05
"""Speed below which the simulated dry friction falls to zero [rad/s]; an integrator can follow it then."""
STABLE = 1.5
"""Largest product of step and decay rate: half of what the classical fourth-order method bears."""

Signals = tuple[Floats, Floats, Floats]
"""Positions, velocities and accelerations."""
Law = Callable[[Signals, Floats, Floats], Floats]
"""Torques (n,) from the reference and from measured positions and velocities (n,)."""


def open_loop(model: dynid.Robot, *, online_gravity: bool = False) -> Law:
    """The model's torque along the reference; with on-line gravity, that of the measured positions."""

    def law(reference: Signals, q: Floats, dq: Floats) -> Floats:
        torque = dynid.inverse_dynamics(model, *reference)
        if online_gravity:
            torque = torque + dynid.gravity_torque(model, q) - dynid.gravity_torque(model, reference[0])
        return torque

    return law


def computed_torque(model: dynid.Robot, kp: float = 400.0, kd: float = 40.0) -> Law:
    """The model's torque for accelerations that correct the errors of positions [1/s^2] and velocities [1/s]."""

    def law(reference: Signals, q: Floats, dq: Floats) -> Floats:
        return dynid.inverse_dynamics(model, q, dq, reference[2] + kd * (reference[1] - dq) + kp * (reference[0] - q))

    return law


def with_wrong_parameters(robot: dynid.Robot, share: float, seed: int = 0) -> dynid.Robot:
    """Change every parameter by the relative error ``share``, with random sign."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], robot.parameter_vector.size)
    return robot.with_parameters(robot.parameter_vector * (1.0 + share * signs))


@dataclass(frozen=True, slots=True, eq=False)
class Tracking:
    """How a simulated robot followed a motion."""

    time: Floats
    error: Floats
    """(N + 1, n) reference minus positions [rad]"""
    stroke: Floats
    """(n,) range of each joint's reference [rad]"""

    @property
    def relative(self) -> Floats:
        """(n,) largest error as a share of the stroke; zero for joints whose reference stands still."""
        largest = np.abs(self.error).max(axis=0)
        return np.divide(largest, self.stroke, out=np.zeros_like(self.stroke), where=self.stroke > 1e-9)

    @property
    def rms(self) -> float:
        """Root mean square error over all joints [rad]."""
        return float(np.sqrt(np.mean(self.error**2)))


def track(robot: dynid.Robot, law: Law, move: Trajectory, rate_hz: float = 1000.0) -> Tracking:
    """Simulate a robot that starts on a motion and follows it under a sampled law; ideal sensors and drives."""
    n, step, rate = robot.dof, _integration_step(robot), _friction_rate(robot)
    time = np.arange(round(move.duration * rate_hz) + 1) / rate_hz
    references = move.evaluate(np.minimum(time, move.duration))
    parts = max(1, int(np.ceil(rate / (rate_hz * STABLE))))
    h, found = np.array([1.0 / (rate_hz * parts)]), np.zeros((len(time), n))
    state = np.concatenate([references[0][0], references[1][0]])
    for k in range(len(time)):
        found[k] = state[:n]
        reference = references[0][k], references[1][k], references[2][k]
        torque = law(reference, state[:n].copy(), state[n:].copy())
        for _ in range(parts):
            state = step(state, torque, h)
    return Tracking(time, references[0] - found, np.ptp(references[0], axis=0))


def _integration_step(robot: dynid.Robot) -> Any:
    """Compile one classical fourth-order step of positions and velocities (2 n,) under a constant torque (n,)."""
    n, theta, rest = robot.dof, robot.parameter_vector, np.zeros(robot.dof)

    def rate(state: Any, torque: Any) -> Any:
        q, dq = state[:n], state[n:]
        left = torque - term_torque(robot, theta, q, dq, rest) - rigid_body_torque(robot, theta, q, dq, rest)
        return np.concatenate([dq, solve_symmetric(composite_inertia_matrix(robot, theta, q), left)])

    def step(state: Any, torque: Any, duration: Any) -> Any:
        h = duration[0]
        k1 = rate(state, torque)
        k2 = rate(state + k1 * (0.5 * h), torque)
        k3 = rate(state + k2 * (0.5 * h), torque)
        k4 = rate(state + k3 * h, torque)
        return state + (k1 + (k2 + k3) * 2.0 + k4) * (h * (1.0 / 6.0))

    tape = record(step, state=(2 * n,), torque=(n,), duration=(1,))
    return compile_single(replace_signs(tape, lambda v, _: np.tanh(v / FRICTION_SPEED)))


def _friction_rate(robot: dynid.Robot) -> float:
    """Fastest rate at which dry friction stops a joint [1/s]."""
    theta, rest = robot.parameter_vector, np.zeros(robot.dof)
    slope = np.asarray(term_torque(robot, theta, rest, rest + 1.0, rest), dtype=float) / FRICTION_SPEED
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (16, robot.dof))
    return float(np.abs(np.linalg.eigvals(np.linalg.inv(dynid.inertia_matrix(robot, q)) * slope)).max())


def two_rate_errors(robot: dynid.Robot, move: Trajectory, period: float, rate_hz: float = 1000.0) -> Floats:
    """Torque errors (N, n) if inertias, gravity and velocity torques belong to the last complete background cycle.

    A result of the background is in use from the end of its period [s] to the end of the next one.
    """
    time = np.arange(round(move.duration * rate_hz) + 1) / rate_hz
    q, dq, ddq = move.evaluate(np.minimum(time, move.duration))
    begun = np.maximum(np.floor(time / period + 1e-9) - 1.0, 0.0) * period
    old, old_dq, _ = move.evaluate(np.minimum(begun, move.duration))
    # [Izaguirre1992] eq. (1) with D_ij, D_i and velocity torques of the earlier state
    torque = np.einsum("nij,nj->ni", dynid.inertia_matrix(robot, old), ddq)
    torque += dynid.inverse_dynamics(robot, old, old_dq, np.zeros_like(old))
    return torque - dynid.inverse_dynamics(robot, q, dq, ddq)


def bang_coast_bang(stroke: Floats, velocity: float, acceleration: float, samples: int = 2000) -> Signals:
    """Sample the fastest move (N, n) over a stroke (n,) by full acceleration, constant velocity, full braking."""
    longest = np.abs(stroke).max()
    a = acceleration / longest
    v = min(velocity / longest, np.sqrt(a))  # without a coast the peak is sqrt(a)
    ramp, end = v / a, 1.0 / v + v / a
    t = np.linspace(0.0, end, samples + 1)[:, None]
    early, late = t < ramp, t > end - ramp
    q = np.where(early, 0.5 * a * t**2, np.where(late, 1.0 - 0.5 * a * (end - t) ** 2, v * (t - 0.5 * ramp)))
    dq = np.where(early, a * t, np.where(late, a * (end - t), v))
    return q * stroke, dq * stroke, np.where(early, a, np.where(late, -a, 0.0)) * stroke


def bandwidths(signals: Signals, share: float = 0.95) -> list[int]:
    """Harmonic of each signal up to which ``share`` of its power lies, if the move is repeated there and back.

    So the signals are periodic and have exact spectra. One way alone has none: its result would be that of a window.
    """
    # on the way back the same places have opposite velocities and the same accelerations
    return [
        _harmonic(np.concatenate([x, sign * x[-2:0:-1]]), share)
        for sign, x in zip((1.0, -1.0, 1.0), signals, strict=True)
    ]


def _harmonic(values: Floats, share: float) -> int:
    varying = values - values.mean(axis=0)
    power = np.cumsum((np.abs(np.fft.rfft(varying / np.sqrt(np.mean(varying**2, axis=0)), axis=0)) ** 2).sum(axis=1))
    return int(np.searchsorted(power, share * power[-1]))
