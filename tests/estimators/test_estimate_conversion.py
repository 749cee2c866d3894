"""An estimate in another set of base parameters: the same torques, the same uncertainty of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.compiled import regressor
from dynid.errors import ArgumentError
from dynid.estimators.equations import build_equations
from dynid.estimators.estimate import convert_estimate
from dynid.estimators.linear.least_squares import WLS
from dynid.export.result_file import read_result, write_result
from dynid.identifiability.base import base_parameters
from dynid.identification.identify import identify
from dynid.identification.recipe import Recipe
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.friction import SmoothSign

from .planted import arm, planted_run, still, with_friction


@pytest.mark.parametrize("robot", [zoo.stanford(), with_friction(zoo.puma560())], ids=lambda r: r.name)
def test_torques_and_their_deviations_stay_the_same(robot: Robot) -> None:
    run = planted_run(robot, noise=0.5, samples=400)
    equations = build_equations(robot, run, terms=[SmoothSign(joint=1, scale=0.5)])
    lin = base_parameters(robot, method="minimal-combinations")
    given = WLS().solve(equations)
    found = convert_estimate(given, equations.base, lin)
    assert found.names == (*lin.names, given.names[-1])
    assert found.values[-1] == given.values[-1]
    Y = regressor(robot, run.q[:20], run.dq[:20], run.ddq[:20]).reshape(-1, len(lin.layout))
    before, after = (Y @ np.linalg.pinv(base.grouping) for base in (equations.base, lin))
    assert after @ found.values[:-1] == pytest.approx(before @ given.values[:-1], abs=1e-9)
    spread = [
        np.sqrt(np.einsum("ti,ij,tj->t", rows, estimate.covariance[:-1, :-1], rows))
        for rows, estimate in ((before, given), (after, found))
    ]
    assert spread[1] == pytest.approx(spread[0], rel=1e-6)
    back = convert_estimate(found, lin, equations.base)
    assert back.values == pytest.approx(given.values, abs=1e-9)
    assert back.stderr == pytest.approx(given.stderr, rel=1e-6)


def test_what_contains_an_open_parameter_is_open() -> None:
    equations = still(arm(), [2])
    lin = base_parameters(arm(), method="minimal-combinations")
    given = WLS().solve(equations)
    found = convert_estimate(given, equations.base, lin)
    assert given.undetermined.any()
    assert np.isfinite(found.stderr[~found.undetermined]).all()
    T = lin.grouping @ np.linalg.pinv(equations.base.grouping)
    assert np.array_equal(found.undetermined, (np.abs(T[:, given.undetermined]) > 1e-9).any(axis=1))
    assert [f.code for f in found.findings].count("open-parameters") == 1


def test_other_parameters_are_refused() -> None:
    equations = still(arm(), [2])
    estimate = WLS().solve(equations)
    with pytest.raises(ArgumentError, match="other parameters"):
        convert_estimate(estimate, base_parameters(zoo.stanford()), base_parameters(arm()))
    with pytest.raises(ArgumentError, match="different standard parameters"):
        convert_estimate(estimate, equations.base, base_parameters(zoo.stanford()))
    assert convert_estimate(estimate, equations.base, equations.base) is estimate


@pytest.mark.parametrize("estimator", ["feasible", "huber", "link-by-link"])
def test_every_estimator_identifies_in_the_chosen_set(estimator: str, tmp_path: Path) -> None:
    robot = zoo.stanford()
    run, lin = planted_run(robot, noise=0.05, samples=400), base_parameters(robot, "minimal-combinations")
    fit = identify(robot, run, Recipe.bare(), estimator=estimator, base=lin)
    assert fit.estimate.names == fit.base.names == lin.names
    away = np.abs(fit.estimate.values - lin.project(robot.parameter_vector)) / fit.estimate.stderr
    assert np.median(away) < 2.0
    named = identify(robot, run, Recipe.bare(), estimator=estimator, base="minimal-combinations")
    assert named.estimate.values == pytest.approx(fit.estimate.values, abs=1e-12)
    kept = identify(robot, run, Recipe.bare(), estimator=estimator)
    assert np.array_equal(kept.standard, fit.standard)
    assert np.array_equal(kept.standard_stderr, fit.standard_stderr)
    assert "U33_1" in fit.summary()
    write_result(fit, tmp_path / "result.json")
    again = read_result(tmp_path / "result.json").identification()
    assert again.estimate.names == lin.names
    assert again.estimate.values == pytest.approx(fit.estimate.values)
