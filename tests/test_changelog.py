"""The tables of migration in the changelog are true: every old name stands in them once, every new one exists."""

from __future__ import annotations

import importlib
import re
from dataclasses import fields
from pathlib import Path

import click
import pytest

import dynid
from dynid.cli import main
from dynid.links.recipe import Recipe
from dynid.runs.load_run import LoadRecipe
from dynid.runs.plan_run import PlanRecipe

TEXT = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
OLD_NAMES = 221
"""Public names of `dynid` 0.1, without ``robots`` and ``__version__``."""
SETTINGS = {
    "identify": Recipe,
    "validate": Recipe,
    "load": LoadRecipe,
    "excite": PlanRecipe,
}
"""Command -> its recipe."""


def part(start: str, end: str) -> str:
    return TEXT[TEXT.index(start) : TEXT.index(end, TEXT.index(start))]


def rows(text: str) -> list[list[str]]:
    """Cells of the rows of the tables in a text, without head and rule."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    found = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in found if "`" in row[0] and "in `dynid` 0.1" not in row[0]]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


MOVED = rows(part("These names moved", "These names changed"))
CHANGED = rows(part("These names changed", "These names are the same"))
SAME = code(part("These names are the same", "Arguments and attributes"))


def test_every_old_name_is_listed_once() -> None:
    names = [*SAME, *(name for old, _ in MOVED for name in code(old)), *(code(row[0])[0] for row in CHANGED)]
    assert len(names) == len(set(names)) == OLD_NAMES


def test_every_new_name_exists() -> None:
    for name in SAME:
        assert getattr(dynid, name) is not None
    for old, new in MOVED:
        package = importlib.import_module(code(new)[0])
        for name in code(old):
            assert name in package.__all__, name
    for _, new, *_ in CHANGED:
        found: object = dynid
        for step in code(new)[0].removeprefix("dynid.").split("."):
            found = getattr(found, step)


@pytest.mark.parametrize(
    ("commands", "old", "new"),
    [row for row in (line.split(" | ") for line in part("### Options", "## [0.1.0]").splitlines()) if "`--" in row[-1]],
)
def test_every_old_option_is_gone_and_its_setting_exists(commands: str, old: str, new: str) -> None:
    for name in re.findall(r"[a-z]+", commands.partition("with")[0].replace("all", "identify")):
        command = main.get_command(click.Context(main), name)
        assert command is not None
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for word in re.findall(r"--[a-z-]+", old):
            assert word not in known, f"{name} {word}"
        for setting in re.findall(r"--set (\w+)=", new):
            assert setting in {field.name for field in fields(SETTINGS[name])}, f"{name} {setting}"
        assert set(re.findall(r"--[a-z-]+", new)) <= known
