"""What ``dynid excite`` holds a motion to: the robot's own limits, and those that options name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.common import EXISTING, POSITIVE, FiniteRange
from dynid.errors import ArgumentError, DescriptionError

if TYPE_CHECKING:
    from dynid.excitation.collision.hulls import Hull
    from dynid.excitation.limits import MotionLimits
    from dynid.robot.model import Robot
    from dynid.robot.parts import Joint

__all__ = ["LimitOptions", "limit_options", "per_joint", "with_known_limits"]

_EACH = "NUMBER[,NUMBER...]"
_OPTIONS = (
    click.option("--scale", type=FiniteRange(0.0, 1.0, min_open=True), default=0.8, show_default=True,
                 help="Share of the robot's limits that may be used."),
    click.option("--velocity", type=POSITIVE,
                 help="Velocity limit of joints that have none in the file [rad/s or m/s]."),
    click.option("--acceleration", metavar=_EACH,
                 help="Acceleration limit, one for all joints or one each [rad/s^2 or m/s^2]; URDF knows none."),
    click.option("--jerk", metavar=_EACH, help="Jerk limit, one for all joints or one each [rad/s^3 or m/s^3]."),
    click.option("--torque-margin", type=FiniteRange(0.0, 1.0, max_open=True),
                 help="Share of the effort limits to leave free, in place of what --scale leaves."),
    click.option("--floor", type=FiniteRange(-100.0, 100.0), metavar="Z",
                 help="No body goes below this height: z of the base frame [m]."),
    click.option("--box", metavar="X:X,Y:Y,Z:Z",
                 help="The tool stays in this box of the base frame [m]; -0.5:0.5,:,0:1.2 has no walls in y."),
    click.option("--tool", metavar="LINK", help="Link of --box and --tool-speed; the last one by default."),
    click.option("--tool-speed", type=POSITIVE, help="Speed limit of the tool [m/s]."),
    click.option("--clearance", type=FiniteRange(min=0.0), metavar="DISTANCE",
                 help="Links keep this distance from each other [m], by the URDF's collision geometry."),
    click.option("--meshes", type=EXISTING, metavar="FOLDER",
                 help="Where the packages that the URDF's meshes name are (STL)."),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """The words of the command line about limits."""

    scale: float
    velocity: float | None
    acceleration: str | None
    jerk: str | None
    torque_margin: float | None
    floor: float | None
    box: str | None
    tool: str | None
    tool_speed: float | None
    clearance: float | None
    meshes: str | None

    def limits(self, robot: Robot) -> MotionLimits:
        """The limits that these words mean for a robot.

        Raises:
            ArgumentError: A word cannot be meant, or the file has no geometry where it is needed.
        """
        from dynid.excitation.limits import Cell, MotionLimits

        limits = MotionLimits.from_robot(
            robot,
            scale=self.scale,
            acceleration=per_joint("--acceleration", self.acceleration, robot.dof),
            jerk=per_joint("--jerk", self.jerk, robot.dof) or math.inf,
        )
        if self.torque_margin is not None:
            limits = replace(limits, torque=limits.torque * ((1.0 - self.torque_margin) / self.scale))
        if self.box is not None or self.tool_speed is not None:
            limits = limits.with_workspace(self._workspace(robot))
        elif self.tool is not None:
            raise ArgumentError("--tool alone limits nothing", remedy="Add --box or --tool-speed.")
        if self.floor is not None:
            limits = limits.with_cell(Cell.floor(self.floor, self._floor_bodies(robot)))
        if self.clearance is not None:
            limits = limits.with_hulls(*self._hulls(robot), clearance=self.clearance)
        return limits

    def _workspace(self, robot: Robot) -> Any:
        from dynid.excitation.limits import Workspace

        link = robot.bodies[-1].members[-1][0] if self.tool is None else self.tool
        if link not in {known.name for known in robot.links}:
            names = ", ".join(known.name for known in robot.links)
            raise ArgumentError(f"--tool: there is no link '{link}'", remedy=f"Links: {names}.")
        lower, upper = _corners(self.box)
        return Workspace.box(link, lower, upper, speed=self.tool_speed or math.inf)

    def _hulls(self, robot: Robot) -> tuple[Hull, ...]:
        from dynid.excitation.collision.geometry import urdf_hulls

        try:
            hulls = urdf_hulls(robot, self.meshes)
        except ArgumentError as error:
            remedy = "Give the folder with the packages: --meshes FOLDER." if self.meshes is None else error.remedy
            raise ArgumentError(f"--clearance: {error.reason}", remedy=remedy) from error
        if not hulls:
            raise ArgumentError(
                "--clearance: the file has no <collision> geometry", remedy="Add it, or leave out --clearance."
            )
        return hulls

    def _floor_bodies(self, robot: Robot) -> tuple[Hull, ...]:
        """The bodies, where they are known; joint origins stand for them otherwise, and that is said."""
        from dynid.excitation.collision.geometry import urdf_hulls

        try:
            hulls = urdf_hulls(robot, self.meshes)
        except (ArgumentError, DescriptionError) as error:
            if self.meshes is not None:
                raise
            click.echo(f"--floor: joint origins stand for the bodies: {error.reason}", err=True)
            return ()
        if not hulls:
            click.echo("--floor: joint origins stand for the bodies: the file has no <collision> geometry", err=True)
        return hulls


def limit_options(command: Callable[..., None]) -> Callable[..., None]:
    """All options of `LimitOptions`, which the command gets as one argument ``asked``."""
    names = LimitOptions.__dataclass_fields__

    @functools.wraps(command)
    def gathered(*args: Any, **options: Any) -> None:
        asked = LimitOptions(**{name: options.pop(name) for name in names})
        command(*args, asked=asked, **options)

    for option in reversed(_OPTIONS):
        option(gathered)
    return gathered


def per_joint(option: str, text: str | None, count: int) -> list[float] | None:
    """Positive numbers, one for each of the joints, from one for all or one each.

    Raises:
        ArgumentError: There are others.
    """
    if text is None:
        return None
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (1, count) or not all(math.isfinite(value) and value > 0.0 for value in values):
        raise ArgumentError(
            f"{option}: '{text}' is neither one positive number nor one for each of the {count} joints",
            remedy=f"Write {option} 5 or {option} {','.join(['5'] * min(count, 7))}.",
        )
    return values * (count if len(values) == 1 else 1)


def _corners(box: str | None) -> tuple[list[float], list[float]]:
    """Corners of the words ``X:X,Y:Y,Z:Z``; a missing number is no wall."""
    sides = [side.split(":") for side in (":,:,:" if box is None else box).split(",")]
    try:
        if [len(side) for side in sides] != [2, 2, 2]:
            raise ValueError("three ranges are needed")
        return [float(low or -math.inf) for low, _ in sides], [float(high or math.inf) for _, high in sides]
    except ValueError as error:
        raise ArgumentError(f"--box: {error}", remedy="Write --box=-0.5:0.5,-0.5:0.5,0:1.2.") from error


def with_known_limits(robot: Robot, velocity: float | None, scale: float) -> Robot:
    """The robot with a velocity limit on every joint; without one a motion could be of any speed.

    Raises:
        ArgumentError: A limit is missing that nothing can stand for.
    """
    if not robot.dof:
        raise ArgumentError(f"robot '{robot.name}' has no moving joint", remedy="Hold fewer joints.")
    free = [joint for joint in robot.moving_joints if not math.isfinite(joint.limits.velocity)]
    if free and velocity is None:
        raise ArgumentError(
            f"no velocity limit is known for {', '.join(joint.name for joint in free)}",
            remedy='Give --velocity, or write <limit velocity="..."/> into the file.',
        )
    turning = [j.name for j in robot.moving_joints if j.kind != "prismatic" and not _ranged(j)]
    if turning:
        click.echo(
            f"assumed for want of finite position limits: -180 to 180 deg for {', '.join(turning)}, "
            f"of which {180 * scale:g} deg either way are used",
            err=True,
        )
    return robot.with_limits({joint.name: replace(joint.limits, velocity=velocity or math.inf) for joint in free})


def _ranged(joint: Joint) -> bool:
    return math.isfinite(joint.limits.lower) and math.isfinite(joint.limits.upper)
