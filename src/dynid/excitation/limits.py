"""Limits that a motion must keep: of the joints, of the tool, of the robot in its cell, and between its own links."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.errors import ArgumentError
from dynid.excitation.hulls import Hull
from dynid.robot.model import Robot
from dynid.robot.parts import freeze_array


class Wall(NamedTuple):
    """A plane that bounds the allowed region: points p of the root frame with ``normal @ p <= offset``."""

    normal: Floats
    """(3,) unit vector that points out of the allowed region."""
    offset: float
    """Distance of the wall from the root's origin along the normal [m]."""
    name: str
    """Name in messages."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workspace:
    """Where the whole robot, or one point of it such as the tool centre, may be, and how fast the point may move."""

    walls: tuple[Wall, ...] = ()
    """Floor, walls, ceiling. The point stays within all of them, or all moving bodies do; the base may be anywhere."""
    link: str | None = None
    """Name of the link that carries the point. None for the whole robot: the hulls of the links, and the origins of
    links without hulls."""
    point: Floats = field(default_factory=lambda: np.zeros(3))
    """(3,) the point in the link's frame [m]."""
    speed: float = np.inf
    """Largest speed of the point [m/s]."""

    def __post_init__(self) -> None:
        """Check the fields, and freeze the point."""
        object.__setattr__(self, "point", freeze_array(self.point, (3,)))
        if not self.speed > 0.0:
            raise ArgumentError(f"the speed of the tool must be positive, not {self.speed}")
        if not self.walls and (np.isinf(self.speed) or self.link is None):
            raise ArgumentError(
                "a workspace needs a floor, a wall or the speed of a link", remedy="Leave it out where there is none."
            )

    @classmethod
    def box(
        cls,
        lower: ArrayLike,
        upper: ArrayLike,
        *,
        link: str | None = None,
        point: ArrayLike = (0.0, 0.0, 0.0),
        speed: float = np.inf,
    ) -> Workspace:
        """Make a workspace within a box.

        Args:
            lower: (3,) lower corner in the root frame; -inf for no wall [m].
            upper: (3,) upper corner in the root frame; inf for no wall [m].
            link: Link that carries the point; None for the whole robot.
            point: (3,) the point in the link's frame [m].
            speed: Largest speed of the point [m/s].
        """
        low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        if low.shape != (3,) or high.shape != (3,) or not np.all(low < high):
            raise ArgumentError(
                f"a lower end of the box is not below its upper end: {low.tolist()} and {high.tolist()}",
                remedy="Give the corners in metres, lower one first; infinity where there is no wall.",
            )
        walls = tuple(
            Wall(sign * np.eye(3)[axis], sign * value, f"{'xyz'[axis]} {relation} {value:g} m")
            for sign, relation, corner in ((-1.0, ">=", low), (1.0, "<=", high))
            for axis, value in enumerate(corner)
            if np.isfinite(value)
        )
        return cls(walls=walls, link=link, point=np.asarray(point), speed=speed)

    @classmethod
    def floor(cls, height: float) -> Workspace:
        """Make a workspace of the whole robot above a floor, whose height is z of the root frame [m]."""
        return cls.box([-np.inf, -np.inf, height], [np.inf] * 3)

    @classmethod
    def behind(cls, normal: ArrayLike, offset: float, *, link: str | None = None, name: str = "wall") -> Workspace:
        """Make a workspace behind one wall of any direction.

        Points p of the root frame with ``normal @ p <= offset`` are allowed.

        Args:
            normal: (3,) direction out of the allowed region, of any length.
            offset: Largest allowed ``normal @ p``; for a unit vector the distance of the wall from the origin [m].
            link: Link whose origin stays behind the wall; None for the whole robot.
            name: Name of the wall in messages.
        """
        direction = freeze_array(normal, (3,))
        length = float(np.linalg.norm(direction))
        if not length > 0.0:
            raise ArgumentError("the normal of a wall has no direction", remedy="Give a vector that is not zero.")
        return cls(walls=(Wall(direction / length, as_number("offset", offset) / length, name),), link=link)


@dataclass(frozen=True, kw_only=True, eq=False)
class MotionLimits:
    """Limits that a motion must keep at every instant; infinite numbers limit nothing."""

    joint_names: tuple[str, ...]
    """Names of the n moving joints."""
    lower: Floats
    """(n,) lowest positions [rad or m]."""
    upper: Floats
    """(n,) highest positions [rad or m]."""
    velocity: Floats
    """(n,) largest absolute velocities [rad/s or m/s]."""
    acceleration: Floats
    """(n,) largest absolute accelerations [rad/s^2 or m/s^2]."""
    jerk: Floats
    """(n,) largest absolute jerks [rad/s^3 or m/s^3]."""
    torque: Floats
    """(n,) largest absolute torques, computed with the present parameters of the robot [N m or N]."""
    workspaces: tuple[Workspace, ...] = ()
    """Where the whole robot and points of it, for example the tool centre, may be."""
    hulls: tuple[Hull, ...] = ()
    """Shapes of the links: convex hulls, and capsules."""
    clearance: float | None = None
    """Smallest distance of two hulls on different links [m]; None for no check of collisions."""
    units: tuple[str, ...] = ()
    """n units of the positions, ``rad`` or ``m``; empty if unknown."""

    def __post_init__(self) -> None:
        """Check the numbers, and freeze the arrays."""
        for name in ("lower", "upper", "velocity", "acceleration", "jerk", "torque"):
            array = np.array(_per_joint(name, getattr(self, name), len(self.joint_names)))
            if np.isnan(array).any() or (name not in ("lower", "upper") and np.any(array < 0.0)):
                remedy = "Give numbers, not negative ones for sizes; infinity where there is no limit."
                raise ArgumentError(f"the limits of {name} are {array.tolist()}", remedy=remedy)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not np.all(self.lower <= self.upper):
            raise ArgumentError("a lower position limit exceeds the upper one")
        if self.clearance is not None and not 0.0 <= self.clearance < np.inf:
            raise ArgumentError(
                f"the clearance must be a distance [m], not {self.clearance}", remedy="Use 0.02, for example."
            )

    @classmethod
    def from_robot(
        cls,
        robot: Robot,
        *,
        scale: float = 0.8,
        acceleration: ArrayLike | None = None,
        jerk: ArrayLike = np.inf,
    ) -> Self:
        """Make limits from those in the robot's file, reduced by a factor.

        Revolute joints without position limits get half a turn in either direction: cables rarely allow more.

        Args:
            robot: The robot with its limits of position, velocity, acceleration and effort.
            scale: Share of every limit to use; a position range shrinks about its middle.
            acceleration: Acceleration limits, scalar or (n,), not scaled; the robot's own, scaled, if None
                [rad/s^2 or m/s^2].
            jerk: Jerk limits, scalar or (n,), not scaled [rad/s^3 or m/s^3].
        """
        if not 0.0 < scale <= 1.0:
            raise ArgumentError(f"scale must lie between 0 and 1, not {scale}", remedy="0.8 leaves a fifth in reserve.")
        _check_rails(robot)
        own = [joint.limits for joint in robot.moving_joints]
        low, high = np.array([[x.lower, x.upper] for x in own]).reshape(-1, 2).T
        low = np.where(np.isfinite(low), low, -np.pi)
        high = np.where(np.isfinite(high), high, np.pi)
        middle = 0.5 * (low + high)
        half = 0.5 * scale * (high - low)
        given = [scale * x.acceleration for x in own] if acceleration is None else acceleration
        return cls(
            joint_names=robot.joint_names,
            lower=middle - half,
            upper=middle + half,
            velocity=np.array([scale * x.velocity for x in own]),
            acceleration=_per_joint("acceleration", given, robot.dof),
            jerk=_per_joint("jerk", jerk, robot.dof),
            torque=np.array([scale * x.effort for x in own]),
            units=robot.position_units,
        )

    def with_workspace(self, *workspaces: Workspace) -> Self:
        """Replace the workspaces, which may be for the whole robot, the tool or other points."""
        return replace(self, workspaces=workspaces)

    def with_hulls(self, *hulls: Hull, clearance: float | None = None) -> Self:
        """Replace the shapes of the links; with a ``clearance`` they must stay so far apart [m]."""
        return replace(self, hulls=hulls, clearance=clearance)


def _per_joint(name: str, value: ArrayLike, count: int) -> Floats:
    """Return one number per joint (n,), from one for all or one each."""
    try:
        return np.broadcast_to(np.asarray(value, dtype=float), (count,))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} needs one number, or one for each of the {count} joints, not {value!r}",
            remedy=f"Write 5, or {count} numbers such as {', '.join(['5'] * count)}.",
        ) from None


def _check_rails(robot: Robot) -> None:
    """Refuse sliding joints without position limits: no default range suits them."""
    slides = [joint for joint in robot.moving_joints if joint.kind == "prismatic"]
    if rails := [joint.name for joint in slides if not np.isfinite([joint.limits.lower, joint.limits.upper]).all()]:
        raise ArgumentError(
            f"no position limits are known for the sliding joint {', '.join(rails)}",
            remedy='Write <limit lower="..." upper="..."/> into the file, or use Robot.with_limits.',
        )
