"""The zoo's robots are what their sources say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.compiled import gravity_torque
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.errors import ArgumentError
from dynid.robot import zoo
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.formats.urdf import read_urdf
from support.random_robots import assert_same_torque

DATASETS = Path(__file__).parents[3] / "shared" / "datasets"
IMPOSSIBLE = {"gautier_khalil_3r", "puma260", "ddarm"}
"""Robots whose published parameters are regrouped or not those of rigid bodies, as their docstrings say."""


@pytest.mark.parametrize("name", zoo.names())
def test_every_robot_is_found_by_name_and_possible(name: str) -> None:
    robot = zoo.get(name)
    assert robot.name.startswith(name)
    assert getattr(zoo, name).__doc__
    if name not in IMPOSSIBLE:
        assert all(body.inertia.is_physical for body in robot.bodies)


def test_unknown_variants_are_refused() -> None:
    for make in (lambda: zoo.scara(joints="PPPP"), lambda: zoo.ddarm(parameters="guessed")):  # type: ignore[arg-type]
        with pytest.raises(ArgumentError):
            make()


@pytest.mark.parametrize("name", ["panda", "ur10", "ur10e", "iiwa14", "tx40", "puma560"])
def test_arms_have_limits_and_hold_themselves_up(name: str) -> None:
    robot = zoo.get(name)
    limits = [joint.limits for joint in robot.moving_joints]
    assert all(np.isfinite([x.lower, x.upper, x.velocity, x.effort]).all() for x in limits)
    q = np.random.default_rng(0).uniform([x.lower for x in limits], [x.upper for x in limits], (50, robot.dof))
    assert (np.abs(gravity_torque(robot, q)) < [x.effort for x in limits]).all()


@pytest.mark.parametrize("parameters", ["cad", "estimated"])
def test_ddarm_is_the_same_arm_in_both_frames(parameters: str) -> None:
    paper = zoo.ddarm(parameters=parameters)  # type: ignore[arg-type]
    assert_same_torque(paper, modified_dh(paper).robot, tolerance=1e-12)


def test_puma260_gravity_constants_of_the_paper() -> None:
    """Izaguirre et al. 1992, section 7.1: c12 = 5.5179, c15 = -0.1374 N m; c13 recomputed, the print is wrong."""
    robot = zoo.puma260()

    def gravity(q: list[float]) -> np.ndarray:
        state = np.array([q, np.zeros(6), np.zeros(6)])
        return newton_euler(robot, robot.parameter_vector, *state)

    straight, bent = gravity([0, 0, 0, 0, 0, 0]), gravity([0, 0, np.pi / 2, 0, 0, 0])
    np.testing.assert_allclose(straight[1] - straight[2], 5.5179, atol=1e-4)
    np.testing.assert_allclose(bent[2] - bent[4], -1.7687, atol=2e-3)
    np.testing.assert_allclose(abs(bent[4]), 0.1374, atol=5e-4)


def test_tx40_is_the_robot_of_its_model_file() -> None:
    path = DATASETS / "tx40" / "tx40_mdh_modified.urdf"
    if not path.is_file():
        pytest.skip("the TX40 data are not here")
    ours, urdf = zoo.tx40().with_terms().with_couplings(), read_urdf(path)
    assert_same_torque(ours, urdf, tolerance=1e-9)
    assert [j.limits for j in ours.moving_joints] == [j.limits for j in urdf.moving_joints]


def test_panda_is_the_robot_of_its_model_file() -> None:
    path = DATASETS / "panda_gaz" / "panda.urdf"
    if not path.is_file():
        pytest.skip("the Panda data are not here")
    urdf = read_urdf(path, hold={"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})
    assert modified_dh(urdf).rows == modified_dh(zoo.panda()).rows
    for j in range(1, 8):
        published = urdf.link(f"panda_link{j}").inertia.vector
        np.testing.assert_allclose(zoo.panda().link(f"link{j}").inertia.vector, published, atol=1e-12)
