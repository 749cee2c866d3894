"""The inertial parameters of a robot in the order of other libraries."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.robot.model import Robot


def pinocchio_parameters(robot: Robot) -> Floats:
    """(n, 10) dynamic parameters of every moving body, as ``pinocchio.Inertia.toDynamicParameters`` has them.

    A row is m, m c_x, m c_y, m c_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz: the first moments [kg m] and the tensor about
    the origin of the joint's frame [kg m^2]. Pinocchio's regressor has its columns in this order.

    Args:
        robot: The robot.

    Example:
        >>> import dynid
        >>> dynid.export.pinocchio_parameters(dynid.robots.panda()).shape
        (7, 10)
    """
    rows = []
    for body in robot.bodies:
        tensor = body.inertia.about_origin
        moments = [tensor[0, 0], tensor[0, 1], tensor[1, 1], tensor[0, 2], tensor[1, 2], tensor[2, 2]]
        rows.append([body.inertia.mass, *body.inertia.first_moment, *moments])
    return np.array(rows)


def drake_parameters(robot: Robot) -> Floats:
    """(n, 10) spatial inertia of every moving body, as Drake's multibody plants hold it in their parameters.

    A row is mass [kg], centre of mass p_BoBcm_B (x, y, z) [m], and the unit inertia G_BBo_B, the tensor about the
    body's origin divided by the mass: Gxx, Gyy, Gzz, Gxy, Gxz, Gyz [m^2]. NaN where a body has no mass.

    Args:
        robot: The robot.

    Example:
        >>> dynid.export.drake_parameters(dynid.robots.panda()).shape
        (7, 10)
    """
    rows = []
    for body in robot.bodies:
        mass = body.inertia.mass
        with np.errstate(all="ignore"):
            com, unit = np.array(body.inertia.first_moment) / mass, np.array(body.inertia.about_origin) / mass
        products = [unit[0, 0], unit[1, 1], unit[2, 2], unit[0, 1], unit[0, 2], unit[1, 2]]
        rows.append([mass, *com, *products])
    return np.array(rows)


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
    bodies = []
    for m, x, y, z, xx, xy, yy, xz, yz, zz in _rows(robot, rows):
        bodies.append([xx, xy, xz, yy, yz, zz, x, y, z, m])
    return _with_bodies(robot, np.array(bodies))


def with_drake_parameters(robot: Robot, rows: ArrayLike) -> Robot:
    """The robot with spatial inertias in Drake's order; the inverse of `drake_parameters`.

    Args:
        robot: The robot; its terms stay.
        rows: (n, 10) mass, centre of mass and unit inertia of every moving body.

    Raises:
        ArgumentError: The numbers are not finite, or not ten per moving body.

    Example:
        >>> rows = dynid.export.drake_parameters(robot)
        >>> np.allclose(dynid.export.with_drake_parameters(robot, rows).inertial_vector, robot.inertial_vector)
        True
    """
    bodies = []
    for m, x, y, z, xx, yy, zz, xy, xz, yz in _rows(robot, rows):
        bodies.append(m * np.array([xx, xy, xz, yy, yz, zz, x, y, z, 1.0]))
    return _with_bodies(robot, np.array(bodies))


def _rows(robot: Robot, rows: ArrayLike) -> Floats:
    found = np.array(rows, dtype=float)
    if found.size != 10 * robot.dof or not np.isfinite(found).all():
        raise ArgumentError(
            f"rows have shape {found.shape}"
            if found.size != 10 * robot.dof
            else "rows have numbers that are not finite",
            remedy=f"Give ten finite numbers for each of the {robot.dof} moving bodies.",
        )
    return found.reshape(-1, 10)


def _with_bodies(robot: Robot, vectors: Floats) -> Robot:
    theta = robot.parameter_vector.copy()
    theta[: vectors.size] = vectors.ravel()
    return robot.with_parameters(theta)
