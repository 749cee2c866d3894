"""Robots, bodies and inertias: what they answer about themselves."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid import compiled
from dynid.errors import ArgumentError, DescriptionError
from dynid.robot.check import impossible_inertias
from dynid.robot.formats.urdf import urdf_text
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, JointLimits, Link
from dynid.robot.zoo import panda, tx40, ur10
from dynid.spatial import rotation_from_rpy, transform
from dynid.terms.coupling import Coupling
from dynid.terms.friction import Viscous
from support.described import parse_urdf
from support.random_robots import random_inertia, random_robot, random_states

seeds = st.integers(0, 10_000)


@given(seeds)
def test_inertia_is_the_same_body_in_every_frame(seed: int) -> None:
    """Kinetic energy of a body does not depend on the frame it is described in."""
    rng = np.random.default_rng(seed)
    body = random_inertia(rng)
    R, p = rotation_from_rpy(rng.normal(size=3)), rng.normal(size=3)
    moved = body.in_frame(transform(R, p))
    w, v = rng.normal(size=3), rng.normal(size=3)  # of the old origin, old axes

    def energy(inertia: Inertia, w: np.ndarray, v: np.ndarray) -> float:
        m, h, J = inertia.mass, inertia.first_moment, inertia.about_origin
        return float(0.5 * m * v @ v + v @ np.cross(w, h) + 0.5 * w @ J @ w)

    new_w, new_v = R @ w, R @ (v + np.cross(w, -R.T @ p))  # velocity of the new origin
    assert energy(moved, new_w, new_v) == pytest.approx(energy(body, w, v), rel=1e-9)


@given(seeds)
def test_inertia_forms_agree(seed: int) -> None:
    body = random_inertia(np.random.default_rng(seed))
    for again in (Inertia.from_vector(body.vector), Inertia.from_com(body.mass, body.com, body.about_com)):
        np.testing.assert_allclose(again.vector, body.vector, rtol=1e-12, atol=1e-12)
    assert body.is_physical


def links(*names: str) -> tuple[Link, ...]:
    return tuple(Link(name=name) for name in names)


def joint(name: str, parent: str, child: str, **more: Any) -> Joint:
    return Joint(name=name, kind="revolute", parent=parent, child=child, **more)


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(DescriptionError, match="finite"):
        Inertia(mass=np.nan, first_moment=np.zeros(3), about_origin=np.eye(3))
    with pytest.raises(DescriptionError, match="exceeds the upper limit"):
        JointLimits(lower=1.0, upper=0.0)
    with pytest.raises(DescriptionError, match="rigid transform"):
        joint("j", "a", "b", T_parent_joint=2.0 * np.eye(4))
    with pytest.raises(DescriptionError, match="no direction"):
        joint("j", "a", "b", axis=np.zeros(3))


NO_TREES = """
abb: jab -> have the name 'b'
abc: jab jbc -> have the name 'j'
ab: jac -> does not exist
abc: iab -> links have no parent
abc: iac jbc -> kinematic loop
abc: ibc jcb -> cycle
ab: iab jba -> every link has a parent
"""
"""Names of links: name, parent and child of each joint -> what the refusal names."""


@pytest.mark.parametrize("case", NO_TREES.strip().splitlines())
def test_what_is_not_a_tree_is_refused_by_name(case: str) -> None:
    names, joints, reason = re.split(": | -> ", case)
    with pytest.raises(DescriptionError, match=reason) as caught:
        Robot(name="r", links=links(*names), joints=[joint(*one) for one in joints.split()])
    assert caught.value.remedy


@settings(max_examples=15, deadline=None)
@given(seeds)
def test_parameters_go_in_and_come_out(seed: int) -> None:
    robot = random_robot(seed, tree=True, terms=True)
    theta = np.random.default_rng(seed).normal(size=robot.parameter_vector.size)
    changed = robot.with_parameters(theta)
    np.testing.assert_allclose(changed.parameter_vector, theta, rtol=1e-9, atol=1e-9)
    afresh = Robot(name="afresh", links=changed.links, joints=changed.joints, gravity=changed.gravity)
    assert changed.fingerprint == afresh.fingerprint == robot.fingerprint


@pytest.mark.parametrize("seed", range(3))
def test_no_link_gets_an_impossible_inertia_where_its_body_has_none(seed: int) -> None:
    robot = ur10()  # every body is a massless link with a heavy one fixed to it
    scale = np.repeat(np.random.default_rng(seed).uniform(0.8, 1.2, robot.dof), 10)
    theta = robot.parameter_vector.copy()
    theta[: scale.size] *= scale
    changed = robot.with_parameters(theta)
    assert not any(impossible_inertias(changed))
    np.testing.assert_allclose(changed.parameter_vector, theta, rtol=1e-9, atol=1e-12)
    again = parse_urdf(urdf_text(changed))
    assert not any(impossible_inertias(again))
    np.testing.assert_allclose(again.parameter_vector[: scale.size], theta[: scale.size], rtol=1e-9, atol=1e-12)


def test_a_body_welded_on_adds_its_inertia() -> None:
    robot = panda()
    q, dq, ddq = random_states(robot, 4)
    load = random_inertia(np.random.default_rng(1))
    pose = transform(rotation_from_rpy([0.3, 0.2, 0.1]), np.array([0.0, 0.1, 0.2]))
    last = robot.bodies[-1].joint.child
    loaded = robot.with_body("load", parent=last, inertia=load, T_parent_body=pose)
    theta = robot.parameter_vector.copy()
    theta[-10:] += load.in_frame(pose).vector
    np.testing.assert_allclose(
        compiled.inverse_dynamics(loaded, q, dq, ddq),
        compiled.inverse_dynamics(robot.with_parameters(theta), q, dq, ddq),
        rtol=1e-10,
    )


def test_base_orientation_turns_gravity() -> None:
    wall = panda().with_base_orientation(rotation_from_rpy([0.0, np.pi / 2, 0.0]))
    np.testing.assert_allclose(wall.gravity, [9.81, 0.0, 0.0], atol=1e-14)


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match=r"joint1.*joint7|moving joint"):
        panda().with_terms(Viscous(), joints=["elbow"])
    with pytest.raises(ArgumentError, match="Its links are"):
        panda().link("hand_of_god")
    with pytest.raises(ArgumentError, match="two joints"):
        Coupling({"joint5": 1.0})
    with pytest.raises(ArgumentError, match="moving joint"):
        Robot(name="r", links=panda().links, joints=panda().joints, couplings=(Coupling({"a": 1.0, "b": 1.0}),))


def test_a_coupled_wrist_has_the_cross_terms_of_the_tx40() -> None:
    """Row 5 gets [a6, v6, sign(v5 + v6)], row 6 [a5, v5, sign(v5 + v6)]."""
    robot = tx40()
    q, dq, ddq = random_states(robot, 5)
    Y = compiled.regressor(robot, q, dq, ddq)[:, :, -3:]
    together = np.sign(dq[:, 4] + dq[:, 5])
    np.testing.assert_allclose(Y[:, 4], np.stack([ddq[:, 5], dq[:, 5], together], axis=1))
    np.testing.assert_allclose(Y[:, 5], np.stack([ddq[:, 4], dq[:, 4], together], axis=1))
    assert not Y[:, :4].any()


@pytest.mark.parametrize("joint", [7, -1, "joint2"])
def test_a_term_for_a_joint_that_is_not_there_is_refused(joint: int) -> None:
    with pytest.raises(ArgumentError, match="names no joint of"):
        panda().with_terms(Viscous(0.1, joint=joint))
    assert len(panda().with_terms(Viscous(0.1, joint=6)).terms) == 1


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda robot: pickle.loads(pickle.dumps(robot))])
def test_copies_are_equal_and_read_only(make: Callable[[Robot], Robot]) -> None:
    robot = panda().with_terms(Viscous(0.5))
    made = make(robot)
    assert made.fingerprint == robot.fingerprint
    for array in (made.gravity, made.joints[1].axis, made.joints[1].T_parent_joint, made.links[2].inertia.first_moment):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
