"""Derivatives of a robot's energy with respect to its inertial parameters, link by link ([GautierKhalil1990]).

    DE_j = lambda_j DE_(j-1) + dq_j f_j        DU_j = beta_j DU_(j-1)        eqs. (9), (10), (A1), (A11)

DE_j (10,) and DU_j (10,) hold the derivatives of the kinetic and the potential energy with respect to ``XX XY XZ YY YZ
ZZ MX MY MZ M`` of link j. The recursion is the reason for the regrouping: a parameter whose row of lambda is constant
and whose entry of f is zero acts through link j - 1 alone. lambda is the transposed transport of a rigid body's
parameters. `dynid.energy_regressor` computes the same derivatives for any robot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_row
from dynid.errors import ArgumentError
from dynid.parameters.inertia_maps import transport
from dynid.robot.formats.dh import DH
from dynid.robot.formats.modified_dh import dh_rows
from dynid.robot.model import Robot


def energy_transport(row: DH, q: float = 0.0) -> Floats:
    """The matrix lambda (10, 10) of a joint: DE of link j that comes from link j - 1 ([GautierKhalil1990] eq. A2).

    Args:
        row: Row j of the modified DH table [rad, m].
        q: Position of the joint [rad or m], added to ``theta`` or ``r``.

    Example:
        >>> dynid.parameters.energy_transport(dynid.DH(r=0.1)).shape
        (10, 10)
    """
    T = _pose(row, q)
    return transport(T[:3, :3], T[:3, 3]).T


def energy_increment(row: DH, angular_velocity: ArrayLike, velocity: ArrayLike, dq: float) -> Floats:
    """The column f (10,) of a joint: DE of link j per velocity of joint j ([GautierKhalil1990] eqs. A8, A9).

    Args:
        row: Row j of the modified DH table.
        angular_velocity: (3,) of link j, in its own frame [rad/s].
        velocity: (3,) of the origin of frame j, in that frame [m/s].
        dq: Velocity of joint j [rad/s or m/s].

    Example:
        >>> dynid.parameters.energy_increment(dynid.DH(r=0.1), np.zeros(3), np.zeros(3), 1.0).shape
        (10,)
    """
    w = as_row("angular_velocity", angular_velocity, 3, each="along x, y and z")
    v = as_row("velocity", velocity, 3, each="along x, y and z")
    if row.sigma:
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -w[1], w[0], 0.0, v[2] - 0.5 * dq])  # eq. (A9)
    return np.array([0.0, 0.0, w[0], 0.0, w[1], w[2] - 0.5 * dq, v[1], -v[0], 0.0, 0.0])  # eq. (A8)


def potential_transport(row: DH, q: float = 0.0) -> Floats:
    """The matrix beta (10, 10) of a joint: DU of link j from that of link j - 1 ([GautierKhalil1990] eq. A11).

    Args:
        row: Row j of the modified DH table [rad, m].
        q: Position of the joint [rad or m].

    Example:
        >>> dynid.parameters.potential_transport(dynid.DH(r=0.1)).shape
        (10, 10)
    """
    result = energy_transport(row, q)
    result[:, :6] = 0.0  # second moments have no weight
    return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnergyDerivatives:
    """Energy of a robot per unit of the inertial parameters of each link, in one state."""

    kinetic: Floats
    """(n, 10) DE of each link [J per unit of the parameter]; ``XX XY XZ YY YZ ZZ MX MY MZ M``"""
    potential: Floats
    """(n, 10) DU of each link [J per unit of the parameter], zero at the origin of frame 0"""


def energy_derivatives(robot: Robot, q: ArrayLike, dq: ArrayLike) -> EnergyDerivatives:
    """Derivatives of kinetic and potential energy by the recursion of [GautierKhalil1990], appendix.

    Args:
        robot: A serial robot whose body frames are modified DH frames.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.

    Raises:
        ArgumentError: The frames of the robot are others.

    Example:
        >>> arm = dynid.robot.modified_dh(dynid.robots.ddarm()).robot
        >>> type(dynid.parameters.energy_derivatives(arm, q, dq)).__name__
        'EnergyDerivatives'
    """
    rows = dh_rows(robot) if robot.bodies else None
    if rows is None:
        raise ArgumentError(
            f"the body frames of robot '{robot.name}' are not modified DH frames",
            remedy="Give modified_dh(robot).robot of a serial robot; dynid.energy_regressor takes any robot.",
        )
    positions, rates = np.asarray(q, dtype=float), np.asarray(dq, dtype=float)
    if positions.shape != (robot.dof,) or rates.shape != (robot.dof,):
        raise ArgumentError(f"q has shape {positions.shape}, dq {rates.shape}", remedy=f"Give ({robot.dof},) each.")
    w, v = np.zeros(3), np.zeros(3)
    kinetic = np.zeros(10)  # eq. (A10)
    potential = np.concatenate([np.zeros(6), -robot.gravity, [0.0]])  # eq. (A12)
    found: list[tuple[Floats, Floats]] = []
    for row, position, rate in zip(rows, positions, rates, strict=True):
        w, v = _next_velocity(row, position, rate, w, v)
        increment = energy_increment(row, w, v, rate)
        kinetic = energy_transport(row, position) @ kinetic + rate * increment  # eq. (A1)
        potential = potential_transport(row, position) @ potential  # eq. (A11)
        found.append((kinetic, potential))
    return EnergyDerivatives(kinetic=np.array([k for k, _ in found]), potential=np.array([u for _, u in found]))


def count_bound(robot: Robot) -> int:
    """Largest number of base parameters of the links that a serial robot can have: [GautierKhalil1990] eq. (18).

    ``7 n_r + 4 n_t - 3``, less one if the first joint is revolute, with n_r revolute and n_t prismatic joints. Parallel
    axes and gravity along the first axis reduce the number further; `dynid.base_parameters` gives the exact one.

    Raises:
        ArgumentError: The robot branches or has no moving joint.

    Example:
        >>> dynid.parameters.count_bound(robot)
        17
    """
    if not robot.bodies or any(body.parent != j - 1 for j, body in enumerate(robot.bodies)):
        raise ArgumentError(
            f"robot '{robot.name}' is not a serial chain of moving joints", remedy="base_parameters(robot) counts."
        )
    prismatic = sum(body.is_prismatic for body in robot.bodies)
    is_first_revolute = not robot.bodies[0].is_prismatic
    return 7 * (robot.dof - prismatic) + 4 * prismatic - 3 - int(is_first_revolute)


def _pose(row: DH, q: float) -> Floats:
    """Pose (4, 4) of frame j in frame j - 1 at a position of the joint."""
    theta, r = (row.theta, row.r + q) if row.sigma else (row.theta + q, row.r)
    return replace(row, theta=float(theta), r=float(r)).T_previous_joint


def _next_velocity(row: DH, q: float, dq: float, w: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Angular velocity and origin velocity (3,), (3,) of link j from those of link j - 1, each in its own frame."""
    T = _pose(row, q)
    along = np.array([0.0, 0.0, dq])
    w_next, v_next = T[:3, :3].T @ w, T[:3, :3].T @ (v + np.cross(w, T[:3, 3]))
    return (w_next, v_next + along) if row.sigma else (w_next + along, v_next)
