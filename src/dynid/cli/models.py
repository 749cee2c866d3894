"""Verbs about robots: robots, check, base, excite, codegen."""

from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid import errors
from dynid.cli.common import (
    DELAY,
    EXISTING,
    FORCE,
    HOLD,
    JSON,
    MAP,
    OUT,
    POSITIVE,
    PROFILE,
    FiniteRange,
    held_joints,
    is_robot,
    load_robot,
    make_folder,
    print_json,
    robot_argument,
    verb,
    with_usual_joint_models,
)
from dynid.cli.progress import progress, size_of
from dynid.cli.reading import Seconds, undelayed
from dynid.cli.run_folder import open_run

if TYPE_CHECKING:
    from dynid.excitation.optimiser import Step
    from dynid.robot.model import Robot
    from dynid.robot.parts import Joint

__all__ = ["base", "check", "codegen", "excite", "robots"]


@verb("dynid robots --json")
@JSON
def robots(as_json: bool) -> None:
    """List the built-in robots."""
    from dynid.robot import zoo

    if as_json:
        print_json(list(zoo.names()))
        return
    for name in zoo.names():
        click.echo(f"{name:22s} {zoo.get(name)!r}")


@verb("dynid check arm.urdf", "dynid check run1.csv --map map.toml --robot arm.urdf")
@click.argument("what")
@HOLD
@click.option("--robot", "recorded", help="Of a log: the robot that was recorded, a file or a built-in one.")
@MAP
@PROFILE
@DELAY
@JSON
def check(
    what: str,
    hold: tuple[str, ...],
    recorded: str | None,
    channel_map: str | None,
    profile: str | None,
    delay: Seconds,
    as_json: bool,
) -> None:
    """List what is wrong or suspicious in a robot model or in a log, with the remedy.

    Exit code 1 when something is wrong, 0 when there are at most warnings.
    """
    from dynid.data.quality import check_recording
    from dynid.data.reading import read_recording
    from dynid.robot.check import check_robot

    result: Any
    if is_robot(what):
        result = check_robot(load_robot(what, held_joints(hold)))
    else:
        path = EXISTING.convert(what, None, None)
        robot = None if recorded is None else with_usual_joint_models(load_robot(recorded, held_joints(hold)))
        size = size_of(path)
        with progress("log", 2.0 * size, "MB") as advance:
            advance(0.0, f"reading {Path(path).name}")
            recording = read_recording(path, robot, channel_map=channel_map, profile=profile)
            advance(size, f"checking {Path(path).name}")
            result = check_recording(undelayed(recording, delay), robot)
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in result.findings])
    else:
        click.echo(str(result))
    sys.exit(0 if result.ok else 1)


@verb("dynid base puma560 --format markdown", "dynid base arm.urdf --joint-models --json")
@robot_argument
@click.option("--method", type=click.Choice(["auto", "closed-form", "minimal-combinations", "numeric", "structural"]),
              default="auto", show_default=True, help="How the base parameters are found.")  # fmt: skip
@click.option("--format", "style", type=click.Choice(["text", "markdown", "latex", "json"]), default="text")
@JSON
@click.option("--locked", multiple=True, metavar="JOINT", help="Joint that does not move; repeatable.")
@click.option("--static", is_flag=True, help="The robot only stands still.")
@click.option(
    "--joint-models", is_flag=True, help="Add rotor inertia, viscous and Coulomb friction and offset per joint."
)
@click.option("--counts", is_flag=True, help="Also print what inverse dynamics costs in base parameters.")
def base(
    robot: Robot,
    method: str,
    style: str,
    as_json: bool,
    locked: tuple[str, ...],
    static: bool,
    joint_models: bool,
    counts: bool,
) -> None:
    """Show which parameters can be known, and in which combinations."""
    from dynid.parameters.base import base_parameters
    from dynid.parameters.minimal_dynamics import count_inverse_dynamics, counts_table

    style = "json" if as_json else style
    if counts and style != "text":
        raise errors.ArgumentError("--counts is for people", remedy="Use it with --format text.")
    model = with_usual_joint_models(robot) if joint_models else robot
    chosen: Any = None if method == "auto" else method
    result = base_parameters(model, method=chosen, locked=locked, static=static)
    render = {"text": result.to_text, "markdown": result.to_markdown, "latex": result.to_latex, "json": result.to_json}
    click.echo(render[style]())
    if counts:
        click.echo(f"\nInverse dynamics of this robot's links: {count_inverse_dynamics(robot)}\n\n{counts_table()}")


def _limited(robot: Robot, velocity: float | None) -> Robot:
    """The robot with a velocity limit on every joint; without one a motion could be of any speed."""
    free = [joint for joint in robot.moving_joints if not math.isfinite(joint.limits.velocity)]
    if free and velocity is None:
        raise errors.ArgumentError(
            f"no velocity limit is known for {', '.join(joint.name for joint in free)}",
            remedy='Give --velocity, or write <limit velocity="..."/> into the file.',
        )
    rails = [joint.name for joint in robot.moving_joints if joint.kind == "prismatic" and not _ranged(joint)]
    if rails:
        raise errors.ArgumentError(
            f"no position limits are known for the sliding joint {rails[0]}",
            remedy='Write <limit lower="..." upper="..."/> into the file.',
        )
    turning = [joint.name for joint in robot.moving_joints if not _ranged(joint)]
    if turning:
        click.echo(f"assumed for want of position limits: -180 to 180 deg for {', '.join(turning)}", err=True)
    return robot.with_limits(
        {joint.name: dataclasses.replace(joint.limits, velocity=velocity or math.inf) for joint in free}
    )


def _ranged(joint: Joint) -> bool:
    return math.isfinite(joint.limits.lower) and math.isfinite(joint.limits.upper)


@verb("dynid excite ur10 --out plan", "dynid excite arm.urdf --scale 0.5 --period 20 --time-limit 60 --out plan")
@robot_argument
@OUT
@click.option("--period", type=POSITIVE, default=10.0, show_default=True, help="Period of the motion [s].")
@click.option("--harmonics", type=click.IntRange(min=1), default=5, show_default=True, help="Number of harmonics.")
@click.option(
    "--scale",
    type=FiniteRange(0.0, 1.0, min_open=True),
    default=0.8,
    show_default=True,
    help="Share of the robot's limits that may be used.",
)
@click.option("--velocity", type=POSITIVE, help="Velocity limit of joints that have none in the file [rad/s or m/s].")
@click.option("--rate", type=POSITIVE, default=500.0, show_default=True, help="Rate of the written trajectory [Hz].")
@click.option("--seed", default=0, show_default=True, help="Of the random starts.")
@click.option(
    "--time-limit", type=POSITIVE, default=30.0, show_default=True, help="Seconds to search; Ctrl-C keeps the best."
)
@click.option("--processes", type=click.IntRange(min=1), default=1, show_default=True, help="That share the starts.")
@click.option("--from", "earlier", type=EXISTING, help="plan.json of an earlier design to go on from.")
@click.option(
    "--speed-coverage",
    type=FiniteRange(0.0, 1.0),
    default=0.0,
    show_default=True,
    help="Share of its speed limit that every joint is to reach both ways, for friction.",
)
@FORCE
@JSON
def excite(
    robot: Robot,
    out: Path,
    period: float,
    harmonics: int,
    scale: float,
    velocity: float | None,
    rate: float,
    seed: int,
    time_limit: float,
    processes: int,
    earlier: str | None,
    speed_coverage: float,
    force: bool,
    as_json: bool,
) -> None:
    """Design the motion that reveals the parameters best, within the robot's limits."""
    from dynid.excitation.design import design_excitation
    from dynid.excitation.fourier import FourierTrajectory
    from dynid.excitation.limits import MotionLimits
    from dynid.excitation.plan_files import (
        PLAN_FILES,
        plan_contents,
        read_coefficients,
        write_coefficients,
        write_plan,
    )
    from dynid.report.report import plan_page

    model = with_usual_joint_models(_limited(robot, velocity))
    run = open_run(out, PLAN_FILES, force=force)
    limits = MotionLimits.from_robot(model, scale=scale)
    family = FourierTrajectory.still(model.dof, period_s=period, harmonics=harmonics)
    given = None if earlier is None else read_coefficients(earlier, family)
    if earlier is not None and given is None:
        raise errors.ArgumentError(
            "no motion of these joints and harmonics", path=earlier, remedy="Give a plan.json of the same --harmonics."
        )
    kept, best = out / "cache" / "best.json", math.inf
    make_folder(kept.parent)

    def note(step: Step) -> None:
        nonlocal best
        if step.trajectory is not None and step.value < best:
            best = step.value
            write_coefficients(step.trajectory, kept)
        advance(step.elapsed_s, f"start {step.start + 1}, condition {best:.1f}")

    with progress("searching", time_limit) as advance:
        plan = design_excitation(
            model, limits, family=family, seed=seed, initial=read_coefficients(kept, family) or given,
            time_limit_s=time_limit, speed_coverage=speed_coverage, processes=processes, progress=note,
        )  # fmt: skip
    files = write_plan(plan, out, rate_hz=rate, force=run.overwrite)
    run.write_page(plan_page(plan, [run.settings()], model))
    run.finish("plan.json", 0)
    if plan.interrupted:
        click.echo("interrupted: this is the best motion found until then", err=True)
    if as_json:
        print_json(plan_contents(plan))
    else:
        click.echo(plan.summary())
        click.echo(f"written: {', '.join(map(str, (*files, out / 'report.html')))}")


@verb(
    "dynid codegen result/arm_identified.urdf --out arm_dynamics",
    "dynid codegen ur10 --precision float --load --out ur10_dynamics",
)
@robot_argument
@OUT
@click.option(
    "--functions",
    default="inverse_dynamics,inertia_matrix,gravity,velocity_torque,friction",
    show_default=True,
    help="Comma-separated; also forward_dynamics, energy, regressor.",
)
@click.option("--precision", type=click.Choice(["double", "float"]), default="double", show_default=True)
@click.option(
    "--parameters",
    type=click.Choice(["folded", "struct"]),
    default="folded",
    show_default=True,
    help="Constants in the code, or a struct to change at run time.",
)
@click.option("--load", is_flag=True, help="A load on the last link that can be changed at run time.")
@click.option("--verify/--no-verify", default=True, help="Compile with the system's compiler and compare.")
@FORCE
@JSON
def codegen(
    robot: Robot,
    out: Path,
    functions: str,
    precision: Any,
    parameters: Any,
    load: bool,
    verify: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write real-time C99 code of a robot's dynamics, with a self-test."""
    from dynid.export.c_check import find_compiler
    from dynid.export.c_package import generate_c

    code = generate_c(
        robot,
        [name.strip() for name in functions.split(",") if name.strip()],
        precision=precision,
        parameters=parameters,
        load="struct" if load else None,
    )
    compiled = verify and find_compiler() is not None
    if compiled:
        code.check(samples=200)
    code.write(out, force=force)
    if as_json:
        print_json({"folder": str(out), "compiled_and_compared": compiled, "summary": code.summary().splitlines()})
        return
    click.echo(code.summary())
    why = "compiled and compared with the model" if compiled else "not compiled here"
    if verify and not compiled:
        why += ": no C compiler was found; install gcc or clang, or set CC"
    click.echo(f"written: {out} ({why})")
