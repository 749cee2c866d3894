"""Limits: values against plain computation, gradients against central differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError
from dynid.excitation.constraints import build_constraints, measure_margins
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.measured import with_smooth_friction
from dynid.excitation.trajectories.trajectory import PlannedMotion
from dynid.robot.model import Robot
from dynid.robot.zoo import puma560

from .conftest import all_limits, arm, slope


def random_motion(robot: Robot, samples: int = 6, seed: int = 0) -> PlannedMotion:
    rng = np.random.default_rng(seed)
    return PlannedMotion(*rng.normal(size=(4, samples, robot.dof)))


@pytest.mark.parametrize("seed", range(3))
def test_gradients(seed: int) -> None:
    robot = with_smooth_friction(arm(seed, joints=5))
    motion = random_motion(robot, seed=seed)
    rng = np.random.default_rng(seed)
    for constraint in build_constraints(robot, all_limits(robot)):
        weight = rng.normal(size=constraint.excess(motion).shape)
        exact = np.array(constraint.pullback(motion, weight))
        direction = rng.normal(size=exact.shape)
        rates = slope(lambda x, c=constraint: c.excess(PlannedMotion(*x)), np.array(motion), direction)
        assert np.vdot(exact, direction) == pytest.approx(np.vdot(weight, rates), rel=2e-5, abs=1e-6), constraint.name


def test_margins_are_those_of_a_plain_computation(robot: Robot) -> None:
    limits = all_limits(robot)
    motion = random_motion(robot, seed=4)
    found = measure_margins(build_constraints(robot, limits), motion)
    theta = robot.parameter_vector
    torque = np.array([newton_euler(robot, theta, *state) for state in zip(*motion[:3], strict=True)])
    of_joint = [m.margin for m in found if m.limit == "torque" and robot.joint_names[1] in m.where]
    assert min(of_joint) == pytest.approx((limits.torque - np.abs(torque).max(axis=0))[1])
    tool = limits.workspaces[0]
    poses = [link_poses(robot, q)[tool.link] for q in motion.q]
    highest = max((T[:3, :3] @ tool.point + T[:3, 3])[2] for T in poses)
    wall = next(m for m in found if m.limit == "workspace" and "z <= 0.7" in m.where)
    assert wall.margin == pytest.approx(0.7 - highest)


def test_tool_speed_is_the_rate_of_the_tool_position(robot: Robot) -> None:
    link = robot.bodies[-1].joint.child
    limits = MotionLimits.from_robot(robot).with_workspace(Workspace(link=link, point=np.ones(3) * 0.1, speed=1.0))
    speed = build_constraints(robot, limits)[-1]
    q, dq = np.random.default_rng(0).normal(size=(2, robot.dof))
    zero = np.zeros((1, robot.dof))

    def position(q: np.ndarray) -> np.ndarray:
        T = link_poses(robot, q)[link]
        return T[:3, :3] @ np.full(3, 0.1) + T[:3, 3]

    expected = np.linalg.norm(slope(position, q, dq))
    assert speed.excess(PlannedMotion(q[None], dq[None], zero, zero))[0, 0] + 1 == pytest.approx(expected, rel=1e-7)


def test_from_robot_scales_every_limit() -> None:
    robot = puma560()
    limits = MotionLimits.from_robot(robot, scale=0.5, acceleration=4.0)
    first = robot.moving_joints[1].limits
    assert limits.upper[1] - limits.lower[1] == pytest.approx(0.5 * (first.upper - first.lower))
    assert limits.upper[1] + limits.lower[1] == pytest.approx(first.upper + first.lower)
    assert limits.torque[1] == pytest.approx(0.5 * first.effort)
    assert np.all(limits.acceleration == 4.0)
    assert np.all(np.isinf(limits.jerk))


def test_wrong_limits_are_refused(robot: Robot) -> None:
    limits = MotionLimits.from_robot(robot)
    with pytest.raises(ArgumentError, match="scale"):
        MotionLimits.from_robot(robot, scale=1.5)
    with pytest.raises(ArgumentError, match="one for each"):
        replace(limits, jerk=np.ones(2))
    with pytest.raises(ArgumentError, match="exceeds"):
        replace(limits, lower=limits.upper + 1)
