"""Forward dynamics: the acceleration under given torques, by a symmetric solve ``M x = b`` that can be recorded.

The solve uses Featherstone's factors ``M = L' D L``, with L unit lower triangular and D diagonal. Elimination starts at
the tips of the robot, so that entries that are structurally zero (joints on different branches) stay zero. It needs no
square roots and one division per joint, and has no branch that depends on the robot's state: `dynid.compiled` runs it
on recorded scalars, whose values are not known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.dynamics.inertia_matrix import composite_inertia_matrix
from dynid.dynamics.inverse_dynamics import rigid_body_torque, term_torque
from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.spatial import Array


def forward_dynamics(robot: Robot, theta: Any, q: Any, dq: Any, tau: Any) -> Any:
    """Joint accelerations (n,) [rad/s^2 or m/s^2] under joint torques tau (n,) [N m or N]."""
    known = inertia_and_bias(robot, theta, q, dq)
    return solve_symmetric(known["inertia"], tau - known["bias"])


def inertia_and_bias(robot: Robot, theta: Any, q: Any, dq: Any) -> dict[str, Any]:
    """Inertia matrix (n, n) and bias torque (n,): the torque of links and terms at zero acceleration."""
    zero = np.zeros(robot.dof)
    bias = rigid_body_torque(robot, theta, q, dq, zero) + term_torque(robot, theta, q, dq, zero)
    return {"inertia": composite_inertia_matrix(robot, theta, q), "bias": bias}


def solve_symmetric(M: Array, b: Array) -> Array:
    """Solution x (n,) of ``M x = b``, on floats or on recorded scalars.

    Args:
        M: (n, n) symmetric, positive definite.
        b: (n,) right-hand side.

    Raises:
        ArgumentError: A pivot is the constant zero: the matrix is singular whatever the state.
    """
    L, reciprocals = _factorise(M)
    x: list[Any] = list(b)
    for k in reversed(range(len(x))):  # y with L' y = b
        for i in range(k):
            x[i] = x[i] - L[k, i] * x[k]
    for k in range(len(x)):
        x[k] = x[k] * reciprocals[k]  # z = D^-1 y
        for i in range(k):  # x with L x = z
            x[k] = x[k] - L[k, i] * x[i]
    return np.array(x)


def _factorise(M: Array) -> tuple[Any, list[Any]]:
    """Factorise ``M = L' D L``: L below the diagonal of a matrix (n, n), and the reciprocals of D (n,)."""
    L: Any = np.array(M, dtype=object)  # rows below k are M still, row k on they are L
    reciprocals: list[Any] = [0.0] * len(L)
    for k in reversed(range(len(L))):
        if isinstance(L[k, k], float | int) and L[k, k] == 0:  # a constant; recorded scalars are never judged
            raise ArgumentError(
                f"the inertia matrix is singular: joint {k + 1} moves no inertia",
                remedy="Give every moving body mass, or its joint a rotor inertia.",
            )
        reciprocals[k] = 1.0 / L[k, k]
        for i in reversed(range(k)):
            factor = L[k, i] * reciprocals[k]
            for j in range(i + 1):
                L[i, j] = L[i, j] - L[k, j] * factor
            L[k, i] = factor
    return L, reciprocals
