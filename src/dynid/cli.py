"""The command line: one sub-command per verb. The only file that prints or exits.

Exit codes: 0 good, 1 the verdict failed, 2 wrong usage, 3 bad robot description or data, 4 not identifiable, 5 no
answer found or nothing could be written, 130 interrupted. Heavy imports happen inside the verbs, so that
``dynid --help`` is instant.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from dynid import errors

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["main"]

_EXIT_CODES: list[tuple[type[errors.DynidError], int]] = [
    (errors.ArgumentError, 2),
    (errors.DescriptionError, 3),
    (errors.DataError, 3),
    (errors.IdentifiabilityError, 4),
    (errors.DynidError, 5),
]


class _Group(click.Group):
    """Turns our errors into one message and the right exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except errors.DynidError as error:
            _fail(str(error), next(code for kind, code in _EXIT_CODES if isinstance(error, kind)))
        except BrokenPipeError:
            sys.stderr.close()
            sys.exit(0)
        except KeyboardInterrupt:
            _fail("interrupted", 130)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"dynid: {message}", err=True)
    sys.exit(code)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dynid")
def main() -> None:
    """Identify the dynamics of robots: what can be known, and what it is.

    Robots are files (.urdf; .xml or .mjcf for MJCF; .txt for the text format) or built-in: see dynid robots.
    """


_HOLD = click.option("--hold", multiple=True, metavar="JOINT[=POSITION]",
                     help="Turn a joint of the file into a fixed one (fingers, mimic joints); repeatable.")  # fmt: skip


def _robot_argument(command: Callable[..., None]) -> Callable[..., None]:
    """A robot by file or name, with joints to hold: the command gets the loaded robot."""

    @functools.wraps(command)
    def loaded(*args: Any, robot: str, hold: tuple[str, ...], **options: Any) -> None:
        command(*args, robot=_load(robot, _held(hold)), **options)

    return click.argument("robot")(_HOLD(loaded))


def _held(pairs: tuple[str, ...]) -> dict[str, float]:
    try:
        return {name: float(value or 0.0) for name, _, value in (pair.partition("=") for pair in pairs)}
    except ValueError as error:
        raise errors.ArgumentError(f"--hold: {error}", remedy="Write --hold JOINT or --hold JOINT=0.02.") from error


_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
_LOCKED = click.option("--locked", multiple=True, metavar="JOINT", help="Joint that does not move; repeatable.")


def _load(name: str, held: dict[str, float]) -> Robot:
    """A robot from a file, by its ending, or from the zoo, by its name."""
    from dynid.robot import zoo
    from dynid.robot.mjcf import read_mjcf
    from dynid.robot.text_format import read_text
    from dynid.robot.urdf import read_urdf

    readers: dict[str, Callable[[str], Robot]] = {
        ".urdf": functools.partial(read_urdf, locked=held),
        ".xml": functools.partial(read_mjcf, locked=held),
        ".mjcf": functools.partial(read_mjcf, locked=held),
        ".txt": read_text,
    }
    reader = readers.get(Path(name).suffix.lower())
    if reader is None and name in zoo.names():
        return zoo.get(name)
    if reader is None:
        raise errors.ArgumentError(
            f"'{name}' is neither a robot file ({', '.join(readers)}) nor a built-in robot",
            remedy=f"Built-in robots: {', '.join(zoo.names())}.",
        )
    return reader(name)


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))


@main.command()
@_JSON
def robots(as_json: bool) -> None:
    """List the built-in robots."""
    from dynid.robot import zoo

    if as_json:
        _print_json(list(zoo.names()))
        return
    for name in zoo.names():
        click.echo(f"{name:22s} {zoo.get(name)!r}")


@main.command()
@_robot_argument
@_JSON
def check(robot: Robot, as_json: bool) -> None:
    """List what is unphysical or suspicious in a robot model.

    Exit code 1 when something is wrong, 0 when there are at most warnings.

    Example: dynid check arm.urdf
    """
    from dynid.robot.check import check_robot

    result = check_robot(robot)
    if as_json:
        _print_json([{k: getattr(f, k) for k in ("severity", "place", "message", "remedy")} for f in result.findings])
    else:
        click.echo(str(result))
    sys.exit(0 if result.ok else 1)


@main.command()
@_robot_argument
@click.option("--method", type=click.Choice(["auto", "closed-form", "minimal-combinations", "numeric", "structural"]),
              default="auto", show_default=True, help="How the base parameters are found.")  # fmt: skip
@click.option("--format", "style", type=click.Choice(["text", "markdown", "latex", "json"]), default="text")
@_LOCKED
@click.option("--static", is_flag=True, help="The robot only stands still.")
@click.option(
    "--joint-models", is_flag=True, help="Add rotor inertia, viscous and Coulomb friction and offset per joint."
)
def base(robot: Robot, method: str, style: str, locked: tuple[str, ...], static: bool, joint_models: bool) -> None:
    """Show which parameters can be known, and in which combinations.

    Example: dynid base puma560 --format markdown
    """
    from dynid.parameters.base import base_parameters
    from dynid.robot.joint_models import Coulomb, Offset, RotorInertia, Viscous

    model = robot
    if joint_models:
        model = model.with_joint_models(RotorInertia(), Viscous(), Coulomb(), Offset())
    chosen: Any = None if method == "auto" else method
    result = base_parameters(model, method=chosen, locked=locked, static=static)
    render = {"text": result.to_text, "markdown": result.to_markdown, "latex": result.to_latex, "json": result.to_json}
    click.echo(render[style]())


_FORCE = click.option("--force", is_flag=True, help="Overwrite what stands in the output folder.")
_OUT = click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the results.")
_MAP = click.option("--map", "channel_map", type=click.Path(exists=True, dir_okay=False), help="Channel map (TOML).")
_PROFILE = click.option("--profile", help="Ready channel map: ur_rtde, libfranka, one_number_per_line, joint_state.")


@main.command()
@click.argument("logs", nargs=-1, required=True, type=click.Path())
def inspect(logs: tuple[str, ...]) -> None:
    """Look into a log and propose a channel map for it, with the reasons of every guess.

    Example: dynid inspect run1.csv > map.toml
    """
    from dynid.data.inspect import inspect_log

    proposal = inspect_log(logs[0] if len(logs) == 1 else list(logs))
    click.echo(proposal.toml)
    click.echo(str(proposal), err=True)


@main.command()
@_robot_argument
@_OUT
@click.option("--period", default=10.0, show_default=True, help="Period of the motion [s].")
@click.option("--harmonics", default=5, show_default=True, help="Number of harmonics.")
@click.option("--scale", default=0.8, show_default=True, help="Share of the robot's limits that may be used.")
@click.option("--rate", default=500.0, show_default=True, help="Rate of the written trajectory [Hz].")
@click.option("--seed", default=0, show_default=True, help="Of the random starts.")
@click.option("--time-limit", default=30.0, show_default=True, help="Seconds to search.")
@_FORCE
def excite(
    robot: Robot,
    out: Path,
    period: float,
    harmonics: int,
    scale: float,
    rate: float,
    seed: int,
    time_limit: float,
    force: bool,
) -> None:
    """Design the motion that reveals the parameters best, within the robot's limits.

    Example: dynid excite ur10 --out plan
    """
    from dynid.excitation.design import design_excitation
    from dynid.excitation.limits import MotionLimits
    from dynid.files import write_atomically
    from dynid.robot.joint_models import Coulomb, Offset, RotorInertia, Viscous

    model = robot.with_joint_models(RotorInertia(), Viscous(), Coulomb(), Offset())
    limits = MotionLimits.from_robot(model, scale=scale)
    with _progress("searching", time_limit) as advance:
        plan = design_excitation(
            model, limits, period_s=period, harmonics=harmonics, seed=seed, time_limit_s=time_limit,
            progress=lambda step: advance(step.elapsed_s, f"condition {step.value:.1f}"),
        )  # fmt: skip
    _make_folder(out)
    plan.sample(rate).to_csv(out / "trajectory.csv", force=force)
    write_atomically(out / "plan.txt", plan.summary() + "\n", force=force)
    click.echo(plan.summary())
    click.echo(f"written: {out / 'trajectory.csv'}, {out / 'plan.txt'}")


@main.command()
@_robot_argument
@click.argument("logs", nargs=-1, required=True, type=click.Path(exists=True))
@_MAP
@_PROFILE
@click.option("--estimator", type=click.Choice(["feasible", "wls", "ols"]), default="feasible", show_default=True)
@click.option("--validate", "held_out", multiple=True, type=click.Path(exists=True), help="Held-out log; repeatable.")
@click.option("--limit", default=15.0, show_default=True, help="Largest relative held-out error that passes [%].")
@click.option("--cutoff", type=float, help="Low-pass [Hz]; chosen from the data by default.")
@_OUT
@_FORCE
@_JSON
def identify(
    robot: Robot,
    logs: tuple[str, ...],
    channel_map: str | None,
    profile: str | None,
    estimator: str,
    held_out: tuple[str, ...],
    limit: float,
    cutoff: float | None,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Identify a robot from logs; write result.json, the identified URDF or MJCF, a summary and a report.

    Exit code 1 when held-out logs were given and the verdict failed.

    Example: dynid identify arm.urdf run1.csv run2.csv --map map.toml --validate run3.csv --out result
    """
    from dynid.data.processing import process
    from dynid.data.reading import read_recording
    from dynid.estimation.feasible import FeasibleWLS
    from dynid.estimation.least_squares import OLS, WLS
    from dynid.identification.links import identify as identify_links
    from dynid.identification.validation import validate
    from dynid.robot.joint_models import Coulomb, Offset, RotorInertia, Viscous

    def experiment(path: str) -> Any:
        recording = read_recording(path, model, channel_map=channel_map, profile=profile)
        return process(recording, cutoff_hz=cutoff if cutoff is not None else "auto")

    model = robot.with_joint_models(RotorInertia(), Viscous(), Coulomb(), Offset())
    kinds = {"feasible": FeasibleWLS(), "wls": WLS(), "ols": OLS()}
    with _progress("reading and reducing", len(logs)) as advance:
        runs = []
        for number, log in enumerate(logs, start=1):
            runs.append(experiment(log))
            advance(number, Path(log).name)
    fit = identify_links(model, runs, estimator=kinds[estimator])
    proof = [experiment(log) for log in held_out]
    check = validate(fit, proof, limit=limit) if proof else None
    _write_identification(fit, check, proof[0] if proof else None, out, force)
    if as_json:
        from dynid.export.result_file import result_json

        _print_json(result_json(fit, check))
    else:
        click.echo(fit.summary())
        click.echo(f"\n{check.summary() if check else 'No held-out log was given, so nothing is proven.'}")
        click.echo(f"written: {out}")
    sys.exit(0 if check is None or check.passed else 1)


def _write_identification(fit: Any, check: Any, held_out: Any, out: Path, force: bool) -> None:
    from dynid.export.result_file import write_result
    from dynid.files import write_atomically
    from dynid.report.report import write_report
    from dynid.robot.mjcf_writer import write_mjcf
    from dynid.robot.urdf_writer import write_urdf

    _make_folder(out)
    write_result(fit, out / "result.json", check, force=force)
    source = fit.robot.source
    if source is not None and source.format == "mjcf":
        write_mjcf(fit.identified, out / f"{fit.robot.name}_identified.xml", force=force)
    else:
        write_urdf(fit.identified, out / f"{fit.robot.name}_identified.urdf", force=force)
    write_atomically(out / "summary.txt", fit.summary() + "\n", force=force)
    write_report(fit, out / "report.html", check, held_out, force=force)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise errors.ExportError(
            f"the folder cannot be made: {error.strerror}", path=out, remedy="Choose another with --out."
        ) from error


@contextlib.contextmanager
def _progress(what: str, total: float) -> Iterator[Callable[[float, str], None]]:
    """A progress bar with remaining time, on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, note: bar.update(task, completed=done, description=f"{what}: {note}")


@main.command()
def doctor() -> None:
    """Say what this installation has: versions, the compiler of kernels, optional packages."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from dynid import __version__
    from dynid.kernels import kernel
    from dynid.robot.zoo import puma560

    click.echo(f"dynid {__version__}, Python {platform.python_version()}, {platform.machine()} {platform.system()}")
    for name in ("numpy", "scipy", "llvmlite", "clarabel", "h5py", "pyarrow", "mcap", "mujoco", "matplotlib"):
        try:
            click.echo(f"  {name:12s} {version(name)}")
        except PackageNotFoundError:
            click.echo(f"  {name:12s} not installed")
    made = kernel(puma560(), "inverse_dynamics")
    click.echo(f"kernels run by {made.program.backend}: PUMA 560 inverse dynamics in {made.count}")


@main.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/demo"), show_default=True, help="Folder.")
@click.option("--seed", default=0, show_default=True, help="Of everything random.")
def demo(out: Path, seed: int) -> None:
    """Run the whole job on a built-in arm with planted truth; exit code 1 if the result does not prove itself."""
    from dynid.demo import run_demo

    result = run_demo(out, lambda line: click.echo(f"- {line}"), seed=seed)
    click.echo("")
    click.echo(result.text())
    sys.exit(0 if result.passed else 1)
