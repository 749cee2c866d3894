"""Gears, currents and the calibration of torque constants."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import DataError
from dynid.logs.drives import CurrentGains, ThreePhase
from dynid.logs.recording import Recording


def test_three_phases_make_the_torque_of_equation_22():
    angle = np.linspace(0.0, 6.0, 50)
    phases = np.sin(angle[:, None] + np.deg2rad([0.0, 120.0, 240.0]))
    np.testing.assert_allclose(ThreePhase(2.0).torque(4.0 * phases, angle), 2.0 * 4.0 * 1.5, atol=1e-12)


def test_currents_become_torques():
    recording = Recording(time=np.arange(3.0), q=np.zeros((3, 2)), current=np.ones((3, 2)))
    converted = CurrentGains(np.array([2.0, 3.0])).apply(recording)
    np.testing.assert_array_equal(converted.effort, [[2.0, 3.0]] * 3)
    assert "torques from currents" in converted.notes[-1]
    with pytest.raises(DataError, match="no currents"):
        CurrentGains(np.array([1.0, 1.0])).apply(Recording(time=np.arange(3.0), q=np.zeros((3, 2))))
