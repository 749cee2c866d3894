"""The command to run next proposes nothing that the run had already."""

from __future__ import annotations

import pytest

from dynid.identification.recipe import Recipe
from dynid.report.provenance import settings_chapter
from dynid.report.sections.next_commands import NextCommands

COMMAND = "dynid identify arm.urdf run1.csv --map map.toml --out res"


def commands(recipe: Recipe) -> NextCommands:
    return NextCommands.of(settings_chapter(COMMAND, {k: str(v) for k, v in recipe.to_dict().items()}, (), {}))


@pytest.mark.parametrize(
    ("code", "present", "other"),
    [
        ("negative-friction", Recipe(estimator="feasible"), Recipe(estimator="wls")),
        ("delay", Recipe(delay_s="auto"), Recipe()),
        ("not-validated", Recipe(hold_out="30%"), Recipe()),
    ],
)
def test_other_settings_likewise(code: str, present: Recipe, other: Recipe) -> None:
    assert commands(present).after(code) == ""
    assert commands(other).after(code).startswith("dynid identify arm.urdf run1.csv")


WORDS = "dynid identify --map map.toml arm.urdf logs/r01.csv logs/r02.csv logs/r03.csv --out res"
RUNS = NextCommands.of(settings_chapter(WORDS, {}, (), {}))


def test_a_run_that_differs_is_identified_alone_and_all_others_without_it() -> None:
    alone, without = RUNS.after("runs-differ", "r02.csv").splitlines()
    assert alone == "dynid identify arm.urdf logs/r02.csv --map map.toml --out r02-alone"
    assert without == "dynid identify arm.urdf logs/r01.csv logs/r03.csv --map map.toml --out without-r02"


def test_the_log_that_a_finding_names_is_checked() -> None:
    assert RUNS.after("spikes", "r03.csv: effort") == "dynid check logs/r03.csv --robot arm.urdf --map map.toml"
    assert RUNS.after("spikes", "all logs: effort") == ""
