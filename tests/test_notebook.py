"""Objects in a notebook and in messages: a short repr, and HTML that shows the same and nothing unescaped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.estimators.linear.least_squares import WLS
from dynid.excitation.design import design_excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.search import SearchSettings
from dynid.export.result_file import read_result, write_result
from dynid.identification.identify import identify
from dynid.identification.recipe import Recipe
from dynid.identification.validation import validate
from dynid.payload.load import Load
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.inertia import Inertia
from dynid.robot.zoo import cylindrical, gautier_khalil_3r
from dynid.terms.friction import Viscous

LONGEST = 200
"""Characters of a repr."""


@pytest.fixture(scope="module")
def objects() -> dict[str, object]:
    robot = replace(cylindrical().with_terms(Viscous(0.5)), name="<b>arm</b>")
    logs = [
        simulate_experiment(robot, sum_of_sines(3, seed=k), rate_hz=100, duration_s=6, noise=Noise(effort=0.05))
        for k in (0, 1)
    ]
    runs = [process(log, cutoff_hz=10) for log in logs]
    fit = identify(robot, runs[0], Recipe.bare(), estimator=WLS())
    arm = replace(gautier_khalil_3r(), name="<b>arm</b>")
    limits = MotionLimits.from_robot(arm, acceleration=5.0)
    plan = design_excitation(arm, limits, settings=SearchSettings(starts=1, time_limit_s=0.5))
    return {
        "base": dynid.base_parameters(robot),
        "fit": fit,
        "estimate": fit.estimate,
        "validation": validate(fit, runs[1]),
        "load": Load.of(Inertia.from_com(2.0, (0.0, 0.0, 0.1), 0.01 * np.eye(3)), "<b>arm</b>"),
        "plan": plan,
    }


@pytest.mark.parametrize("name", ["base", "fit", "estimate", "validation", "load", "plan"])
def test_notebooks_show_html_and_messages_a_line(objects: dict[str, object], name: str) -> None:
    shown = objects[name]
    assert len(repr(shown)) < LONGEST
    assert "\n" not in repr(shown)
    html = shown._repr_html_()  # type: ignore[attr-defined]
    assert "<table>" in html
    assert "<b>arm" not in html


def test_results_and_code_are_a_line_as_well(objects: dict[str, object], tmp_path: Path) -> None:
    write_result(objects["fit"], tmp_path / "result.json")  # type: ignore[arg-type]
    for shown in (read_result(tmp_path / "result.json"), dynid.generate_c(cylindrical(), ["gravity"])):
        assert len(repr(shown)) < LONGEST
        assert "\n" not in repr(shown)
