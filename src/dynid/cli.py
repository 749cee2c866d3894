"""The command line: one sub-command per verb. The only file that prints or exits.

Exit codes: 0 good, 1 the verdict failed, 2 wrong usage, 3 bad robot description or data, 4 not identifiable, 5 no
answer found or nothing could be written, 130 interrupted. Heavy imports happen inside the verbs, so that
``dynid --help`` is instant.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
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
