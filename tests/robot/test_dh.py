"""DH tables: both conventions, exactness, bad input, and the way back from any serial robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.dynamics.kinematics import body_poses, link_poses
from dynid.errors import ArgumentError, DescriptionError
from dynid.robot import zoo
from dynid.robot.formats.dh import DH, StandardDH, from_dh
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.spatial import inverse_transform, rotation_from_quaternion, transform
from dynid.terms.friction import Coulomb, Viscous

X, Z = 0, 2


def screw(coordinate: int, angle: float, length: float) -> np.ndarray:
    """Plain textbook turn about and shift along a coordinate axis."""
    c, s = np.cos(angle), np.sin(angle)
    R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]] if coordinate == X else [[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return transform(R, length * np.eye(3)[coordinate])


def random_inertia(rng: np.random.Generator) -> Inertia:
    points = rng.normal(scale=0.2, size=(4, 3))
    bodies = [Inertia.from_com(m, p, np.zeros((3, 3))) for m, p in zip(rng.uniform(0.1, 2, 4), points, strict=True)]
    return sum(bodies, Inertia.zero())


def random_pose(rng: np.random.Generator) -> np.ndarray:
    return transform(rotation_from_quaternion(rng.normal(size=4)), rng.normal(scale=0.5, size=3))


def states(robot: Robot, rng: np.random.Generator, count: int = 3) -> list[np.ndarray]:
    return [rng.normal(size=(3, robot.dof)) for _ in range(count)]


def assert_same_torque(one: Robot, other: Robot, rng: np.random.Generator, tolerance: float = 1e-11) -> None:
    for q, dq, ddq in states(one, rng):
        expected = newton_euler(one, one.parameter_vector, q, dq, ddq)
        actual = newton_euler(other, other.parameter_vector, q, dq, ddq)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("sigma", [0, 1])
def test_modified_row_is_its_textbook_product(sigma: int) -> None:
    row, q = DH(alpha=0.3, d=0.2, theta=-0.7, r=0.4, sigma=sigma), 0.9
    expected = screw(X, 0.3, 0.2) @ screw(Z, -0.7 + q * (1 - sigma), 0.4 + q * sigma)
    np.testing.assert_allclose(link_poses(from_dh([row]), np.array([q]))["link1"], expected, atol=1e-15)


@pytest.mark.parametrize("sigma", [0, 1])
def test_standard_row_is_its_textbook_product(sigma: int) -> None:
    row, q = StandardDH(a=0.2, alpha=0.3, d=0.4, theta=-0.7, sigma=sigma), 0.9
    expected = screw(Z, -0.7 + q * (1 - sigma), 0.4 + q * sigma) @ screw(X, 0.3, 0.2)
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
from_dh([DH(), DH()], inertias=[Inertia.zero()]) -> 1 inertias for 2
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


@st.composite
def serial_robots(draw: st.DrawFn) -> Robot:
    """Chains with axes parallel, coincident, intersecting or skew, in frames turned and shifted at random."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 7))
    relations = st.sampled_from(["parallel", "antiparallel", "coincident", "intersecting", "right", "skew"])
    T_before, links, joints = np.eye(4), [Link(name="base")], []
    for j in range(1, n + 1):
        T_axis = _axis_pose(draw(relations), rng)  # z is the joint axis
        T_axis_frame = random_pose(rng)
        revolute = draw(st.booleans())
        if revolute:  # the body frame lies anywhere on the axis, turned anyhow
            T_axis_frame[:2, 3] = 0.0
        joints.append(
            Joint(
                name=f"j{j}",
                kind="revolute" if revolute else "prismatic",
                parent=links[-1].name,
                child=f"l{j}",
                T_parent_joint=T_before @ T_axis @ T_axis_frame,
                axis=T_axis_frame[:3, :3].T @ np.array([0, 0, 1.0]),
                terms=(Viscous(0.1 * j), Coulomb(0.2)),
            )
        )
        links.append(Link(name=f"l{j}", inertia=random_inertia(rng)))
        T_before = inverse_transform(T_axis_frame)
    return Robot(name="random", links=tuple(links), joints=tuple(joints), gravity=rng.normal(size=3) * 5)


def _axis_pose(relation: str, rng: np.random.Generator) -> np.ndarray:
    along = screw(Z, rng.uniform(-3, 3), rng.normal())
    across = {
        "parallel": (0.0, rng.uniform(0.1, 1)),
        "antiparallel": (np.pi, rng.uniform(0.1, 1)),
        "coincident": (0.0, 0.0),
        "intersecting": (rng.uniform(0.2, 2.9), 0.0),
        "right": (rng.choice([-1, 1]) * np.pi / 2, rng.normal()),
        "skew": (rng.uniform(0.2, 2.9), rng.normal()),
    }[relation]
    return along @ screw(X, *across)


@settings(max_examples=40, deadline=None)
@given(robot=serial_robots(), seed=st.integers(0, 1000))
def test_modified_dh_keeps_kinematics_and_torques(robot: Robot, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = modified_dh(robot)
    assert table.deviation < 1e-11
    assert_same_torque(robot, table.robot, rng, tolerance=1e-10)
    for q, _, _ in states(robot, rng):
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
    assert_same_torque(robot, table.robot, np.random.default_rng(2), tolerance=1e-4)


def test_a_tree_has_no_dh_table() -> None:
    robot = from_dh([DH(), DH()])
    branch = Joint(name="branch", kind="revolute", parent="link1", child="twig")
    tree = replace(robot, links=(*robot.links, Link(name="twig")), joints=(*robot.joints, branch))
    with pytest.raises(ArgumentError, match="not a serial chain"):
        modified_dh(tree)
