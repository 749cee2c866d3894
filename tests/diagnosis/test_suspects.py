"""The columns of suspects: what is planted in exact torques is found by each with its amount, sign and words."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.array_types import Floats
from dynid.data_reduction.displacements import displace
from dynid.diagnosis import verdicts
from dynid.diagnosis.naming import Case, _finding
from dynid.diagnosis.suspects import FittedRobot
from dynid.processing.simulation import sum_of_sines
from dynid.spatial import rotation_about
from support.exact_runs import exact_run

ROBOT = dynid.robots.get("gautier_khalil_3r").with_terms(dynid.RotorInertia(0.1), dynid.Viscous(0.5))
LOAD = dynid.Inertia.from_com(0.5, [0.0, 0.1, 0.2], np.zeros((3, 3)))
LOADED = ROBOT.with_body("load", parent=ROBOT.bodies[-1].joint.child, inertia=LOAD)
PATH = sum_of_sines(3, period_s=8.0, harmonics=4, amplitude=0.8, seed=4)
TIME = np.arange(1600) / 100.0
HELD = (TIME >= 4.0) & (TIME < 8.0)


def torque(robot: dynid.Robot = ROBOT, shift: Floats | float = 0.0, late_s: Floats | float = 0.0) -> Floats:
    parts = [PATH(TIME - late) for late in np.broadcast_to(late_s, 3)]
    found = [dynid.inverse_dynamics(robot, q + shift, dq, ddq) for q, dq, ddq in parts]
    return np.column_stack([each[:, j] for j, each in enumerate(found)])


def turned(*shift: float) -> dynid.Robot:
    """The third joint slid along x, y, z and turned about y of the body before."""
    return displace(ROBOT, {"joint3": [*shift[:3], 0.0, shift[3], 0.0]})


def tilted(angle: float) -> dynid.Robot:
    """A base tilted about y: gravity turns the other way against it."""
    return ROBOT.with_gravity(rotation_about(np.array([0.0, 1.0, 0.0]), -angle) @ ROBOT.gravity)


J1, J2, J3 = np.eye(3)
PLANTED = """
zero of joint2: the encoder reads 0.573 deg too little = torque(shift=0.01 * J2)
zero of joint2: the encoder reads 0.573 deg too much = torque(shift=-0.01 * J2)
length of joint3: the link before this joint is 10.8 mm longer = torque(turned(0.01, 0, 0.004, 0))
length of joint3: the link before this joint is 10.8 mm shorter = torque(turned(-0.01, 0, -0.004, 0))
angle of joint3 about (0, 1, 0): the axis is turned by 1.15 deg about (0, 1, 0) = torque(turned(0, 0, 0, 0.02))
angle of joint3 about (0, 1, 0): the axis is turned by 1.15 deg about (0, -1, 0) = torque(turned(0, 0, 0, -0.02))
tilt of the base about (0, -1, 0): the base is tilted by 0.573 deg about (0, 1, 0) = torque(tilted(0.01))
delay of joint1: the torque of this joint alone is 1 ms late = torque(late_s=0.001 * J1)
delay of joint3: the torque of this joint alone is 1 ms early = torque(late_s=-0.001 * J3)
delay: the torques are 12 ms late = torque(late_s=0.012)
delay: the torques are 12 ms early = torque(late_s=-0.012)
gain of joint3: the torque is measured 2 % too large beside the other joints = torque() * (1 + 0.02 * J3)
gain of joint3: the torque is measured 2 % too small beside the other joints = torque() * (1 - 0.02 * J3)
spring of joint1: a spring of +2 N m/rad acts on the joint = torque() + 2 * J1 * PATH(TIME)[0]
drift of joint2: the offset of the torque drifts by -6 N m/min = torque() - 6 * J2 * TIME[:, None] / 60
load: the load differs by +0.5 kg from 4 to 8 s = np.where(HELD[:, None], torque(LOADED), torque())
push: -3 N m act on the joint that nothing else explains from 4 to 8 s = torque() - 3 * J2 * HELD[:, None]
"""
"""Suspect: its sentence = the torques."""


@pytest.mark.parametrize("case", PLANTED.strip().splitlines())
def test_what_is_planted_is_told_by_its_suspect(case: str) -> None:
    wanted, text = case.split(" = ")
    name, says = wanted.split(": ")
    noise = 1e-4 * np.random.default_rng(0).normal(size=(TIME.size, 3))
    run = exact_run(TIME, PATH(TIME), effort=eval(text) + noise)
    question = Case.of(FittedRobot.of(ROBOT, [run]))
    index = [suspect.label(ROBOT) for suspect in question.suspects].index(name)
    found = verdicts.test_suspects(question.fit, question.tried)[index]
    told = re.sub(r" \+- \S+", "", _finding(question, [run], replace(found, suspect=index)).message)
    number = r"[-+]?[0-9.]+"
    assert re.sub(number, "", told).startswith(re.sub(number, "", says))
    amounts = ([float(x) for x in re.findall(number, text)] for text in (told, says))
    np.testing.assert_allclose(*amounts, rtol=0.04)  # amounts are of first order, edges of windows within blocks
