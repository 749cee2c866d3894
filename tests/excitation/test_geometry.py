"""Collision shapes of URDFs as hulls: against Pinocchio's own reading of the same files, and damaged meshes."""

from __future__ import annotations

import struct
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import ArgumentError, DescriptionError
from dynid.excitation.collision_shapes import read_stl, urdf_hulls
from dynid.excitation.constraints import build_constraints, measure_margins
from dynid.excitation.hulls import split_pairs
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectories.trajectory import PlannedMotion
from dynid.robot.formats.urdf import read_urdf
from dynid.robot.model import Robot
from dynid.robot.zoo import ur10
from support.described import parse_urdf, tetrahedron

SHARE = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix" / "share"
PANDA = SHARE / "example-robot-data" / "robots" / "panda_description" / "urdf" / "panda.urdf"

SHAPES = """<robot name="shapes"><link name="base"/>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/><geometry><box size="2 4 6"/></geometry></collision>
  <collision><geometry><cylinder radius="0.5" length="2"/></geometry></collision>
  <collision><geometry><sphere radius="0.3"/></geometry></collision>{more}</link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def shapes(more: str = "") -> Robot:
    return parse_urdf(SHAPES.format(more=more))


def support(corners: np.ndarray, directions: np.ndarray) -> np.ndarray:
    return (corners @ directions.T).max(axis=0)


def test_shapes_hold_what_they_stand_for() -> None:
    box, cylinder, sphere = urdf_hulls(shapes())
    d = np.random.default_rng(0).normal(size=(500, 3))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    assert support(box.corners, d) == pytest.approx(d[:, 0] + np.abs(d) @ [2.0, 1.0, 3.0])
    exact = 0.5 * np.hypot(d[:, 0], d[:, 1]) + np.abs(d[:, 2])
    ratio = support(cylinder.corners, d) / exact
    assert ratio.min() > 1 - 1e-12
    assert ratio.max() < 1.01
    assert (sphere.corners.tolist(), sphere.radius) == ([[0.0, 0.0, 0.0]], 0.3)


@pytest.mark.skipif(not PANDA.exists(), reason="example-robot-data is not installed")
def test_panda_meshes_are_as_far_apart_as_pinocchio_says() -> None:
    pin = pytest.importorskip("pinocchio")
    robot = read_urdf(PANDA, hold={"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})
    hulls = tuple(hull for hull in urdf_hulls(robot, SHARE) if "finger" not in hull.link)
    pairs, _ = split_pairs(robot, hulls, 0.0)
    assert len(hulls) == 9
    assert len(pairs)
    limits = MotionLimits.from_robot(robot).with_hulls(*hulls, clearance=0.0)
    q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (20, 7))
    margins = measure_margins(build_constraints(robot, limits), PlannedMotion.at(q))
    found = [m.margin for m in margins if m.limit == "self-collision"]
    model = pin.buildModelFromUrdf(str(PANDA))
    geometry = pin.buildGeomFromUrdf(model, str(PANDA), pin.GeometryType.COLLISION, package_dirs=str(SHARE))
    names = [hulls[k].link for pair in pairs for k in pair]
    ids = {
        name: next(k for k, g in enumerate(geometry.geometryObjects) if g.name.startswith(name + "_")) for name in names
    }
    for name in ids:
        geometry.geometryObjects[ids[name]].geometry.buildConvexHull(True, "Qt")
        geometry.geometryObjects[ids[name]].geometry = geometry.geometryObjects[ids[name]].geometry.convex
    for a, b in pairs:
        geometry.addCollisionPair(pin.CollisionPair(ids[hulls[a].link], ids[hulls[b].link]))
    data, geometry_data = model.createData(), geometry.createData()
    theirs = []
    for position in q:
        pin.computeDistances(model, data, geometry, geometry_data, np.concatenate([position, [0.0, 0.0]]))
        theirs.append([result.min_distance for result in geometry_data.distanceResults])
    nearest = np.min(theirs, axis=0)
    apart = nearest > 0
    assert apart.sum() > 3
    assert np.array(found)[apart] == pytest.approx(nearest[apart], abs=1e-5)
    assert np.all(np.array(found)[~apart] <= 1e-6)


def test_meshes_are_opened_only_where_allowed(tmp_path: Path) -> None:
    mesh = '<collision><geometry><mesh filename="{}" scale="0.001 0.001 0.001"/></geometry></collision>'
    inside = tmp_path / "meshes"
    (inside / "arm").mkdir(parents=True)
    (inside / "arm" / "link.stl").write_bytes(tetrahedron(1000.0))
    (tmp_path / "secret.stl").write_bytes(tetrahedron(1000.0))
    robot = shapes(mesh.format("package://arm/link.stl"))
    assert np.ptp(urdf_hulls(robot, inside)[-1].corners, axis=0) == pytest.approx(np.ones(3))
    with pytest.raises(ArgumentError, match="meshes"):
        urdf_hulls(robot)
    with pytest.raises(DescriptionError, match="no mesh"):
        urdf_hulls(shapes(mesh.format("package://../secret.stl")), inside)
    with pytest.raises(DescriptionError, match="no mesh"):
        urdf_hulls(shapes(mesh.format(f"file://{tmp_path}/secret.stl")), inside)
    with pytest.raises(ArgumentError, match="URDF"):
        urdf_hulls(ur10())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.dae", b"<xml/>"),
        ("c.stl", b" " * 80 + struct.pack("<I", 2**31)),
        ("d.stl", b"solid\nvertex 1 2 x\n"),
        ("f.stl", b" " * 80 + struct.pack("<I", 1) + struct.pack("<12fH", *[float("nan")] * 12, 0)),
    ],
)
def test_damaged_meshes_are_refused(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DescriptionError):
        read_stl(tmp_path / name)
    with pytest.raises(DescriptionError):
        read_stl(tmp_path / f"none_{name}")
