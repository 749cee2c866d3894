"""Hand guiding: gravity and friction are balanced, so that a hand can lead the arm.

The law is ``torque = g(q) + terms at rest + share * friction(q, dq)`` with the identified model. A control loop calls
`HandGuiding.torque` with measured positions and velocities and sends the result to the drives.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.control_loop.arm import replace_signs
from dynid.dynamics.inertia_matrix import gravity_torque
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.robot.model import Robot
from dynid.tape import compile_single, record

FRICTION_SHARE = 0.9
"""Part of the friction that is balanced (convention: a tenth remains, so that no error of the model drives the arm)."""
REST_SPEED = 0.05
"""Speed below which the balanced dry friction falls to zero [rad/s or m/s] (convention: an arm at rest is not
pushed)."""


class HandGuiding:
    """The torques that balance the weight of the links, offsets and springs, and most of the friction.

    Friction is computed from the measured velocity; a tanh takes the place of its sign, so that the torques of dry
    friction fall to zero as the arm comes to rest.
    """

    def __init__(self, model: Robot, *, share: float = FRICTION_SHARE, rest_speed: float = REST_SPEED) -> None:
        """Prepare the torques of a model with its terms.

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
        """The torques as a compiled function of q and dq, each (n,)."""
        model = self.model
        theta = model.parameter_vector
        rest = np.zeros(model.dof)

        def law(q: Any, dq: Any) -> Any:
            # torques of terms at rest are no friction: offsets, springs, a tilt of the base
            at_rest = term_torque(model, theta, q, rest, rest)
            friction = term_torque(model, theta, q, dq, rest) - at_rest
            return gravity_torque(model, theta, q) + at_rest + self.share * friction

        # the straight-line program of the law, in which tanh(v / rest_speed) takes the place of sign(v)
        tape = record(law, q=rest.shape, dq=rest.shape)
        return compile_single(replace_signs(tape, lambda v, _: np.tanh(v / self.rest_speed)))

    def torque(self, q: Floats, dq: Floats) -> Floats:
        """Compute torques (n,) [N m or N] from measured positions and velocities (n,).

        Example:
            >>> dynid.monitor.HandGuiding(robot).torque(q, np.zeros(robot.dof)).shape
            (3,)
        """
        return np.asarray(self._law(np.ascontiguousarray(q, dtype=float), np.ascontiguousarray(dq, dtype=float)))
