"""Alike joints: equal legs share their values, a worn one is found, also where the law misses a term."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.actuators import CommandedMotion, PositionLaw, ServoModel, ServoParameter
from dynid.actuators.servo_model import joint_groups
from dynid.actuators.term_choice import select_terms
from dynid.errors import ArgumentError
from support.planted_servos import chirp, planted

LEGS = ("FL", "FR", "RL", "RR")
LAW = PositionLaw(kp=20.0, kd=0.5)
TRUTH = {"armature": 0.02, "viscous": 0.2, "coulomb": 0.15}
KINDS = tuple(ServoParameter(kind, start=value) for kind, value in TRUTH.items())


def legs() -> dynid.Robot:
    """Four rods that hang from one body."""
    inertia = dynid.Inertia.from_com(0.5, [0.0, 0.0, -0.15], np.diag([0.004, 0.004, 1e-4]))
    links = [dynid.Link(name="body"), *(dynid.Link(name=f"{leg}_rod", inertia=inertia) for leg in LEGS)]
    axis = np.array([0.0, 1.0, 0.0])
    joints = [dynid.Joint(name=f"{leg}_hip", kind="revolute", parent="body", child=f"{leg}_rod", axis=axis)
              for leg in LEGS]  # fmt: skip
    return dynid.Robot(name="legs", links=tuple(links), joints=tuple(joints))


ROBOT = legs()
MODEL = ServoModel(ROBOT, LAW, KINDS)


def log(
    seed: int, *, worn: float = 1.0, stick: float = 0.0, load: float = 0.0, duration_s: float = 6.0
) -> CommandedMotion:
    """A motion of four equal legs; dry friction of RL is `worn` times as large.

    The model lacks breakaway friction (`stick` [N m]) and friction that grows with the drive's torque (`load`).
    """
    coulomb = [TRUTH["coulomb"] * (worn if leg == "RL" else 1.0) for leg in LEGS]
    fixed = {**TRUTH, "coulomb": coulomb, "breakaway": stick, "load_drive": load}
    parameters = tuple(ServoParameter(kind, start=value, free=False) for kind, value in fixed.items())
    motion = chirp(ROBOT, amplitude=0.4, duration_s=duration_s, seed=seed)
    return planted(ServoModel(ROBOT, LAW, parameters), [], motion, 2e-4, seed=seed)


def test_names_that_differ_in_the_first_word_are_alike() -> None:
    names = [f"{leg}_{part}_joint" for leg in LEGS for part in ("hip", "calf")]
    assert joint_groups(names) == [tuple(f"{leg}_{part}_joint" for leg in LEGS) for part in ("hip", "calf")]
    assert joint_groups(["joint1", "joint2", "shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint"]) == []


@pytest.mark.parametrize(
    ("worn", "shared"), [(1.0, {"armature", "viscous", "coulomb"}), (1.5, {"armature", "viscous"})]
)
def test_equal_legs_share_and_a_worn_one_keeps_its_friction_although_the_law_misses_something(
    worn: float, shared: set[str]
) -> None:
    model = ServoModel(ROBOT, LAW, KINDS, alike=(ROBOT.joint_names,))
    choice = select_terms(model, [log(3, worn=worn, stick=0.02)])
    assert set(choice.chosen.shared) == shared
    assert len(choice.model.entries) == 4 * 3 - 3 * len(shared)


def test_groups_that_cannot_be_meant() -> None:
    with pytest.raises(ArgumentError, match="FL_hip comes twice"):
        ServoModel(ROBOT, LAW, KINDS, alike=(("FL_hip", "FR_hip"), ("FL_hip", "RL_hip")))
