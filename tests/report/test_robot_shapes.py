"""Shapes of a robot in the player: primitives and STL meshes at their places, within the size of a page."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from dynid.dynamics.kinematics import body_poses
from dynid.report.html_blocks import Player
from dynid.report.replay import _poses, play_motion
from dynid.report.sections.robot_shapes import MOST_TRIANGLES, link_shapes
from dynid.robot.formats.urdf import read_urdf
from dynid.robot.zoo import ur10
from support.random_robots import random_robot

URDF = """<robot name="arm">
  <link name="base"><visual><geometry><box size="0.2 0.2 0.1"/></geometry></visual></link>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0.5"/><geometry><mesh filename="package://arm_description/meshes/{name}"/></geometry></visual>
    <visual><origin xyz="0 0 1"/><geometry><cylinder radius="0.1" length="0.4"/></geometry></visual>
    <visual><geometry><mesh filename="package://elsewhere/missing.stl"/></geometry></visual>
  </link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 2"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>"""


def write_stl(path: Path, rows: int) -> None:
    """A bumpy square of 2 rows^2 triangles, 0.3 m wide."""
    x, y = np.meshgrid(*[np.linspace(0.0, 0.3, rows + 1)] * 2, indexing="ij")
    p = np.stack([x, y, 0.01 * np.sin(40 * x) * np.sin(40 * y)], axis=2)
    first = np.stack([p[:-1, :-1], p[1:, :-1], p[:-1, 1:]], axis=2).reshape(-1, 9)
    second = np.stack([p[1:, 1:], p[:-1, 1:], p[1:, :-1]], axis=2).reshape(-1, 9)
    triangles = np.concatenate([first, second])
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *row, 0) for row in triangles)
    path.write_bytes(bytes(80) + struct.pack("<I", len(triangles)) + body)


def test_shapes_stand_where_the_urdf_puts_them_and_stay_small(tmp_path: Path) -> None:
    package = tmp_path / "arm_description"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    write_stl(package / "meshes" / "upper.stl", rows=100)  # 20 000 triangles
    path = package / "urdf" / "arm.urdf"
    path.write_text(URDF.format(name="upper.stl"))
    robot = read_urdf(path)
    base, mesh, cylinder = link_shapes(robot)
    assert (base.body, mesh.body, cylinder.body) == (-1, 0, 0)
    assert np.allclose(np.ptp(base.corners, axis=0), [0.2, 0.2, 0.1])
    assert np.allclose(mesh.corners[:, 2].mean(), 0.5, atol=0.01)
    assert np.allclose(np.ptp(mesh.corners, axis=0)[:2], 0.3, atol=0.02)
    assert np.allclose(cylinder.corners.mean(axis=0), [0.0, 0.0, 1.0])
    assert sum(len(shape.faces) for shape in (base, mesh, cylinder)) <= 1.1 * MOST_TRIANGLES
    for shape in (base, mesh, cylinder):
        assert shape.faces.max() < len(shape.corners) < 65536
    _, player = play_motion(robot, np.arange(3.0), np.array([[0.0], [0.5], [1.0]]))
    assert isinstance(player, Player)
    assert len(player.to_html()) < 300_000
    poses = np.frombuffer(base64.b64decode(player.data["poses"]), "<f4").reshape(3, 2, 12)
    assert np.allclose(poses[:, 0], [*np.eye(3).ravel(), 0, 0, 0])
    assert np.allclose(poses[1, 1], [1, 0, 0, 0, np.cos(0.5), -np.sin(0.5), 0, np.sin(0.5), np.cos(0.5), 0, 0, 2])


def test_without_shapes_lines_are_drawn() -> None:
    assert link_shapes(ur10()) == ()
    _, player = play_motion(ur10(), np.arange(2.0), np.zeros((2, 6)))
    assert isinstance(player, Player)
    assert "meshes" not in player.data


@pytest.mark.parametrize(
    "shape", ['box size="0.2 0.3 0.5"', 'cylinder radius="0.1" length="0.4"', 'sphere radius="0.2"']
)
def test_simple_shapes_are_closed_and_convex(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "one.urdf"
    path.write_text(
        f'<robot name="one"><link name="base"><visual><geometry><{shape}/></geometry></visual></link><link name="arm"/>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>'
    )
    (drawn,) = link_shapes(read_urdf(path))
    a, b, c = (drawn.corners[drawn.faces[:, k]] for k in range(3))
    hull = ConvexHull(drawn.corners)
    assert np.isclose(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum(), hull.area, rtol=1e-4)
    heights = hull.equations[:, :3] @ drawn.corners.T + hull.equations[:, 3:]
    assert np.all(np.abs(heights.max(axis=0)) < 1e-6)  # no corner lies inside


def test_frames_together_are_the_poses_one_by_one() -> None:
    robot = random_robot(3, joints=5)
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (4, robot.dof))
    turned, moved = _poses(robot, q)
    for frame, state in enumerate(q):
        for j, (R, p) in enumerate(body_poses(robot, state)):
            np.testing.assert_allclose(turned[frame, j], R, atol=1e-14)
            np.testing.assert_allclose(moved[frame, j], p, atol=1e-14)


def test_a_shape_of_the_gripper_alone_is_not_drawn(tmp_path: Path) -> None:
    """The meshes of most links are elsewhere: a finger that floats in the air would be all that one sees."""
    box = '<visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>'
    links = "".join(f'<link name="l{k}">{box if k == 3 else ""}</link>' for k in range(4))
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/></joint>' for k in range(3)
    )
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="arm">{links}{joints}</robot>')
    assert link_shapes(read_urdf(path)) == ()
