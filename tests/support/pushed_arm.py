"""A MuJoCo arm that is pushed: contacts planted on any of its links, and what its drives and encoders see of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.robot.formats.mjcf.write import mjcf_text
from support.exact_runs import exact_run

Floats = NDArray[np.float64]
STD = np.array([0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05])
"""Noise of the torques from outside [N m]: that of a Panda's torque sensors, not of the errors of a model."""
PERIOD_S = 0.001
STEPS, ONSET = 80, 10
FORCE_N = 40.0


@dataclass(frozen=True, eq=False)
class Push:
    """One push on one link."""

    body: int
    run: dynid.Experiment
    """What is measured, without noise; the push begins at `ONSET` and lasts."""
    force: Floats
    """(3,) in the axes of the base [N]."""
    point: Floats
    """(3,) in the link's frame [m]."""


@cache
def simulation():
    """MuJoCo, the robot and its MuJoCo model; the test is skipped where MuJoCo is not installed."""
    mujoco = pytest.importorskip("mujoco")
    robot = dynid.robots.panda().with_terms(dynid.RotorInertia(0.2))  # geared drives: light links do not run away
    model = mujoco.MjModel.from_xml_string(mjcf_text(robot))
    model.opt.timestep, model.opt.integrator = PERIOD_S, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    return mujoco, robot, model


def push(body: int, rng: np.random.Generator) -> Push:
    """Push a link of the moving arm at a point of its surface, in a random direction."""
    mujoco, robot, model = simulation()
    data = mujoco.MjData(model)
    number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, robot.bodies[body].joint.child)
    data.qpos[:] = rng.uniform(-1.5, 1.5, 7) + np.array([0, 0, 0, -1.5, 0, 1.5, 0])
    data.qvel[:] = rng.uniform(-0.3, 0.3, 7)
    direction = rng.normal(size=3)
    force = FORCE_N * direction / np.linalg.norm(direction)
    angle, height = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(-0.1, 0.1)
    point = np.array([0.1 * np.cos(angle), 0.1 * np.sin(angle), height])  # on the surface, 10 cm off the axis
    q, dq, tau = (np.empty((STEPS, 7)) for _ in range(3))
    for k in range(STEPS):
        mujoco.mj_forward(model, data)
        drive = np.array(data.qfrc_bias) + 2.0 * np.sin(0.01 * k + np.arange(7))
        q[k], dq[k], tau[k] = data.qpos, data.qvel, drive
        outside = np.zeros(7)
        if k >= ONSET:
            place = data.xpos[number] + data.xmat[number].reshape(3, 3) @ point
            mujoco.mj_applyFT(model, data, force, np.zeros(3), place, number, outside)
        data.qfrc_applied[:] = drive + outside
        mujoco.mj_step(model, data)
    time = PERIOD_S * np.arange(STEPS)
    run = exact_run(time, (q, dq, np.zeros_like(q)), effort=tau, joint_names=robot.joint_names)
    return Push(body, run, force, point)
