"""Designed commands keep the limits, tell what can be told, and say what they cannot tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.actuators import CommandedMotion, PositionLaw, ServoModel, ServoParameter
from dynid.actuators.command_design import refine_commands
from dynid.actuators.servo_identification import fit_servos
from dynid.errors import ArgumentError
from dynid.excitation.limits import MotionLimits
from dynid.robot.parts import JointLimits
from support.planted_servos import planted
from support.servo_logs import pendulum

LAW = PositionLaw(kp=20.0, kd=1.0)
ROBOT = pendulum().with_limits({"servo": JointLimits(lower=-0.5, upper=1.0, velocity=3.0)})
LIMITS = MotionLimits.from_robot(ROBOT)


def test_designed_commands_keep_the_limits_and_identify_the_servo() -> None:
    model = ServoModel(ROBOT, LAW, ("armature", "viscous", "coulomb"))
    plan = refine_commands(model, LIMITS)
    assert plan.position.min() >= -0.5
    assert plan.position.max() <= 1.0
    assert np.abs(np.diff(plan.position, axis=0)).max() <= 3.0 * 0.01 * (1.0 + 1e-6)
    assert "Every parameter of the law can be told." in plan.notes
    motion = CommandedMotion(
        joint_names=plan.joint_names, time=plan.time, command=plan.position, position=plan.position
    )
    found = fit_servos(model, [planted(model, model.start, motion, 2e-4, seed=1)])
    np.testing.assert_allclose(found.values, model.start, rtol=0.05)


def test_what_no_command_tells_is_said() -> None:
    model = ServoModel(ROBOT, LAW, (ServoParameter("viscous"), ServoParameter("kd_scale")))
    assert any("viscous servo" in note and "kd_scale servo" in note for note in refine_commands(model, LIMITS).notes)


def test_a_model_without_free_parameters_is_refused() -> None:
    with pytest.raises(ArgumentError, match="nothing of the model is free"):
        refine_commands(replace(ServoModel(ROBOT, LAW), parameters=()), LIMITS)
