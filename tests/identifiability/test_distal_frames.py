"""Base parameters in standard DH frames, at the far end of each link ([Izaguirre1992] section 6.1)."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.compiled import inverse_dynamics
from dynid.identifiability import distal_base_parameters
from dynid.identifiability.base import base_parameters
from dynid.identifiability.dh_frames import distal_frames
from dynid.identifiability.numeric import random_states, sample_regressor
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
    found, to_body = distal_base_parameters(zoo.puma260())
    assert len(TABLE_1) == found.rank == 52
    assert sorted(found.kept) == sorted(TABLE_1)
    theta = np.linalg.solve(to_body, zoo.puma260().parameter_vector)
    values = dict(zip(found.kept, found.project(theta), strict=True))
    assert values["M6"] == pytest.approx(2.768114)
    assert values["XX4"] == pytest.approx(0.079781)
    assert values["MY4"] == pytest.approx(-0.38219)


@pytest.mark.parametrize("seed", range(15))
def test_torques_and_rank_do_not_depend_on_the_frames(seed: int) -> None:
    robot = random_robot(seed, joints=1 + seed % 6, terms=bool(seed % 2))
    found, to_body = distal_base_parameters(robot)
    states = random_states(robot, 3 * robot.dof + 10, seed=seed)
    torque = inverse_dynamics(robot, states.q, states.dq, states.ddq)
    values = found.project(np.linalg.solve(to_body, robot.parameter_vector))
    error = sample_regressor(robot, states) @ to_body[:, list(found.columns)] @ values - torque
    assert np.abs(error).max() < 1e-9 * max(1.0, np.abs(torque).max())
    Y = sample_regressor(robot, states).reshape(-1, len(found.layout))
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


def test_a_wanted_parameter_is_kept() -> None:
    assert "YY2" not in distal_base_parameters(zoo.puma260()).base.kept
    assert "YY2" in distal_base_parameters(zoo.puma260(), order=["YY2"]).base.kept
