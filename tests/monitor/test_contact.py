"""Contacts planted on every link of a MuJoCo arm: the link is found, and the force where the posture allows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import ArgumentError
from dynid.monitor.contact import contact_wrench, find_touched_link
from dynid.monitor.observer import observe
from support.pushed_arm import STD, Push, push, simulation

Floats = NDArray[np.float64]


@cache
def pushes(count: int = 10) -> list[tuple[Push, Floats]]:
    """Pushes on every link, and the torques of the observer at the end of each (n,), with noise."""
    _, robot, _ = simulation()
    rng = np.random.default_rng(0)
    planted = [push(body, rng) for body in range(7) for _ in range(count)]
    return [(one, observe(robot, one.run)[-1] + rng.normal(size=7) * STD) for one in planted]


def test_the_touched_link_is_isolated() -> None:
    _, robot, _ = simulation()
    hits = [find_touched_link(robot, found, STD).body == one.body for one, found in pushes()]
    assert np.mean(hits) >= 0.9


def test_the_force_is_found_where_the_posture_allows_and_said_where_not() -> None:
    _, robot, _ = simulation()
    errors, open_ones, inside = [], 0, []
    for one, found in pushes():
        link, force = robot.bodies[one.body].joint.child, one.force
        contact = contact_wrench(robot, link, one.run.q[-1], found, STD, point=one.point, with_moment=False)
        if np.linalg.norm(contact.stderr) > 0.1 * np.linalg.norm(contact.force):  # it says that it does not know
            open_ones += 1
            continue
        # the observer has followed 70 ms with a time constant of 10 ms
        errors.append(np.linalg.norm(contact.force - force) / np.linalg.norm(force))
        inside.append(np.abs(contact.force - force) < 3.0 * contact.stderr + 1.0)
    assert open_ones >= 10  # one joint never tells three components
    assert len(errors) > 30
    assert np.mean(np.array(errors) < 0.2) >= 0.9
    assert np.mean(inside) > 0.9


def test_a_wrench_on_the_hand_comes_back_exactly_without_noise() -> None:
    _, robot, _ = simulation()
    q = np.array([0.3, -0.6, 0.2, -1.8, 0.1, 1.6, 0.5])
    link, wrench = robot.bodies[-1].joint.child, np.array([20.0, -10.0, 30.0, 1.0, 2.0, -1.0])
    torque = dynid.kernels.link_jacobian(robot, link, q).T @ wrench
    found = contact_wrench(robot, link, q, torque, 1e-3)
    np.testing.assert_allclose(found.wrench, wrench, rtol=1e-3, atol=1e-2)
    assert found.determined.all()
    assert np.isfinite(found.condition)


def test_nothing_reached_is_no_link() -> None:
    robot = dynid.robots.gautier_khalil_3r()
    assert find_touched_link(robot, [0.1, 0.1, 0.1], 1.0).body == -1
    with pytest.raises(ArgumentError):
        find_touched_link(robot, [0.1, 0.1], 1.0)
