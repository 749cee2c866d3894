"""Forward dynamics: solve ``M x = b`` for a robot's inertia matrix, without branches, so that it can be recorded.

The factors are those of Featherstone's ``M = L' D L``: elimination starts at the tips, so that what is structurally
zero (joints on different branches) stays zero. No square roots; one division per joint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.dynamics.inertia_matrix import composite_inertia_matrix
from dynid.dynamics.inverse_dynamics import rigid_body_torque, term_torque
from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.spatial import Array


def solve_symmetric(M: Array, b: Array) -> Array:
    """Solution x (n,) of ``M x = b``; scalar-agnostic.

    Args:
        M: (n, n) symmetric, positive definite.
        b: (n,) right-hand side.

    Raises:
        ArgumentError: A pivot is the constant zero: the matrix is singular whatever the state.
    """
    L: Any = np.array(M, dtype=object)
    x: list[Any] = list(b)
    reciprocals = _factorise(L)
    for k in reversed(range(len(x))):
        for i in range(k):
            x[i] = x[i] - L[k, i] * x[k]
    for k in range(len(x)):
        x[k] = x[k] * reciprocals[k]
        for i in range(k):
            x[k] = x[k] - L[k, i] * x[i]
    return np.array(x)


def _factorise(L: Any) -> list[Any]:
    """Replace the lower triangle of a matrix (n, n) by L; returns the reciprocals of D (n,)."""
    reciprocals: list[Any] = [0.0] * len(L)
    for k in reversed(range(len(L))):
        if isinstance(L[k, k], float | int) and L[k, k] == 0:
            raise ArgumentError(
                f"the inertia matrix is singular: joint {k + 1} moves nothing",
                remedy="Give every moving body mass, or its joint a rotor inertia.",
            )
        reciprocals[k] = 1.0 / L[k, k]
        for i in reversed(range(k)):
            factor = L[k, i] * reciprocals[k]
            for j in range(i + 1):
                L[i, j] = L[i, j] - L[k, j] * factor
            L[k, i] = factor
    return reciprocals


def inertia_and_bias(robot: Robot, theta: Any, q: Any, dq: Any) -> dict[str, Any]:
    """Inertia matrix (n, n) and the torque (n,) without acceleration, terms included."""
    rest = np.zeros(robot.dof)
    bias = rigid_body_torque(robot, theta, q, dq, rest) + term_torque(robot, theta, q, dq, rest)
    return {"inertia": composite_inertia_matrix(robot, theta, q), "bias": bias}


def forward_dynamics(robot: Robot, theta: Any, q: Any, dq: Any, tau: Any) -> Any:
    """Acceleration (n,) under a torque (n,)."""
    known = inertia_and_bias(robot, theta, q, dq)
    return solve_symmetric(known["inertia"], tau - known["bias"])
