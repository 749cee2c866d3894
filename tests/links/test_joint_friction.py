"""The friction of a joint as a whole, against terms whose sum is known."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.estimation.linear.least_squares import WLS
from dynid.links.friction_summary import joint_friction
from dynid.links.identify import Identification, identify
from dynid.links.recipe import Recipe
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.robot.zoo import cylindrical
from dynid.terms.base import Term
from dynid.terms.friction import AsymmetricViscous, Coulomb, SmoothSign, Stribeck, Viscous
from estimation.planted import planted_run

FV, FC = 0.8, 1.5
"""Planted viscous and dry friction of every joint [N m s/rad or N s/m, N m or N]."""


def fitted(robot: Robot, run: Experiment, *terms: Term) -> Identification:
    return identify(robot, run, Recipe.bare(), estimator=WLS(), terms=terms)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return cylindrical().with_terms(Viscous(FV), Coulomb(FC))


def recorded(robot: Robot) -> Experiment:
    log = simulate_experiment(
        robot, sum_of_sines(3, seed=1), rate_hz=200, duration_s=10, noise=Noise(effort=0.02), seed=2
    )
    return process(log)


@pytest.fixture(scope="module")
def run(robot: Robot) -> Experiment:
    return recorded(robot)


def test_plain_friction_is_dry_and_viscous(robot: Robot, run: Experiment) -> None:
    fit = fitted(robot, run)
    found = joint_friction(fit)
    assert [friction.name for friction in found] == list(robot.joint_names)
    values = dict(zip(fit.estimate.names, fit.estimate.values, strict=True))
    spread = dict(zip(fit.estimate.names, fit.estimate.stderr, strict=True))
    for j, friction in enumerate(found, start=1):
        assert friction.dry.value == pytest.approx(values[f"FC{j}"])
        assert friction.dry.stderr == pytest.approx(spread[f"FC{j}"])
        assert friction.viscous.value == pytest.approx(values[f"FV{j}"])
        assert friction.breakaway.value == pytest.approx(values[f"FC{j}"])
        assert friction.stribeck_speed is friction.load_share is friction.asymmetry is None
        assert friction.torque == pytest.approx(
            values[f"FC{j}"] * np.sign(friction.speed) + values[f"FV{j}"] * friction.speed
        )


def test_the_sum_of_terms_stays_although_each_term_is_a_part(robot: Robot, run: Experiment) -> None:
    # a narrow smooth sign takes over an arbitrary part of the dry friction; the sum must not change with it
    split = joint_friction(fitted(robot, run, *(SmoothSign(joint=j, scale=0.02) for j in range(3))))
    for friction in split:
        assert len(friction.terms) == 3
        assert friction.dry.value == pytest.approx(FC, rel=0.05)
        assert abs(friction.dry.value - FC) < 4.0 * friction.dry.stderr + 0.01
        assert friction.viscous.value == pytest.approx(FV, rel=0.1)


def test_a_planted_stribeck_peak_and_asymmetry_are_read_off(run: Experiment) -> None:
    scale = 0.1
    terms = [Stribeck(2.0, joint=0, scale=scale), AsymmetricViscous(0.3, joint=1)]
    robot = cylindrical().with_terms(Viscous(FV), Coulomb(FC))
    planted = recorded(robot.with_terms(*terms, keep=True))
    joint1, joint2, _ = joint_friction(fitted(robot, planted, *(term.with_value(0.0) for term in terms)))
    assert joint1.breakaway.value == pytest.approx(FC + 2.0, rel=0.15)
    assert joint1.stribeck_speed == pytest.approx(scale, rel=0.15)  # exp(-(v / scale)^2) is 1/e at v = scale
    assert joint2.asymmetry is not None
    fast = joint2.speed[joint2.speed >= 0.3 * joint2.speed[-1]]
    assert joint2.asymmetry.value == pytest.approx(0.3 * fast.mean(), rel=0.15)


def test_coefficients_that_share_a_friction_are_not_called_determined() -> None:
    robot = zoo.scara().with_terms(dynid.Viscous(0.5), dynid.Coulomb(0.4), dynid.Offset(0.1))
    run = planted_run(robot, samples=1500, noise=0.02)
    terms = [dynid.terms.SmoothSign(joint=joint, scale=0.05) for joint in range(robot.dof)]
    fit = dynid.identify(robot, run, dynid.Recipe.bare(), terms=terms, estimator=WLS())
    table = dynid.export.parameter_table(fit)
    status = dict(zip(table["parameter"], table["status"], strict=True))
    assert status["FC1"] == status["FT1(0.05)"] == "shared"
    assert status["OFF1"] == "data"
    assert "Parts of a friction" in fit.summary()
    plain = dynid.identify(robot, run, dynid.Recipe.bare())
    assert "shared" not in dynid.export.parameter_table(plain)["status"].tolist()
    assert "Parts of a friction" not in plain.summary()
