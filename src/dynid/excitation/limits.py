"""Limits that a motion keeps: of the joints, of the tool, of the whole robot in its cell and of its own body."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number
from dynid.errors import ArgumentError
from dynid.excitation.hulls import Hull
from dynid.robot.model import Robot
from dynid.robot.parts import freeze_array


class Wall(NamedTuple):
    """Points p of the root frame with ``normal @ p <= offset`` are allowed."""

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
    """Floor, walls, ceiling: the point stays behind all of them, or every moving body; the base may stand anywhere."""
    link: str | None = None
    """Name of the link that carries the point; None for the whole robot: its hulls, or where a body has none the
    origins of its links."""
    point: Floats = field(default_factory=lambda: np.zeros(3))
    """(3,) the point in the link frame [m]."""
    speed: float = np.inf
    """Limit of the point's speed [m/s]."""

    def __post_init__(self) -> None:
        """Check and freeze."""
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
        """A box between corners ``lower`` and ``upper`` (3,) [m], root frame; infinite where there is no wall."""
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
        """A floor at that height for the whole robot [m], z of the root frame."""
        return cls.box([-np.inf, -np.inf, height], [np.inf] * 3)

    @classmethod
    def behind(cls, normal: ArrayLike, offset: float, *, link: str | None = None, name: str = "wall") -> Workspace:
        """A wall in any direction: points p with ``normal @ p <= offset`` are allowed, root frame.

        Args:
            normal: (3,) direction out of the allowed region, of any length.
            offset: What the product with the normal must not exceed [m, for a unit vector].
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
    """Limits that a motion keeps at every instant; infinite where there is none."""

    joint_names: tuple[str, ...]
    """n names."""
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
    """(n,) largest absolute torques of the robot's present model [N m or N]."""
    workspaces: tuple[Workspace, ...] = ()
    """Where the whole robot and points of it, for example the tool centre, may be."""
    hulls: tuple[Hull, ...] = ()
    """The robot's body: convex hulls and capsules."""
    clearance: float | None = None
    """Smallest distance of two hulls on different links [m]; None where collisions are not checked."""
    units: tuple[str, ...] = ()
    """n units of the positions, ``rad`` or ``m``; empty if they are not stated."""

    def __post_init__(self) -> None:
        """Check and freeze."""
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
        """The robot's own limits, reduced; half a turn either way for joints without, for cables rarely allow more.

        Args:
            robot: The robot with its limits of position, velocity, acceleration and effort.
            scale: Share of every limit to use; a position range shrinks about its middle.
            acceleration: Acceleration limits in place of the own ones, scalar or (n,), not scaled [rad/s^2 or m/s^2].
            jerk: Jerk limits, scalar or (n,), not scaled [rad/s^3 or m/s^3].
        """
        if not 0.0 < scale <= 1.0:
            raise ArgumentError(f"scale must lie between 0 and 1, not {scale}", remedy="0.8 leaves a fifth in reserve.")
        _check_rails(robot)
        own = [joint.limits for joint in robot.moving_joints]
        low, high = np.array([[x.lower, x.upper] for x in own]).reshape(-1, 2).T
        low, high = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
        middle, half = 0.5 * (low + high), 0.5 * scale * (high - low)
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
        """The same limits with these workspaces for the whole robot, the tool or other points."""
        return replace(self, workspaces=workspaces)

    def with_hulls(self, *hulls: Hull, clearance: float | None = None) -> Self:
        """The same limits with bodies of the links that stay ``clearance`` [m] apart where it is given."""
        return replace(self, hulls=hulls, clearance=clearance)


def _per_joint(name: str, value: ArrayLike, count: int) -> Floats:
    """One number per joint (n,), from one for all or one each."""
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
