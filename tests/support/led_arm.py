"""An arm simulated by MuJoCo, and a hand that leads it."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

import dynid
from dynid.array_types import Floats
from dynid.compiled import link_jacobian, link_pose
from dynid.control_loop.arm import replace_signs
from dynid.dynamics.inertia_matrix import motor_inertia_matrix
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.monitor.hand_guiding import HandGuiding
from dynid.robot.formats.mjcf.write import mjcf_text
from dynid.tape import compile_single, record

FRICTION_SPEED = 0.05
"""Speed below which the simulated dry friction falls to zero [rad/s]."""
STEP_S = 2.5e-4
"""Longest step of the integrator [s]: short enough to follow friction."""


class MujocoPlant:
    """MuJoCo computes the accelerations of links and rotors; friction is that of the terms, in every stage."""

    def __init__(self, robot: dynid.Robot) -> None:
        self.robot, rest, theta = robot, np.zeros(robot.dof), robot.parameter_vector
        self._model = mujoco.MjModel.from_xml_string(mjcf_text(robot.with_terms().with_couplings()))
        self._model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        self._model.dof_armature[:] = np.diag(np.asarray(motor_inertia_matrix(robot, theta), dtype=float))
        self._data = mujoco.MjData(self._model)
        tape = record(lambda q, dq: term_torque(robot, theta, q, dq, rest), q=rest.shape, dq=rest.shape)
        self._friction = compile_single(replace_signs(tape, lambda v, _: np.tanh(v / FRICTION_SPEED)))

    def _rate(self, state: Floats, torque: Floats) -> Floats:
        q, dq = (np.ascontiguousarray(part) for part in np.split(state, 2))
        self._data.qpos[:], self._data.qvel[:], self._data.qfrc_applied[:] = q, dq, torque - self._friction(q, dq)
        mujoco.mj_forward(self._model, self._data)
        return np.concatenate([dq, self._data.qacc])

    def advance(self, state: Floats, torque: Floats, duration: float) -> Floats:
        """Advance positions and velocities (2 n,) under a constant torque (n,) by classical Runge-Kutta steps."""
        steps = int(np.ceil(duration / STEP_S))
        h = duration / steps
        for _ in range(steps):
            k1 = self._rate(state, torque)
            k2 = self._rate(state + 0.5 * h * k1, torque)
            k3 = self._rate(state + 0.5 * h * k2, torque)
            k4 = self._rate(state + h * k3, torque)
            state = state + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return state


@dataclass(frozen=True, slots=True)
class Hand:
    """A hand that holds a link by a spring and a damper, and leads it along a straight way and back."""

    link: str
    way: tuple[float, float, float] = (0.0, 0.15, 0.1)
    """Farthest displacement, axes of the base [m]."""
    duration_s: float = 4.0
    """Time there and back [s]."""
    stiffness: float = 2000.0
    """Of the grip [N/m] (convention: a firm hand)."""
    damping: float = 100.0
    """Of the grip [N s/m] (convention)."""

    def place(self, time: float) -> tuple[Floats, Floats]:
        """Displacement (3,) [m] and velocity (3,) [m/s] of the hand at a time [s]."""
        rate = 2.0 * np.pi / self.duration_s
        way = np.array(self.way)
        return way * 0.5 * (1.0 - np.cos(rate * time)), way * 0.5 * rate * np.sin(rate * time)


@dataclass(frozen=True, slots=True, eq=False)
class Guiding:
    """How an arm was led by a hand."""

    time: Floats
    """(N,) [s]"""
    force: Floats
    """(N, 3) force of the hand, axes of the base [N]."""
    error: Floats
    """(N,) distance between hand and link [m]."""

    @property
    def rms_force(self) -> float:
        """Root mean square of the force [N]."""
        return float(np.sqrt(np.mean(np.sum(self.force**2, axis=1))))


def guide_by_hand(
    plant: MujocoPlant, controller: HandGuiding, q: Floats, hand: Hand, *, period_s: float = 0.002
) -> Guiding:
    """Simulate an arm that a hand leads from posture q (n,): the force at the hand."""
    robot, n = plant.robot, plant.robot.dof
    state = np.concatenate([q, np.zeros(n)])
    start = np.array(link_pose(robot, hand.link, state[:n])[:3, 3])
    times = np.arange(0.0, hand.duration_s, period_s)
    forces, errors = np.zeros((times.size, 3)), np.zeros(times.size)
    for k, time in enumerate(times.tolist()):
        now, dq = state[:n].copy(), state[n : 2 * n].copy()
        J = np.asarray(link_jacobian(robot, hand.link, now))[:3]
        moved, speed = hand.place(time)
        gap = start + moved - link_pose(robot, hand.link, now)[:3, 3]
        forces[k] = hand.stiffness * gap + hand.damping * (speed - J @ dq)
        errors[k] = np.linalg.norm(gap)
        state = plant.advance(state, controller.torque(now, dq) + J.T @ forces[k], period_s)
    return Guiding(times, forces, errors)
