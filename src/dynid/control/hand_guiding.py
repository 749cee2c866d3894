"""Hand guiding: gravity and friction are balanced, so that a hand can lead the arm; simulated with such a hand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number, as_row
from dynid.control.plant import Plant, smooth_signs
from dynid.dynamics.inertia_matrix import gravity_torque
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.kernels import link_jacobian, link_pose
from dynid.robot.model import Robot
from dynid.tape import compile_single, record

SHARE = 0.9
"""Part of the friction that is balanced (convention: a tenth remains, so that no error of the model drives the arm)."""
REST_SPEED = 0.05
"""Speed below which the balanced dry friction falls to zero [rad/s or m/s] (convention: an arm at rest is not
pushed, and the friction of simulated plants falls there, too)."""


class HandGuiding:
    """Balances the weight of the links, offsets and springs, and most of the friction, from the measured velocity."""

    def __init__(self, model: Robot, *, share: float = SHARE, rest_speed: float = REST_SPEED) -> None:
        """Use a model with its terms.

        Args:
            model: The controller's model of the robot.
            share: Part of the friction that is balanced, 0 to 1.
            rest_speed: Speed below which dry friction is balanced less and less [rad/s or m/s].
        """
        self.model = model
        self.share = as_number("share", share, least=0.0, most=1.0)
        self.rest_speed = as_number("rest_speed", rest_speed, above=0.0)

    @cached_property
    def _law(self) -> Any:
        model, theta, rest = self.model, self.model.parameter_vector, np.zeros(self.model.dof)
        shape = (self.model.dof,)

        def law(q: Any, dq: Any) -> Any:
            # what terms do at rest is no friction: offsets, springs, a tilt of the base
            at_rest = term_torque(model, theta, q, rest, rest)
            friction = term_torque(model, theta, q, dq, rest) - at_rest
            return gravity_torque(model, theta, q) + at_rest + self.share * friction

        return compile_single(smooth_signs(record(law, q=shape, dq=shape), self.rest_speed))

    def torque(self, time: float, q: Floats, dq: Floats) -> Floats:
        """Compute torques (n,) [N m or N]."""
        return np.asarray(self._law(np.ascontiguousarray(q), np.ascontiguousarray(dq)))


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

    @property
    def peak_force(self) -> float:
        """Largest force [N]."""
        return float(np.linalg.norm(self.force, axis=1).max())


def guide_by_hand(
    plant: Plant, controller: HandGuiding, q: ArrayLike, hand: Hand, *, period_s: float = 0.002
) -> Guiding:
    """Simulate an arm that a hand leads.

    Args:
        plant: The simulated robot, with its true parameters.
        controller: The law that balances gravity and friction by a model.
        q: (n,) posture at the start [rad or m].
        hand: The hand.
        period_s: Control period [s].

    Returns:
        The force at the hand.

    Example:
        >>> plant, law = dynid.control.RungeKuttaPlant(robot), dynid.control.HandGuiding(robot)
        >>> dynid.control.guide_by_hand(plant, law, q, dynid.control.Hand("link3", duration_s=0.02)).force.shape
        (10, 3)
    """
    robot, n = plant.robot, plant.robot.dof
    state = np.concatenate([as_row("q", q, n), np.zeros(n + 1)])
    start = np.array(link_pose(robot, hand.link, state[:n])[:3, 3])
    times = np.arange(0.0, hand.duration_s, as_number("period_s", period_s, above=0.0))
    forces, errors = np.zeros((times.size, 3)), np.zeros(times.size)
    for k, time in enumerate(times.tolist()):
        now, dq = state[:n].copy(), state[n : 2 * n].copy()
        J = np.asarray(link_jacobian(robot, hand.link, now))[:3]
        moved, speed = hand.place(time)
        gap = start + moved - link_pose(robot, hand.link, now)[:3, 3]
        forces[k] = hand.stiffness * gap + hand.damping * (speed - J @ dq)
        errors[k] = np.linalg.norm(gap)
        state = plant.advance(state, controller.torque(time, now, dq) + J.T @ forces[k], period_s)
    return Guiding(times, forces, errors)
