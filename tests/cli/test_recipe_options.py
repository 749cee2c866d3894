"""Options of the command line: few for each command, each with a help sentence, and the recipe files they lead to."""

from __future__ import annotations

import inspect
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import dynid
from dynid.cli import main
from dynid.errors import ArgumentError
from dynid.runs.load_run import LoadRecipe
from dynid.runs.plan_run import PlanRecipe

MOST_OPTIONS = 12
MOST_ARGUMENTS = 8


@pytest.mark.parametrize("name", sorted(main.commands))
def test_a_command_has_few_options_and_explains_each(name: str) -> None:
    options = [p for p in main.commands[name].params if isinstance(p, click.Option) and p.name != "help"]
    assert len(options) <= MOST_OPTIONS
    for option in options:
        assert option.help, option.name
        assert option.help.endswith("."), option.name


def test_identify_has_few_arguments() -> None:
    assert len(inspect.signature(dynid.identify).parameters) <= MOST_ARGUMENTS


@pytest.mark.parametrize("recipe", [LoadRecipe(sensor="tool", sign=-1), PlanRecipe(acceleration=(5.0,), box=":,:,0:1")])
def test_recipes_of_other_commands_come_back_from_their_files(recipe: LoadRecipe | PlanRecipe, tmp_path: Path) -> None:
    recipe.write(tmp_path / "recipe.toml")
    assert type(recipe).read(tmp_path / "recipe.toml") == recipe


def test_the_recipe_of_a_command_is_saved_before_it_runs(tmp_path: Path) -> None:
    words = [
        "excite",
        "gautier_khalil_3r",
        "--period",
        "7",
        "--set",
        "seed=3",
        "--save-recipe",
        str(tmp_path / "r.toml"),
    ]
    refused = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "out")])
    assert refused.exit_code == 2  # the robot has no velocity limits
    assert PlanRecipe.read(tmp_path / "r.toml") == PlanRecipe(period_s=7.0, seed=3)


@pytest.mark.parametrize("odd", [{"method": "x"}, {"method": "energy-points", "condition": "x"}], ids=str)
def test_methods_that_there_are_not_are_refused_in_python_too(odd: dict[str, str]) -> None:
    with pytest.raises(ArgumentError, match=r"'x' does not fit\. Give"):
        PlanRecipe(**odd)  # type: ignore[arg-type]
