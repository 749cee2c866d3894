"""Forward kinematics and Jacobians against Pinocchio, differences and the principle of virtual work."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.compiled import link_jacobian, link_pose
from dynid.robot.model import Robot
from support.pinocchio_oracle import pinocchio_model
from support.random_robots import random_robot, random_states

TOLERANCE = 1e-11


def moving_links(robot: Robot) -> list[str]:
    return [link.name for link in robot.links if robot.link_body(link.name)[0] >= 0]


@pytest.mark.parametrize("seed", range(20))
def test_poses_and_jacobians_are_those_of_pinocchio(seed: int) -> None:
    pin = pytest.importorskip("pinocchio")
    robot = random_robot(seed, tree=bool(seed % 2))
    model = pinocchio_model(robot)
    placed = {}
    for name in moving_links(robot):
        index, T = robot.link_body(name)
        parent = model.getJointId(robot.bodies[index].joint.name)
        frame = pin.Frame(f"link {name}", parent, pin.SE3(T[:3, :3].copy(), T[:3, 3].copy()), pin.FrameType.OP_FRAME)
        placed[name] = model.addFrame(frame)
    data = model.createData()
    q = random_states(robot, 3)[0]
    for name, frame in placed.items():
        poses, jacobians = link_pose(robot, name, q), link_jacobian(robot, name, q)
        for k, state in enumerate(q):
            pin.computeJointJacobians(model, data, state)
            pin.updateFramePlacements(model, data)
            np.testing.assert_allclose(poses[k], data.oMf[frame].homogeneous, atol=TOLERANCE)
            theirs = pin.getFrameJacobian(model, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED).reshape(6, -1)
            np.testing.assert_allclose(jacobians[k], theirs, atol=TOLERANCE)


def test_fixed_links_do_not_move_and_wrong_names_are_refused() -> None:
    robot = dynid.robots.puma560()
    root = robot.links[0].name
    np.testing.assert_array_equal(link_pose(robot, root, np.zeros((2, 6))), np.broadcast_to(np.eye(4), (2, 4, 4)))
    np.testing.assert_array_equal(link_jacobian(robot, root, np.zeros(6)), np.zeros((6, 6)))
    with pytest.raises(dynid.DynidError):
        link_pose(robot, "no such link", np.zeros(6))
