"""All methods agree on random robots with the geometry on which the printed rules fail."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynid.dynamics.chain import find_chain
from dynid.dynamics.minimal_constants import minimal_set
from dynid.identifiability.base import base_parameters
from dynid.identifiability.numeric import numeric_row_space
from dynid.identifiability.row_space import RowSpace, row_space
from dynid.identifiability.structural import structural_row_space
from dynid.terms.coupling import Coupling
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

from .comparison import distance, torque_error
from .random_robots import random_serial, random_tree

ROBOTS = int(os.environ.get("DYNID_TEST_ROBOTS", "40"))
MODELS = {"links": (), "rotors": (RotorInertia(),), "all": (RotorInertia(), Viscous(), Coulomb(), Offset())}


def same_space(robot, **options) -> RowSpace:
    """Structural and numerical method: same rank, same space."""
    truth, structural = numeric_row_space(robot, **options), structural_row_space(robot, **options)
    assert structural.rank == truth.rank
    assert distance(structural.rows, truth) < 1e-7
    return truth


def check(robot) -> int:
    """Closed form and minimal combinations have that rank and space, too, and the same torques."""
    truth = same_space(robot)
    assert truth.gap > 1e5
    for method in ("closed-form", "minimal-combinations"):
        base = base_parameters(robot, method)
        assert base.rank == row_space(base.grouping).rank == truth.rank
        assert distance(base.grouping, truth) < 1e-7
        assert torque_error(robot, base) < 1e-10
    return truth.rank


@settings(max_examples=ROBOTS, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), joints=st.sampled_from([1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6, 7, 8, 9, 10]))
def test_all_methods_agree(seed, joints):
    robot = random_serial(seed, joints)
    assert len(minimal_set(find_chain(robot))) == check(robot)


@settings(max_examples=ROBOTS, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), joints=st.integers(1, 6), models=st.sampled_from(["rotors", "all"]))
def test_all_methods_agree_with_terms(seed, joints, models):
    check(random_serial(seed, joints, MODELS[models]))


@settings(max_examples=max(12, ROBOTS // 4), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), joints=st.integers(2, 10), models=st.sampled_from(sorted(MODELS)))
def test_structural_and_numeric_agree_on_trees(seed, joints, models):
    robot = random_tree(seed, joints, MODELS[models])
    same_space(robot)
    assert torque_error(robot, base_parameters(robot, "structural")) < 1e-10


@pytest.mark.parametrize("seed", range(12))
def test_structural_and_numeric_agree_on_restricted_motion(seed):
    robot = random_tree(seed, 6, MODELS["all"])
    unmoved = {1: 0.4, robot.dof - 1: -0.2}
    for options in ({"unmoved": unmoved}, {"static": True}, {"unmoved": unmoved, "static": True}):
        same_space(robot, **options)


@pytest.mark.parametrize("seed", range(12))
def test_structural_and_numeric_agree_on_couplings(seed):
    robot = random_serial(seed, 5, MODELS["all"])
    turning = [joint.name for joint in robot.moving_joints if joint.kind == "revolute"]
    if len(turning) < 3:
        return
    pair, triple = {turning[0]: 1.0, turning[1]: -0.5}, {turning[-3]: 1.0, turning[-2]: 2.0, turning[-1]: 0.7}
    robot = robot.with_terms(*MODELS["all"], Coupling(pair), Coupling(triple))
    for options in ({}, {"unmoved": {robot.joint_names.index(turning[0]): 0.3}}):
        same_space(robot, **options)


@pytest.mark.parametrize("seed", range(15))
def test_frames_do_not_change_the_count(seed):
    """The closed form on a chain whose frames are no DH frames: mapped, kept in the robot's own columns."""
    check(random_tree(seed, 2 + seed % 5, chain=True))
