"""Torques along a run by a program with the parameters as inputs, against the one that folds them in."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.compiled import inverse_dynamics
from dynid.estimators.rows import torque_along
from dynid.robot import zoo
from dynid.tape.numpy_backend import BLOCK
from dynid.terms.friction import Coulomb, Viscous
from estimators.planted import planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4))


@pytest.mark.parametrize("samples", [1, BLOCK, BLOCK + 1])
def test_torques_along_a_run_are_those_of_the_robot(samples: int) -> None:
    run = planted_run(ROBOT, samples=2500).rows(slice(0, samples))
    other = 1.1 * ROBOT.parameter_vector
    plain = inverse_dynamics(ROBOT.with_parameters(other), run.q, run.dq, run.ddq)
    np.testing.assert_allclose(torque_along(ROBOT, other, run), plain, rtol=1e-12, atol=1e-12)
