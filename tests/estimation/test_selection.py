"""Forward selection: planted terms are kept, others are left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.estimation.rows import torque_of_terms
from dynid.estimation.selection import ForwardSelection, SelectionStep
from dynid.links.identify import identify
from dynid.links.recipe import Recipe
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, SaturatingViscous, SmoothSign, Viscous
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


def test_of_two_terms_that_explain_alike_the_smaller_one_is_kept() -> None:
    """A joint that moves little has one cosine: friction of its angle explains what smooth friction does."""
    run = planted_run(ROBOT, samples=2000, noise=0.02)
    terms = [SmoothSign(joint=joint, scale=0.02 * np.abs(run.dq[:, joint]).max()) for joint in range(ROBOT.dof)]
    planted = run.effort + torque_of_terms(ROBOT, terms, np.full(ROBOT.dof, 2.0), run)
    fit = identify(ROBOT, replace(run, effort=planted), Recipe.bare(selection=ForwardSelection()))
    assert fit.selection is not None
    kept = [step.candidate for step in fit.selection.steps if step.kept]
    assert kept
    assert kept[0].startswith("smooth sign")
    assert "angle friction" not in kept


@pytest.mark.parametrize(("small_gain", "kept", "best"), [(9.1, True, 1), (8.9, True, 0), (9.1, False, 0)])
def test_more_terms_must_gain_as_much_more_as_a_further_term(small_gain: float, kept: bool, best: int) -> None:
    large = SelectionStep(candidate="large", gain=10.0, folds=8, of=8, kept=True)
    small = SelectionStep(candidate="small", gain=small_gain, folds=8, of=8, kept=kept)
    assert ForwardSelection(gain=0.01)._best([large, small], [6, 3]) == best


def test_sliding_joints_have_no_friction_of_an_angle() -> None:
    run = planted_run(ROBOT, samples=200, noise=0.02)
    groups = dynid.estimation.standard_candidates(ROBOT, [run], dynid.terms.Reference(ROBOT.parameter_vector))
    slides = {j for j, body in enumerate(ROBOT.bodies) if body.is_prismatic}
    angles = [group for group in groups if group.name in ("angle friction", "first harmonics")]
    assert slides
    assert len(angles) == 2
    assert slides.isdisjoint(getattr(term, "joint", None) for group in angles for term in group.terms)


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


@pytest.mark.parametrize("wrong", [{"folds": ()}, {"folds": (1,)}, {"folds": (2**62,)}, {"most": -1}, {"gain": 1.0}])
def test_a_rule_that_cannot_be_followed_is_refused(wrong) -> None:
    with pytest.raises(ArgumentError, match="the selection has gain"):
        ForwardSelection(**wrong)
