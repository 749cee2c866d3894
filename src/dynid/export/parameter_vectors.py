"""The inertial parameters of a robot in the order of other libraries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.public_calls import public
from dynid.robot.model import Robot

__all__ = ["drake_parameters", "pinocchio_parameters"]

Floats = NDArray[np.float64]


@public
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


@public
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
