"""What the verbs of the command line share: errors to exit codes, robots by name, options, progress."""

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

__all__ = [
    "ErrorGroup",
    "FORCE",
    "HOLD",
    "JSON",
    "MAP",
    "OUT",
    "PROFILE",
    "held_joints",
    "is_robot",
    "load_robot",
    "make_folder",
    "print_json",
    "progress",
    "robot_argument",
    "with_usual_joint_models",
]

_EXIT_CODES: list[tuple[type[errors.DynidError], int]] = [
    (errors.ArgumentError, 2),
    (errors.DescriptionError, 3),
    (errors.DataError, 3),
    (errors.IdentifiabilityError, 4),
    (errors.DynidError, 5),
]


class ErrorGroup(click.Group):
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


FORCE = click.option("--force", is_flag=True, help="Overwrite what stands in the output folder.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
MAP = click.option("--map", "channel_map", type=click.Path(exists=True, dir_okay=False), help="Channel map (TOML).")
OUT = click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the results.")
PROFILE = click.option("--profile", help="Ready channel map: ur_rtde, libfranka, one_number_per_line, joint_state.")


def is_robot(name: str) -> bool:
    """Whether a name is a robot's: a description file by its ending, or a built-in robot."""
    from dynid.robot import zoo

    return Path(name).suffix.lower() in (".urdf", ".xml", ".mjcf") or name in zoo.names()


HOLD = click.option("--hold", multiple=True, metavar="JOINT[=POSITION]",
                     help="Turn a joint of the file into a fixed one (fingers, mimic joints); repeatable.")  # fmt: skip


def robot_argument(command: Callable[..., None]) -> Callable[..., None]:
    """A robot by file or name, with joints to hold: the command gets the loaded robot."""

    @functools.wraps(command)
    def loaded(*args: Any, robot: str, hold: tuple[str, ...], **options: Any) -> None:
        command(*args, robot=load_robot(robot, held_joints(hold)), **options)

    return click.argument("robot")(HOLD(loaded))


def held_joints(pairs: tuple[str, ...]) -> dict[str, float]:
    """Joint -> position, from the words of ``--hold``."""
    try:
        return {name: float(value or 0.0) for name, _, value in (pair.partition("=") for pair in pairs)}
    except ValueError as error:
        raise errors.ArgumentError(f"--hold: {error}", remedy="Write --hold JOINT or --hold JOINT=0.02.") from error


def load_robot(name: str, held: dict[str, float]) -> Robot:
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


def print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2))


def make_folder(out: Path) -> None:
    """Make the folder for results."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise errors.ExportError(
            f"the folder cannot be made: {error.strerror}", path=out, remedy="Choose another with --out."
        ) from error


@contextlib.contextmanager
def progress(what: str, total: float) -> Iterator[Callable[[float, str], None]]:
    """A progress bar with remaining time, on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, note: bar.update(task, completed=done, description=f"{what}: {note}")


def with_usual_joint_models(robot: Robot) -> Robot:
    """The robot with rotor inertia, viscous and Coulomb friction and offset in every joint, its own values kept."""
    from dynid.robot.joint_models import Coulomb, Offset, RotorInertia, Viscous

    usual = (RotorInertia(), Viscous(), Coulomb(), Offset())
    for joint in robot.moving_joints:
        own = {type(model): model for model in joint.models}
        models = [own.pop(type(model), model) for model in usual]
        robot = robot.with_joint_models(*models, *own.values(), joints=[joint.name])
    return robot
