"""Commands that run a task of `dynid.workflows`: from their parameters to the task, its run folder, and the screen.

A task is a dataclass; its fields are parameters of the command of the same name. Further parameters are settings of the
task's recipe.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NoReturn

import click

from dynid.cli.options import Decorator, RecipeCommand, command, is_given, read_robot
from dynid.cli.screen import Screen, print_json, print_screen, progress, show_finding
from dynid.errors import DynidError

if TYPE_CHECKING:
    from dynid.findings import Finding
    from dynid.workflows.run_folder import RunRequest

NOT_SETTINGS = ("out", "force", "as_json")
"""Parameters of a command that do not change its result, and are left out of the recorded command line."""


def run_command(
    task: str, title: str, *parameters: Decorator | Sequence[Decorator], examples: Sequence[str]
) -> Callable[[Callable[[Any], Screen]], Any]:
    """Make a command that runs a task: its parameters are fields of the task, or settings of its recipe.

    The decorated function makes the screen of the result, and its docstring is the help of the command.

    Args:
        task: Name of the task of `dynid.workflows`, which is loaded when the command runs.
        title: Text beside the progress bar.
        parameters: The parameters.
        examples: Lines at the end of the help.
    """

    def make(show: Callable[[Any], Screen]) -> RecipeCommand:
        def run_it(**given: Any) -> None:
            execute(task, title, show, given)

        run_it.__name__, run_it.__doc__ = show.__name__, show.__doc__
        made: RecipeCommand = command(*parameters, examples=examples)(run_it)
        made.task = task
        return made

    return make


def execute(task: str, title: str, show: Callable[[Any], Screen], given: Mapping[str, Any]) -> NoReturn:
    """Run the task of the present command, show its result, and end the program with its exit code.

    Args:
        task: Name of the task of `dynid.workflows`.
        title: Text beside the progress bar.
        show: Makes the screen of the result.
        given: Parameters of the command by name.
    """
    from dynid.workflows.protocol import run

    findings: list[Finding] = []  # those of the run, gathered because lines would break the progress bar
    try:
        made = make_task(resolve_name(task).chosen(given), given)
        with progress(title) as advance:
            result = run(made, _request(given), progress=advance, notice=findings.append)
    except DynidError:
        for finding in findings:
            show_finding(finding)
        raise
    if given["as_json"]:
        for finding in findings:
            show_finding(finding)
        print_json(result.to_json())
    else:
        print_screen(show(result), findings, given["out"], verbose=is_given("verbose"))
    sys.exit(result.exit_code)


def make_task(kind: Any, given: Mapping[str, Any]) -> Any:
    """Make a task from the parameters of its command; those that were not given keep their defaults.

    Args:
        kind: Class of the task.
        given: Parameters by name; those that are no fields of the task are settings of its recipe.
    """
    fields = kind.__dataclass_fields__
    values = {name: given[name] for name in fields if given.get(name) is not None}
    if "robot" in fields:
        values["robot"] = read_robot(given["robot"], given["hold"], given["gravity"])
    if "recipe" in fields:
        recipe = fields["recipe"].default_factory
        start = recipe() if given["recipe_file"] is None else recipe.read(given["recipe_file"])
        settings = {name: given[name] for name in recipe.__dataclass_fields__ if name in given and name not in fields}
        values["recipe"] = start.with_words(given["settings"], **settings)
    return kind(**values)


def _request(given: Mapping[str, Any]) -> RunRequest | None:
    """Describe the run folder of the present command, with the arguments that repeat it; None without a folder."""
    from dynid.workflows.run_folder import RunRequest

    if given["out"] is None:
        return None
    ctx = click.get_current_context()
    values = [
        (parameter, ctx.params[parameter.name])
        for parameter in ctx.command.params
        if parameter.name in ctx.params and parameter.name not in NOT_SETTINGS
    ]
    flags = [f"--{name.replace('_', '-')}" for name in ("no_snap", "allow_unphysical") if is_given(name)]
    robot = [Path(given["robot"]).absolute()] if "robot" in given and Path(given["robot"]).exists() else []
    recipe = [Path(given["recipe_file"]).absolute()] if given.get("recipe_file") else []
    return RunRequest(
        path=given["out"],
        force=given["force"],
        command=shlex.join(["dynid", str(ctx.info_name), *_arguments(values, str), "--out", str(given["out"])]),
        arguments=[*flags, *_arguments(values, _absolute)],
        options={name: given[name] for name in ("robot", "hold", "gravity") if name in given},
        inputs=[*robot, *recipe],
    )


def _arguments(given: Sequence[tuple[click.Parameter, Any]], text: Callable[[Any], str]) -> list[str]:
    """Write the words of the command line that give these values; options first, so that many logs can follow.

    Args:
        given: Each parameter with its value.
        text: Writes one value.
    """
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


def _absolute(value: Any) -> str:
    """Write a value, or KEY=FILE, so that it has the same meaning in another folder."""
    text = str(value)
    key, equals, file = text.partition("=")
    if isinstance(value, str | Path) and Path(text).exists():
        return str(Path(text).absolute())
    return f"{key}={Path(file).absolute()}" if equals and file and Path(file).exists() else text
