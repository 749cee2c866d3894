"""The observers against Pinocchio's matrices and against a MuJoCo arm that is pushed by known torques."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.compiled import kernel
from dynid.errors import ArgumentError, DataError
from dynid.monitor.observer import MomentumObserver, ObserverModel, observe
from dynid.terms.memory import Hysteresis, LaggedSign
from support.exact_runs import exact_run
from support.pinocchio_oracle import pinocchio_model, relative_error, symmetric
from support.random_robots import random_robot, random_states
from support.small_fit import small_fit

Floats = NDArray[np.float64]
PUSH = np.array([3.0, -2.0, 1.0, -3.0, 0.5, 0.3, -0.2])
"""Planted torque on the seven joints [N m]."""
GAIN = 50.0


@pytest.mark.parametrize("seed", range(8))
def test_momentum_and_force_are_those_of_pinocchio(seed: int) -> None:
    pin = pytest.importorskip("pinocchio")
    robot = random_robot(seed, tree=bool(seed % 2))
    model = pinocchio_model(robot)
    data = model.createData()
    q, dq, _ = random_states(robot, 20)
    ours = kernel(robot, "momentum_balance")(q, dq)
    for k in range(len(q)):
        C = np.array(pin.computeCoriolisMatrix(model, data, q[k], dq[k]))
        gravity = np.array(pin.computeGeneralizedGravity(model, data, q[k]))
        inertia = symmetric(pin.crba(model, data, q[k]))
        assert relative_error(ours["momentum"][k], inertia @ dq[k]) < 1e-11
        assert relative_error(ours["force"][k], C.T @ dq[k] - gravity) < 1e-11


@cache
def pushed_arm(period_s: float) -> tuple[dynid.Robot, dynid.Experiment]:
    """A MuJoCo arm with friction, driven by sines and pushed by constant torques from 0.1 s on; the log is exact."""
    pytest.importorskip("mujoco")
    from support.led_arm import MujocoPlant

    robot = dynid.robots.panda().with_terms(dynid.Viscous(0.5), dynid.RotorInertia(0.1))
    plant = MujocoPlant(robot)
    count = round(0.3 / period_s)
    state, rows = np.concatenate([[0.1, -0.8, 0.7, -1.5, 0.2, 1.0, 0.0], np.zeros(7)]), []
    for k in range(count):
        drive = 2.0 * np.sin((k + 0.5) * period_s * np.arange(5, 12))
        torque = np.asarray(dynid.gravity_torque(robot, state[:7])) + drive
        rows.append((state[:7], state[7:14], torque))
        state = plant.advance(state, torque + (PUSH if k * period_s >= 0.1 - 1e-9 else 0.0), period_s)
    q, dq, effort = (np.array(part) for part in zip(*rows, strict=True))
    motion = q, dq, np.gradient(dq, period_s, axis=0)
    return robot, exact_run(period_s * np.arange(count), motion, effort=effort, joint_names=robot.joint_names)


def response_error(period_s: float) -> float:
    """Largest distance from the first-order response, over the push [-]."""
    robot, run = pushed_arm(period_s)
    found = observe(robot, run, gain=GAIN)
    since = np.maximum(run.time - 0.1, 0.0)[:, None]
    expected = PUSH * (1.0 - np.exp(-GAIN * since))
    return float(np.abs(found - expected).max() / np.abs(PUSH).max())


def test_the_observer_answers_a_push_as_a_first_order_lag_exact_in_the_limit() -> None:
    coarse, fine = response_error(0.002), response_error(0.0005)
    assert fine < 0.01
    assert fine < 0.5 * coarse


def test_one_step_after_the_other_gives_the_batch_also_with_memory() -> None:
    fit, run = small_fit()
    terms = (Hysteresis(0.4, joint=0, scale=0.02), LaggedSign(0.3, joint=2, scale=0.05))
    model = ObserverModel(fit.robot, fit.rich.theta, terms)
    observer = MomentumObserver(model, gain=GAIN)
    steps = np.array([observer.step(run.q[k], run.dq[k], run.effort[k], 1.0 / run.rate_hz) for k in range(run.samples)])
    np.testing.assert_allclose(steps, observe(model, run, gain=GAIN), atol=1e-10)


def test_an_observer_refuses_what_is_no_number_and_keeps_its_state() -> None:
    fit, run = small_fit()
    observer = MomentumObserver(fit)
    observer.step(run.q[0], run.dq[0], run.effort[0], 0.01)
    with pytest.raises(DataError, match="finite"):
        observer.step(run.q[1] * np.nan, run.dq[1], run.effort[1], 0.01)
    first = observer.step(run.q[1], run.dq[1], run.effort[1], 0.01)
    observer.restart()
    observer.step(run.q[0], run.dq[0], run.effort[0], 0.01)
    assert np.array_equal(first, observer.step(run.q[1], run.dq[1], run.effort[1], 0.01))
    with pytest.raises(ArgumentError, match="str"):
        MomentumObserver("arm")  # type: ignore[arg-type]
