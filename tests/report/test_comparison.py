"""Two runs on one page: one kind of error in one table, and no word about robots that cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dynid.errors import ArgumentError
from dynid.export.result_file import result_json
from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.links.validation import validate
from dynid.report.run_comparison import Side, comparison_page
from dynid.robot.model import Robot
from dynid.robot.zoo import cylindrical, scara
from dynid.terms.friction import Coulomb, Viscous
from estimation.planted import planted_run

RUN: dict[str, Any] = {"options": {}, "inputs": [], "versions": {}}


def side(name: str, robot: Robot, *, proven: bool) -> Side:
    truth = robot.with_terms(Viscous(0.5), Coulomb(0.3))
    fit = identify(truth, planted_run(truth, samples=300, noise=0.3), Recipe.bare())
    check = validate(fit, planted_run(truth, samples=300, noise=0.9, motion=5)) if proven else None
    return Side(name, result_json(fit, check), RUN, None)


def test_held_out_and_training_errors_do_not_share_a_table() -> None:
    first, second = side("proven", cylindrical(), proven=True), side("open", cylindrical(), proven=False)
    text = comparison_page(first, second).to_markdown()
    assert "proven: training error %" in text
    assert "open: training error %" in text
    assert "held-out error %" in comparison_page(first, first).to_markdown().split("joint", 1)[1]


def test_different_robots() -> None:
    arm, other = side("a", cylindrical(), proven=False), side("b", scara(), proven=False)
    with pytest.raises(ArgumentError, match="their joints differ"):
        comparison_page(arm, other)
    words = "different robot models"
    assert words not in comparison_page(arm, arm).to_markdown()
    changed = replace(arm, result={**arm.result, "fingerprint": "another"})
    assert words in comparison_page(arm, changed).to_markdown()


def test_samples_of_joints_are_not_called_samples() -> None:
    result = side("a", cylindrical(), proven=True).result
    assert result["validation"]["joint_samples"] == 3 * 300
    assert result["data"][0]["samples"] == 300
