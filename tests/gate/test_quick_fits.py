"""Fits of the gate: friction that would drive a joint is held, and spans of friction are orthonormal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.gate import quick_fit
from dynid.gate.hypotheses import rough_losses
from dynid.gate.quick_fit import (
    Floats,
    Samples,
    _solve_braking,
    block_losses,
    equations_of,
    friction_bases,
    mass_torques,
    narrow_equations,
    residuals,
)
from dynid.kernels import inverse_dynamics
from dynid.robot import zoo
from dynid.robot.model import Robot


def solve_in_directions(G: Floats, b: Floats, brakes: Floats) -> Floats:
    """The same by a basis of the directions that change none of the held powers."""
    held = np.zeros(len(brakes), dtype=bool)
    theta: Floats = np.linalg.solve(G, b)
    while (driven := (brakes @ theta < 0.0) & ~held).any():
        held |= driven
        kept = np.linalg.svd(brakes[held])[2][held.sum() :].T
        theta = kept @ np.linalg.solve(kept.T @ G @ kept, kept.T @ b)
    return theta


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), joints=st.integers(1, 4))
def test_friction_that_would_drive_a_joint_is_held(seed: int, joints: int) -> None:
    rng = np.random.default_rng(seed)
    size = 2 * joints + 5
    rows = rng.normal(size=(3 * size, size))
    brakes = np.zeros((joints, size))
    for joint in range(joints):  # viscous and dry friction of the joint
        brakes[joint, 2 * joint : 2 * joint + 2] = rng.uniform(0.1, 1.0, 2)
    G, b = rows.T @ rows, rows.T @ rng.normal(size=len(rows))
    found, wanted = _solve_braking(G, b, brakes), solve_in_directions(G, b, brakes)
    np.testing.assert_allclose(found, wanted, atol=1e-6 * np.abs(wanted).max())
    assert (brakes @ found >= -1e-9 * np.abs(found).max()).all()


def test_bases_of_friction_are_orthonormal_and_span_it() -> None:
    robot, rng = zoo.ddarm(), np.random.default_rng(0)
    q, dq, ddq, effort = rng.normal(size=(4, 80, 3))
    dq[:, 2] = ddq[:, 2] = 0.0  # stands still: the offset alone is left
    used = np.ones(3, dtype=bool)
    samples = Samples(q=q, dq=dq, ddq=ddq, effort=effort, sign=np.sign(dq), used=used, gravity=robot.gravity)
    bases = friction_bases(robot, samples)
    for joint, rank in enumerate((4, 4, 1)):
        Q = bases[joint]
        products = np.sort(np.linalg.eigvalsh(Q.T @ Q))[::-1]
        np.testing.assert_allclose(products, [1.0] * rank + [0.0] * (4 - rank), atol=1e-12)
        columns = np.column_stack([ddq[:, joint], dq[:, joint], np.sign(dq[:, joint]), np.ones(80)])
        np.testing.assert_allclose(Q @ (Q.T @ columns), columns, atol=1e-12)


def test_hypotheses_fitted_together_have_the_losses_of_single_fits() -> None:
    robot, rng = zoo.ddarm(), np.random.default_rng(1)
    q, dq, ddq = rng.normal(size=(3, 90, 3))
    effort = inverse_dynamics(robot, q, dq, ddq) + 0.05 * rng.normal(size=(90, 3))
    used, noise = np.array([True, True, False]), np.array([0.05, 0.05, 0.05])
    samples = Samples(
        q=q, dq=dq, ddq=ddq, effort=effort, sign=np.sign(dq), used=used, gravity=robot.gravity, noise=noise
    )
    tried = [samples, samples.with_torque_sign(0), samples.with_joints_swapped(0, 2), samples.with_offset(1, 0.5)]
    tried += [replace(samples, gravity=np.array(gravity)) for gravity in ((0.0, 0.0, 0.0), (9.81, 0.0, 0.0))]
    tried += [samples.with_torque_scaled(0, factor) for factor in np.geomspace(0.1, 10.0, 15)]
    found = rough_losses(robot, tried)
    wanted = [block_losses(robot, each, 1).sum() for each in tried]
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
    assert np.ptp(found[1:6]) > 1.0


@pytest.mark.parametrize("robot", [zoo.puma560(), zoo.stanford(), zoo.panda()], ids=lambda robot: robot.name)
def test_independent_columns_leave_what_all_columns_leave(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    q, dq, ddq = rng.normal(size=(3, 250, robot.dof))
    effort = inverse_dynamics(robot, q, dq, ddq) + rng.normal(size=q.shape)
    used = np.ones(robot.dof, dtype=bool)
    samples = Samples(q=q, dq=dq, ddq=ddq, effort=effort, sign=np.tanh(dq), used=used, gravity=robot.gravity)
    narrow, whole = narrow_equations(robot, samples), equations_of(robot, samples)
    assert narrow.columns.size < whole.columns.size
    np.testing.assert_allclose(mass_torques(robot, narrow), mass_torques(robot, whole), rtol=1e-8, atol=1e-8)
    found = [residuals(robot, samples), residuals(robot, samples.with_torque_sign(1))]
    monkeypatch.setattr(quick_fit, "narrow_equations", equations_of)
    wanted = [residuals(robot, samples), residuals(robot, samples.with_torque_sign(1))]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
