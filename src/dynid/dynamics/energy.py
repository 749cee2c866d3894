"""Kinetic and potential energy, linear in the link parameters, and the momentum that follows from them.

`dynid.compiled` compiles these functions: the energy rows for the energy model of identification, the momentum for
observers of external torques. Both energies are linear in the link parameters; the row of their coefficients is ``h``
in [GautierKhalil1992] eqs. (4), (6), see also [GautierKhalil1990] eqs. (2), (3), (7), (8). The ten parameters of a link
are ``XX XY XZ YY YZ ZZ MX MY MZ M``, in its body frame.

With the kinetic energy T and the potential energy U, the generalised momentum is ``p = dT/d(dq) = M dq``, and
``dp/dt = tau + dT/dq - dU/dq - friction + external``. The derivative ``dT/dq`` equals ``C^T dq`` for every C whose
``dM/dt - 2 C`` is skew-symmetric. `momentum_balance` computes p and dT/dq without any matrix: it sums the momenta of
all bodies beyond each joint, from the tips to the base, and projects the sums on the joint axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.dynamics.inertia_matrix import gravity_torque, momentum, motor_inertia_matrix, single_body
from dynid.dynamics.kinematics import Pair, body_poses, body_velocities, carry_wrench
from dynid.robot.model import Robot
from dynid.spatial import Array, cross


def kinetic_energy_row(robot: Robot, q: Array, dq: Array) -> Array:
    """Kinetic energy [J] per unit of each link parameter (10 n,), [GautierKhalil1990] eqs. (2), (7).

    Of a link: ``w' J w / 2 + h . (v x w) + m v . v / 2``.

    Args:
        robot: Geometry.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.
    """
    rows = []
    for w, v in body_velocities(robot, q, dq):
        x, y, z = w
        per_tensor_entry = [0.5 * (x * x), x * y, x * z, 0.5 * (y * y), y * z, 0.5 * (z * z)]
        rows.append(np.concatenate([np.array(per_tensor_entry), cross(v, w), np.array([0.5 * (v @ v)])]))
    return np.concatenate(rows)


def potential_energy_row(robot: Robot, q: Array) -> Array:
    """Potential energy [J] per unit of each link parameter (10 n,), zero at the origin of the root frame.

    Of a link: ``-g . (R h + m p)``, with its pose R, p in the root frame ([GautierKhalil1990] eqs. (3), (8), (A12)).
    """
    rows = []
    for R_base_body, p in body_poses(robot, q):
        per_first_moment = -(R_base_body.T @ robot.gravity)
        rows.append(np.concatenate([np.zeros(6), per_first_moment, np.array([-(robot.gravity @ p)])]))
    return np.concatenate(rows)


def energy_rows(robot: Robot, q: Array, dq: Array) -> Array:
    """Kinetic plus potential energy [J] per unit of each link parameter (10 n,)."""
    return kinetic_energy_row(robot, q, dq) + potential_energy_row(robot, q)  # [GautierKhalil1992] eqs. (4), (6)


def momentum_balance(robot: Robot, theta: Array, q: Array, dq: Array) -> dict[str, Array]:
    """Generalised momentum ``p`` (n,) [N m s or N s] and force ``dT/dq - dU/dq`` (n,) [N m or N].

    Both include the rotors; friction is left out.

    Args:
        robot: Geometry, gravity and kinds of terms.
        theta: (p,) parameter values in the order of `Robot.parameter_vector`; those of the links come first.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.

    Returns:
        ``momentum`` and ``force``.
    """
    links, force = _link_momentum(robot, theta, q, dq)
    rotors = motor_inertia_matrix(robot, theta)
    return {"momentum": links + rotors @ dq, "force": force - gravity_torque(robot, theta, q)}


def _link_momentum(robot: Robot, theta: Array, q: Array, dq: Array) -> tuple[Array, Array]:
    """Generalised momentum of the links (n,) and ``dT/dq`` (n,)."""
    count = robot.dof
    velocities = body_velocities(robot, q, dq)
    # angular and linear momentum of the bodies that each body carries
    carried: list[Pair] = [(np.zeros(3), np.zeros(3)) for _ in range(count)]
    momenta: list[Any] = [0.0] * count
    force: list[Any] = [0.0] * count
    for j in reversed(range(count)):
        body = robot.bodies[j]
        w, v = velocities[j]
        angular, linear = momentum(single_body(theta[10 * j : 10 * j + 10]), (w, v))
        angular = carried[j][0] + angular
        linear = carried[j][1] + linear
        momenta[j] = body.axis @ (linear if body.is_prismatic else angular)
        # dT/dq = momentum . dV/dq, and dV/dq = V x axis: turning the joint turns the velocity V = (w, v) as seen from
        # the bodies beyond; by the triple product this is axis . (momentum x V)
        change = cross(linear, w) if body.is_prismatic else cross(angular, w) + cross(linear, v)
        force[j] = body.axis @ change
        if body.parent >= 0:  # a momentum is carried to another origin like a wrench
            angular, linear = carry_wrench(body, q[j], (angular, linear))
            carried[body.parent] = carried[body.parent][0] + angular, carried[body.parent][1] + linear
    return np.array(momenta), np.array(force)


def total_energy(robot: Robot, theta: Array, q: Array, dq: Array) -> Array:
    """Energy of links and rotors [J]: kinetic, and potential in gravity with zero at the origin of the root frame."""
    kinetic = 0.5 * (momentum_balance(robot, theta, q, dq)["momentum"] @ dq)
    potential = potential_energy_row(robot, q) @ theta[: 10 * robot.dof]
    return np.array([kinetic + potential])
