"""Terms on a robot's joints: the same torques by kernels, by plain NumPy and by generated code."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.compiled import inverse_dynamics
from dynid.errors import ArgumentError
from dynid.estimators.rows import torque_of_terms
from dynid.robot import zoo
from dynid.terms.base import StateTerm, Term
from dynid.terms.friction import (
    AsymmetricViscous,
    Coulomb,
    SaturatingViscous,
    SmoothSign,
    Stribeck,
    Viscous,
)
from dynid.terms.memory import Hysteresis
from dynid.terms.motors import Offset
from dynid.terms.springs import AngleHarmonic
from estimators.planted import planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))
SHAPES: list[StateTerm] = [
    SmoothSign(joint=0, scale=0.2),
    Stribeck(joint=1, scale=0.2),
    SaturatingViscous(joint=2),
    AsymmetricViscous(joint=3),
    AngleHarmonic(joint=0, order=2, sine=True),
]


def test_kernels_carry_every_shape() -> None:
    run = planted_run(ROBOT, samples=300)
    values = np.linspace(0.5, 1.5, len(SHAPES))
    robot = ROBOT.with_terms(*(t.with_value(v) for t, v in zip(SHAPES, values, strict=True)), keep=True)
    assert len(dynid.parameter_layout(robot).names) == len(dynid.parameter_layout(ROBOT).names) + len(SHAPES)
    expected = inverse_dynamics(ROBOT, run.q, run.dq, run.ddq) + torque_of_terms(ROBOT, SHAPES, values, run)
    np.testing.assert_allclose(inverse_dynamics(robot, run.q, run.dq, run.ddq), expected, atol=1e-10)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_generated_code_carries_them() -> None:
    robot = ROBOT.with_terms(*(term.with_value(1.0) for term in SHAPES), keep=True)
    dynid.generate_c(robot, functions=["inverse_dynamics", "friction"], two_rate=False).check(samples=50)


def test_an_identification_hands_its_terms_on() -> None:
    run = planted_run(ROBOT, samples=1500, noise=0.05)
    terms: list[Term] = [*(SaturatingViscous(joint=j) for j in range(ROBOT.dof)), Hysteresis(joint=0, scale=0.05)]
    planted = run.effort + torque_of_terms(ROBOT, terms, np.ones(len(terms)), run)
    fit = dynid.identify(ROBOT, replace(run, effort=planted), dynid.Recipe.bare(), terms=terms)
    assert [term.value for term in fit.rich.terms] == pytest.approx(np.ones(len(terms)), abs=0.15)
    code = dynid.generate_c(fit, functions=["friction"], two_rate=False)
    assert "hysteresis" in code.text.notes[0], "where the rich friction is, is said"


def test_memory_is_refused() -> None:
    with pytest.raises(ArgumentError, match="present state"):
        ROBOT.with_terms(Hysteresis(joint=0, scale=0.1))  # type: ignore[arg-type]
