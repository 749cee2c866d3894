"""The verb that designs motions: excite."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.common import (
    EXISTING,
    FORCE,
    JSON,
    OUT,
    POSITIVE,
    FiniteRange,
    make_folder,
    print_json,
    robot_argument,
    verb,
    with_usual_terms,
)
from dynid.cli.excite_limits import LimitOptions, limit_options, per_joint, with_known_limits
from dynid.cli.progress import progress
from dynid.cli.run_folder import RunFolder, open_run
from dynid.errors import ArgumentError

if TYPE_CHECKING:
    from dynid.excitation.excitation import Excitation
    from dynid.excitation.search import Step
    from dynid.excitation.trajectories.fourier import FourierTrajectory
    from dynid.robot.model import Robot

__all__ = ["excite"]


@verb(
    "dynid excite ur10 --out plan",
    "dynid excite arm.urdf --scale 0.5 --period 20 --time-limit 60 --out plan",
    "dynid excite arm.urdf --acceleration 5 --floor 0.05 --clearance 0.02 --meshes . --out plan",
)
@robot_argument
@OUT
@click.option("--period", type=POSITIVE, default=10.0, show_default=True, help="Period of the motion [s].")
@click.option("--harmonics", type=click.IntRange(min=1), default=5, show_default=True, help="Number of harmonics.")
@limit_options
@click.option("--rate", type=POSITIVE, default=500.0, show_default=True, help="Rate of the written trajectory [Hz].")
@click.option("--noise", default="1", show_default=True, metavar="NUMBER[,NUMBER...]",
              help="Standard deviation of the torques to expect, for the predicted accuracy [N m or N].")  # fmt: skip
@click.option("--record-rate", type=POSITIVE, default=100.0, show_default=True,
              help="Independent torque samples per second, for the predicted accuracy [Hz].")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random starts.")
@click.option(
    "--time-limit", type=POSITIVE, default=30.0, show_default=True, help="Seconds to search; Ctrl-C keeps the best."
)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of processes that share the starts.",
)
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
    asked: LimitOptions,
    rate: float,
    noise: str,
    record_rate: float,
    seed: int,
    time_limit: float,
    processes: int,
    earlier: str | None,
    speed_coverage: float,
    force: bool,
    as_json: bool,
) -> None:
    """Design the motion that reveals the parameters best, within the robot's limits.

    What no limit is known or given for is not checked; the screen and the page say what that is.
    """
    from dynid.excitation.constraints import build_constraints
    from dynid.excitation.design import design_excitation
    from dynid.excitation.design_settings import DesignGoal, SearchSettings
    from dynid.excitation.measured import JointTorques
    from dynid.excitation.plan_files import PLAN_FILES, check_rate
    from dynid.excitation.trajectories.fourier import FourierTrajectory

    model = with_usual_terms(with_known_limits(robot, asked.velocity, asked.scale))
    limits = asked.limits(model)
    family = FourierTrajectory.still(model.dof, period_s=period, harmonics=harmonics)
    check_rate(family, rate)
    levels = per_joint("--noise", noise, model.dof) or [1.0] * model.dof
    given = None if earlier is None else _earlier(Path(earlier), model, family)
    build_constraints(model, limits)  # so that limits that cannot be meant leave no folder behind
    run = open_run(out, PLAN_FILES, force=force)
    best = _Best(run)
    goal = DesignGoal(observation=JointTorques.of(model, levels), rate_hz=record_rate, speed_coverage=speed_coverage)
    settings = SearchSettings(
        family=family, initial=best.read(family) or given, time_limit_s=time_limit, processes=processes
    )
    with progress("searching", time_limit) as advance:
        plan = design_excitation(
            model, limits, seed=seed, goal=goal, settings=settings,
            progress=lambda step: advance(step.elapsed_s, best.note(step)),
        )  # fmt: skip
    _finish(run, plan, model, rate, as_json)


class _Best:
    """The best motion so far, kept in the folder so that the same command goes on from it where it was interrupted."""

    def __init__(self, run: RunFolder) -> None:
        self.path, self.value = run.path / "cache" / "best.json", math.inf
        make_folder(self.path.parent)
        if not run.resumed:  # another run's motion would make this one depend on what stood there
            self.path.unlink(missing_ok=True)

    def read(self, family: FourierTrajectory) -> Any:
        """What an interrupted run left; None without."""
        from dynid.excitation.plan_files import read_coefficients

        return read_coefficients(self.path, family)

    def note(self, step: Step) -> str:
        """Keep a better motion; how far the search is, in words."""
        from dynid.excitation.plan_files import write_coefficients

        if step.trajectory is not None and step.value < self.value:
            self.value = step.value
            write_coefficients(step.trajectory, self.path)
        return f"start {step.start + 1}, condition {self.value:.1f}"


def _earlier(path: Path, robot: Robot, family: FourierTrajectory) -> FourierTrajectory:
    """The motion of an earlier plan of the same joints, told where it was of another period or robot."""
    from dynid.excitation.plan_files import read_trajectory

    found = read_trajectory(path)
    if found is None:
        raise ArgumentError("no plan of a motion", path=path, remedy="Give the plan.json that dynid excite wrote.")
    trajectory, facts = found
    if tuple(facts["joint_names"]) != robot.joint_names:
        raise ArgumentError(
            f"a plan for other joints: {', '.join(map(str, facts['joint_names']))}; "
            f"'{robot.name}' has {', '.join(robot.joint_names)}",
            path=path,
            remedy="Give a plan of the same robot.",
        )
    if facts["robot"] != robot.name:
        click.echo(f"--from: a plan of '{facts['robot']}' is taken as a start for '{robot.name}'", err=True)
    if (trajectory.period_s, trajectory.harmonics) != (family.period_s, family.harmonics):
        click.echo(
            f"--from: the path of {trajectory.period_s:g} s and {trajectory.harmonics} harmonics is run in "
            f"{family.period_s:g} s with {family.harmonics}",
            err=True,
        )
    return trajectory


def _finish(run: RunFolder, plan: Excitation, robot: Robot, rate: float, as_json: bool) -> None:
    """Write the plan and its page, and say what they hold."""
    from dynid.excitation.plan_files import plan_contents, write_plan
    from dynid.report.report import plan_page

    files = write_plan(plan, run.path, rate_hz=rate, force=run.overwrite)
    run.write_page(plan_page(plan, [run.settings()], robot))
    run.finish("plan.json", 0)
    if plan.interrupted:
        click.echo("interrupted: this is the best motion found until then", err=True)
    if as_json:
        print_json(plan_contents(plan))
    else:
        click.echo(plan.summary())
        click.echo(f"written: {', '.join(map(str, (*files, run.path / 'report.html')))}")
