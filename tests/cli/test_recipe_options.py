"""Options of the command line: few for each command, each with a help sentence, and the recipe files they lead to."""

from __future__ import annotations

import inspect
from pathlib import Path

import click
import pytest

import dynid
from dynid.cli import main
from dynid.errors import ArgumentError
from dynid.workflows.load_run import LoadRecipe
from dynid.workflows.plan_run import PlanRecipe

MOST_OPTIONS = 13
MOST_OPTIONS_OF_IDENTIFY = 19  # what belongs to one run (rows, time, trim, gravity, base) is no setting
MOST_ARGUMENTS = 9


@pytest.mark.parametrize("name", sorted(main.commands))
def test_a_command_has_few_options_and_explains_each(name: str) -> None:
    options = [p for p in main.commands[name].params if isinstance(p, click.Option) and p.name != "help"]
    assert len(options) <= (MOST_OPTIONS_OF_IDENTIFY if name == "identify" else MOST_OPTIONS)
    for option in options:
        assert option.help, option.name
        assert option.help.endswith("."), option.name


def test_identify_has_few_arguments() -> None:
    assert len(inspect.signature(dynid.identify).parameters) <= MOST_ARGUMENTS


@pytest.mark.parametrize("recipe", [LoadRecipe(sensor="tool", sign=-1), PlanRecipe(acceleration=(5.0,), box=":,:,0:1")])
def test_recipes_of_other_commands_come_back_from_their_files(recipe: LoadRecipe | PlanRecipe, tmp_path: Path) -> None:
    recipe.write(tmp_path / "recipe.toml")
    assert type(recipe).read(tmp_path / "recipe.toml") == recipe


def test_methods_that_there_are_not_are_refused_in_python_too() -> None:
    with pytest.raises(ArgumentError, match=r"'x' does not fit\. Give"):
        PlanRecipe(method="x")  # type: ignore[arg-type]
