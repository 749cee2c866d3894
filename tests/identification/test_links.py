"""Identified robots: what they predict, what they admit not to know, that simulators accept them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import EstimationError
from dynid.estimators.estimate import Estimator
from dynid.estimators.linear.energy_differences import Energy
from dynid.estimators.linear.least_squares import OLS, WLS
from dynid.estimators.linear.robust import Huber
from dynid.estimators.physical import nearest as lifting
from dynid.export.result_file import read_result, write_result
from dynid.identification.identify import identify
from dynid.identification.recipe import Recipe
from dynid.robot import zoo
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from estimators.planted import planted_run

ROBOT = zoo.puma560().with_terms(RotorInertia(0.2), Viscous(0.5), Coulomb(0.4), Offset(0.1))


def test_identified_robot_predicts() -> None:
    fit = identify(ROBOT, planted_run(ROBOT, noise=0.05), Recipe.bare())
    other = planted_run(ROBOT, motion=5)
    error = fit.predict(other.q, other.dq, other.ddq) - other.effort
    assert np.sqrt(np.mean(error**2)) < 0.05
    np.testing.assert_allclose(fit.torque(other), fit.predict(other.q, other.dq, other.ddq))
    assert "base parameters" in fit.summary()


def test_standard_parameters_from_base_ones() -> None:
    fit = identify(ROBOT, planted_run(ROBOT, noise=0.05), Recipe.bare(), estimator=WLS())
    assert all(body.inertia.is_physical for body in fit.identified.bodies)
    assert "M1" in fit.prior_dominated
    spread = fit.standard_stderr
    assert np.isinf(spread[fit.base.layout.index("M1")])
    assert np.isfinite(spread[fit.base.layout.index("FV1")])


@pytest.mark.parametrize("estimator", [OLS(), WLS(), Huber(), Energy()], ids=lambda e: type(e).__name__)
def test_the_identified_robot_is_that_of_the_estimator(estimator: Estimator) -> None:
    """Outliers move the least squares but not the robust fit; standard parameters follow whichever was asked for."""
    fit = identify(ROBOT, planted_run(ROBOT, noise=0.05, outliers=0.01), Recipe.bare(), estimator=estimator)
    assert all(body.inertia.is_physical for body in fit.identified.bodies)
    beta = fit.base.project(fit.standard)
    off = np.abs(beta - fit.estimate.values) / fit.estimate.stderr
    assert np.median(off) < 1.0
    if isinstance(estimator, Huber):
        assert off.max() < 2.0


def test_exact_estimates_are_reproduced() -> None:
    fit = identify(ROBOT, planted_run(ROBOT), Recipe.bare(), estimator=WLS())
    np.testing.assert_allclose(fit.base.project(fit.standard), fit.estimate.values, rtol=1e-4, atol=1e-4)


def test_simulators_accept_it(tmp_path: Path) -> None:
    pinocchio, mujoco = pytest.importorskip("pinocchio"), pytest.importorskip("mujoco")
    fit = identify(ROBOT, planted_run(ROBOT, noise=0.5, samples=400), Recipe.bare())
    path = tmp_path / "identified.urdf"
    write_urdf(fit.identified, path)
    model = pinocchio.buildModelFromUrdf(str(path))
    assert model.nv == ROBOT.dof
    assert mujoco.MjModel.from_xml_path(str(path)).nv == ROBOT.dof


def impossible() -> Robot:
    """A robot whose torques no possible one has: rotor inertia and friction of wrong signs."""
    theta = ROBOT.parameter_vector.copy()
    theta[60:] = -theta[60:]
    return ROBOT.with_parameters(theta)


def test_base_estimates_predict_by_themselves() -> None:
    """What least squares found is what is judged, whether a possible robot has it or not."""
    runs = [planted_run(impossible(), noise=0.05, motion=k, seed=k) for k in range(2)]
    fit = identify(ROBOT, runs[0], Recipe.bare(), estimator=WLS())
    assert "impossible-estimate" in fit.estimate.codes
    error = fit.torque(runs[1]) - runs[1].effort
    assert np.sqrt(np.mean(error**2)) < 0.06
    np.testing.assert_allclose(fit.predict(runs[1].q, runs[1].dq, runs[1].ddq), fit.torque(runs[1]), atol=1e-9)
    assert all(body.inertia.is_physical for body in fit.identified.bodies)
    assert identify(ROBOT, runs[0], Recipe.bare()).training_error[-1] > 3.0 * fit.training_error[-1]


def test_base_estimates_stand_where_no_robot_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise EstimationError("the solver's answer contains an impossible body")

    monkeypatch.setattr(lifting, "feasible_parameters", refused)
    runs = [planted_run(ROBOT, noise=0.05, motion=k, seed=k) for k in range(2)]
    fit = identify(ROBOT.with_parameters(1.3 * ROBOT.parameter_vector), runs[0], Recipe.bare(), estimator=WLS())
    assert "impossible-estimate" in fit.estimate.codes
    assert np.sqrt(np.mean((fit.torque(runs[1]) - runs[1].effort) ** 2)) < 0.06


def test_a_joint_without_samples(tmp_path: Path) -> None:
    run = planted_run(ROBOT, noise=0.05)
    valid = run.valid.copy()
    valid[:, 5] = False
    fit = identify(ROBOT, replace(run, valid=valid), Recipe.bare(), estimator=WLS())
    line = next(line for line in fit.summary().splitlines() if line.startswith(ROBOT.joint_names[5]))
    assert line.split() == [ROBOT.joint_names[5], "0"]

    def refused(constant: str) -> None:
        raise AssertionError(constant)

    text = write_result(fit, tmp_path / "result.json").read_text(encoding="utf-8")
    content = json.loads(text, parse_constant=refused)
    assert content["training_error_percent"][ROBOT.joint_names[5]] is None
    again = read_result(tmp_path / "result.json").identification()
    np.testing.assert_array_equal(again.training_error, fit.training_error)
