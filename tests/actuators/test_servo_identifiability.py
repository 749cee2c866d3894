"""What motions cannot tell is named: planted combinations, before the fit and in the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.actuators import MotorLaw, PositionLaw, ServoModel, ServoParameter, judge_servo_motions
from support.planted_servos import chirp, planted
from support.servo_logs import double_pendulum, pendulum

POSITION = PositionLaw(kp=6.0, kd=0.3)
GRAVITY = ("armature", "viscous", "coulomb")


def _weightless() -> dynid.Robot:
    """A pendulum of no mass: its servo moves the armature alone."""
    return pendulum(mass=0.0)


CASES = [
    (_weightless(), POSITION, (*GRAVITY, "gain_scale"), [{"armature", "viscous", "coulomb", "gain_scale"}]),
    (pendulum(), POSITION, (*GRAVITY, "gain_scale"), []),
    (pendulum(), POSITION, (*GRAVITY, ServoParameter("effort_limit", start=90.0)), [{"effort_limit"}]),
    (double_pendulum().with_gravity((0.0, 0.0, 0.0)), POSITION, (*GRAVITY, "zero"), [{"zero first"}]),
    (pendulum(), POSITION, (*GRAVITY, "kp_scale", "kd_scale"), [{"viscous", "kd_scale"}]),
    (
        pendulum(),
        MotorLaw(kp=2.0, voltage=7.4),
        (*GRAVITY, "kt", ServoParameter("resistance", start=2.0), "gain_scale"),
        [{"kt", "resistance", "gain_scale", "viscous"}] * 2,
    ),
]


@pytest.mark.parametrize(("robot", "law", "parameters", "expected"), CASES)
def test_planted_combinations_are_named(
    robot: dynid.Robot, law: PositionLaw, parameters: tuple[str, ...], expected: list[set[str]]
) -> None:
    model = ServoModel(robot, law, parameters)
    motion = chirp(robot, amplitude=0.25)
    before = judge_servo_motions(model, [motion])
    assert len(before) == len(expected)
    for direction, kinds in zip(before, expected, strict=True):
        assert {_plain(name, kinds) for name in direction.names} <= kinds, str(direction)
    found = dynid.identify_actuators(robot, [planted(model, model.start, motion, 1e-4, seed=1)], law=law,
                                     parameters=parameters)  # fmt: skip
    named = {name for direction in found.open_directions for name in direction.names}
    for direction in before:
        assert set(direction.names) <= named
    for name, std in zip(found.names, found.std, strict=True):
        assert (name in named) == np.isinf(std)


def _plain(name: str, kinds: set[str]) -> str:
    """The name as it is expected: with its joint, or its kind alone."""
    return name if name in kinds else name.split()[0]


def test_torque_off_tells_friction_from_back_emf() -> None:
    """With the drive off for a while, viscous friction acts alone."""
    law = MotorLaw(kp=2.0, voltage=7.4)
    parameters = (*GRAVITY, "kt", ServoParameter("resistance", start=2.0))
    motion = chirp(pendulum(), amplitude=1.2)
    on = np.ones_like(motion.command, dtype=bool)
    on[-200:] = False
    model = ServoModel(pendulum(), law, parameters)
    assert judge_servo_motions(model, [replace(motion, enabled=on)]) == ()
