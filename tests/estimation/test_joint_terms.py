"""Terms as joint models: the same torques by kernels, by plain NumPy and by generated code."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.estimation.features import (
    AngleFriction,
    AngleHarmonic,
    AsymmetricViscous,
    Feature,
    Hysteresis,
    PresentFeature,
    SaturatingViscous,
    SmoothSign,
    Stribeck,
)
from dynid.estimation.joint_terms import JointTerm, with_joint_terms
from dynid.estimation.rows import feature_torque
from dynid.kernels import inverse_dynamics
from dynid.robot import zoo
from dynid.terms.joint_models import Coulomb, Offset, Viscous
from estimation.planted import planted_run

ROBOT = zoo.scara().with_joint_models(Viscous(0.5), Coulomb(0.4), Offset(0.1))
SHAPES: list[PresentFeature] = [
    SmoothSign(0, 0.2),
    Stribeck(1, 0.2),
    SaturatingViscous(2),
    AsymmetricViscous(3),
    AngleHarmonic(0, 2, True),
    AngleFriction(1, 0.1, True),
]


def test_kernels_carry_every_shape() -> None:
    run = planted_run(ROBOT, samples=300)
    values = np.linspace(0.5, 1.5, len(SHAPES))
    robot, left = with_joint_terms(ROBOT, SHAPES, values.tolist())
    assert left == ()
    assert len(dynid.parameter_layout(robot).names) == len(dynid.parameter_layout(ROBOT).names) + len(SHAPES)
    expected = inverse_dynamics(ROBOT, run.q, run.dq, run.ddq) + feature_torque(ROBOT, SHAPES, values, run)
    np.testing.assert_allclose(inverse_dynamics(robot, run.q, run.dq, run.ddq), expected, atol=1e-10)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_generated_code_carries_them() -> None:
    robot, _ = with_joint_terms(ROBOT, SHAPES, [1.0] * len(SHAPES))
    dynid.generate_c(robot, functions=["inverse_dynamics", "friction"], two_rate=False).check(samples=50)


def test_an_identification_hands_its_terms_on() -> None:
    run = planted_run(ROBOT, samples=1500, noise=0.05)
    features: list[Feature] = [*(SaturatingViscous(j) for j in range(ROBOT.dof)), Hysteresis(0, 0.05)]
    planted = run.effort + feature_torque(ROBOT, features, np.ones(len(features)), run)
    fit = dynid.identify(ROBOT, replace(run, effort=planted), dynid.Recipe.bare(), terms=features)
    assert fit.terms_left_out == ("FH1(0.05)",)
    rest = feature_torque(ROBOT, [features[-1]], fit.estimate.values[-1:], run)
    mine = inverse_dynamics(fit.with_terms, run.q, run.dq, run.ddq) + rest
    np.testing.assert_allclose(mine, fit.torque(run), atol=1e-8)
    code = dynid.generate_c(fit, functions=["friction"], two_rate=False)
    assert "FH1(0.05)" in code.text.notes[0], "what the code cannot carry is said"
    assert "sqrt" in code.files[f"{code.name}.c"]


def test_memory_is_refused() -> None:
    with pytest.raises(ArgumentError, match="present state"):
        JointTerm(Hysteresis(0, 0.1))  # type: ignore[arg-type]
