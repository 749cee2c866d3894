"""Sliding joints: forces, metres and kilograms in models, estimates and tables, and bounds for machines."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.report.sections.servo_sections import servo_table
from dynid.servos import CommandedMotion, PositionLaw, ServoModel, ServoParameter
from dynid.servos.kinds import milli
from support.chains import chain

MASS_KG, VISCOUS, KP, KD = 95.0, 203.0, 9e4, 2e3
"""A slide of the size of the published EMPS machine [kg, N s/m, N/m, N s/m]."""


def _cart(*joints: str) -> dynid.Robot:
    """A weightless slide, and a turning joint on it where it is asked for."""
    parts = []
    for name in joints:
        is_slide = name == "slide"
        body = dynid.Inertia.from_com(0.0 if is_slide else 0.3, [0.0, 0.0, -0.1], np.diag([1e-4] * 3))
        kind = "prismatic" if is_slide else "revolute"
        parts.append((body, {"name": name, "kind": kind, "axis": np.array([1.0, 0.0, 0.0])}))
    return chain("cart", *parts)


def _integrated() -> CommandedMotion:
    """The slide under its drive, by Euler steps of 0.1 ms that were written here."""
    time, q, v, read = np.arange(0.0, 4.0, 0.005), 0.0, 0.0, []
    sent = 0.1 * np.sin(2.0 * time**2)
    for command in sent:
        read.append(q)
        for _ in range(50):
            v += 1e-4 * (KP * (command - q) - (KD + VISCOUS) * v) / MASS_KG
            q += 1e-4 * v
    position = np.array(read) + 1e-6 * np.random.default_rng(0).normal(size=len(read))
    return CommandedMotion(joint_names=("slide",), time=time, command=sent[:, None], position=position[:, None])


def test_a_machine_is_found_within_the_usual_bounds() -> None:
    law = PositionLaw(kp=KP, kd=KD)
    found = dynid.identify_actuators(_cart("slide"), [_integrated()], law=law, parameters=("armature", "viscous"))
    assert found.values[0] == pytest.approx(MASS_KG, rel=0.01)
    assert found.values[1] + KD == pytest.approx(VISCOUS + KD, rel=0.005)  # steps of 2.5 ms bend the whole damping
    assert found.at_bound == ()
    assert [row[5] for row in servo_table(found).rows] == ["kg", "N s/m"]
    assert found.errors[0].unit == "m"
    assert (milli("m"), milli("rad or m")) == ("mm", "mrad or mm")


def test_joints_that_turn_and_slide_share_nothing_but_times_and_factors() -> None:
    robot, law = _cart("slide", "hinge"), PositionLaw(kp=100.0, kd=1.0)
    shared = [entry.name for entry in ServoModel(robot, law, (ServoParameter("delay", share="all"),)).entries]
    assert shared == ["delay"]
    with pytest.raises(ArgumentError, match="'viscous' is shared by turning and sliding joints: slide, hinge"):
        ServoModel(robot, law, (ServoParameter("viscous", share="all"),))
    with pytest.raises(ArgumentError, match="hinge comes twice"):
        ServoModel(robot, law, (ServoParameter("viscous", share=(("hinge", "hinge"),)),))
