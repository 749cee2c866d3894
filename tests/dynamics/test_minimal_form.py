"""Dynamics in minimal linear combinations against the plain recursion and Pinocchio, on random serial robots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid import compiled
from dynid.dynamics.chain import find_chain
from dynid.dynamics.inertia_matrix import composite_bodies
from dynid.dynamics.minimal_constants import minimal_set
from dynid.dynamics.minimal_inertia import composite_parts
from dynid.dynamics.minimal_recursion import minimal_torque, minimal_values
from dynid.errors import ArgumentError
from dynid.identifiability.base import base_parameters
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.spatial import rotation_from_rpy, transform
from identifiability.random_robots import random_serial, random_tree
from papers.lin1995_dynamics import minimal_steps
from support.pinocchio_oracle import pinocchio_model, relative_error
from support.random_robots import random_inertia, random_robot, random_states

TOLERANCE = 1e-12
ROBOTS = 200


def with_bodies(robot: Robot, seed: int) -> Robot:
    """The robot with random physical bodies."""
    rng = np.random.default_rng(seed)
    links = tuple(replace(link, inertia=random_inertia(rng)) for link in robot.links)
    return replace(robot, links=links)


def serial(seed: int) -> Robot:
    """One of the random robots: revolute and sliding, parallel, right-angled, oblique and coincident axes."""
    return with_bodies(random_serial(seed, 1 + seed % 8), seed)


def test_200_random_robots() -> None:
    """Kernels recorded on the tape: torques, accelerations back from them, and all three groups of joints."""
    groups = np.zeros(3, dtype=int)
    for seed in range(ROBOTS):
        robot = serial(seed)
        states = random_states(robot, 5, seed)
        plain = compiled.inverse_dynamics(robot, *states)
        assert relative_error(compiled.inverse_dynamics(robot, *states, form="minimal"), plain) < TOLERANCE
        chain = find_chain(robot)
        n = robot.dof
        groups += [min(chain.r, n), min(chain.s, n) - min(chain.r, n), n - min(chain.s, n)]
    assert groups.min() > 50


def test_inertia_matrices_of_every_fourth_robot() -> None:
    for seed in range(0, ROBOTS, 4):
        robot = serial(seed)
        q, dq, _ = random_states(robot, 5, seed)
        theirs, ours = (compiled.kernel(robot, f"{form}inertia_and_bias")(q, dq) for form in ("", "minimal_"))
        assert relative_error(ours["inertia"], theirs["inertia"]) < TOLERANCE
        assert np.abs(ours["bias"] - theirs["bias"]).max() <= TOLERANCE * max(1.0, float(np.abs(theirs["bias"]).max()))


@pytest.mark.parametrize("seed", range(40))
def test_any_frames_and_terms_against_pinocchio(seed: int) -> None:
    """Robots whose frames are no modified DH frames; an oracle that shares no line with us."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle here")
    robot = random_robot(seed)
    model = pinocchio_model(robot)
    data = model.createData()
    q, dq, ddq = random_states(robot, 10, seed)
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, dq, ddq, strict=True)])
    assert relative_error(compiled.inverse_dynamics(robot, q, dq, ddq, form="minimal"), tau) < 1e-11
    M = np.array([pin.crba(model, data, x) for x in q])
    upper = np.triu_indices(robot.dof)
    ours = compiled.kernel(robot, "minimal_inertia_and_bias")(q, dq)["inertia"]
    assert relative_error(ours[:, upper[0], upper[1]], M[:, upper[0], upper[1]]) < 1e-11
    rich = random_robot(seed, terms=True)
    both = [compiled.inverse_dynamics(rich, q, dq, ddq, form=form) for form in ("standard", "minimal")]
    assert relative_error(both[1], both[0]) < 1e-11


@pytest.mark.parametrize("build", [zoo.stanford, zoo.puma560, zoo.scara, zoo.cylindrical, zoo.cartesian, zoo.panda])
def test_forward_is_the_inverse_of_inverse(build) -> None:
    robot = with_bodies(build(), 3)
    q, dq, ddq = random_states(robot, 10)
    tau = compiled.inverse_dynamics(robot, q, dq, ddq, form="minimal")
    np.testing.assert_allclose(compiled.forward_dynamics(robot, q, dq, tau, form="minimal"), ddq, atol=1e-8)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), joints=st.integers(1, 7))
def test_members_alone_decide(seed: int, joints: int) -> None:
    """Values of the set S go in, nothing else of the links: equal members, equal torques, whatever the parameters."""
    robot = random_serial(seed, joints)
    base = base_parameters(robot, "minimal-combinations")
    chain = find_chain(robot)
    assert [member.name for member in minimal_set(chain)] == list(base.names)
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=len(base.layout))
    q, dq, ddq = rng.normal(size=(3, joints))
    torque = minimal_torque(chain, base.project(theta), q, dq, ddq)
    expected = compiled.regressor(robot, q, dq, ddq) @ theta
    np.testing.assert_allclose(torque, expected, atol=1e-11 * max(1.0, float(np.abs(expected).max())))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_constant_and_varying_parts_are_the_composite_body(seed: int) -> None:
    """[Lin1995] eqs. (8), (9): of a revolute joint the entries that turn it, from a sweep that knows no constants."""
    robot = serial(seed)
    chain = find_chain(robot)
    q = np.random.default_rng(seed).normal(size=robot.dof)
    parts = composite_parts(chain, minimal_values(chain, robot.parameter_vector), q)
    for j, (mass, _, tensor) in enumerate(composite_bodies(robot, robot.parameter_vector, q)):
        ours = parts[j].U + parts[j].tensor
        if not robot.bodies[j].is_prismatic:
            assert float(ours[2, 2]) == pytest.approx(float(tensor[2, 2]), rel=1e-10, abs=1e-10)
        else:
            assert float(parts[j].mass) == pytest.approx(float(mass), rel=1e-12)


def test_steps_cover_the_equations_of_the_algorithm() -> None:
    chain = find_chain(zoo.stanford())
    steps = minimal_steps(chain, minimal_values(chain, zoo.stanford().parameter_vector), *np.ones((3, 6)))
    assert {equation for _, equation in steps} == {57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 91}
    torque = compiled.inverse_dynamics(zoo.stanford().with_terms(), *np.ones((3, 6)))
    np.testing.assert_allclose([steps[i, 68] for i in range(6)], torque, atol=1e-12)


def test_nearly_parallel_axes_are_refused() -> None:
    """A right angle written as 1.5708: modified DH frames would take the axes as parallel, and miss them."""
    robot = zoo.puma560()
    tilt = transform(rotation_from_rpy((3e-6, 0.0, 0.0)), np.zeros(3))
    joints = list(robot.joints)
    place = next(k for k, joint in enumerate(joints) if joint.name == robot.joint_names[2])
    joints[place] = replace(joints[place], T_parent_joint=joints[place].T_parent_joint @ tilt)
    with pytest.raises(ArgumentError, match="nearly parallel"):
        compiled.inverse_dynamics(replace(robot, joints=tuple(joints)), *np.ones((3, 6)), form="minimal")


def test_robots_that_the_form_does_not_describe() -> None:
    trees = (random_tree(seed, 5) for seed in range(20))
    tree = next(robot for robot in trees if any(body.parent != j - 1 for j, body in enumerate(robot.bodies)))
    with pytest.raises(ArgumentError, match="branches"):
        compiled.inverse_dynamics(tree, *np.ones((3, tree.dof)), form="minimal")
    with pytest.raises(ArgumentError, match="there is no form 'short'"):
        compiled.inverse_dynamics(zoo.scara(), *np.ones((3, 4)), form="short")  # type: ignore[arg-type]
