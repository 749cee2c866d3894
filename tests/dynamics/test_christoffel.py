"""Coefficients D_ijk of the velocity torques ([Izaguirre1992] eq. (1)): definition, C."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.compiled import (
    christoffel_coefficients,
    inertia_matrix,
    kernel,
    velocity_torque,
)
from dynid.export.c.c_check import find_compiler
from dynid.export.c.c_package import generate_c
from dynid.robot import zoo
from dynid.robot.model import Robot
from support.random_robots import random_robot, random_states

STEP = 1e-5  # [rad or m]: central differences err by STEP^2, rounding by 1e-16 / STEP


def by_differences(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Christoffel symbols from central differences of the inertia matrix."""
    steps = STEP * np.eye(robot.dof)
    dM = np.array([inertia_matrix(robot, q + h) - inertia_matrix(robot, q - h) for h in steps]) / (2 * STEP)
    return np.asarray(0.5 * (np.einsum("kij->ijk", dM) + np.einsum("jik->ijk", dM) - dM))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_they_are_the_christoffel_symbols_of_the_inertia_matrix(seed: int) -> None:
    robot = random_robot(seed, tree=bool(seed % 2), terms=bool(seed % 3))
    (q,), (dq,), _ = random_states(robot, 1, seed)
    D, expected = christoffel_coefficients(robot, q), by_differences(robot, q)
    size = max(1.0, float(np.abs(inertia_matrix(robot, q)).max()))
    np.testing.assert_allclose(D, expected, rtol=0, atol=1e-7 * size)
    np.testing.assert_array_equal(D, D.transpose(0, 2, 1))
    torque = velocity_torque(robot, q, dq)
    np.testing.assert_allclose(np.einsum("ijk,j,k", D, dq, dq), torque, rtol=0, atol=1e-11 * size * (dq @ dq))


@pytest.mark.parametrize("name", ["puma260", "stanford", "scara"])
def test_the_generated_code_has_them(name: str) -> None:
    if find_compiler() is None:
        pytest.skip("no C compiler on this machine")
    robot = zoo.get(name)
    code = generate_c(robot, ["christoffel_coefficients"], two_rate=False)
    assert code.check(50)["christoffel_coefficients"] < 1e-12
    assert code.counts["christoffel_coefficients"].flops <= kernel(robot, "christoffel_coefficients").count.flops
