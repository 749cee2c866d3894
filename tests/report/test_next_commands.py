"""The command to run next proposes nothing that the run had already."""

from __future__ import annotations

import pytest

from dynid.links.recipe import Recipe
from dynid.report.sections.next_commands import NextCommands

COMMAND = "dynid identify arm.urdf run1.csv --map map.toml --out res"


def commands(recipe: Recipe) -> NextCommands:
    return NextCommands.of(COMMAND, {key: str(value) for key, value in recipe.to_dict().items()})


@pytest.mark.parametrize("code", ["missing-friction", "torque-offset", "drive-gain"])
def test_selection_is_proposed_only_where_it_was_off(code: str) -> None:
    assert commands(Recipe()).after(code) == ""
    off = commands(Recipe(selection=None)).after(code)
    assert off == "dynid identify arm.urdf run1.csv --map map.toml --set selection=true --out again"


@pytest.mark.parametrize(
    ("code", "present", "other"),
    [
        ("negative-friction", Recipe(estimator="feasible"), Recipe(estimator="wls")),
        ("unsynchronised", Recipe(delay_s="auto"), Recipe()),
        ("not-validated", Recipe(hold_out="30%"), Recipe()),
    ],
)
def test_other_settings_likewise(code: str, present: Recipe, other: Recipe) -> None:
    assert commands(present).after(code) == ""
    assert commands(other).after(code).startswith("dynid identify arm.urdf run1.csv")
