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
from dynid.robot.formats.mjcf.write import mjcf_text

Floats = NDArray[np.float64]
STD = np.array([0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05])
"""Noise of the torques from outside [N m]: that of a Panda's torque sensors, not of the errors of a model."""
PERIOD_S = 0.001
STEPS = 80
GAIN = 100.0


@cache
def simulation():
    mujoco = pytest.importorskip("mujoco")
    robot = dynid.robots.panda().with_terms(dynid.RotorInertia(0.2))  # geared drives: light links do not run away
    model = mujoco.MjModel.from_xml_string(mjcf_text(robot))
    model.opt.timestep, model.opt.integrator = PERIOD_S, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    return mujoco, robot, model


def push(body: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Floats]:
    """Push a link of the moving arm at a point for some milliseconds; the observer's torques at the end, and the truth.

    Returns:
        Torques from outside (n,), final positions (n,), force in the base's axes (3,), point in the link's frame (3,).
    """
    mujoco, robot, model = simulation()
    data = mujoco.MjData(model)
    link = robot.bodies[body].joint.child
    number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, link)
    data.qpos[:] = rng.uniform(-1.5, 1.5, 7) + np.array([0, 0, 0, -1.5, 0, 1.5, 0])
    data.qvel[:] = rng.uniform(-0.3, 0.3, 7)
    direction = rng.normal(size=3)
    force = 40.0 * direction / np.linalg.norm(direction)
    angle, height = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(-0.1, 0.1)
    point = np.array([0.1 * np.cos(angle), 0.1 * np.sin(angle), height])  # on the surface, 10 cm off the axis
    q, dq, tau = (np.empty((STEPS, 7)) for _ in range(3))
    for k in range(STEPS):
        mujoco.mj_forward(model, data)
        drive = np.array(data.qfrc_bias) + 2.0 * np.sin(0.01 * k + np.arange(7))
        q[k], dq[k], tau[k] = data.qpos, data.qvel, drive
        outside = np.zeros(7)
        if k >= 10:
            place = data.xpos[number] + data.xmat[number].reshape(3, 3) @ point
            mujoco.mj_applyFT(model, data, force, np.zeros(3), place, number, outside)
        data.qfrc_applied[:] = drive + outside
        mujoco.mj_step(model, data)
    run = dynid.Experiment(
        time=PERIOD_S * np.arange(STEPS), q=q, dq=dq, ddq=np.zeros_like(q), effort=tau,
        valid=np.ones(q.shape, dtype=bool), segment=np.zeros(STEPS, dtype=np.int64), rate_hz=1.0 / PERIOD_S,
        joint_names=robot.joint_names,
    )  # fmt: skip
    found = observe(robot, run, gain=GAIN)[-1]
    return found + rng.normal(size=7) * STD, q[-1], force, point


@cache
def pushes(count: int = 10) -> list[tuple[int, tuple[Floats, Floats, Floats, Floats]]]:
    rng = np.random.default_rng(0)
    return [(body, push(body, rng)) for body in range(7) for _ in range(count)]


def test_the_touched_link_is_isolated() -> None:
    _, robot, _ = simulation()
    hits = [find_touched_link(robot, found, STD).body == body for body, (found, *_) in pushes()]
    assert np.mean(hits) >= 0.9


def test_the_force_is_found_where_the_posture_allows_and_said_where_not() -> None:
    _, robot, _ = simulation()
    errors, open_ones, inside = [], 0, []
    for body, (found, q, force, point) in pushes():
        link = robot.bodies[body].joint.child
        contact = contact_wrench(robot, link, q, found, STD, point=point, with_moment=False)
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
