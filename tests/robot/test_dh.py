"""DH tables: both conventions, exactness, bad input, and the way back from any serial robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.kinematics import body_poses, link_poses
from dynid.errors import ArgumentError, DescriptionError
from dynid.robot import zoo
from dynid.robot.formats.dh import DH, StandardDH, from_dh
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.parts import Joint, Link
from dynid.spatial import transform
from dynid.terms.friction import Coulomb, Viscous
from identifiability.random_robots import random_tree
from support.random_robots import assert_same_torque, random_inertia, random_states

X, Z = 0, 2


def screw(coordinate: int, angle: float, length: float) -> np.ndarray:
    """Plain textbook turn about and shift along a coordinate axis."""
    c, s = np.cos(angle), np.sin(angle)
    R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]] if coordinate == X else [[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return transform(R, length * np.eye(3)[coordinate])


@pytest.mark.parametrize("sigma", [0, 1])
def test_modified_row_is_its_textbook_product(sigma: int) -> None:
    """And a standard row is the same two screws in the other order."""
    q = 0.9
    across, along = screw(X, 0.3, 0.2), screw(Z, -0.7 + q * (1 - sigma), 0.4 + q * sigma)
    modified = DH(alpha=0.3, d=0.2, theta=-0.7, r=0.4, sigma=sigma)
    standard = StandardDH(a=0.2, alpha=0.3, d=0.4, theta=-0.7, sigma=sigma)
    for row, expected in ((modified, across @ along), (standard, along @ across)):
        np.testing.assert_allclose(link_poses(from_dh([row]), np.array([q]))["link1"], expected, atol=1e-15)


@pytest.mark.parametrize("quarters", range(-5, 6))
def test_right_angles_are_exact(quarters: int) -> None:
    for row in (DH(alpha=quarters * 90, theta=-quarters * 90).in_radians(), DH(alpha=quarters * np.pi / 2)):
        assert set(np.abs(row.T_previous_joint).ravel()) <= {0.0, 1.0}


@pytest.mark.parametrize("row", [DH(alpha=-90), DH(theta=180), StandardDH(alpha=90)])
def test_degrees_in_place_of_radians_are_refused(row: DH | StandardDH) -> None:
    with pytest.raises(DescriptionError, match=r"row 1: .* rad, which is more than a whole turn.*degrees=True"):
        from_dh([row])  # type: ignore[arg-type]
    assert from_dh([row], degrees=True).dof == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("angle", [np.pi / 2, -1.5708, 3.1416])
def test_radians_in_place_of_degrees_are_refused(angle: float) -> None:
    with pytest.raises(DescriptionError, match=r"row 2: alpha is .* degrees, which is a right angle in radians"):
        from_dh([DH(), DH(alpha=angle)], degrees=True)
    assert from_dh([DH(), DH(alpha=1.5)], degrees=True).dof == 2


BAD = """
from_dh([]) -> no row
from_dh([DH(), StandardDH()]) -> the rows are DH and StandardDH
from_dh([{"a": 0.3}]) -> the rows are dict
from_dh([DH(), DH()], inertias=[None]) -> 1 inertias for 2
from_dh([DH()], limits=[None] * 2) -> 2 limits for 1
from_dh([DH()], terms=[]) -> 0 terms
from_dh([DH()], gravity=(0, 0)) -> shape
DH(theta=np.nan) -> theta
DH(r="1") -> r is
"""
"""Call -> what the refusal names."""


@pytest.mark.parametrize("case", BAD.strip().splitlines())
def test_bad_tables_are_refused(case: str) -> None:
    call, message = case.split(" -> ")
    with pytest.raises((ArgumentError, DescriptionError), match=message):
        eval(call)


# --- from any serial robot to modified DH ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(160))
def test_modified_dh_keeps_kinematics_and_torques(seed: int) -> None:
    """Chains with axes parallel, coincident, intersecting or skew, in any frames."""
    robot = random_tree(seed, 1 + seed % 7, (Viscous(0.1), Coulomb(0.2)), chain=True)
    robot = robot.with_parameters(np.random.default_rng(seed).normal(size=robot.parameter_vector.size))
    table = modified_dh(robot)
    assert table.deviation < 1e-11
    assert_same_torque(robot, table.robot, tolerance=1e-10)
    for q in random_states(robot, 3)[0]:
        old, new = body_poses(robot, q), body_poses(table.robot, q)
        for (R, p), (R_new, p_new), T_body_mdh in zip(old, new, table.T_body_mdh, strict=True):
            expected = transform(R, p) @ T_body_mdh
            np.testing.assert_allclose(table.T_base_0 @ transform(R_new, p_new), expected, atol=1e-11)
    for body, mapped, T in zip(robot.bodies, table.robot.bodies, table.T_body_mdh, strict=True):
        np.testing.assert_allclose(mapped.inertia.in_frame(T).vector, body.inertia.vector, atol=1e-10)


def test_the_first_row_and_the_last_frame_are_free_of_offsets() -> None:
    rows = modified_dh(zoo.panda()).rows
    assert rows[0] == DH()
    assert (rows[-1].theta, rows[-1].r) == (0, 0)


def test_a_prismatic_axis_is_moved_to_its_neighbours() -> None:
    cartesian = from_dh(
        [DH(sigma=1, r=1.0), DH(alpha=-90, d=0.3, sigma=1, r=0.2), DH(alpha=90, d=0.7, r=0.5, sigma=1)], degrees=True
    )
    assert [(row.d, row.r, row.theta) for row in modified_dh(cartesian).rows] == [(0, 0, 0)] * 3


def test_nearly_parallel_axes_are_taken_as_parallel() -> None:
    robot = from_dh([DH(), DH(alpha=4e-6, d=1.0), DH(d=1.0)], inertias=[random_inertia(np.random.default_rng(1))] * 3)
    table = modified_dh(robot)
    assert [row.alpha for row in table.rows] == [0, 0, 0]
    assert 0 < table.deviation < 1e-5
    assert_same_torque(robot, table.robot, tolerance=1e-4)


def test_a_tree_has_no_dh_table() -> None:
    robot = from_dh([DH(), DH()])
    branch = Joint(name="branch", kind="revolute", parent="link1", child="twig")
    tree = replace(robot, links=(*robot.links, Link(name="twig")), joints=(*robot.joints, branch))
    with pytest.raises(ArgumentError, match="not a serial chain"):
        modified_dh(tree)
