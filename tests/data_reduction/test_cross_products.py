"""Fused cross products and their gradients against plain NumPy and complex steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynid.data_reduction.cross_products import CrossProducts
from dynid.dynamics.regressor import torque_regressor
from dynid.errors import ArgumentError
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.tape import Tape, record
from dynid.terms.friction import Viscous
from dynid.terms.motors import Offset


def rows(robot: Robot) -> tuple[Tape, list[Any]]:
    """The rows of a robot's regressor without their structural zeros, recorded, and where these rows are not zero."""
    shapes = {state: (robot.dof,) for state in ("q", "dq", "ddq")}
    used = record(lambda q, dq, ddq: torque_regressor(robot, q, dq, ddq), **shapes).sparsity("output")
    kept = [np.flatnonzero(row) for row in used]

    def compact(q: Any, dq: Any, ddq: Any) -> dict[str, Any]:
        Y = torque_regressor(robot, q, dq, ddq)
        return {f"row{i}": Y[i, columns] for i, columns in enumerate(kept)}

    return record(compact, **shapes), kept


@pytest.fixture(scope="module")
def robot() -> Robot:
    return zoo.gautier_khalil_3r().with_terms(Viscous(), Offset())


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("samples", [1, 23, 24, 25, 130])
def test_products_and_gradient(robot: Robot, backend: Any, samples: int) -> None:
    tape, kept = rows(robot)
    products = CrossProducts(tape, backend)
    rng = np.random.default_rng(samples)
    x = rng.normal(size=(3, samples, robot.dof))
    weights = [rng.normal(size=(len(columns), len(columns))) for columns in kept]

    def matrices(states: Any, sample: int) -> list[Any]:
        Y = np.asarray(torque_regressor(robot, *states[:, sample]), dtype=states.dtype)
        return [Y[i, columns] for i, columns in enumerate(kept)]

    def value(states: Any, sample: int) -> Any:  # of one sample; no conjugation, for the sake of complex steps
        return sum(w @ C @ w for w, C in zip(matrices(states, sample), weights, strict=True))

    stacked = [np.array(W) for W in zip(*(matrices(x, k) for k in range(samples)), strict=True)]
    for found, W in zip(products(*x), stacked, strict=True):
        np.testing.assert_allclose(found, W.T @ W, rtol=1e-11, atol=1e-11)
    gradient = products.pullback(weights, *x)
    for sample in {0, samples // 2, samples - 1}:
        for k, name in enumerate(("q", "dq", "ddq")):
            for joint in range(robot.dof):
                moved = x.astype(complex)
                moved[k, sample, joint] += 1e-30j
                expected = value(moved, sample).imag / 1e-30
                np.testing.assert_allclose(gradient[name][sample, joint], expected, rtol=1e-10, atol=1e-10)


def test_structural_zeros_are_refused() -> None:
    tape = record(lambda x: {"row": np.array([x[0], 0.0], dtype=object)}, x=(1,))
    with pytest.raises(ArgumentError, match="structurally zero"):
        CrossProducts(tape)
