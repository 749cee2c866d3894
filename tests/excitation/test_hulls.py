"""Hulls measured exactly, judged by coal; hulls covered by capsules that contain them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError
from dynid.excitation.collision.capsules import Capsule
from dynid.excitation.collision.hull_distance import hull_distances
from dynid.excitation.collision.hulls import Hull, hull_capsules, hull_pairs, overhang
from dynid.excitation.constraints import build_constraints
from dynid.excitation.criteria import DOptimality
from dynid.excitation.design import design_excitation
from dynid.excitation.design_settings import DesignGoal, SearchSettings
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectories.trajectory import Motion
from dynid.robot.model import Robot
from dynid.robot.zoo import panda

PANDA_HULLS = {
    "link1": [[-0.06, 0.06], [-0.06, 0.06], [-0.33, 0.06]],
    "link3": [[-0.05, 0.13], [-0.06, 0.06], [-0.12, 0.06]],
    "link5": [[-0.05, 0.05], [-0.02, 0.12], [-0.26, 0.04]],
    "link7": [[-0.05, 0.05], [-0.05, 0.05], [0.0, 0.2]],
}
"""Boxes about the bodies, as ranges of x, y and z [m]."""


def boxes() -> tuple[Hull, ...]:
    spans = PANDA_HULLS.items()
    return tuple(Hull(link=k, corners=np.array(np.meshgrid(*span)).reshape(3, -1).T) for k, span in spans)


def coal_shape(corners: np.ndarray):
    coal = pytest.importorskip("coal")
    vertices = coal.StdVec_Vec3s()
    vertices.extend([np.array(corner) for corner in corners])
    return coal.Convex.convexHull(vertices, True, "Qt")


def coal_distance(shapes, poses: np.ndarray) -> float:
    """Signed distance of two shapes at poses (2, 3, 4), by coal."""
    coal = pytest.importorskip("coal")
    frames = [coal.Transform3s(np.array(T[:, :3]), np.array(T[:, 3])) for T in poses]
    request = coal.DistanceRequest()
    request.gjk_tolerance = 1e-10
    return coal.distance(shapes[0], frames[0], shapes[1], frames[1], request, coal.DistanceResult())


def nearest_by_coal(robot: Robot, hulls: tuple[Hull, ...], q: np.ndarray) -> np.ndarray:
    """Distances (N, pairs) of the hulls that can collide."""
    shapes = [coal_shape(hull.corners) for hull in hulls]
    poses = [[link_poses(robot, x)[hull.link][:3] for hull in hulls] for x in q]
    pairs = hull_pairs(robot, hulls)
    return np.array([[coal_distance((shapes[a], shapes[b]), (T[a], T[b])) for a, b in pairs] for T in poses])


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
    with pytest.raises(ArgumentError, match="count is 0"):
        hull_capsules("link", BOX, 0)


def test_hulls_are_apart_wherever_their_capsules_are() -> None:
    robot = panda()
    hulls = {"link3": BOX - [0, 0, 0.3], "link7": 0.6 * BOX}
    capsules = tuple(c for link, corners in hulls.items() for c in hull_capsules(link, corners, 3))
    limits = MotionLimits.from_robot(robot).with_capsules(*capsules)
    q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (200, 7))
    zero = np.zeros_like(q)
    ours = -0.1 * build_constraints(robot, limits)[-1].excess(Motion(q, zero, zero, zero)).max(axis=1)
    shapes = [coal_shape(corners) for corners in hulls.values()]
    theirs = [coal_distance(shapes, [link_poses(robot, x)[link][:3] for link in hulls]) for x in q]
    assert np.all(ours <= np.array(theirs) + 1e-6)
    slack = sum(overhang(tuple(c for c in capsules if c.link == link), corners) for link, corners in hulls.items())
    apart = ours > 0
    assert np.all(np.array(theirs)[apart] <= ours[apart] + slack + 1e-6)


def random_poses(rng: np.random.Generator, count: int, spread: float) -> np.ndarray:
    """(count, 2, 3, 4)"""
    poses = np.empty((count, 2, 3, 4))
    poses[..., :3] = np.linalg.qr(rng.normal(size=(count, 2, 3, 3)))[0]
    poses[..., :3] *= np.sign(np.linalg.det(poses[..., :3]))[..., None, None]
    poses[..., 3] = spread * rng.normal(size=(count, 2, 3))
    return poses


def distance_by_quadratic_program(x: np.ndarray, y: np.ndarray) -> float:
    """Smallest distance of convex combinations of points x and y (k, 3), without any collision library."""
    heavy = 1e4  # weight of "shares sum to one"
    ones = np.hstack([np.ones(len(x)), np.zeros(len(y))])
    A = np.vstack([np.hstack([x.T, -y.T]), heavy * ones, heavy * (1.0 - ones)])
    return nnls(A, np.array([0.0, 0.0, 0.0, heavy, heavy]), maxiter=10000)[1]


def test_distances_are_those_of_a_quadratic_program() -> None:
    rng = np.random.default_rng(0)
    clouds = [BOX, *(rng.normal(size=(k, 3)) * [0.3, 0.1, 0.2] for k in (4, 9, 40))]
    pairs, poses = rng.integers(0, len(clouds), (100, 2)), random_poses(rng, 100, 0.3)
    near = hull_distances([Hull(link="any", corners=cloud).corners for cloud in clouds], pairs, poses)
    placed = [[clouds[k] @ T[:, :3].T + T[:, 3] for k, T in zip(pair, both)] for pair, both in zip(pairs, poses)]
    expected = np.array([distance_by_quadratic_program(*both) for both in placed])
    apart = expected > 1e-3
    assert 0.2 < apart.mean() < 0.9
    np.testing.assert_allclose(near.distance[apart], expected[apart], atol=1e-5)
    assert np.all(near.distance[~apart] < 1e-3)
    assert near.first - near.second == pytest.approx(near.distance[:, None] * near.direction, abs=1e-6)
    for (x, y), d, n in zip(placed, near.distance, near.direction):  # moved out of each other, they touch
        assert (x @ n).min() - (y @ n).max() == pytest.approx(d, abs=1e-5)


def test_flat_hulls() -> None:
    plate = Hull(link="a", corners=[[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    point = Hull(link="b", corners=[[0.0, 0, 0]])
    poses = np.array([[np.eye(3, 4), np.eye(3, 4)]] * 3)
    poses[:, 1, :, 3] = [[0.3, 0.4, 0.5], [2, 0.5, 0], [0.5, 0.5, 0]]
    near = hull_distances((plate.corners, point.corners), np.array([[0, 1]] * 3), poses)
    assert near.distance == pytest.approx([0.5, 1.0, 0.0], abs=1e-6)


def test_gradient_of_hull_distances() -> None:
    robot = panda()
    limits = MotionLimits.from_robot(robot).with_hulls(*boxes(), clearance=0.02)
    constraint = build_constraints(robot, limits)[-1]
    rng = np.random.default_rng(1)
    q, zero = rng.uniform(-2.5, 2.5, (60, 7)), np.zeros((60, 7))
    excess = constraint.excess(Motion(q, zero, zero, zero))
    weight = rng.normal(size=excess.shape) * (excess > -0.4)
    assert (excess > 0.3).sum() > 5  # some overlap
    gradient = np.array(constraint.pullback(Motion(q, zero, zero, zero), weight).q)
    direction, h = rng.normal(size=q.shape), 1e-6
    ends = [constraint.excess(Motion(q + s * h * direction, zero, zero, zero)) for s in (1, -1)]
    rates = np.sum(weight * (ends[0] - ends[1]), axis=1) / (2 * h)
    assert np.sum(gradient * direction, axis=1) == pytest.approx(rates, rel=1e-4, abs=1e-5)


def test_hull_limit_is_active_and_kept_by_coal() -> None:
    robot, hulls = panda(), tuple(hull for hull in boxes() if hull.link != "link3")
    limits = MotionLimits.from_robot(robot, acceleration=10.0).with_hulls(*hulls, clearance=0.05)
    effort, goal = SearchSettings(starts=1, iterations=25, outer=6), DesignGoal(criterion=DOptimality())
    plan = design_excitation(robot, limits, harmonics=3, seed=1, goal=goal, settings=effort)
    times, _ = plan.trajectory.grid(250)
    nearest = nearest_by_coal(robot, hulls, plan.trajectory.evaluate(times)[0]).min()
    assert 0.05 - 1e-4 < nearest < 0.07
