"""From the words of a command to its run: the recipe, the run folder, and what the screen shows of the result."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from dynid.cli.options import is_given
from dynid.cli.screen import Screen, print_json, print_screen, progress, show_finding
from dynid.errors import DynidError

if TYPE_CHECKING:
    from dynid.findings import Finding
    from dynid.runs.protocol import Outcome, Task
    from dynid.runs.run_folder import Origin, RunRequest
    from dynid.settings import TomlSettings

Settings = TypeVar("Settings", bound="TomlSettings")
Result = TypeVar("Result", bound="Outcome")
NOT_SETTINGS = ("out", "force", "as_json")
"""Parameters of a command that do not change its result."""


def execute(task: Task[Result], title: str, show: Callable[[Result], Screen]) -> NoReturn:
    """Run a task as the present command asks for it, show its result, and end with its exit code.

    Args:
        task: The verb with its arguments.
        title: What the progress bar says.
        show: Makes the screen of the result.
    """
    from dynid.runs.protocol import run

    params = click.get_current_context().params
    told: list[Finding] = []
    try:
        with progress(title) as advance:
            request = run_request(params["out"], params["force"], task.recipe)
            result = run(task, request, progress=advance, notice=told.append)
    except DynidError:
        for finding in told:
            show_finding(finding)
        raise
    if params["as_json"]:
        for finding in told:
            show_finding(finding)
        print_json(result.to_json())
    else:
        print_screen(show(result), told, params["out"], verbose=is_given("verbose"))
    sys.exit(result.exit_code)


def read_recipe(kind: type[Settings], **values: Any) -> Settings:
    """Read the recipe of the present command: its file, changed by --set and by the options that are settings.

    Args:
        kind: Type of the recipe.
        **values: Settings that have an option of their own; None where the option is not used.
    """
    params = click.get_current_context().params
    chosen = kind() if params.get("recipe_file") is None else kind.read(params["recipe_file"])
    return chosen.with_words(params.get("settings", ()), **values)


def run_request(out: Path | None, force: bool, recipe: TomlSettings | None) -> RunRequest | None:
    """Describe the run folder of the present command, which may have no recipe; None without a folder."""
    from dynid.runs.run_folder import RunRequest

    return None if out is None else RunRequest(path=out, force=force, origin=_origin(recipe))


def _origin(recipe: TomlSettings | None) -> Origin:
    """Describe the present command with its settings and its input files."""
    from dynid.runs.run_folder import Origin

    ctx = click.get_current_context()
    given = [(p, ctx.params[p.name]) for p in ctx.command.params if p.name in ctx.params and p.name not in NOT_SETTINGS]
    inputs = [path for p, value in given if p.name != "store" for path in _paths(value)]
    place = ["--out", str(ctx.params["out"])]
    options = {str(p.name): _plain(value) for p, value in given if p.name not in ("settings", "recipe_file")}
    return Origin(
        verb=str(ctx.info_name),
        command=shlex.join(["dynid", str(ctx.info_name), *_arguments(given, str), *place]),
        arguments=[
            *(["--no-snap"] if is_given("no_snap") else []),
            *(["--allow-unphysical"] if is_given("allow_unphysical") else []),
            *_arguments(given, _absolute),
        ],
        options=options if recipe is None else {**options, **recipe.to_dict()},
        inputs=inputs if recipe is None else [*inputs, *recipe.input_files()],
    )


def _arguments(given: Sequence[tuple[click.Parameter, Any]], text: Callable[[Any], str]) -> list[str]:
    """Write the words of the command line that give these values; options first, so that many logs can follow."""
    words: list[str] = []
    for parameter, value in sorted(given, key=lambda pair: isinstance(pair[0], click.Argument)):
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        if isinstance(parameter, click.Argument):
            words += [text(item) for item in values]
        elif isinstance(value, bool):
            words += [parameter.opts[0]] if value else list(parameter.secondary_opts[:1])
        else:
            words += [word for item in values for word in (parameter.opts[0], text(item))]
    return words


def _paths(value: Any) -> list[Path]:
    """The files and folders among the values of a parameter."""
    values = value if isinstance(value, tuple) else (value,)
    return [Path(item).absolute() for item in values if isinstance(item, str | Path) and Path(item).exists()]


def _absolute(value: Any) -> str:
    """Write a value, or KEY=FILE, so that it has the same meaning in another folder."""
    text = str(value)
    key, equals, file = text.partition("=")
    if isinstance(value, str | Path) and Path(text).exists():
        return str(Path(text).absolute())
    return f"{key}={Path(file).absolute()}" if equals and file and Path(file).exists() else text


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _absolute(value) if isinstance(value, str | Path) else value
