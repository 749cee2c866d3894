"""Alike joints: equal legs are called shared, a worn one is found, also where the law misses a term."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.actuators import CommandedMotion, PositionLaw, ServoModel, ServoParameter
from dynid.actuators.alike import decide_sharing
from dynid.actuators.servo_model import joint_groups
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


@pytest.mark.parametrize("stick", [0.0, 0.1])
def test_a_worn_leg_is_found_and_keeps_its_own_friction(stick: float) -> None:
    motion = log(3, worn=1.3, stick=stick)
    train, rest = motion.hold_out(0.3)
    sharing = decide_sharing(MODEL, [train], held_out=[rest])
    odd = {test.kind: test.odd for test in sharing.tests}
    assert odd == {"armature": (), "viscous": (), "coulomb": ("RL_hip",)}
    assert len(sharing.separate.values) == 12
    assert len(sharing.decided.values) == 4
    assert len(sharing.shared.values) == 3
    table = sharing.decided.model.table(sharing.decided.values)
    assert table["coulomb"][2] / table["coulomb"][0] == pytest.approx(1.3, rel=0.1)
    held = {name: found.errors[1].rms for name, found in sharing.models}
    assert held["decided by test"] < held["all shared"]
    assert held["decided by test"] < 1.1 * held["all separate"]


def test_equal_legs_are_shared_although_the_law_misses_something() -> None:
    """Five logs with breakaway friction that the model lacks."""
    for seed in range(5):
        motion = log(seed, stick=0.1, duration_s=4.0)
        assert all(test.alike for test in decide_sharing(MODEL, [motion]).tests)


def test_groups_that_cannot_be_meant() -> None:
    with pytest.raises(ArgumentError, match="no joint is called hip"):
        decide_sharing(MODEL, [log(0)], [("hip", "FL_hip")])
    with pytest.raises(ArgumentError, match="FL_hip comes twice"):
        ServoModel(ROBOT, LAW, KINDS, alike=(("FL_hip", "FR_hip"), ("FL_hip", "RL_hip")))
