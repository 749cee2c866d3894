"""Arguments and options that several commands share: robots, logs, channel maps, recipes, output folders."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid import errors

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from dynid.robot.model import Robot


Function = Callable[..., None]

SIMILAR = 0.7
"""Similarity from which on a known name is proposed for an unknown one, 0 to 1 (convention)."""


SIMILAR_FILE = 0.6
"""As `SIMILAR`, for the names of files without their endings (convention)."""


class ExistingPath(click.Path):
    """A path that must exist; the error for a missing file proposes the nearest name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        if not path.exists():
            folder = path.parent if path.parent.is_dir() else Path()
            names = {entry.stem: entry.name for entry in folder.iterdir() if entry.suffix == path.suffix}
            near = names.get(nearest(path.stem, names, SIMILAR_FILE) or "") or nearest_ending(path, folder)
            remedy = f"Is it {folder / near}?" if near else self.remedy()
            raise errors.LogReadError("there is no such file", path=path, remedy=remedy)
        return super().convert(value, param, ctx)

    def remedy(self) -> str:
        """Remedy if no similar name exists."""
        return f"Check the name; the current folder is {Path.cwd()}."


class MapPath(ExistingPath):
    """The file of a channel map, or the name of a built-in one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from dynid.logs.channel_map import map_names, profile_names

        known = not Path(value).exists() and value in (*profile_names(), *map_names())
        return value if known else super().convert(value, param, ctx)

    def remedy(self) -> str:
        from dynid.logs.channel_map import map_names, profile_names

        return f"Give the file of a channel map, or a built-in one: {', '.join((*profile_names(), *map_names()))}."


def nearest(name: str, known: Iterable[str], similar: float = SIMILAR) -> str | None:
    """Find the known name that is most similar to a given one, if any is similar."""
    import difflib

    found = difflib.get_close_matches(name, list(known), n=1, cutoff=similar)
    return found[0] if found else None


def nearest_ending(path: Path, folder: Path) -> str | None:
    """Find a file of the same name with another ending."""
    return next((entry.name for entry in sorted(folder.iterdir()) if entry.stem == path.stem), None)


class FiniteRange(click.FloatRange):
    """A range of finite numbers; NaN would pass every comparison."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value} is not a finite number.", param, ctx)

    def _describe_range(self) -> str:
        """Text of the range for the help; empty without bounds."""
        return "" if self.min is None and self.max is None else super()._describe_range()


class Delay(FiniteRange):
    """A time in seconds, or the word auto."""

    name = "delay"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "auto":
            return value
        try:
            float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a time nor auto. Give seconds, such as 0.012, or auto.", param, ctx)
        from dynid.processing.process import check_delay

        number = super().convert(value, param, ctx)
        check_delay("--delay", number)
        return number


EXISTING = ExistingPath()
POSITIVE = FiniteRange(min=0.0, min_open=True)
GATE = click.option("--check/--no-check", "gate", default=None,
                     help="Check every log first, and refuse a log with an error (default: --check).")  # fmt: skip
DELAY = click.option("--delay", type=Delay(), default=0.0, show_default=True, metavar="SECONDS|auto",
                     help="Delay of the torques relative to the positions [s]; auto estimates it "
                     "from the log.")  # fmt: skip
FORCE = click.option("--force", is_flag=True, help="Overwrite files in the output folder.")
HOLD = click.option("--hold", multiple=True, metavar="JOINT[=POSITION]",
                    help="Fix a joint of the robot file at a position [rad or m], such as a finger, or all joints of a "
                    "pattern, such as 'finger*'; repeatable.")  # fmt: skip
GRAVITY = click.option("--gravity", metavar="X,Y,Z",
                       help="Gravity in the frame of the root link [m/s^2]; that of the robot file "
                       "by default.")  # fmt: skip
ROWS = click.option("--rows", metavar="A:B", help="Use rows A to B - 1 of the log, counted from 0.")
TIME = click.option("--time", metavar="A:B", help="Use the time from A to B since the start of the log [s].")
TRIM = click.option("--trim", "trim_s", type=click.FloatRange(min=0.0), metavar="SECONDS",
                    help="Time left out at both ends of every compared stretch [s]; the filter's settling time by "
                    "default.")  # fmt: skip
ENGINE = click.option("--engine", metavar="NAME",
                      help="Where logs are reduced: processes, processes:4, dask, or the address of a Dask cluster "
                      "(tcp://HOST:8786); docs/scaling.md says when it pays.")  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
MAP_HELP = (
    "Channel map of the {}: a TOML file (see dynid inspect), or a built-in one: ur_rtde, libfranka, "
    "one_number_per_line, joint_state."
)
MAP = click.option("--map", "channel_map", type=MapPath(), metavar="FILE|NAME", help=MAP_HELP.format("logs"))
MAP_OF_LOG = click.option("--map", "channel_map", type=MapPath(), metavar="FILE|NAME", help=MAP_HELP.format("log"))


class NewFolder(click.Path):
    """A folder to write to; an empty name, as of a variable that is not set, would be the present folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; an empty one is refused."""
        if value == "":
            self.fail("the name of the folder is empty", param, ctx)
        return super().convert(value, param, ctx)


OUT = click.option("--out", type=NewFolder(path_type=Path), required=True, help="Folder for the results.")


def output_options(content: str, *, required: bool = False) -> Callable[[Function], Function]:
    """Add --out, --force and --json; ``content`` says what the folder is for."""
    out = click.option("--out", type=NewFolder(path_type=Path), required=required, help=f"Folder for {content}.")
    return lambda function: out(FORCE(JSON(function)))


RECIPE = click.option("--recipe", "recipe_file", type=EXISTING, metavar="FILE",
                      help="Read all settings from a recipe (TOML).")  # fmt: skip


RECIPES = {
    "identify": "dynid.links.recipe.Recipe",
    "validate": "dynid.links.recipe.Recipe",
    "fleet": "dynid.links.recipe.Recipe",
    "load": "dynid.runs.load_run.LoadRecipe",
    "excite": "dynid.runs.plan_run.PlanRecipe",
}
"""Command -> the class of its recipe, loaded only when an unknown option may be one of its settings."""


def setting_for(command_name: str, option: str) -> str | None:
    """What to write in place of an unknown option: a setting of the command's recipe."""
    keys = recipe_keys(command_name)
    word = option.removeprefix("--").replace("-", "_")
    found = [key for key in keys if key == word or key.rpartition("_")[0] == word]
    return f"--set {found[0]}=VALUE" if found else None


def recipe_keys(command_name: str) -> tuple[str, ...]:
    """Settings of a command's recipe; empty where it has none."""
    if command_name not in RECIPES:
        return ()
    module, _, kind = RECIPES[command_name].rpartition(".")
    return tuple(getattr(importlib.import_module(module), kind).__dataclass_fields__)


class RecipeCommand(click.Command):
    """A command that proposes a setting of its recipe for an option that it does not have."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            meant = setting_for(str(ctx.info_name), error.option_name)
            if meant is None:
                raise
            raise errors.ArgumentError(f"there is no option {error.option_name}", remedy=f"Write {meant}.") from None

    def given(self, args: Sequence[str]) -> dict[str, Any]:
        """Parameter -> its text, or texts, as the words give it; nothing is converted and no file is opened.

        Raises:
            click.UsageError: The words name an option that the command does not have.
        """
        context = click.Context(self, info_name=self.name)
        return dict(self.make_parser(context).parse_args(list(args))[0])


def command(*examples: str) -> Callable[[Function], click.Command]:
    """Make a sub-command whose help ends with examples."""
    return click.command(
        cls=RecipeCommand, epilog="\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
    )


class LogPath(ExistingPath):
    """The path of a log; the description of a robot is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        refuse_robot(str(value), verb=(ctx and ctx.info_name) or "identify")
        return path


def refuse_robot(name: str, verb: str = "identify") -> None:
    """Refuse the file of a robot where a log is expected."""
    from dynid.robot.formats import is_robot_file

    if Path(name).suffix.lower() == ".sdf":
        raise _no_robot(name)
    if is_robot_file(name):
        raise errors.ArgumentError(
            f"'{name}' describes a robot where a log is expected",
            remedy="Inspect wants a log, and the robot as an option: dynid inspect run1.csv --robot arm.urdf."
            if verb == "inspect"
            else "The robot comes first, then the logs: dynid identify arm.urdf run1.csv.",
        )


def logs_argument(function: Function, required: bool = True) -> Function:
    """Add the argument LOGS: one or more logs; a folder of runs stands for its runs where there is a channel map."""

    @functools.wraps(function)
    def with_runs(*args: Any, logs: tuple[str, ...], **options: Any) -> None:
        from dynid.logs.reading import runs_in

        known = "channel_map" in options
        runs = [str(run) for log in logs for run in runs_in(log, options["channel_map"])] if known else logs
        function(*args, logs=tuple(runs), **options)

    return click.argument("logs", nargs=-1, required=required, type=LogPath())(with_runs)


def recipe_options(example: str, *, page: str | None = None) -> Callable[[Function], Function]:
    """Add the options --recipe and --set.

    Args:
        example: A setting for the help of --set.
        page: The page that lists all keys.
    """
    keys = "" if page is None else f" {page} lists the keys."
    change = click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
                          help=f"Change one setting of the recipe, such as {example}; repeatable.{keys}")  # fmt: skip
    return lambda function: RECIPE(change(function))


def is_robot(name: str) -> bool:
    """Whether a name is that of a robot: a description file by its ending, or a built-in robot."""
    from dynid.robot.formats import is_robot_file

    return is_robot_file(name) or _is_built_in(name)


def _is_built_in(name: str) -> bool:
    if "/" in name:
        return False  # a path; without a look at the robots
    from dynid.robot import zoo

    return name in zoo.names()


def _complete_robot(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of built-in robots, and files by the shell's own rules."""
    from click.shell_completion import CompletionItem

    from dynid.robot import zoo

    names = [CompletionItem(name) for name in zoo.names() if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def robot_argument(function: Function) -> Function:
    """Add the argument ROBOT and the option --hold; the command gets the robot that was read."""

    @functools.wraps(function)
    def with_robot(*args: Any, robot: str, hold: tuple[str, ...], **options: Any) -> None:
        function(*args, robot=read_robot(robot, held_joints(hold)), **options)

    return click.argument("robot", shell_complete=_complete_robot)(HOLD(with_robot))


def place_robot(robot: Robot, gravity: str | None) -> Robot:
    """The robot under the gravity of ``--gravity``, if it is given."""
    from dynid.links.log_part import read_gravity

    return robot if gravity is None else robot.with_gravity(read_gravity(gravity))


def held_joints(pairs: tuple[str, ...]) -> dict[str, float]:
    """Positions of held joints by name, from the words of ``--hold``."""
    try:
        held = {name: float(value or 0.0) for name, _, value in (pair.partition("=") for pair in pairs)}
        if odd := [name for name, value in held.items() if not math.isfinite(value)]:
            raise ValueError(f"the position of {odd[0]} is not a finite number")
        return held
    except ValueError as error:
        raise errors.ArgumentError(f"--hold: {error}", remedy="Write --hold JOINT or --hold JOINT=0.02.") from error


def read_robot(name: str, held: dict[str, float], *, tell: bool = True, judge: bool = True) -> Robot:
    """Read a robot from a file, or get a built-in robot by its name.

    Args:
        name: File or name.
        held: Positions of held joints; the keys may be patterns of joint names.
        tell: Whether a note says that rounded right angles of the file are taken as exact.
        judge: Whether a robot with impossible masses or tensors is refused.
    """
    from dynid.robot.formats import format_of, is_robot_file, joints_in_file
    from dynid.robot.formats import read_robot as read_file

    if format_of(name) is None and _is_built_in(name):
        from dynid.robot import zoo

        if held:
            raise errors.ArgumentError("--hold applies to robot files only", remedy="Omit it for built-in robots.")
        return zoo.get(name)
    if format_of(name) is None and not is_robot_file(name):
        raise _no_robot(name)
    if any(character in key for key in held for character in "*?["):
        held = _matching_joints(joints_in_file(name), held)
    found = format_of(name)
    is_urdf = found is not None and found.name == "URDF"
    robot = _read_urdf(name, held, tell) if is_urdf else read_file(name, hold=held)
    if judge:
        _refuse_unphysical(robot, name)
    return robot


def _refuse_unphysical(robot: Robot, name: str) -> None:
    """Refuse a robot with a mass or a tensor that no body has, unless --allow-unphysical is given."""
    from dynid.cli.screen import show_finding
    from dynid.robot.check import impossible_inertias

    faults, harmless = impossible_inertias(robot)
    for finding in harmless:
        message = f"{finding.message}; no torque depends on it, and it is left as it is"
        show_finding(replace(finding, severity="note", message=message))
    if faults and not is_given("allow_unphysical"):
        raise errors.DescriptionError(
            faults[0].message,
            path=name,
            place=faults[0].where,
            remedy="Mend the file (dynid check lists all faults), or use it as it is with --allow-unphysical.",
        )


def _read_urdf(name: str, held: dict[str, float], tell: bool) -> Robot:
    """Read a URDF; rounded right angles are taken as exact, and a note says so, unless --no-snap is given."""
    from dynid.cli.screen import show_finding
    from dynid.robot.check import angle_findings
    from dynid.robot.formats.urdf import read_urdf

    robot = read_urdf(name, hold=held, snap=not is_given("no_snap"))
    for finding in angle_findings(robot) if tell else ():
        show_finding(finding)
    return robot


def is_given(name: str) -> bool:
    """Whether an option of the whole program was given."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.find_root().params.get(name))


def _matching_joints(joints: Sequence[str], held: dict[str, float]) -> dict[str, float]:
    """Positions of held joints by name, from names and patterns."""
    from fnmatch import fnmatchcase

    found: dict[str, float] = {}
    for pattern, position in held.items():
        matching = [joint for joint in joints if joint == pattern or fnmatchcase(joint, pattern)]
        if not matching:
            raise errors.ArgumentError(
                f"--hold: no joint matches '{pattern}'", remedy=f"The joints are: {', '.join(joints)}."
            )
        found |= dict.fromkeys(matching, position)
    return found


def _no_robot(name: str) -> errors.ArgumentError:
    """What is wrong with a name that is no robot."""
    from dynid.robot import zoo
    from dynid.robot.formats import FORMATS

    ending = Path(name).suffix.lower()
    if ending == ".sdf":
        return errors.ArgumentError(
            f"'{name}' is an SDF file, which dynid does not read", remedy="Give the URDF or MJCF of the same robot."
        )
    if ending in (".json", ".yaml", ".yml", ".usd", ".usda"):
        return errors.ArgumentError(
            f"'{name}' is no description of a robot that dynid reads", remedy="Give a URDF or MJCF file."
        )
    if Path(name).is_file():
        return errors.ArgumentError(
            f"'{name}' seems to be a log where a robot is expected",
            remedy="The robot comes first, then the logs: dynid identify arm.urdf run1.csv.",
        )
    endings = ", ".join(ending for row in FORMATS for ending in row.endings)
    near = nearest(name, zoo.names())
    return errors.ArgumentError(
        f"'{name}' is neither a robot file ({endings}) nor a built-in robot",
        remedy=f"{f'Did you mean {near}? ' if near else ''}Built-in robots: {', '.join(zoo.names())}.",
    )
