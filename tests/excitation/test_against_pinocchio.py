"""Torques and self-collisions of designs, judged by Pinocchio and coal."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.kinematics import link_poses
from dynid.excitation.constraints import build_constraints
from dynid.excitation.design import design_excitation
from dynid.excitation.hulls import Hull, split_pairs
from dynid.excitation.limits import MotionLimits
from dynid.excitation.search import SearchSettings
from dynid.excitation.trajectories.trajectory import Motion
from dynid.robot.model import Robot
from dynid.robot.zoo import panda, puma560
from support.pinocchio_oracle import pinocchio_model

pin = pytest.importorskip("pinocchio")

PANDA_CAPSULES = (
    Hull(link="link1", corners=[[0, 0, -0.3], [0, 0, 0]], radius=0.08),
    Hull(link="link3", corners=[[0, 0, -0.05], [0, 0, 0]], radius=0.08),
    Hull(link="link5", corners=[[0, 0, -0.25], [0, 0, 0]], radius=0.07),
    Hull(link="link7", corners=[[0, 0, 0], [0, 0, 0.2]], radius=0.06),
)


def coal_distances(robot: Robot, capsules: tuple[Hull, ...], pairs, q: np.ndarray) -> np.ndarray:
    """Distances between capsules by coal, with its own capsule shapes (N, pairs)."""
    coal = pytest.importorskip("coal")
    shapes = [coal.Capsule(c.radius, float(np.linalg.norm(np.diff(c.corners, axis=0)))) for c in capsules]
    found = np.empty((len(q), len(pairs)))
    for row, position in enumerate(q):
        poses = link_poses(robot, position)
        frames = []
        for capsule in capsules:
            T = poses[capsule.link]
            axis = capsule.corners[1] - capsule.corners[0]
            turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0, 1]), axis / np.linalg.norm(axis)).matrix()
            middle = T[:3, :3] @ capsule.corners.mean(axis=0) + T[:3, 3]
            frames.append(coal.Transform3s(T[:3, :3] @ turn, middle))
        for k, (a, b) in enumerate(pairs):
            result = coal.DistanceResult()
            request = coal.DistanceRequest()
            found[row, k] = coal.distance(shapes[a], frames[a], shapes[b], frames[b], request, result)
    return found


def test_capsule_distances() -> None:
    robot = panda()
    limits = MotionLimits.from_robot(robot).with_hulls(*PANDA_CAPSULES, clearance=0.0)
    pairs, _ = split_pairs(robot, PANDA_CAPSULES, 0.0)
    q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (50, 7))
    ours = -0.1 * build_constraints(robot, limits)[-1].excess(Motion.at(q))
    theirs = coal_distances(robot, PANDA_CAPSULES, pairs, q)
    apart = theirs > 0
    assert np.abs(ours - theirs)[apart].max() < 1e-5
    assert np.all(ours[~apart] <= 1e-6)


def test_torque_limit_is_active_and_kept() -> None:
    robot = puma560()
    limits = MotionLimits.from_robot(robot, scale=0.35, acceleration=20.0)
    limits = MotionLimits(
        **{**limits.__dict__, "velocity": 6 * limits.velocity, "lower": -np.ones(6), "upper": np.ones(6)}
    )
    settings = SearchSettings(starts=1, iterations=30, outer=6)
    plan = design_excitation(robot, limits, period_s=5, criterion="d-optimality", settings=settings)
    model = pinocchio_model(robot)
    data = model.createData()
    times, _ = plan.trajectory.grid(3000)
    states = zip(*plan.trajectory.evaluate(times), strict=True)
    torque = np.array([pin.rnea(model, data, q, dq, ddq) for q, dq, ddq in states])
    share = np.abs(torque).max(axis=0) / limits.torque
    assert share.max() < 1 + 1e-4
    assert share.max() > 0.98
