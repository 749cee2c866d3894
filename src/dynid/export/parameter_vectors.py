"""The inertial parameters of a robot in the order of other libraries.

dynid's ten numbers of a body are, in the frame that moves with its joint:

- XX XY XZ YY YZ ZZ: tensor about the origin of the frame [kg m^2]
- MX MY MZ: mass times centre of mass [kg m]
- M: mass [kg]
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.robot.model import Robot

Library = Literal["pinocchio", "drake"]
ORDERS: dict[Library, list[int]] = {
    "pinocchio": [9, 6, 7, 8, 0, 1, 3, 2, 4, 5],
    "drake": [9, 6, 7, 8, 0, 3, 5, 1, 2, 4],
}
"""Library -> for each of its ten numbers of a body, the index of that number among XX XY XZ YY YZ ZZ MX MY MZ M."""


def body_parameters(robot: Robot, library: Library) -> Floats:
    """Give the inertial parameters (n, 10) of every moving body, as another library has them.

    Args:
        robot: The robot.
        library: ``pinocchio`` for m, m c_x, m c_y, m c_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz: the first moments [kg m]
            and the tensor about the origin of the joint's frame [kg m^2], as ``pinocchio.Inertia.toDynamicParameters``
            and Pinocchio's regressor have them. ``drake`` for mass [kg], centre of mass p_BoBcm_B (x, y, z) [m], and
            the unit inertia G_BBo_B, the tensor about the body's origin divided by the mass: Gxx, Gyy, Gzz, Gxy, Gxz,
            Gyz [m^2], as Drake's multibody plants hold them; NaN where a body has no mass.

    Example:
        >>> dynid.export.body_parameters(dynid.robots.panda(), "pinocchio").shape
        (7, 10)
    """
    rows = robot.inertial_vector.reshape(-1, 10)[:, _order(library)]
    if library == "drake":
        with np.errstate(all="ignore"):  # 0 / 0 of a body without mass
            rows[:, 1:] /= rows[:, :1]
    return rows


def with_body_parameters(robot: Robot, rows: ArrayLike, library: Library) -> Robot:
    """Make a robot with inertial parameters as another library has them; the inverse of `body_parameters`.

    Args:
        robot: The robot; its terms stay.
        rows: (n, 10), or (10 n,) in the order of the columns of Pinocchio's regressor.
        library: ``pinocchio`` or ``drake``.

    Raises:
        ArgumentError: The numbers are not finite, or not ten per moving body.

    Example:
        >>> rows = dynid.export.body_parameters(robot, "drake")
        >>> again = dynid.export.with_body_parameters(robot, rows, "drake")
        >>> np.allclose(again.inertial_vector, robot.inertial_vector)
        True
    """
    found = np.array(rows, dtype=float)
    theta = robot.parameter_vector.copy()
    if found.size != 10 * robot.dof or not np.isfinite(found).all():
        remedy = f"Give ten finite numbers for each of the {robot.dof} moving bodies."
        raise ArgumentError(f"rows of shape {found.shape} do not fit, or are not finite", remedy=remedy)
    found = found.reshape(-1, 10)
    if library == "drake":
        found[:, 1:] *= found[:, :1]
    theta[: found.size] = found[:, np.argsort(_order(library))].ravel()
    return robot.with_parameters(theta)


def _order(library: Library) -> list[int]:
    """Look up the order of a library, or refuse a library that is not known."""
    if library not in ORDERS:
        raise ArgumentError(f"there is no library {library!r}", remedy=f"Choose from {', '.join(ORDERS)}.")
    return ORDERS[library]
