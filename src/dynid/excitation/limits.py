"""Limits that a motion keeps: of the joints, of the tool, of the whole robot in its cell and of its own body."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.excitation.collision.capsules import Capsule
from dynid.excitation.collision.hulls import Hull
from dynid.robot.model import Robot
from dynid.robot.parts import freeze_array

_PER_JOINT = ("lower", "upper", "velocity", "acceleration", "jerk", "torque")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HalfSpace:
    """Points p of the root frame with ``normal @ p <= offset``."""

    normal: Floats
    """(3,) unit vector that points out of the allowed region."""
    offset: float
    """Distance of the boundary from the root's origin along the normal [m]."""
    name: str = "half-space"
    """Name of the boundary in messages."""

    def __post_init__(self) -> None:
        """Make the normal a unit vector."""
        normal = freeze_array(self.normal, (3,))
        length = float(np.linalg.norm(normal))
        if not 0.0 < length < np.inf:
            raise ArgumentError("the normal of a half-space has no direction", remedy="Give three finite numbers.")
        if not np.isfinite(self.offset):
            raise ArgumentError(
                f"the offset of half-space '{self.name}' is not finite: {self.offset}", remedy="Give metres."
            )
        object.__setattr__(self, "normal", freeze_array(normal / length, (3,)))
        object.__setattr__(self, "offset", float(self.offset) / length)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workspace:
    """Where one point of the robot, for example the tool centre, may be, and how fast it may move."""

    link: str
    """Name of the link that carries the point."""
    point: Floats
    """(3,) the point in the link frame [m]."""
    half_spaces: tuple[HalfSpace, ...] = ()
    """The point stays in all of them."""
    speed: float = np.inf
    """Limit of the point's speed [m/s]."""

    def __post_init__(self) -> None:
        """Check and freeze."""
        object.__setattr__(self, "point", freeze_array(self.point, (3,)))
        if not self.speed > 0.0:
            raise ArgumentError(f"the speed of the tool must be positive, not {self.speed}")

    @classmethod
    def box(
        cls, link: str, lower: ArrayLike, upper: ArrayLike, *, point: ArrayLike = (0, 0, 0), speed: float = np.inf
    ) -> Workspace:
        """A box between corners ``lower`` and ``upper`` (3,) [m], root frame; infinite where there is no wall."""
        walls = _box(lower, upper)
        return cls(link=link, point=np.asarray(point, dtype=float), half_spaces=walls, speed=speed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """Where the whole robot may be: every moving body stays in all half-spaces; the base may stand anywhere."""

    half_spaces: tuple[HalfSpace, ...]
    """Floor, walls, ceiling."""
    hulls: tuple[Hull, ...] = ()
    """Convex hulls of the links, for example from `urdf_hulls`; bodies without a hull are judged by the origins of
    their links alone."""

    def __post_init__(self) -> None:
        """Refuse an open cell."""
        if not self.half_spaces:
            raise ArgumentError("a cell needs a floor or a wall", remedy="Leave it out where there is none.")

    @classmethod
    def floor(cls, height: float, hulls: tuple[Hull, ...] = ()) -> Cell:
        """A floor at that height [m], z of the root frame."""
        return cls(half_spaces=_box([-np.inf, -np.inf, height], [np.inf] * 3), hulls=hulls)

    @classmethod
    def box(cls, lower: ArrayLike, upper: ArrayLike, hulls: tuple[Hull, ...] = ()) -> Cell:
        """Between corners ``lower`` and ``upper`` (3,) [m], root frame; infinite where there is no wall."""
        return cls(half_spaces=_box(lower, upper), hulls=hulls)


def _box(lower: ArrayLike, upper: ArrayLike) -> tuple[HalfSpace, ...]:
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    if low.shape != (3,) or high.shape != (3,) or not np.all(low < high):
        raise ArgumentError(
            f"a lower end of the box is not below its upper end: {low.tolist()} and {high.tolist()}",
            remedy="Give the corners in metres, lower one first; infinity where there is no wall.",
        )
    return tuple(
        HalfSpace(normal=sign * np.eye(3)[axis], offset=sign * value, name=f"{'xyz'[axis]} {relation} {value:g} m")
        for sign, relation, corner in ((-1.0, ">=", low), (1.0, "<=", high))
        for axis, value in enumerate(corner)
        if np.isfinite(value)
    )


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
    """Limits of single points of the robot, for example the tool centre."""
    cell: Cell | None = None
    """Floor and walls within which the whole robot stays."""
    capsules: tuple[Capsule, ...] = ()
    """The robot's body as capsules that must not collide with each other."""
    hulls: tuple[Hull, ...] = ()
    """The robot's body as convex hulls that must not collide; hulls are not checked against capsules."""
    clearance: float = 0.0
    """Smallest distance of two capsules, or of two hulls, on different links [m]."""
    units: tuple[str, ...] = ()
    """n units of the positions, ``rad`` or ``m``; empty if they are not stated."""

    def __post_init__(self) -> None:
        """Check and freeze."""
        for name in _PER_JOINT:
            array = np.array(getattr(self, name), dtype=float)
            if array.shape != (len(self.joint_names),) or np.isnan(array).any():
                raise ArgumentError(f"{name} must have one number per joint", remedy="Use infinity for no limit.")
            if name not in ("lower", "upper") and not np.all(array >= 0.0):
                raise ArgumentError(f"{name} limits must not be negative")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not np.all(self.lower <= self.upper):
            raise ArgumentError("a lower position limit exceeds the upper one")
        if not 0.0 <= self.clearance < np.inf:
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
        unlimited_range: float = np.pi,
    ) -> Self:
        """The robot's own limits, reduced.

        Args:
            robot: The robot with its limits of position, velocity, acceleration and effort.
            scale: Share of every limit to use; a position range shrinks about its middle.
            acceleration: Acceleration limits in place of the own ones, scalar or (n,), not scaled [rad/s^2 or m/s^2].
            jerk: Jerk limits, scalar or (n,), not scaled [rad/s^3 or m/s^3].
            unlimited_range: Half-range [rad] for joints without position limits; cables rarely allow more than a turn.
        """
        if not 0.0 < scale <= 1.0:
            raise ArgumentError(f"scale must lie between 0 and 1, not {scale}", remedy="0.8 leaves a fifth in reserve.")
        _check_rails(robot)
        own = [joint.limits for joint in robot.moving_joints]
        low = np.array([x.lower if np.isfinite(x.lower) else -unlimited_range for x in own])
        high = np.array([x.upper if np.isfinite(x.upper) else unlimited_range for x in own])
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

    def with_cell(self, cell: Cell) -> Self:
        """The same limits with a cell in which the whole robot stays."""
        return replace(self, cell=cell)

    def with_workspace(self, *workspaces: Workspace) -> Self:
        """The same limits with these workspaces for the tool or other points."""
        return replace(self, workspaces=workspaces)

    def with_capsules(self, *capsules: Capsule, clearance: float = 0.0) -> Self:
        """The same limits with capsules that stay ``clearance`` [m] apart."""
        return replace(self, capsules=capsules, clearance=clearance)

    def with_hulls(self, *hulls: Hull, clearance: float = 0.0) -> Self:
        """The same limits with convex hulls of the links that stay ``clearance`` [m] apart, measured exactly."""
        return replace(self, hulls=hulls, clearance=clearance)


def _per_joint(name: str, value: ArrayLike, count: int) -> Floats:
    """One number per joint (n,), from one for all or one each."""
    try:
        return np.broadcast_to(np.asarray(value, dtype=float), (count,))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} needs one number, or one for each of the {count} joints, not {value!r}", remedy="Correct it."
        ) from None


def _check_rails(robot: Robot) -> None:
    """Refuse sliding joints without position limits: no default range suits them."""
    rails = [
        joint.name
        for joint in robot.moving_joints
        if joint.kind == "prismatic" and not (np.isfinite(joint.limits.lower) and np.isfinite(joint.limits.upper))
    ]
    if rails:
        raise ArgumentError(
            f"no position limits are known for the sliding joint {', '.join(rails)}",
            remedy='Write <limit lower="..." upper="..."/> into the file, or use Robot.with_limits.',
        )
