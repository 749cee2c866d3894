"""Contacts planted on every link of a MuJoCo arm: the link is found, and the force where the posture allows."""

from __future__ import annotations

from functools import cache
from pathlib import Path

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


def test_nothing_reached_is_no_link() -> None:
    robot = dynid.robots.gautier_khalil_3r()
    for torque in ([0.1, 0.1, 0.1], [0.0, 0.0, 0.0]):
        nothing = find_touched_link(robot, torque, 1.0)
        assert (nothing.link, nothing.body) == (None, -1)
        assert nothing.sentence.startswith("nothing surely touches")
    with pytest.raises(ArgumentError):
        find_touched_link(robot, [0.1, 0.1], 1.0)


def test_a_written_robot_names_the_link_that_has_the_body(tmp_path: Path) -> None:
    """A file of modified DH frames has a helper link on each axis."""
    robot = dynid.robots.ur10()
    dynid.write_urdf(robot, tmp_path / "arm.urdf")
    written = dynid.read_urdf(tmp_path / "arm.urdf")
    helpers = [body.joint.child for body in written.bodies]
    named = [find_touched_link(written, [1.0] * (k + 1) + [0.0] * (5 - k), 0.1).link for k in range(6)]
    assert named == ["link1", "link2", "link3", "link4", "link5", "link6"]
    assert helpers != named


def test_the_sentence_tells_units_intervals_and_all_that_is_open() -> None:
    """One joint of the first link tells one direction at most."""
    _, robot, _ = simulation()
    q = np.array([0.3, -0.6, 0.2, -1.8, 0.1, 1.6, 0.5])
    first = contact_wrench(robot, robot.bodies[0].joint.child, q, [3.0, 0, 0, 0, 0, 0, 0], 0.2)
    assert first.determined.tolist() == [False] * 5 + [True]
    assert first.sentence.endswith(
        "mz 3 ± 0.39 N m (95 % intervals); posture and noise do not tell fx (± 590 N), fy (± 590 N), fz (± 590 N), "
        "mx (± 59 N m), my (± 59 N m)"
    )
    link, wrench = robot.bodies[-1].joint.child, np.array([20.0, -10.0, 0.0, 1.0, 2.0, -1.0])  # exact torques
    last = contact_wrench(robot, link, q, dynid.compiled.link_jacobian(robot, link, q).T @ wrench, 1e-3)
    np.testing.assert_allclose(last.wrench, wrench, rtol=1e-3, atol=1e-2)
    assert last.determined.all()  # fz is known to be faint
    assert "fx 20 ± " in last.sentence
    assert " N, fy -10 ± " in last.sentence
    assert last.sentence.endswith(" N m (95 % intervals)")
