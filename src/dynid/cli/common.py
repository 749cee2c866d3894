"""What the verbs of the command line share: options, robots by name, files that must exist, JSON."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid import errors

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from dynid.robot.model import Robot

__all__ = [
    "DELAY",
    "EXISTING",
    "FORCE",
    "HOLD",
    "JSON",
    "MAP",
    "OUT",
    "POSITIVE",
    "PROFILE",
    "FiniteRange",
    "held_joints",
    "is_robot",
    "load_robot",
    "logs_argument",
    "make_folder",
    "nearest",
    "print_json",
    "robot_argument",
    "say_verdict",
    "verb",
    "with_usual_terms",
]


class ExistingPath(click.Path):
    """A path that must be there; a missing one is bad data, with the nearest name that is there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        if not path.exists():
            folder = path.parent if path.parent.is_dir() else Path()
            near = nearest(path.name, (entry.name for entry in folder.iterdir()))
            remedy = f"Is it {folder / near}?" if near else f"Check the name; the current folder is {Path.cwd()}."
            raise errors.LogReadError("there is no such file", path=path, remedy=remedy)
        return super().convert(value, param, ctx)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like a given one, if any is."""
    import difflib

    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return found[0] if found else None


class FiniteRange(click.FloatRange):
    """A range without infinity and without NaN, which would pass any comparison."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value} is not a finite number.", param, ctx)


class Delay(FiniteRange):
    """Seconds by which torques are late, or the word auto."""

    name = "delay"

    def _describe_range(self) -> str:
        """Nothing: any time will do."""
        return ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "auto":
            return value
        try:
            float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a time nor auto. Give seconds, such as 0.012, or auto.", param, ctx)
        return super().convert(value, param, ctx)


EXISTING = ExistingPath()
POSITIVE = FiniteRange(min=0.0, min_open=True)
FORCE = click.option("--force", is_flag=True, help="Overwrite what stands in the output folder.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
MAP = click.option("--map", "channel_map", type=EXISTING, help="Channel map (TOML); see dynid inspect.")
OUT = click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the results.")
PROFILE = click.option("--profile", help="Ready channel map: ur_rtde, libfranka, one_number_per_line, joint_state.")
DELAY = click.option("--delay", type=Delay(), default=0.0, show_default=True, metavar="SECONDS|auto",
                      help="How late torques are stamped; auto estimates it from each log.")  # fmt: skip
HOLD = click.option("--hold", multiple=True, metavar="JOINT[=POSITION]",
                     help="Turn a joint of the file into a fixed one (fingers, mimic joints); repeatable.")  # fmt: skip


def verb(*examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A sub-command whose help ends with examples."""
    return click.command(epilog="\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples))


def logs_argument(command: Callable[..., None]) -> Callable[..., None]:
    """One or more log files that exist."""
    return click.argument("logs", nargs=-1, required=True, type=EXISTING)(command)


def is_robot(name: str) -> bool:
    """Whether a name is a robot's: a description file by its ending, or a built-in robot."""
    from dynid.robot import zoo
    from dynid.robot.formats import is_robot_file

    return is_robot_file(name) or name in zoo.names()


def _complete_robot(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Built-in robots, and files by the shell's own rules."""
    from click.shell_completion import CompletionItem

    from dynid.robot import zoo

    names = [CompletionItem(name) for name in zoo.names() if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def robot_argument(command: Callable[..., None]) -> Callable[..., None]:
    """A robot by file or name, with joints to hold: the command gets the loaded robot."""

    @functools.wraps(command)
    def loaded(*args: Any, robot: str, hold: tuple[str, ...], **options: Any) -> None:
        command(*args, robot=load_robot(robot, held_joints(hold)), **options)

    return click.argument("robot", shell_complete=_complete_robot)(HOLD(loaded))


def held_joints(pairs: tuple[str, ...]) -> dict[str, float]:
    """Joint -> position, from the words of ``--hold``."""
    try:
        held = {name: float(value or 0.0) for name, _, value in (pair.partition("=") for pair in pairs)}
        if odd := [name for name, value in held.items() if not math.isfinite(value)]:
            raise ValueError(f"the position of {odd[0]} is not a finite number")
        return held
    except ValueError as error:
        raise errors.ArgumentError(f"--hold: {error}", remedy="Write --hold JOINT or --hold JOINT=0.02.") from error


def load_robot(name: str, held: dict[str, float]) -> Robot:
    """A robot from a file, by its ending, or from the zoo, by its name."""
    from dynid.robot import zoo
    from dynid.robot.formats import FORMATS, format_of, is_robot_file, read_robot

    if format_of(name) is None and name in zoo.names():
        if held:
            raise errors.ArgumentError("--hold is for robots from files", remedy="Leave it out for built-in robots.")
        return zoo.get(name)
    if format_of(name) is None and not is_robot_file(name):
        endings = ", ".join(ending for row in FORMATS for ending in row.endings)
        near = nearest(name, zoo.names())
        raise errors.ArgumentError(
            f"'{name}' is neither a robot file ({endings}) nor a built-in robot",
            remedy=f"{f'Did you mean {near}? ' if near else ''}Built-in robots: {', '.join(zoo.names())}.",
        )
    return read_robot(name, locked=held)


def print_json(value: object) -> None:
    """Print a value as JSON; numbers that are not finite become null."""
    click.echo(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say_verdict(text: str, *, good: bool) -> None:
    """Print with the verdict's colour, on a terminal only."""
    head, _, rest = text.partition("\n")
    click.echo(click.style(head, fg="green" if good else "red", bold=True) + (f"\n{rest}" if rest else ""))


def make_folder(out: Path) -> None:
    """Make the folder for results."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise errors.ExportError(
            f"the folder cannot be made: {error.strerror}", path=out, remedy="Choose another with --out."
        ) from error


def with_usual_terms(robot: Robot) -> Robot:
    """The robot with rotor inertia, viscous and Coulomb friction and offset in every joint, its own values kept."""
    from dynid.terms import usual_terms

    for joint in robot.moving_joints:
        own = {type(term): term for term in joint.terms}
        terms = [own.pop(type(term), term) for term in usual_terms()]
        robot = robot.with_terms(*terms, *own.values(), joints=[joint.name])
    return robot
