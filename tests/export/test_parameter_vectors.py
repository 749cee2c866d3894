"""Parameters as Pinocchio and Drake order them, there and back."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.export import body_parameters, with_body_parameters


def test_drake_rows_are_unit_inertias() -> None:
    """Mass and centre of mass as they are; the unit inertia gives the tensor of Pinocchio's row back."""
    robot = dynid.robots.panda()
    for drake, pinocchio in zip(body_parameters(robot, "drake"), body_parameters(robot, "pinocchio"), strict=True):
        np.testing.assert_allclose(drake[0] * drake[1:4], pinocchio[1:4], atol=1e-12)
        np.testing.assert_allclose(drake[0] * drake[[4, 7, 5, 8, 9, 6]], pinocchio[4:], atol=1e-12)


def test_vectors_come_back_and_odd_ones_are_refused() -> None:
    robot = dynid.robots.panda()
    heavier = robot.with_parameters(robot.parameter_vector * np.linspace(0.5, 1.5, robot.parameter_vector.size))
    vector = body_parameters(heavier, "pinocchio").ravel()  # as it multiplies Pinocchio's regressor
    found = with_body_parameters(robot, vector, "pinocchio")
    np.testing.assert_allclose(found.parameter_vector, heavier.parameter_vector, rtol=1e-12, atol=1e-14)
    again = with_body_parameters(robot, body_parameters(heavier, "drake"), "drake")
    np.testing.assert_allclose(again.parameter_vector, heavier.parameter_vector, rtol=1e-12, atol=1e-14)
    for odd in (vector[:-1], np.full(70, np.nan)):
        with pytest.raises(dynid.errors.ArgumentError, match="ten finite numbers"):
            with_body_parameters(robot, odd, "pinocchio")
