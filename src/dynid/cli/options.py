"""What the commands share: types of arguments, options, the class of commands, and reading the robot of ROBOT."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click
from click import argument, option

from dynid import errors

if TYPE_CHECKING:
    from dynid.robot.model import Robot

Function = Callable[..., Any]
"""The function of a command."""
Decorator = Callable[[Function], Function]
"""What `click.option` and `click.argument` return: it adds one parameter to a function."""


# --- types ------------------------------------------------------------------------------------------------------------


class ExistingPath(click.Path):
    """A path that must exist; the error for a missing file proposes the nearest name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        if "\n" in str(value):  # it would look like a line of dynid's own
            raise errors.ArgumentError("the name of a file has several lines", remedy="Rename it.")
        if not (value and path.exists()):  # an empty name, as of a shell variable that is not set, is no folder
            raise errors.LogReadError("there is no such file", path=value, remedy=_near_file(path) or self.remedy())
        return super().convert(value, param, ctx)

    def remedy(self) -> str:
        """Say what to do if no similar name exists."""
        return f"Check the name; the current folder is {Path.cwd()}."


class MapPath(ExistingPath):
    """The file of a channel map, or the name of a built-in one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if not Path(value).exists() and value in _map_names() else super().convert(value, param, ctx)

    def remedy(self) -> str:
        return f"Give the file of a channel map, or a built-in one: {', '.join(_map_names())}."


def _map_names() -> tuple[str, ...]:
    from dynid.logs.channel_map import built_in_maps

    return tuple(built_in_maps())


class LogPath(ExistingPath):
    """The path of a log; the description of a robot is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from dynid.robot.formats import is_robot_file

        path = super().convert(value, param, ctx)
        if is_robot_file(str(value)) or Path(value).suffix.lower() == ".sdf":
            raise errors.ArgumentError(
                f"'{value}' describes a robot where a log is expected",
                remedy="The robot comes first, then the logs: dynid identify arm.urdf run1.csv. To inspect or check a "
                "log, give the robot as an option: dynid inspect run1.csv --robot arm.urdf.",
            )
        return path


class LogOrShare(LogPath):
    """The path of a log, or a share of all logs such as ``30%``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if str(value).endswith("%") else super().convert(value, param, ctx)


class NewFolder(click.Path):
    """A folder to write to.

    An empty name, as of a shell variable that is not set, would be the current folder and is refused.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, unless it is empty."""
        if value == "":
            self.fail("the name of the folder is empty", param, ctx)
        return super().convert(value, param, ctx)


class FiniteRange(click.FloatRange):
    """A range of finite numbers; NaN, which passes the comparisons of click, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value} is not a finite number.", param, ctx)


def _near_file(path: Path) -> str:
    """Write the question for the file of the most similar name; empty text where none is similar."""
    folder = path.parent if path.parent.is_dir() else Path()
    others = {entry.name for entry in folder.iterdir()} - {path.name}
    return "".join(f"Is it {folder / near}?" for near in get_close_matches(path.name, others, n=1))


# --- options ----------------------------------------------------------------------------------------------------------

EXISTING = ExistingPath()
POSITIVE = FiniteRange(min=0.0, min_open=True)


def _list_runs(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Replace each folder of runs by its runs, in commands with a channel map, which may say that files are one run.

    A callback of click, which demands ``param``.
    """
    from dynid.logs.reading import runs_in

    chart = ctx.params.get("channel_map")
    has_map = any(parameter.name == "channel_map" for parameter in ctx.command.params)
    return tuple(str(run) for log in given for run in runs_in(log, chart)) if has_map else given


GATE = option("--check/--no-check", "gate", default=None,
              help="Check every log first, and refuse a log with an error (default: --check).")  # fmt: skip
FORCE = option("--force", is_flag=True, help="Overwrite files in the output folder.")
HOLD = option("--hold", multiple=True, metavar="JOINT[=POSITION]",
              help="Fix a joint of the robot file at a position [rad or m], such as a finger, or all joints of a "
              "pattern, such as 'finger*'; repeatable.")  # fmt: skip
GRAVITY = option("--gravity", metavar="X,Y,Z",
                 help="Gravity in the frame of the root link [m/s^2]; that of the robot file by default.")  # fmt: skip
ROWS = option("--rows", metavar="A:B", help="Use rows A to B - 1 of the log, counted from 0.")
TIME = option("--time", metavar="A:B", help="Use the time from A to B since the start of the log [s].")
TRIM = option("--trim", "trim_s", type=FiniteRange(min=0.0), metavar="SECONDS",
              help="Time left out at both ends of every compared stretch [s]; the filter's settling time by "
              "default.")  # fmt: skip
ENGINE = option("--engine", metavar="NAME",
                help="Where logs are reduced: processes, processes:4, dask, or the address of a Dask cluster "
                "(tcp://HOST:8786); docs/scaling.md says when it pays.")  # fmt: skip
JSON = option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
MAP = option("--map", "channel_map", type=MapPath(), metavar="FILE|NAME", is_eager=True,
             help="Channel map of the logs: a TOML file, which dynid inspect LOG --robot ROBOT proposes, or a built-in "
             "one, such as ur_rtde, libfranka, joint_state, xl330 or lerobot_rad.")  # fmt: skip
LOGS = argument("logs", nargs=-1, required=True, type=LogPath(), callback=_list_runs)
ROBOT: tuple[Decorator, ...] = (argument("robot"), HOLD, GRAVITY)
"""The robot of a command, with the options that change it."""


def output_options(content: str, *, required: bool = False) -> tuple[Decorator, ...]:
    """Make the options --out, --force and --json; ``content`` says what the folder is for."""
    out = option("--out", type=NewFolder(path_type=Path), required=required, help=f"Folder for {content}.")
    return out, FORCE, JSON


OUT = output_options("the results", required=True)


def recipe_options(example: str) -> tuple[Decorator, ...]:
    """Make the options --recipe and --set; ``example`` is a setting for their help."""
    words = f"Change one setting of the recipe, such as {example}; repeatable. docs/recipes.md lists those of identify."
    return (
        option(
            "--recipe", "recipe_file", type=EXISTING, metavar="FILE", help="Read all settings from a recipe (TOML)."
        ),
        option("--set", "settings", multiple=True, metavar="KEY=VALUE", help=words),
    )


# --- commands ---------------------------------------------------------------------------------------------------------


class RecipeCommand(click.Command):
    """A command whose parameters may be settings of a recipe; for an unknown option it proposes a setting."""

    task = ""
    """Full name of the `dynid.workflows` task that the command runs, set by `run_command`; empty if it has none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            word = error.option_name.removeprefix("--").replace("-", "_")
            # --period stands for period_s: the setting with or without its unit
            keys = [key for key in self.recipe_keys() if key == word or key.rpartition("_")[0] == word]
            if not keys:
                raise
            remedy = f"Write --set {keys[0]}=VALUE."
            raise errors.ArgumentError(f"there is no option {error.option_name}", remedy=remedy) from None

    def recipe_keys(self) -> tuple[str, ...]:
        """Names of the settings of the command's recipe; empty where it has none."""
        field = resolve_name(self.task).__dataclass_fields__.get("recipe") if self.task else None
        return tuple(field.default_factory.__dataclass_fields__) if field else ()

    def given(self, args: Sequence[str]) -> dict[str, Any]:
        """Parse the words of a recorded run, to judge them first; returns each given parameter with its texts.

        Nothing is converted, no file is opened.

        Raises:
            click.UsageError: The words name an option that the command does not have.
        """
        context = click.Context(self, info_name=self.name)
        values, _, _ = self.make_parser(context).parse_args(list(args))
        return dict(values)


def command(*parameters: Decorator | Sequence[Decorator], examples: Sequence[str]) -> Callable[[Function], Any]:
    """Make a sub-command with these parameters, one by one or in groups, whose help ends with examples."""

    def make(function: Function) -> click.Command:
        # decorators apply from the last to the first, as they would above a function
        for one in reversed(parameters):
            for add in (one,) if callable(one) else reversed(one):
                function = add(function)
        epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
        return click.command(cls=RecipeCommand, epilog=epilog)(function)

    return make


def is_given(name: str) -> bool:
    """Whether an option of the program as a whole, such as --no-snap, was given."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.find_root().params.get(name))


def refuse_run(out: Path, what: str, ending: str = "files") -> None:
    """Refuse an output folder that is the folder of a run; ``what`` and ``ending`` are words of the message."""
    if (out / "run.json").exists():
        remedy = f"Choose another folder with --out, such as {out.name}_{ending}."
        reason = f"'{out}' is the folder of a run, and {what} would mix with its files"
        raise errors.ArgumentError(reason, remedy=remedy)


# --- robots -----------------------------------------------------------------------------------------------------------


def read_robot(
    name: str, hold: Sequence[str] = (), gravity: str | None = None, *, tell: bool = True, judge: bool = True
) -> Robot:
    """Read a robot from a file, or get a built-in robot by its name.

    Args:
        name: File or name.
        hold: Values of ``--hold``, ``JOINT[=POSITION]``.
        gravity: Value of ``--gravity``, ``X,Y,Z`` [m/s^2].
        tell: Whether a note says that rounded right angles of the file are taken as exact.
        judge: Whether a robot with impossible masses or tensors is refused.
    """
    from dynid.cli.screen import show_finding
    from dynid.identification.log_part import read_gravity
    from dynid.robot import zoo
    from dynid.robot.check import angle_findings
    from dynid.robot.formats import format_of, is_robot_file, joints_in_file
    from dynid.robot.formats import read_robot as read_file
    from dynid.robot.formats.urdf import read_urdf

    file_format = format_of(name)
    held = _held_joints(hold)
    if file_format is None and name in zoo.names():
        if held:
            raise errors.ArgumentError("--hold applies to robot files only", remedy="Omit it for built-in robots.")
        robot = zoo.get(name)
    elif file_format is None and not is_robot_file(name):
        raise _no_robot(name)
    else:
        EXISTING.convert(name, None, None)
        if any(character in key for key in held for character in "*?["):
            held = _matching_joints(joints_in_file(name), held)
        if file_format is not None and file_format.name == "URDF":
            robot = read_urdf(name, hold=held, snap=not is_given("no_snap"))
            for finding in angle_findings(robot) if tell else ():
                show_finding(finding)
        else:
            robot = read_file(name, hold=held)
        if judge:
            _refuse_unphysical(robot, name)
    return robot if gravity is None else robot.with_gravity(read_gravity(gravity))


def _held_joints(words: Sequence[str]) -> dict[str, float]:
    """Read the values of ``--hold``; returns name or pattern -> position [rad or m], 0 where none is given."""
    try:
        held = {name: float(value or 0.0) for name, _, value in (word.partition("=") for word in words)}
        if odd := [name for name, value in held.items() if not math.isfinite(value)]:
            raise ValueError(f"the position of {odd[0]} is not a finite number")
        return held
    except ValueError as error:
        raise errors.ArgumentError(f"--hold: {error}", remedy="Write --hold JOINT or --hold JOINT=0.02.") from error


def _matching_joints(joints: Sequence[str], held: dict[str, float]) -> dict[str, float]:
    """Replace patterns such as ``finger*`` by the joints that match; returns joint -> position [rad or m]."""
    found: dict[str, float] = {}
    for pattern, position in held.items():
        matching = [joint for joint in joints if joint == pattern or fnmatchcase(joint, pattern)]
        if not matching:
            remedy = f"The joints are: {', '.join(joints)}."
            raise errors.ArgumentError(f"--hold: no joint matches '{pattern}'", remedy=remedy)
        found |= dict.fromkeys(matching, position)
    return found


def _refuse_unphysical(robot: Robot, name: str) -> None:
    """Refuse a robot with a mass or a tensor that no body has, unless --allow-unphysical is given."""
    from dynid.cli.screen import show_finding
    from dynid.robot.check import impossible_inertias

    faults, harmless = impossible_inertias(robot)
    for finding in harmless:
        # an impossible inertia that no torque depends on (of a base link, say) is only a note
        message = f"{finding.message}; no torque depends on it, and it is left as it is"
        show_finding(replace(finding, severity="note", message=message))
    if faults and not is_given("allow_unphysical"):
        remedy = "Mend the file (dynid check lists all faults), or use it as it is with --allow-unphysical."
        raise errors.DescriptionError(faults[0].message, path=name, place=faults[0].where, remedy=remedy)


def _no_robot(name: str) -> errors.ArgumentError:
    """Make the error for a name that is neither a robot file nor a built-in robot."""
    from dynid.robot import zoo
    from dynid.robot.formats import FORMATS

    endings = ", ".join(ending for row in FORMATS for ending in row.endings)
    if Path(name).is_file():
        remedy = f"Give a robot file ({endings}); it comes first, then the logs: dynid identify arm.urdf run1.csv."
        return errors.ArgumentError(f"'{name}' is no description of a robot that dynid reads", remedy=remedy)
    return errors.ArgumentError(
        f"'{name}' is neither a robot file ({endings}) nor a built-in robot",
        remedy=errors.did_you_mean(name, zoo.names())
        or _near_file(Path(name))
        or f"Built-in robots: {', '.join(zoo.names())}.",
    )
