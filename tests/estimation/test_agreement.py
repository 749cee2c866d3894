"""Runs that disagree: the planted cause is named, and runs that agree are not accused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))
from run_agreement import arm, case, is_right, record  # the campaign's own planted cases

from dynid.estimation.agreement import _Cause, _Changes, check_runs
from dynid.estimation.equations import build_equations
from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.robot.inertia import Inertia
from dynid.robot.zoo import puma560


@pytest.mark.parametrize("number", [1, 4, 7, 10, 13])
def test_the_planted_cause_is_named(number):
    robot, fault, cause, names = case(number, seed=5)
    assert is_right(cause, names), (robot, fault, cause, names)


def test_the_mass_of_a_load_is_told():
    robot = arm(puma560)
    load = Inertia.from_com(2.0, [0.0, 0.0, 0.05], 0.002 * np.eye(3))
    runs = [record(robot, 1), record(robot.with_body("held", parent=robot.bodies[-1].joint.child, inertia=load), 2)]
    (found,) = check_runs(build_equations(robot, runs))
    assert found.code == "runs-differ"
    assert found.severity == "warning"
    assert "the other run:" in found.message
    mass = float(found.message.split(" held ")[1].split(" kg")[0])
    assert mass == pytest.approx(2.0, rel=0.1)


def test_a_single_run_is_compared_with_nothing():
    assert check_runs(build_equations(arm(puma560), record(arm(puma560), 3))) == ()


def test_identification_reports_it():
    robot = arm(puma560)
    theta = robot.parameter_vector.copy()
    theta[10 * robot.dof + 3] += 3.0  # OFF1
    runs = [record(robot, 4), record(robot, 5), record(robot.with_parameters(theta), 6)]
    fit = identify(robot, runs, Recipe.bare())
    (found,) = [finding for finding in fit.estimate.findings if finding.code == "runs-differ"]
    assert next(iter(found.evidence)) == "OFF1"
    assert "differs" in fit.summary()


def test_gains_are_those_of_fits_with_further_columns():
    """A change of all joints and a gain of one in a part of the data, by fits with their rows written out."""
    rng = np.random.default_rng(3)
    joints, m, cut = 3, 5, 40
    rows = rng.normal(size=(joints, 100, m))
    torque = rows @ rng.normal(size=m) + 0.1 * rng.normal(size=(joints, 100))
    table = np.concatenate([rows, torque[..., None]], axis=2)
    weights = np.array([1.0, 4.0, 0.3])
    directions = rng.normal(size=(m, 2))
    causes = [_Cause("load", "kg", directions), _Cause("gain", "", np.zeros((m, 0)), joint=1)]

    root = np.sqrt(weights)[:, None]
    X, y = (root[..., None] * rows).reshape(-1, m), (root * torque).ravel()
    beta, (squares, *_), *_ = np.linalg.lstsq(X, y, rcond=None)
    load = np.zeros((joints, 100, 2))
    load[:, :cut] = root[..., None] * (rows[:, :cut] @ directions)
    gain = np.zeros((joints, 100, 1))
    gain[1, :cut, 0] = root[1] * (rows[1, :cut] @ beta)

    part = np.einsum("jti,jtk->jik", table[:, :cut], table[:, :cut])
    changes = _Changes.of(part, (X.T @ X, X.T @ y), weights, causes)
    for chosen, columns in (((0,), load), ((1,), gain), ((0, 1), np.concatenate([load, gain], axis=2))):
        wider = np.column_stack([X, columns.reshape(len(X), -1)])
        solution, (left, *_), *_ = np.linalg.lstsq(wider, y, rcond=None)
        found = changes.gain(*chosen)
        assert found.value == pytest.approx(squares - left, rel=1e-8)
        assert found.rank == columns.shape[2]
        np.testing.assert_allclose(found.change, solution[m:], rtol=1e-7)
