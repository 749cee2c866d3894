"""Design an exciting motion within limits: what ``dynid excite`` does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from dynid.errors import ArgumentError, DescriptionError
from dynid.excitation.collision_shapes import urdf_hulls
from dynid.excitation.command_motion import CommandPlan, design_commands
from dynid.excitation.constraints import build_constraints
from dynid.excitation.design import design_excitation
from dynid.excitation.excitation import PLAN_FILES, Excitation, check_rate
from dynid.excitation.hulls import Hull
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.point_design import check_count, check_point_limits, design_energy_points
from dynid.excitation.search import SearchSettings, Step
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.findings import Finding
from dynid.identification.log_reader import Notice
from dynid.report.page import Chapter, Page
from dynid.report.plan_sections import plan_page
from dynid.robot.model import Robot
from dynid.robot.term_names import add_terms
from dynid.settings import Count, NotNegative, Positive, TomlSettings
from dynid.workflows.protocol import RunContext, Task
from dynid.workflows.run_folder import RunFolder

Height = Annotated[float, Meta(ge=-100.0, le=100.0, description="a height of the base frame [m]")]
Scale = Annotated[float, Meta(gt=0.0, le=1.0, description="a share above 0, at most 1")]
METHOD_KEYS = {"fourier": ("period_s", "time_limit_s"), "energy-points": ("points",)}
"""Method -> the settings that only this method reads; with another method they are refused."""
HARMONICS = 5
"""Harmonics of a Fourier series (convention)."""
RATES_HZ = {"fourier": 500.0, "energy-points": 500.0, "commands": 100.0}
"""Rate of the written motion [Hz], by method (convention: that of usual controllers, and of hobby servos)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecipe(TomlSettings):
    """All settings of a motion design; the functions of `dynid.excitation` have more, for programs."""

    file_keys: ClassVar[tuple[str, ...]] = ("meshes",)

    method: Literal["fourier", "energy-points", "commands"] = "fourier"
    """How the motion is found: a Fourier series, points whose energies reveal the parameters, joined by fifth-order
    segments (Gautier and Khalil 1992), or stretches of commands for logs without torque."""
    points: Count | None = None
    """Number r of energy differences of "energy-points"; None takes twice the number of base parameters."""
    period_s: Positive = 10.0
    """Period of a Fourier series [s]."""
    scale: Scale = 0.8
    """Share of the robot's limits that may be used."""
    velocity: Positive | None = None
    """Velocity limit of joints that have none in the file [rad/s or m/s]."""
    acceleration: tuple[Positive, ...] = ()
    """Acceleration limit, one for all joints or one each [rad/s^2 or m/s^2]."""
    jerk: tuple[Positive, ...] = ()
    """Jerk limit, one for all joints or one each [rad/s^3 or m/s^3]."""
    floor: Height | None = None
    """Height below which no body goes: z of the base frame [m]."""
    box: str | None = None
    """Box of the base frame that the last link stays in [m]: "-0.5:0.5,:,0:1.2" has no walls in y."""
    tool_speed: Positive | None = None
    """Speed limit of the last link [m/s]."""
    clearance: NotNegative | None = None
    """Distance that links keep from each other [m], by the collision geometry of the URDF."""
    meshes: str | None = None
    """Folder with the packages that the meshes of the URDF name (STL)."""
    rate_hz: Positive | None = None
    """Rate of the written motion [Hz]; None for 500, or 100 of commands."""
    time_limit_s: Positive = 30.0
    """Time of the search for a Fourier series [s]."""

    def __post_init__(self) -> None:
        """Refuse values of a wrong kind or size, and settings of another method."""
        self.settle_kinds()
        _corners(self.box)
        # a setting counts as given where it differs from its default
        changed = {entry.name for entry in fields(self) if getattr(self, entry.name) != entry.default}
        for other, keys in METHOD_KEYS.items():
            if other != self.method and (odd := [key for key in keys if key in changed]):
                reason = f'{", ".join(odd)} belongs to method "{other}", not to "{self.method}"'
                raise ArgumentError(reason, remedy=f"Leave it out, or choose --method {other}.")

    @property
    def rate(self) -> float:
        """Rate of the written motion [Hz]."""
        return RATES_HZ[self.method] if self.rate_hz is None else self.rate_hz

    def limits(self, robot: Robot, notice: Notice) -> MotionLimits:
        """Make the limits that the motion of a robot must keep.

        Raises:
            ArgumentError: A setting does not fit the robot, or the file has no geometry where it is needed.
        """
        limits = MotionLimits.from_robot(
            robot,
            scale=self.scale,
            acceleration=self.acceleration or None,
            jerk=self.jerk or math.inf,
        )
        spaces = []
        if self.box is not None or self.tool_speed is not None:
            tool = robot.bodies[-1].members[-1][0]  # name of the last link of the last body
            lower, upper = _corners(self.box)
            spaces.append(Workspace.box(lower, upper, link=tool, speed=self.tool_speed or math.inf))
        if self.floor is not None:
            spaces.append(Workspace.floor(self.floor))
        limits = limits.with_workspace(*spaces)
        if self.clearance is None and self.floor is None:
            return limits
        return limits.with_hulls(*self._hulls(robot, notice), clearance=self.clearance)

    def _hulls(self, robot: Robot, notice: Notice) -> tuple[Hull, ...]:
        """Read the collision geometry of the links.

        Without geometry the result is empty: joint origins then stand for the links, which suffices for a floor but is
        refused for a clearance.
        """
        reason = "the file has no <collision> geometry"
        try:
            hulls = urdf_hulls(robot, self.meshes)
        except (ArgumentError, DescriptionError) as error:
            if self.meshes is not None:  # the user expects that geometry is read
                raise
            hulls = ()
            reason = error.reason
        if not hulls and self.clearance is not None:
            remedy = "Give <collision> geometry, and the folder of its packages: --set meshes=FOLDER."
            raise ArgumentError(f"clearance: {reason}", remedy=remedy)
        if not hulls:
            message = f"floor: joint origins stand for the bodies: {reason}"
            notice(Finding(code="assumed-robot", severity="note", where="recipe", message=message))
        return hulls


@dataclass(frozen=True, slots=True, eq=False)
class DesignRun:
    """A designed motion: the result of ``dynid excite``."""

    plan: Excitation | CommandPlan
    """The motion; a `CommandPlan` for method "commands"."""
    robot: Robot
    """The robot with the velocity limits and terms that the design used."""
    exit_code: ClassVar[int] = 0

    def to_json(self) -> dict[str, Any]:
        """Contents of ``plan.json``."""
        return self.plan.contents()


@dataclass(frozen=True, slots=True, eq=False)
class DesignMotion(Task[DesignRun]):
    """The task of ``dynid excite``: design the motion that reveals the parameters best within limits."""

    verb = "excite"
    files = ("plan.json", *PLAN_FILES, "commands.csv")

    robot: Robot
    recipe: PlanRecipe = field(default_factory=PlanRecipe)

    def check(self) -> None:
        _prepare(self, lambda finding: None)  # `compute` reports the findings

    def compute(self, context: RunContext) -> DesignRun:
        model, limits = _prepare(self, context.notify)
        recipe = self.recipe
        if recipe.method == "commands":
            return DesignRun(design_commands(limits, rate_hz=recipe.rate), model)
        if recipe.method == "energy-points":
            plan = design_energy_points(
                model, limits, count=check_count(model, recipe.points),
                progress=lambda share, value: context.advance(share, f"cost {value:.4g}"),
            )  # fmt: skip
            return DesignRun(plan, model)

        def report(step: Step) -> None:
            shown = f"start {step.start + 1}, condition {step.value:.1f}"
            context.advance(min(step.elapsed_s / recipe.time_limit_s, 1.0), shown)

        settings = SearchSettings(time_limit_s=recipe.time_limit_s)
        plan = design_excitation(
            model, limits, period_s=recipe.period_s, harmonics=HARMONICS, settings=settings, progress=report
        )
        return DesignRun(plan, model)

    def write(self, folder: RunFolder, result: DesignRun) -> DesignRun:
        plan = result.plan
        if isinstance(plan, Excitation):
            plan.write(folder.path, rate_hz=self.recipe.rate, force=True)
        else:
            plan.write_csv(folder.path / "commands.csv", force=True)
            folder.write("plan.txt", plan.summary() + "\n")
        return result

    def page(self, result: DesignRun, settings: Sequence[Chapter]) -> Page | None:
        return plan_page(result.plan, settings, result.robot) if isinstance(result.plan, Excitation) else None


def _prepare(task: DesignMotion, notice: Notice) -> tuple[Robot, MotionLimits]:
    """Complete the robot and make its limits, refusing impossible settings before a run folder is made.

    Returns:
        The robot, with velocity limits and (but for "commands") the usual terms of each joint; the motion's limits.
    """
    recipe = task.recipe
    robot = _with_limits(task.robot, recipe, notice)
    if recipe.method == "commands":
        return robot, recipe.limits(robot, notice)
    model = add_terms(robot)
    limits = recipe.limits(model, notice)
    build_constraints(model, limits)
    if recipe.method == "energy-points":
        check_point_limits(limits)
        check_count(model, recipe.points)
    else:
        check_rate(FourierTrajectory.still(model.dof, period_s=recipe.period_s, harmonics=HARMONICS), recipe.rate)
    return model, limits


def _corners(box: str | None) -> tuple[list[float], list[float]]:
    """Read the lower and the upper corner (3,) [m] from ``X:X,Y:Y,Z:Z``; a missing number stands for no wall."""
    sides = [side.split(":") for side in (":,:,:" if box is None else box).split(",")]
    try:
        if [len(side) for side in sides] != [2, 2, 2]:
            raise ValueError("three ranges are needed")
        return [float(low or -math.inf) for low, _ in sides], [float(high or math.inf) for _, high in sides]
    except ValueError as error:
        raise ArgumentError(f"box: {error}", remedy="Write box=-0.5:0.5,-0.5:0.5,0:1.2.") from error


def _with_limits(robot: Robot, recipe: PlanRecipe, notice: Notice) -> Robot:
    """Give every joint a velocity limit: the recipe's where the file has none; report assumed position limits.

    Raises:
        ArgumentError: A limit is missing, and the recipe has none for it.
    """
    if not robot.dof:
        raise ArgumentError(f"robot '{robot.name}' has no moving joint", remedy="Hold fewer joints.")
    unlimited = [joint for joint in robot.moving_joints if not math.isfinite(joint.limits.velocity)]
    if unlimited and recipe.velocity is None:
        raise ArgumentError(
            f"no velocity limit is known for {', '.join(joint.name for joint in unlimited)}",
            remedy='Give --set velocity=LIMIT, or write <limit velocity="..."/> into the file.',
        )
    without_range = [
        joint.name
        for joint in robot.moving_joints
        if joint.kind != "prismatic" and math.inf in (-joint.limits.lower, joint.limits.upper)
    ]
    if without_range:
        message = (
            f"position limits are missing, and -180 to 180 deg are assumed for {', '.join(without_range)}, of which "
            f"{180 * recipe.scale:g} deg either way are used"
        )
        notice(Finding(code="assumed-robot", severity="note", where="recipe", message=message))
    added = {joint.name: replace(joint.limits, velocity=recipe.velocity or math.inf) for joint in unlimited}
    return robot.with_limits(added)
