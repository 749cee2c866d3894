"""Random robots and states for tests: serial and tree, revolute and prismatic, any axis, any gravity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.spatial import rotation_from_rpy, transform
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia


def random_inertia(rng: np.random.Generator) -> Inertia:
    """A physical body: its pseudo-inertia is a random positive definite matrix."""
    root = rng.normal(size=(4, 4))
    pseudo = root @ root.T
    second_moment = pseudo[:3, :3]
    return Inertia(
        mass=float(pseudo[3, 3]),
        first_moment=pseudo[:3, 3],
        about_origin=np.trace(second_moment) * np.eye(3) - second_moment,
    )


def with_new_numbers(robot: Robot, seed: int = 3) -> Robot:
    """Other inertias on every link that has one, other values of all terms."""
    rng = np.random.default_rng(seed)
    links = [replace(link, inertia=random_inertia(rng)) if link.inertia.vector.any() else link for link in robot.links]
    joints = [
        joint.with_terms(tuple(term.with_value(rng.uniform(0.1, 2.0)) for term in joint.terms))
        for joint in robot.joints
    ]
    return replace(robot, links=tuple(links), joints=tuple(joints))


def random_robot(
    seed: int,
    *,
    joints: int | None = None,
    tree: bool = False,
    prismatic: bool = True,
    fixed: bool = True,
    terms: bool = False,
) -> Robot:
    """A random robot; half of its axes are coordinate axes. Branches are added depth first, as Pinocchio wants them."""
    rng = np.random.default_rng(seed)
    count = joints or int(rng.integers(1, 9))
    links, connections = [Link(name="base", inertia=random_inertia(rng))], []
    kinds = ["revolute"] * 5 + ["continuous"] + ["prismatic"] * (3 * prismatic) + ["fixed"] * fixed
    trail = ["base"]
    for index in range(count):
        if tree and len(trail) > 1 and rng.random() < 0.4:
            trail = trail[: int(rng.integers(1, len(trail)))]
        axis = rng.normal(size=3) if rng.random() < 0.5 else np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
        connections.append(
            Joint(
                name=f"joint{index}",
                kind="revolute" if index == 0 else rng.choice(kinds),
                parent=trail[-1],
                child=f"link{index}",
                T_parent_joint=transform(rotation_from_rpy(rng.normal(size=3)), rng.normal(size=3)),
                axis=axis,
            )
        )
        links.append(Link(name=f"link{index}", inertia=random_inertia(rng)))
        trail.append(f"link{index}")
    robot = Robot(
        name=f"random{seed}", links=tuple(links), joints=tuple(connections), gravity=9.81 * rng.normal(size=3)
    )
    if terms:
        robot = robot.with_terms(RotorInertia(), Viscous(), Coulomb(), Offset())
        values = robot.parameter_vector.copy()
        values[10 * robot.dof :] = rng.uniform(0.1, 1.0, values.size - 10 * robot.dof)
        robot = robot.with_parameters(values)
    return robot


def random_states(robot: Robot, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and accelerations (count, n)."""
    q, dq, ddq = np.random.default_rng(seed).normal(size=(3, count, robot.dof))
    return 2.0 * q, dq, ddq


def assert_same_torque(one: Robot, other: Robot, tolerance: float = 1e-11) -> None:
    """The torques of both robots by recursion, at three random states."""
    states = random_states(one, 3)
    for state in zip(*states, strict=True):
        expected, found = (newton_euler(robot, robot.parameter_vector, *state) for robot in (one, other))
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * (1.0 + np.abs(expected).max()))
