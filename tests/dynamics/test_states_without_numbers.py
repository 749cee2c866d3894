"""NaN and infinity in a state give NaN in what depends on them; the other states of a batch keep their results."""

from __future__ import annotations

import numpy as np
import pytest

import dynid

ROBOT = dynid.robots.puma560()
FUNCTIONS = {
    "inverse_dynamics": 3,
    "forward_dynamics": 3,
    "regressor": 3,
    "inertia_matrix": 1,
    "gravity_torque": 1,
    "velocity_torque": 2,
    "energy_regressor": 2,
    "momentum_regressor": 2,
    "christoffel_coefficients": 1,
}


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_stays_in_its_state(name: str, value: float) -> None:
    evaluate = getattr(dynid.compiled, name)
    states = list(np.random.default_rng(0).normal(size=(FUNCTIONS[name], 5, 6)))
    expected = evaluate(ROBOT, *states)
    states[0] = states[0].copy()
    states[0][2, 2] = value
    result = evaluate(ROBOT, *states)
    assert np.isnan(result[2]).any()
    np.testing.assert_array_equal(result[[0, 1, 3, 4]], expected[[0, 1, 3, 4]])
    assert np.isnan(evaluate(ROBOT, *(state[2] for state in states))).any()  # and for one state
