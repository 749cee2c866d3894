"""Designed commands tell more than random ones, within the limits, and say what they cannot tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.actuators import PositionLaw, ServoModel, ServoParameter, design_commands
from dynid.actuators.identify_actuators import fit_servos
from dynid.errors import ArgumentError
from dynid.robot.parts import JointLimits
from support.planted_servos import planted
from support.servo_logs import double_pendulum, pendulum

LAW = PositionLaw(kp=20.0, kd=1.0)


def test_designed_commands_keep_the_limits_and_identify_better_than_the_worst_candidate() -> None:
    limits = JointLimits(lower=-0.5, upper=1.0, velocity=3.0)
    robot = double_pendulum().with_limits({"first": limits, "second": limits})
    model = ServoModel(robot, LAW, ("armature", "viscous", "coulomb"))
    designs = [design_commands(model, duration_s=5.0, candidates=count, seed=3) for count in (1, 12)]
    spreads = []
    for design in designs:
        command = design.motion.command
        assert (command >= -0.5).all()
        assert (command <= 1.0).all()
        assert design.open_directions == ()
        found = fit_servos(model, [planted(model, model.start, design.motion, 2e-4, seed=1)])
        spreads.append(np.log(found.std).mean())
    assert spreads[1] < spreads[0]
    assert designs[1].gain > 1.0


def test_what_no_command_tells_is_said() -> None:
    model = ServoModel(pendulum(), LAW, (ServoParameter("viscous"), ServoParameter("kd_scale")))
    (direction,) = design_commands(model, duration_s=3.0, candidates=3).open_directions
    assert set(direction.names) == {"viscous servo", "kd_scale servo"}


def test_a_model_without_free_parameters_is_refused() -> None:
    model = replace(ServoModel(pendulum(), LAW), parameters=())
    with pytest.raises(ArgumentError, match="nothing of the model is free"):
        design_commands(model)
