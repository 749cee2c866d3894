"""Hulls covered by capsules: they contain the hull, come closer with their number, and keep hulls apart by coal."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError
from dynid.excitation.capsules import Capsule
from dynid.excitation.constraints import build_constraints
from dynid.excitation.hulls import hull_capsules, overhang
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectory import Motion
from dynid.robot.zoo import panda

BOX = np.array(np.meshgrid([-0.1, 0.1], [-0.04, 0.04], [0.0, 0.4])).reshape(3, -1).T


def outside(capsules: tuple[Capsule, ...], points: np.ndarray) -> np.ndarray:
    """Distance of points to the nearest capsule, negative inside (k,)."""
    found = []
    for c in capsules:
        axis = c.end - c.start
        place = np.clip((points - c.start) @ axis / max(axis @ axis, 1e-30), 0, 1)
        found.append(np.linalg.norm(points - c.start - place[:, None] * axis, axis=1) - c.radius)
    return np.min(found, axis=0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 2, 5])
def test_capsules_contain_the_hull(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    corners = BOX if seed == 0 else rng.normal(size=(6 + 4 * seed, 3)) * [0.3, 0.1, 0.05]
    capsules = hull_capsules("link", corners, count)
    assert len(capsules) == count
    inside = rng.dirichlet(np.full(len(corners), 0.2), size=3000) @ corners
    assert outside(capsules, np.vstack([corners, inside])).max() < 1e-9


def test_more_capsules_come_closer() -> None:
    reach = [overhang(hull_capsules("link", BOX, count), BOX) for count in (1, 2, 4)]
    assert reach[0] > reach[1] > reach[2] > 0.0
    assert reach[0] < 0.1078  # half the diagonal of the section


def test_degenerate_hulls() -> None:
    (point,) = hull_capsules("link", [[1.0, 2, 3]], 3)
    assert np.allclose([point.start, point.end], [1, 2, 3])
    (line,) = hull_capsules("link", [[0.0, 0, 0], [0, 0, 1], [0, 0, 0.3]], 2)
    assert np.linalg.norm(line.end - line.start) == pytest.approx(1.0, abs=1e-4)
    plate = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    assert (
        outside(hull_capsules("link", plate, 4), np.random.default_rng(0).dirichlet(np.ones(4), 500) @ plate).max() < 0
    )
    with pytest.raises(ArgumentError, match="finite points"):
        hull_capsules("link", [[np.nan, 0, 0]])
    with pytest.raises(ArgumentError, match="at least one"):
        hull_capsules("link", BOX, 0)


def test_hulls_are_apart_wherever_their_capsules_are() -> None:
    coal = pytest.importorskip("coal")
    robot = panda()
    hulls = {"link3": BOX - [0, 0, 0.3], "link7": 0.6 * BOX}
    capsules = tuple(c for link, corners in hulls.items() for c in hull_capsules(link, corners, 3))
    limits = MotionLimits.from_robot(robot).with_capsules(*capsules)
    q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (200, 7))
    zero = np.zeros_like(q)
    ours = -0.1 * build_constraints(robot, limits)[-1].excess(Motion(q, zero, zero, zero)).max(axis=1)
    shapes = []
    for corners in hulls.values():
        vertices = coal.StdVec_Vec3s()
        vertices.extend([np.array(corner) for corner in corners])
        shapes.append(coal.Convex.convexHull(vertices, True, "Qt"))
    theirs = []
    for position in q:
        poses = [link_poses(robot, position)[link] for link in hulls]
        frames = [coal.Transform3s(np.array(T[:3, :3]), np.array(T[:3, 3])) for T in poses]
        result = coal.DistanceResult()
        theirs.append(coal.distance(shapes[0], frames[0], shapes[1], frames[1], coal.DistanceRequest(), result))
    assert np.all(ours <= np.array(theirs) + 1e-6)
    slack = sum(overhang(tuple(c for c in capsules if c.link == link), corners) for link, corners in hulls.items())
    apart = ours > 0
    assert np.all(np.array(theirs)[apart] <= ours[apart] + slack + 1e-6)
