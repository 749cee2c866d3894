"""The inertial parameters of a robot in the order of other libraries."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.robot.model import Robot

PINOCCHIO = [9, 6, 7, 8, 0, 1, 3, 2, 4, 5]
"""Places of m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz among XX XY XZ YY YZ ZZ MX MY MZ M."""
DRAKE = [9, 6, 7, 8, 0, 3, 5, 1, 2, 4]
"""Places of m, c, Gxx, Gyy, Gzz, Gxy, Gxz, Gyz; all but m are divided by the mass."""


def pinocchio_parameters(robot: Robot) -> Floats:
    """(n, 10) dynamic parameters of every moving body, as ``pinocchio.Inertia.toDynamicParameters`` has them.

    A row is m, m c_x, m c_y, m c_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz: the first moments [kg m] and the tensor about
    the origin of the joint's frame [kg m^2]. Pinocchio's regressor has its columns in this order.

    Example:
        >>> dynid.export.pinocchio_parameters(dynid.robots.panda()).shape
        (7, 10)
    """
    return robot.inertial_vector.reshape(-1, 10)[:, PINOCCHIO]


def drake_parameters(robot: Robot) -> Floats:
    """(n, 10) spatial inertia of every moving body, as Drake's multibody plants hold it in their parameters.

    A row is mass [kg], centre of mass p_BoBcm_B (x, y, z) [m], and the unit inertia G_BBo_B, the tensor about the
    body's origin divided by the mass: Gxx, Gyy, Gzz, Gxy, Gxz, Gyz [m^2]. NaN where a body has no mass.

    Example:
        >>> dynid.export.drake_parameters(dynid.robots.panda()).shape
        (7, 10)
    """
    rows = robot.inertial_vector.reshape(-1, 10)[:, DRAKE]
    with np.errstate(all="ignore"):
        rows[:, 1:] /= rows[:, :1]
    return rows


def with_pinocchio_parameters(robot: Robot, rows: ArrayLike) -> Robot:
    """The robot with dynamic parameters in Pinocchio's order; the inverse of `pinocchio_parameters`.

    Args:
        robot: The robot; its terms stay.
        rows: (n, 10), or (10 n,) as they stand in Pinocchio's regressor.

    Raises:
        ArgumentError: The numbers are not finite, or not ten per moving body.

    Example:
        >>> rows = dynid.export.pinocchio_parameters(robot)
        >>> heavier = dynid.export.with_pinocchio_parameters(robot, 2.0 * rows)
        >>> np.allclose(heavier.inertial_vector, 2.0 * robot.inertial_vector)
        True
    """
    return _with_rows(robot, rows, PINOCCHIO)


def with_drake_parameters(robot: Robot, rows: ArrayLike) -> Robot:
    """The robot with spatial inertias in Drake's order; the inverse of `drake_parameters`, as the function above.

    Example:
        >>> rows = dynid.export.drake_parameters(robot)
        >>> np.allclose(dynid.export.with_drake_parameters(robot, rows).inertial_vector, robot.inertial_vector)
        True
    """
    return _with_rows(robot, rows, DRAKE)


def _with_rows(robot: Robot, rows: ArrayLike, order: list[int]) -> Robot:
    found, theta = np.array(rows, dtype=float), robot.parameter_vector.copy()
    if found.size != 10 * robot.dof or not np.isfinite(found).all():
        remedy = f"Give ten finite numbers for each of the {robot.dof} moving bodies."
        raise ArgumentError(f"rows of shape {found.shape} do not fit, or are not finite", remedy=remedy)
    found = found.reshape(-1, 10)
    if order is DRAKE:
        found[:, 1:] *= found[:, :1]
    theta[: found.size] = found[:, np.argsort(order)].ravel()
    return robot.with_parameters(theta)
