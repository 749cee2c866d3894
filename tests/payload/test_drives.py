"""Torque of a motor from the currents of its phases."""

from __future__ import annotations

import numpy as np

from dynid.logs.drives import ThreePhase


def test_three_phases_make_the_torque_of_equation_22():
    angle = np.linspace(0.0, 6.0, 50)
    phases = np.sin(angle[:, None] + np.deg2rad([0.0, 120.0, 240.0]))
    np.testing.assert_allclose(ThreePhase(2.0).torque(4.0 * phases, angle), 2.0 * 4.0 * 1.5, atol=1e-12)
