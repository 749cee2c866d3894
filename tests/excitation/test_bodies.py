"""Bodies: distances against a quadratic program, walls against plain computation, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError
from dynid.excitation.constraints import build_constraints, measure_margins
from dynid.excitation.design import design_excitation
from dynid.excitation.hulls import Hull, all_distances, hull_distances, skeleton_hulls, split_pairs
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.search import SearchSettings
from dynid.excitation.trajectories.trajectory import PlannedMotion
from dynid.robot.model import Robot
from dynid.robot.zoo import panda

from .conftest import slope

BOX = np.array(np.meshgrid([-0.1, 0.1], [-0.04, 0.04], [0.0, 0.4])).reshape(3, -1).T
SPANS = {
    "link1": [[-0.06, 0.06], [-0.06, 0.06], [-0.33, 0.06]],
    "link3": [[-0.05, 0.13], [-0.06, 0.06], [-0.12, 0.06]],
    "link5": [[-0.05, 0.05], [-0.02, 0.12], [-0.26, 0.04]],
    "link7": [[-0.05, 0.05], [-0.05, 0.05], [0.0, 0.2]],
}
"""Boxes about the bodies of the Panda, as ranges of x, y and z [m]."""
BOXES = tuple(Hull(link=k, corners=np.array(np.meshgrid(*span)).reshape(3, -1).T) for k, span in SPANS.items())


def random_poses(rng: np.random.Generator, count: int, bodies: int) -> np.ndarray:
    """(count, bodies, 3, 4)"""
    poses = np.empty((count, bodies, 3, 4))
    poses[..., :3] = Rotation.random(count * bodies, rng).as_matrix().reshape(count, bodies, 3, 3)
    poses[..., 3] = 0.3 * rng.normal(size=(count, bodies, 3))
    return poses


def distance_by_quadratic_program(x: np.ndarray, y: np.ndarray) -> float:
    """Smallest distance of convex combinations of points x and y (k, 3), without any collision library."""
    heavy = 1e4  # weight of "shares sum to one"
    ones = np.hstack([np.ones(len(x)), np.zeros(len(y))])
    A = np.vstack([np.hstack([x.T, -y.T]), heavy * ones, heavy * (1.0 - ones)])
    return nnls(A, np.array([0.0, 0.0, 0.0, heavy, heavy]), maxiter=10000)[1]


def test_distances_are_those_of_a_quadratic_program() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(5, 3)) * [0.3, 0.2, 0.0]
    clouds = [BOX, flat, *(rng.normal(size=(k, 3)) * [0.3, 0.1, 0.2] for k in (2, 2, 4, 9, 40))]
    hulls = [Hull(link="any", corners=cloud, radius=0.01 * k) for k, cloud in enumerate(clouds)]
    pairs = np.array([rng.permutation(len(clouds))[:2] for _ in range(150)])
    rows, poses = np.arange(150), random_poses(rng, 150, len(clouds))
    near = hull_distances(hulls, poses, rows, pairs)
    placed = [[clouds[k] @ at[k, :, :3].T + at[k, :, 3] for k in pair] for pair, at in zip(pairs, poses)]
    expected = np.array([distance_by_quadratic_program(*both) for both in placed])
    bare = near.distance + 0.01 * pairs.sum(axis=1)
    apart = expected > 1e-3
    assert 0.2 < apart.mean() < 0.95
    np.testing.assert_allclose(bare[apart], expected[apart], atol=1e-5)
    assert np.all(bare[~apart] < 1e-3)
    assert near.first - near.second == pytest.approx(bare[:, None] * near.direction, abs=1e-6)
    solid = np.array([len(clouds[a]) > 2 or len(clouds[b]) > 2 for a, b in pairs])
    for (x, y), d, n, s in zip(placed, bare, near.direction, solid):  # moved out of each other, they touch
        assert not s or (x @ n).min() - (y @ n).max() == pytest.approx(d, abs=1e-5)


def test_neighbours_and_touching_bodies_are_no_pairs() -> None:
    robot = panda()
    hulls = skeleton_hulls(robot, 0.06)
    kept, near = split_pairs(robot, hulls, 0.0)
    assert len(kept)
    assert len(near)
    for pair in (*kept, *near):
        i, j = sorted(robot.link_body(hulls[k].link)[0] for k in pair)
        assert robot.bodies[j].parent != i
    assert not len(split_pairs(robot, hulls[:1], 0.0)[0])


def tilted(robot: Robot) -> MotionLimits:
    """A slope and a ground, and a random polyhedron about the origin of every moving link but the first."""
    rng = np.random.default_rng(0)
    links = [body.joint.child for body in robot.bodies[1:]]
    hulls = [Hull(link=k, corners=rng.uniform(-0.1, 0.1, (12, 3)), radius=0.02) for k in links]
    slope, ground = Workspace.behind([1, 2, -1], 0.9, name="slope"), Workspace.behind([0, 0, -2], 3.0, name="ground")
    return MotionLimits.from_robot(robot).with_workspace(slope, ground).with_hulls(*hulls)


def test_reach_is_that_of_a_plain_computation(robot: Robot) -> None:
    limits = tilted(robot)
    motion = PlannedMotion(*np.random.default_rng(1).normal(size=(4, 5, robot.dof)))
    margins = measure_margins(build_constraints(robot, limits), motion)
    found = {m.where: m.margin for m in margins if m.limit == "floor or wall"}
    poses = [link_poses(robot, q) for q in motion.q]
    for hull in limits.hulls:
        corners = np.vstack([hull.corners @ T[hull.link][:3, :3].T + T[hull.link][:3, 3] for T in poses])
        slope = (0.9 - (corners @ [1, 2, -1]).max()) / np.sqrt(6.0)
        assert found[f"link '{hull.link}': slope"] == pytest.approx(slope - 0.02)
        assert found[f"link '{hull.link}': ground"] == pytest.approx(1.5 + corners[:, 2].min() - 0.02)
    foot = robot.bodies[0].joint.child  # without a shape, by its origin
    assert found[f"link '{foot}': ground"] == pytest.approx(1.5 + min(T[foot][2, 3] for T in poses))


@pytest.mark.parametrize("kind", ["walls", "hulls"])
def test_gradients(robot: Robot, kind: str) -> None:
    arm = robot if kind == "walls" else panda()
    limits = tilted(arm) if kind == "walls" else MotionLimits.from_robot(arm).with_hulls(*BOXES, clearance=0.02)
    constraint = next(c for c in build_constraints(arm, limits) if c.name in ("floor or wall", "self-collision"))
    rng = np.random.default_rng(2)
    q, direction = rng.uniform(-2.5, 2.5, (2, 60, arm.dof))
    excess = constraint.excess(PlannedMotion.at(q))
    weight = rng.normal(size=excess.shape) * (excess > -0.4)
    assert (excess > 0.3).sum() > 5  # some overlap
    gradient = np.array(constraint.pullback(PlannedMotion.at(q), weight).q)
    rates = np.sum(weight * slope(lambda q: constraint.excess(PlannedMotion.at(q)), q, direction), axis=1)
    assert np.sum(gradient * direction, axis=1) == pytest.approx(rates, rel=1e-4, abs=1e-5)


def test_hull_limit_is_active_and_kept() -> None:
    robot, hulls = panda(), tuple(hull for hull in BOXES if hull.link != "link3")
    limits = MotionLimits.from_robot(robot, acceleration=10.0).with_hulls(*hulls, clearance=0.1)
    effort = SearchSettings(starts=1, iterations=25, outer=6)
    plan = design_excitation(robot, limits, harmonics=3, seed=1, criterion="d-optimality", settings=effort)
    q = plan.trajectory.evaluate(plan.trajectory.grid(250)[0])[0]
    pairs, _ = split_pairs(robot, hulls, 0.0)
    poses = np.array([[link_poses(robot, x)[hull.link][:3] for hull in hulls] for x in q], dtype=float)
    assert 0.1 - 1e-4 < all_distances(hulls, poses, pairs).min() < 0.12


def test_bodies_that_cannot_be_meant(robot: Robot) -> None:
    limits = MotionLimits.from_robot(robot)
    with pytest.raises(ArgumentError, match="finite points"):
        Hull(link="link", corners=[[np.nan, 0, 0]])
    with pytest.raises(ArgumentError, match="needs a floor"):
        Workspace()
    with pytest.raises(ArgumentError, match="wherever its joints are"):
        build_constraints(robot, limits.with_workspace(Workspace.floor(50.0)))
    with pytest.raises(ArgumentError, match="does not move"):
        build_constraints(robot, limits.with_workspace(Workspace.box([-1, -1, -1], [1, 1, 1], link=robot.root)))
    with pytest.raises(ArgumentError, match="box"):
        Workspace.box([1, -1, -1], [0.5, 1, 1], link="tool")
    with pytest.raises(ArgumentError, match="no direction"):
        Workspace.behind(np.zeros(3), 1.0)
