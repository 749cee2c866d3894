"""Forward selection: planted terms are kept, others are left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.estimation.rows import torque_of_terms
from dynid.estimation.selection import ForwardSelection
from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, SaturatingViscous, Viscous
from dynid.terms.memory import LaggedSign
from dynid.terms.motors import Offset
from estimation.planted import planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))


def test_a_planted_term_is_kept_and_noise_is_not() -> None:
    run = planted_run(ROBOT, samples=2000, noise=0.05)
    terms = [SaturatingViscous(joint=joint) for joint in range(ROBOT.dof)]
    planted = run.effort + torque_of_terms(ROBOT, terms, np.ones(ROBOT.dof), run)
    fit = identify(ROBOT, replace(run, effort=planted), Recipe.bare(selection=ForwardSelection()))
    assert fit.selection is not None
    assert fit.selection.steps[0].candidate == "saturating viscous"
    assert fit.selection.steps[0].kept
    assert "saturating viscous" in fit.summary()
    other = planted_run(ROBOT, samples=2000, noise=0.05, motion=3, seed=9)
    predicted = fit.torque(other) - torque_of_terms(ROBOT, terms, np.ones(ROBOT.dof), other)
    assert np.sqrt(np.mean((predicted - other.effort) ** 2)) < 0.06
    np.testing.assert_allclose(fit.predict(other.q, other.dq, other.ddq), fit.torque(other), atol=1e-9)


def test_nothing_is_kept_where_the_model_is_right() -> None:
    fit = identify(ROBOT, planted_run(ROBOT, samples=2000, noise=0.05), Recipe.bare(selection=ForwardSelection()))
    assert fit.terms == ()
    assert fit.selection is not None
    rejected = [(step.candidate, step.gain) for step in fit.selection.steps]
    assert len(set(rejected)) == len(rejected)


def test_memory_is_found() -> None:
    run = planted_run(ROBOT, samples=2000, noise=0.02)
    terms = [LaggedSign(joint=joint, scale=0.1) for joint in range(ROBOT.dof)]
    planted = run.effort + torque_of_terms(ROBOT, terms, np.full(ROBOT.dof, 2.0), run)
    fit = identify(ROBOT, replace(run, effort=planted), Recipe.bare(selection=ForwardSelection()))
    assert any(term in fit.terms for term in terms)


def test_rules_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError):
        ForwardSelection(gain=2.0)


def test_a_single_joint_has_candidates_too(tmp_path: Path) -> None:
    file = tmp_path / "one.urdf"
    file.write_text(
        '<robot name="one"><link name="base"/><link name="arm"><inertial><origin xyz="0.1 0 -0.3"/><mass value="4"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j1" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>'
    )
    robot = dynid.read_urdf(file).with_terms(Viscous(0.5), Coulomb(0.4))
    fit = identify(robot, planted_run(robot, samples=2000, noise=0.02), Recipe.bare(selection=ForwardSelection()))
    assert fit.terms == ()
