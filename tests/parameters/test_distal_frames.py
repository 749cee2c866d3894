"""Base parameters in standard DH frames, at the far end of each link ([Izaguirre1992] section 6.1)."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.kernels import inverse_dynamics
from dynid.parameters import distal_base_parameters, distal_frames
from dynid.parameters.base import base_parameters
from dynid.parameters.numeric import random_states, sample_regressor
from dynid.robot import zoo
from dynid.robot.formats.dh import StandardDH, from_dh
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.inertia import Inertia
from papers.verdicts import read_printed
from support.random_robots import random_robot

LETTERS = {"m": "M", "x": "MX", "y": "MY", "z": "MZ", "a": "XX", "b": "YY", "c": "ZZ", "d": "XY", "e": "YZ", "f": "XZ"}
LETTERS |= {"ia": "IA", "fs": "FC", "ds": "FV"}
TABLE_1 = [LETTERS[name[:-1]] + name[-1] for name in read_printed("izaguirre1992")["table1"]]


def test_the_puma_260_keeps_the_list_of_table_1() -> None:
    found = distal_base_parameters(zoo.puma260())
    assert len(TABLE_1) == found.rank == 52
    assert sorted(found.kept) == sorted(TABLE_1)
    values = dict(zip(found.kept, found.values(), strict=True))
    assert values["M6"] == pytest.approx(2.768114)
    assert values["XX4"] == pytest.approx(0.079781)
    assert values["MY4"] == pytest.approx(-0.38219)


@pytest.mark.parametrize("seed", range(15))
def test_torques_and_rank_do_not_depend_on_the_frames(seed: int) -> None:
    robot = random_robot(seed, joints=1 + seed % 6, terms=bool(seed % 2))
    found = distal_base_parameters(robot)
    states = random_states(robot, 3 * robot.dof + 10, seed=seed)
    torque = inverse_dynamics(robot, states.q, states.dq, states.ddq)
    error = found.regressor(states.q, states.dq, states.ddq) @ found.values() - torque
    assert np.abs(error).max() < 1e-9 * max(1.0, np.abs(torque).max())
    Y = sample_regressor(robot, states).reshape(-1, len(found.base.layout))
    scaled = Y / np.maximum(np.linalg.norm(Y, axis=0), 1e-12)
    assert found.rank == np.linalg.matrix_rank(scaled, tol=1e-9 * np.linalg.norm(scaled))
    assert found.rank == base_parameters(robot).rank


@pytest.mark.parametrize("seed", range(10))
def test_frames_of_a_standard_table_are_found_without_their_links(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [StandardDH(alpha=a, a=x, d=d, theta=t) for a, x, d, t in random.uniform(0.2, 1.2, (4, 4))]
    body = Inertia(mass=1.0, first_moment=np.array([0.1, 0.2, 0.3]), about_origin=np.eye(3))
    robot = from_dh(rows, inertias=[body] * 4)
    given, found = distal_frames(robot), distal_frames(modified_dh(robot).robot)
    T_body_mdh = modified_dh(robot).T_body_mdh
    for j in range(3):  # the last frame is free
        np.testing.assert_allclose(given[j], rows[j].T_joint_link, atol=1e-12)
        np.testing.assert_allclose(T_body_mdh[j] @ found[j], given[j], atol=1e-9)


def test_trees_need_frames() -> None:
    robot = random_robot(3, tree=True)
    with pytest.raises(ArgumentError, match="chain"):
        distal_base_parameters(robot)
    found = distal_base_parameters(robot, [np.eye(4)] * robot.dof)
    assert found.rank == base_parameters(robot).rank
    with pytest.raises(ArgumentError, match="frames"):
        distal_base_parameters(robot, [np.eye(4)])


def test_a_wanted_parameter_is_kept() -> None:
    assert "YY2" not in distal_base_parameters(zoo.puma260()).kept
    assert "YY2" in distal_base_parameters(zoo.puma260(), order=["YY2"]).kept


@pytest.mark.parametrize("wrong", [np.zeros((4, 4)), 2.0 * np.eye(4), np.diag([1.0, 1.0, -1.0, 1.0])])
def test_frames_that_are_no_rigid_motion_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(ArgumentError, match="frame of link 3 is no rigid motion"):
        distal_base_parameters(zoo.scara(), [np.eye(4), np.eye(4), wrong, np.eye(4)])
