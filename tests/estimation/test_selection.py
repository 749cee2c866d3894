"""Forward selection: planted terms are kept, others are left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.estimation.features import LaggedSign, SaturatingViscous
from dynid.estimation.rows import feature_torque
from dynid.estimation.selection import ForwardSelection
from dynid.identification.links import identify
from dynid.robot import zoo
from dynid.robot.joint_models import Coulomb, Offset, Viscous
from estimation.planted import planted_run

ROBOT = zoo.scara().with_joint_models(Viscous(0.5), Coulomb(0.4), Offset(0.1))


def test_a_planted_term_is_kept_and_noise_is_not() -> None:
    run = planted_run(ROBOT, samples=2000, noise=0.05)
    features = [SaturatingViscous(joint) for joint in range(ROBOT.dof)]
    planted = run.effort + feature_torque(ROBOT, features, np.ones(ROBOT.dof), run)
    fit = identify(ROBOT, replace(run, effort=planted), select=ForwardSelection())
    assert fit.selection is not None
    assert fit.selection.steps[0].candidate == "saturating viscous"
    assert fit.selection.steps[0].kept
    assert "saturating viscous" in fit.summary()
    other = planted_run(ROBOT, samples=2000, noise=0.05, motion=3, seed=9)
    predicted = fit.torque(other) - feature_torque(ROBOT, features, np.ones(ROBOT.dof), other)
    assert np.sqrt(np.mean((predicted - other.effort) ** 2)) < 0.06
    with pytest.raises(ArgumentError, match="features"):
        fit.predict(other.q, other.dq, other.ddq)


def test_nothing_is_kept_where_the_model_is_right() -> None:
    fit = identify(ROBOT, planted_run(ROBOT, samples=2000, noise=0.05), select=ForwardSelection())
    assert fit.features == ()


def test_memory_is_found() -> None:
    run = planted_run(ROBOT, samples=2000, noise=0.02)
    features = [LaggedSign(joint, 0.1) for joint in range(ROBOT.dof)]
    planted = run.effort + feature_torque(ROBOT, features, np.full(ROBOT.dof, 2.0), run)
    fit = identify(ROBOT, replace(run, effort=planted), select=ForwardSelection())
    assert any(feature in fit.features for feature in features)


def test_rules_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError):
        ForwardSelection(gain=2.0)
