"""Designed commands tell more than random ones, within the limits, and say what they cannot tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.actuators import PositionLaw, ServoModel, ServoParameter, refine_commands
from dynid.actuators.servo_identification import fit_servos
from dynid.errors import ArgumentError
from dynid.robot.parts import JointLimits
from support.planted_servos import planted
from support.servo_logs import double_pendulum, pendulum

LAW = PositionLaw(kp=20.0, kd=1.0)


def test_designed_commands_keep_the_limits_and_identify_better_than_the_worst_candidate() -> None:
    limits = JointLimits(lower=-0.5, upper=1.0, velocity=3.0)
    robot = double_pendulum().with_limits({"first": limits, "second": limits})
    model = ServoModel(robot, LAW, ("armature", "viscous", "coulomb"))
    designs = [refine_commands(model, duration_s=5.0, candidates=count, seed=3) for count in (1, 12)]
    errors = []
    for design in designs:
        command = design.motion.command
        assert (command >= -0.5).all()
        assert (command <= 1.0).all()
        assert (np.abs(np.diff(command, axis=0)) <= 3.0 * 0.01 * (1.0 + 1e-9)).all()
        assert design.open_directions == ()
        logs = [planted(model, model.start, design.motion, 2e-4, seed=seed) for seed in range(4)]
        wrong = np.array([fit_servos(model, [log]).values - model.start for log in logs])
        errors.append(np.log(np.sqrt(np.mean(wrong**2, axis=0))).mean())
    assert errors[1] < errors[0]
    assert designs[1].gain > 1.0


def test_moves_between_holds_keep_the_velocity_limit() -> None:
    """Many single candidates: some of their joints move between holds."""
    limits = JointLimits(lower=-0.5, upper=1.0, velocity=0.5)
    model = ServoModel(pendulum().with_limits({"servo": limits}), LAW)
    held = 0
    for seed in range(8):
        steps = np.abs(np.diff(refine_commands(model, duration_s=4.0, candidates=1, seed=seed).motion.command, axis=0))
        assert steps.max() <= 0.5 * 0.01 * (1.0 + 1e-9)
        held += bool(np.mean(steps < 1e-12) > 0.1)
    assert held


def test_a_joint_without_limits_is_refused() -> None:
    with pytest.raises(ArgumentError, match="has no limit of position or velocity"):
        refine_commands(ServoModel(double_pendulum(), LAW))


def test_what_no_command_tells_is_said() -> None:
    limits = JointLimits(lower=-1.0, upper=1.0, velocity=3.0)
    model = ServoModel(
        pendulum().with_limits({"servo": limits}), LAW, (ServoParameter("viscous"), ServoParameter("kd_scale"))
    )
    (direction,) = refine_commands(model, duration_s=3.0, candidates=3).open_directions
    assert set(direction.names) == {"viscous servo", "kd_scale servo"}


def test_a_model_without_free_parameters_is_refused() -> None:
    model = replace(ServoModel(pendulum(), LAW), parameters=())
    with pytest.raises(ArgumentError, match="nothing of the model is free"):
        refine_commands(model)
