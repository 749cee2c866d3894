"""Design an exciting motion within limits and write it to a run folder: what ``dynid excite`` does."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

from dynid.actuators.command_design import refine_commands
from dynid.actuators.servo_files import read_servo_model
from dynid.errors import ArgumentError, DescriptionError
from dynid.excitation.collision.geometry import urdf_hulls
from dynid.excitation.collision.hulls import Hull
from dynid.excitation.command_motion import CommandPlan, CommandSettings, Stretch, design_commands
from dynid.excitation.constraints import build_constraints
from dynid.excitation.criteria import (
    ConditionNumber,
    Criterion,
    Equilibrium,
    FrobeniusCondition,
    QRCondition,
    WeightedCost,
)
from dynid.excitation.design import design_excitation
from dynid.excitation.design_settings import DesignGoal, SearchSettings
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import Cell, MotionLimits, Workspace
from dynid.excitation.measured import JointTorques
from dynid.excitation.plan_files import (
    PLAN_FILES,
    check_rate,
    read_coefficients,
    read_trajectory,
    write_coefficients,
    write_plan,
)
from dynid.excitation.points.point_excitation import check_count, design_energy_points
from dynid.excitation.points.point_trajectory import PointSettings, check_point_limits
from dynid.excitation.search import Step
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.files import make_folder
from dynid.findings import Finding
from dynid.links.log_reader import Notice, Progress, log_finding
from dynid.report.report import plan_page
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.robot.term_names import add_terms
from dynid.runs.run_folder import CACHE, Origin, RunFolder, RunRequest, open_run
from dynid.settings import Count, NotNegative, Positive, Seed, Share, TomlSettings

Height = Annotated[float, Meta(ge=-100.0, le=100.0, description="a height of the base frame [m]")]
Scale = Annotated[float, Meta(gt=0.0, le=1.0, description="a share above 0, at most 1")]
Margin = Annotated[float, Meta(ge=0.0, lt=1.0, description="a share from 0 to below 1")]
METHOD_KEYS = {
    "fourier": ("period_s", "harmonics", "speed_coverage", "time_limit_s", "processes", "scheduler", "start_from"),
    "energy-points": ("points", "condition", "condition_weight", "equilibrium_weight", "starts"),
    "commands": ("band_hz", "amplitude", "hold_s", "torque_off_s", "command_rate_hz", "law", "duration_s"),
}
"""Settings that only one method reads."""
CONDITIONS: dict[str, Criterion] = {
    "svd": ConditionNumber(),
    "qr": QRCondition(),
    "frobenius": FrobeniusCondition(),
}
"""Measures of the condition number, by the word of a recipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecipe(TomlSettings):
    """All settings of a motion design."""

    file_keys: ClassVar[tuple[str, ...]] = ("meshes", "start_from", "law")

    method: Literal["fourier", "energy-points", "commands"] = "fourier"
    """How the motion is found: a Fourier series, points whose energies reveal the parameters, joined by fifth-order
    segments (Gautier and Khalil 1992), or stretches of commands for logs without torque."""
    band_hz: tuple[Positive, Positive] = (0.3, 5.0)
    """Lowest and highest frequency of "commands" [Hz]; the highest should reach the bandwidth of the drives."""
    amplitude: Share = 0.5
    """Share of the position ranges that "commands" use, about their middle."""
    hold_s: NotNegative = 1.0
    """Rest of "commands" at every level [s]."""
    torque_off_s: NotNegative = 0.0
    """Time for which "commands" switch the drives off, twice [s]; 0 for never: joints may fall."""
    command_rate_hz: Positive = 100.0
    """Rate of "commands" [Hz]."""
    law: str | None = None
    """File with the law of the drives, as for ``dynid actuate``: "commands" are then those that reveal its parameters
    best; None for stretches that need no model."""
    duration_s: Positive = 20.0
    """Length of "commands" for a law [s]."""
    points: Count | None = None
    """Number r of energy differences of "energy-points"; None takes twice the number of base parameters."""
    condition: Literal["svd", "qr", "frobenius"] = "svd"
    """Measure of the condition number in the cost of "energy-points"; "qr" is a lower bound and searches worse."""
    condition_weight: Positive = 1.0
    """Weight lambda_1 of the condition number in the cost of "energy-points"."""
    equilibrium_weight: NotNegative = 0.01
    """Weight lambda_2 of the equilibrium S in the cost of "energy-points"; 0 leaves it out."""
    starts: Count = 4
    """Random starts of "energy-points"; the search has no time limit."""
    period_s: Positive = 10.0
    """Period of the motion [s]."""
    harmonics: Count = 5
    """Number of harmonics."""
    scale: Scale = 0.8
    """Share of the robot's limits that may be used."""
    velocity: Positive | None = None
    """Velocity limit of joints that have none in the file [rad/s or m/s]."""
    acceleration: tuple[Positive, ...] = ()
    """Acceleration limit, one for all joints or one each [rad/s^2 or m/s^2]."""
    jerk: tuple[Positive, ...] = ()
    """Jerk limit, one for all joints or one each [rad/s^3 or m/s^3]."""
    torque_margin: Margin | None = None
    """Share of the effort limits that is left free; None leaves what ``scale`` leaves."""
    floor: Height | None = None
    """Height below which no body goes: z of the base frame [m]."""
    box: str | None = None
    """Box of the base frame that the tool stays in [m]: "-0.5:0.5,:,0:1.2" has no walls in y."""
    tool: str | None = None
    """Link of ``box`` and ``tool_speed``; None for the last one."""
    tool_speed: Positive | None = None
    """Speed limit of the tool [m/s]."""
    clearance: NotNegative | None = None
    """Distance that links keep from each other [m], by the collision geometry of the URDF."""
    meshes: str | None = None
    """Folder with the packages that the meshes of the URDF name (STL)."""
    rate_hz: Positive = 500.0
    """Rate of the written trajectory [Hz]."""
    noise: tuple[Positive, ...] = (1.0,)
    """Expected standard deviation of the torques, one for all joints or one each, for the predicted accuracy
    [N m or N]."""
    record_rate_hz: Positive = 100.0
    """Independent torque samples per second, for the predicted accuracy [Hz]."""
    speed_coverage: Share = 0.0
    """Share of its speed limit that every joint reaches in both directions, for friction."""
    time_limit_s: Positive = 30.0
    """Time of the search [s]."""
    seed: Seed = 0
    """Seed of the random starts."""
    processes: Count = 1
    """Number of processes that share the starts."""
    scheduler: str | None = None
    """Address of a running Dask cluster that runs the starts instead, such as "tcp://10.0.0.5:8786"."""
    start_from: str | None = None
    """File plan.json of an earlier design, which the search starts from."""

    def __post_init__(self) -> None:
        """Refuse values of a wrong kind or size, and settings of another method."""
        self.settle_kinds()
        _corners(self.box)
        self._check_method()

    def _check_method(self) -> None:
        """Refuse settings that the chosen method does not read."""
        defaults = {field.name: field.default for field in fields(self)}
        for other in (name for name in METHOD_KEYS if name != self.method):
            if odd := [key for key in METHOD_KEYS[other] if getattr(self, key) != defaults[key]]:
                choice = "--commands" if other == "commands" else f"--method {other}"
                raise ArgumentError(
                    f'{", ".join(odd)} belongs to method "{other}", not to "{self.method}"',
                    remedy=f"Leave it out, or choose {choice}.",
                )

    def cost(self) -> Criterion:
        """The cost that the points of "energy-points" minimise."""
        condition = CONDITIONS[self.condition]
        if self.equilibrium_weight == 0.0:
            return condition
        return WeightedCost(((self.condition_weight, condition), (self.equilibrium_weight, Equilibrium())))

    def limits(self, robot: Robot, notice: Notice) -> MotionLimits:
        """The limits that a motion of a robot is held to.

        Raises:
            ArgumentError: A setting does not fit the robot, or the file has no geometry where it is needed.
        """
        limits = MotionLimits.from_robot(
            robot,
            scale=self.scale,
            acceleration=per_joint("acceleration", self.acceleration, robot.dof),
            jerk=per_joint("jerk", self.jerk, robot.dof) or math.inf,
        )
        if self.torque_margin is not None:
            limits = replace(limits, torque=limits.torque * ((1.0 - self.torque_margin) / self.scale))
        if self.box is not None or self.tool_speed is not None:
            limits = limits.with_workspace(self._workspace(robot))
        elif self.tool is not None:
            raise ArgumentError("tool alone limits nothing", remedy="Add box or tool_speed.")
        if self.floor is not None:
            limits = limits.with_cell(Cell.floor(self.floor, self._floor_bodies(robot, notice)))
        if self.clearance is not None:
            limits = limits.with_hulls(*self._hulls(robot), clearance=self.clearance)
        return limits

    def _workspace(self, robot: Robot) -> Any:
        link = robot.bodies[-1].members[-1][0] if self.tool is None else self.tool
        if link not in {known.name for known in robot.links}:
            names = ", ".join(known.name for known in robot.links)
            raise ArgumentError(f"tool: there is no link '{link}'", remedy=f"The links are: {names}.")
        lower, upper = _corners(self.box)
        return Workspace.box(link, lower, upper, speed=self.tool_speed or math.inf)

    def _hulls(self, robot: Robot) -> tuple[Hull, ...]:
        try:
            hulls = urdf_hulls(robot, self.meshes)
        except ArgumentError as error:
            remedy = "Give the folder with the packages: --set meshes=FOLDER." if self.meshes is None else error.remedy
            raise ArgumentError(f"clearance: {error.reason}", remedy=remedy) from error
        if not hulls:
            raise ArgumentError(
                "clearance: the file has no <collision> geometry", remedy="Add it, or leave clearance out."
            )
        return hulls

    def _floor_bodies(self, robot: Robot, notice: Notice) -> tuple[Hull, ...]:
        """The bodies where they are known; otherwise joint origins stand for them, with a notice."""
        try:
            hulls, reason = urdf_hulls(robot, self.meshes), "the file has no <collision> geometry"
        except (ArgumentError, DescriptionError) as error:
            if self.meshes is not None:
                raise
            hulls, reason = (), error.reason
        if not hulls:
            _note(notice, "assumed-shape", f"floor: joint origins stand for the bodies: {reason}")
        return hulls


def run_command_design(
    robot: Robot, recipe: PlanRecipe, *, out: RunRequest | str | Path, notice: Notice = log_finding
) -> tuple[CommandPlan, list[Path]]:
    """Design commands for a log without torque, and write them to a run folder.

    Args:
        robot: The robot, whose position and velocity limits the commands keep.
        recipe: All settings.
        out: Folder for the commands and what each stretch of them shows.
        notice: Called with every finding that a person should see at once.

    Returns:
        The plan, and the files that hold it.

    Raises:
        ArgumentError: A setting does not fit the robot.

    Example:
        >>> recipe = dynid.runs.PlanRecipe(method="commands", acceleration=(5.0,))
        >>> plan, files = dynid.runs.run_command_design(pendulum, recipe, out=folder / "commands")
        >>> [file.name for file in files]
        ['commands.csv', 'plan.txt', 'plan.json']
    """
    model = _with_limits(robot, recipe, notice)
    plan = _staged_commands(model, recipe, notice) if recipe.law is None else _revealing_commands(model, recipe)
    names = ["commands.csv", "plan.txt", "plan.json"]
    origin = Origin.of_call("run_command_design", recipe.to_dict(), recipe.input_files())
    with open_run(RunRequest.of(out), origin, [*names, "recipe.toml"]) as run:
        plan.write_csv(run.path / "commands.csv", force=True)
        run.write("plan.txt", plan.summary() + "\n")
        run.write("plan.json", json.dumps(plan.contents(), indent=1) + "\n")
        run.write("recipe.toml", recipe.to_toml())
        run.finish("plan.json", 0)
    return plan, [run.folder / name for name in names]


def _staged_commands(robot: Robot, recipe: PlanRecipe, notice: Notice) -> CommandPlan:
    """Stretches that need no model."""
    settings = CommandSettings(
        band_hz=(recipe.band_hz[0], recipe.band_hz[1]),
        amplitude=recipe.amplitude,
        hold_s=recipe.hold_s,
        torque_off_s=recipe.torque_off_s,
        rate_hz=recipe.command_rate_hz,
    )
    return design_commands(recipe.limits(robot, notice), settings)


def _revealing_commands(robot: Robot, recipe: PlanRecipe) -> CommandPlan:
    """Commands that reveal the parameters of a law best."""
    assert recipe.law is not None
    model = read_servo_model(recipe.law, robot)
    design = refine_commands(
        model, duration_s=recipe.duration_s, rate_hz=recipe.command_rate_hz, seed=recipe.seed
    )  # fmt: skip
    told = [f"Open whatever the log: {direction}." for direction in design.open_directions]
    told = told or ["Every parameter of the law can be told."]
    gain = f"the parameters of the law; variances {design.gain:.3g} times smaller than under the mean candidate"
    return CommandPlan(
        joint_names=robot.joint_names,
        time=design.motion.time,
        position=design.motion.command,
        enabled=np.ones(design.motion.command.shape, dtype=bool),
        stretches=(Stretch("revealing", 0.0, float(design.motion.time[-1]), gain),),
        notes=tuple(told),
    )


def run_design(
    robot: Robot,
    recipe: PlanRecipe | None = None,
    *,
    out: RunRequest | str | Path,
    progress: Progress | None = None,
    notice: Notice = log_finding,
) -> tuple[Excitation, list[Path]]:
    """Design the motion that reveals the parameters best within limits, and write it to a run folder.

    Args:
        robot: The robot; it gets rotor inertia, friction and offset in every joint without them.
        recipe: All settings; the defaults of `PlanRecipe` if None.
        out: Folder for the plan and a report.
        progress: Called with the finished share (0 to 1) and a short description of the current step.
        notice: Called with every finding that a person should see at once.

    Returns:
        The plan, and the files that hold it.

    Raises:
        ArgumentError: A setting does not fit the robot.
        ExcitationError: No motion satisfies the limits.

    Example:
        >>> recipe = dynid.runs.PlanRecipe(time_limit_s=0.1, harmonics=1, acceleration=(5.0,))
        >>> plan, files = dynid.runs.run_design(pendulum, recipe, out=folder / "plan")
        >>> plan.trajectory.duration
        15.0
    """
    chosen = recipe or PlanRecipe()
    model = add_terms(_with_limits(robot, chosen, notice))
    limits = chosen.limits(model, notice)
    levels = per_joint("noise", chosen.noise, model.dof) or [1.0] * model.dof
    measured = JointTorques.of(model, levels)
    build_constraints(model, limits)  # impossible limits are refused before a folder is made
    by_points = chosen.method == "energy-points"
    design = _prepare_points(model, limits, chosen) if by_points else _prepare_series(model, chosen, notice)
    origin = Origin.of_call("run_design", chosen.to_dict(), chosen.input_files())
    with open_run(RunRequest.of(out), origin, [*PLAN_FILES, "recipe.toml"], can_continue=True) as run:
        run.report_continuation(notice)
        plan = design(_Order(model, limits, measured, chosen, progress or (lambda share, note: None)), run)
        files = write_plan(plan, run.path, rate_hz=chosen.rate_hz, force=True)
        run.write("recipe.toml", chosen.to_toml())
        run.write_page(plan_page(plan, [run.settings()], model))
        run.finish("plan.json", 0)
    return plan, [run.folder / name for name in (*(file.name for file in files), "report.html")]


@dataclass(frozen=True, slots=True)
class _Order:
    """All that a design needs, whatever its method."""

    robot: Robot
    limits: MotionLimits
    measured: JointTorques
    recipe: PlanRecipe
    progress: Progress


Design = Callable[[_Order, RunFolder], Excitation]
"""Designs the motion of a run."""


def _prepare_points(robot: Robot, limits: MotionLimits, chosen: PlanRecipe) -> Design:
    """Check the settings of points before a folder is made; returns the design."""
    check_point_limits(limits)
    count = check_count(robot, chosen.points)

    def design(order: _Order, run: RunFolder) -> Excitation:
        return design_energy_points(
            robot,
            limits,
            count=count,
            criterion=chosen.cost(),
            seed=chosen.seed,
            observation=order.measured,
            settings=PointSettings(starts=chosen.starts, rate_hz=chosen.record_rate_hz),
            progress=lambda step: order.progress(step.share, f"box {step.box + 1}, cost {step.value:.4g}"),
        )

    return design


def _prepare_series(robot: Robot, chosen: PlanRecipe, notice: Notice) -> Design:
    """Check the settings of a Fourier series before a folder is made; returns the design."""
    family = FourierTrajectory.still(robot.dof, period_s=chosen.period_s, harmonics=chosen.harmonics)
    check_rate(family, chosen.rate_hz)
    given = None if chosen.start_from is None else _earlier(Path(chosen.start_from), robot, family, notice)

    def design(order: _Order, run: RunFolder) -> Excitation:
        best = _Best(run)
        settings = SearchSettings(
            family=family,
            initial=best.read(family) or given,
            time_limit_s=chosen.time_limit_s,
            processes=chosen.processes,
            scheduler=chosen.scheduler,
        )
        goal = DesignGoal(
            observation=order.measured, rate_hz=chosen.record_rate_hz, speed_coverage=chosen.speed_coverage
        )
        return design_excitation(
            robot, order.limits, seed=chosen.seed, goal=goal, settings=settings,
            progress=lambda step: order.progress(min(step.elapsed_s / chosen.time_limit_s, 1.0), best.keep(step)),
        )  # fmt: skip

    return design


class _Best:
    """The best motion so far, kept in the folder so that an interrupted search continues from it."""

    def __init__(self, run: RunFolder) -> None:
        self.path, self.value = run.path / CACHE / "best.json", math.inf
        make_folder(self.path.parent)

    def read(self, family: FourierTrajectory) -> Any:
        """The motion that an interrupted run left; None without one."""
        return read_coefficients(self.path, family)

    def keep(self, step: Step) -> str:
        """Keep a better motion; returns a short description of the state of the search."""
        if step.trajectory is not None and step.value < self.value:
            self.value = step.value
            write_coefficients(step.trajectory, self.path)
        return f"start {step.start + 1}, condition {self.value:.1f}"


def _earlier(path: Path, robot: Robot, family: FourierTrajectory, notice: Notice) -> FourierTrajectory:
    """The motion of an earlier plan of the same joints, with a notice if its period or robot differs."""
    if not Path(path).exists():
        raise ArgumentError("there is no such file", path=path, remedy="Give the plan.json of an earlier design.")
    found = read_trajectory(path)
    if found is None:
        raise ArgumentError(
            "the file holds no plan of a Fourier series", path=path, remedy="Give the plan.json of such a design."
        )
    trajectory, facts = found
    if tuple(facts["joint_names"]) != robot.joint_names:
        raise ArgumentError(
            f"a plan for other joints: {', '.join(map(str, facts['joint_names']))}; "
            f"'{robot.name}' has {', '.join(robot.joint_names)}",
            path=path,
            remedy="Give a plan of the same robot.",
        )
    if facts["robot"] != robot.name:
        _note(notice, "other-plan", f"start_from: a plan of '{facts['robot']}' is the start for '{robot.name}'")
    if (trajectory.period_s, trajectory.harmonics) != (family.period_s, family.harmonics):
        message = (
            f"start_from: the path of {trajectory.period_s:g} s and {trajectory.harmonics} harmonics is run in "
            f"{family.period_s:g} s with {family.harmonics}"
        )
        _note(notice, "other-plan", message)
    return trajectory


def per_joint(name: str, values: tuple[float, ...], count: int) -> list[float] | None:
    """Positive numbers, one for each joint, from one for all or one each; None where none is given.

    Raises:
        ArgumentError: The numbers do not fit.
    """
    if not values:
        return None
    if len(values) not in (1, count) or not all(math.isfinite(value) and value > 0.0 for value in values):
        raise ArgumentError(
            f"{name}: {list(values)} is neither one positive number nor one for each of the {count} joints",
            remedy=f"Write {name}=5 or {name}={','.join(['5'] * min(count, 7))}.",
        )
    return list(values) * (count if len(values) == 1 else 1)


def _corners(box: str | None) -> tuple[list[float], list[float]]:
    """Corners from ``X:X,Y:Y,Z:Z``; a missing number is no wall."""
    sides = [side.split(":") for side in (":,:,:" if box is None else box).split(",")]
    try:
        if [len(side) for side in sides] != [2, 2, 2]:
            raise ValueError("three ranges are needed")
        return [float(low or -math.inf) for low, _ in sides], [float(high or math.inf) for _, high in sides]
    except ValueError as error:
        raise ArgumentError(f"box: {error}", remedy="Write box=-0.5:0.5,-0.5:0.5,0:1.2.") from error


def _with_limits(robot: Robot, recipe: PlanRecipe, notice: Notice) -> Robot:
    """The robot with a velocity limit on every joint; without one a motion could have any speed.

    Raises:
        ArgumentError: A limit is missing, and the recipe has none for it.
    """
    if not robot.dof:
        raise ArgumentError(f"robot '{robot.name}' has no moving joint", remedy="Hold fewer joints.")
    free = [joint for joint in robot.moving_joints if not math.isfinite(joint.limits.velocity)]
    if free and recipe.velocity is None:
        raise ArgumentError(
            f"no velocity limit is known for {', '.join(joint.name for joint in free)}",
            remedy='Give --set velocity=LIMIT, or write <limit velocity="..."/> into the file.',
        )
    turning = [j.name for j in robot.moving_joints if j.kind != "prismatic" and not _has_range(j)]
    if turning:
        message = (
            f"position limits are missing, and -180 to 180 deg are assumed for {', '.join(turning)}, of which "
            f"{180 * recipe.scale:g} deg either way are used"
        )
        _note(notice, "assumed-limits", message)
    unlimited = {joint.name: replace(joint.limits, velocity=recipe.velocity or math.inf) for joint in free}
    return robot.with_limits(unlimited)


def _has_range(joint: Joint) -> bool:
    return math.isfinite(joint.limits.lower) and math.isfinite(joint.limits.upper)


def _note(notice: Notice, code: str, message: str) -> None:
    notice(Finding(code=code, severity="note", where="recipe", message=message))
