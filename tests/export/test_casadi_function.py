"""CasADi functions from the tape: the numbers of the kernels, and derivatives as Pinocchio has them."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.compiled import kernel
from dynid.export.casadi_tape import casadi_from_tape, casadi_function
from dynid.tape import record
from support.every_operation import every_operation
from support.small_fit import small_fit

pytest.importorskip("casadi")

RNG = np.random.default_rng(11)
INPUTS = {
    "inverse_dynamics": 3, "inertia_matrix": 1, "gravity_torque": 1, "velocity_torque": 2, "forward_dynamics": 3,
    "regressor": 3, "energy_regressor": 2, "momentum_regressor": 2, "christoffel_coefficients": 1,
}  # fmt: skip
"""Quantity -> how many states it depends on."""


def arm() -> dynid.Robot:
    friction = (
        dynid.Viscous(0.5),
        dynid.Coulomb(0.3),
        dynid.RotorInertia(0.02),
        dynid.terms.SmoothSign(0.2, scale=0.1),
    )
    return dynid.robots.scara().with_terms(*friction)


@pytest.mark.parametrize("quantity", INPUTS)
def test_the_numbers_are_those_of_the_kernels(quantity: str) -> None:
    robot = arm()
    function = casadi_function(robot, quantity)
    for _ in range(3):
        state = RNG.normal(size=(INPUTS[quantity], robot.dof))
        wanted = np.asarray(kernel(robot, quantity)(*state))
        found = function(*state).full().reshape(wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())


def test_parameters_can_stay_symbols() -> None:
    """The derivative by the parameters is the regressor, because torques are linear in them."""
    import casadi

    robot = arm()
    function = casadi_function(robot, symbolic_parameters=True)
    assert function.name_in() == ["q", "dq", "ddq", "theta"]
    q, dq, ddq = RNG.normal(size=(3, robot.dof))
    other = robot.parameter_vector * RNG.uniform(0.5, 2.0, robot.parameter_vector.size)
    regressor = dynid.regressor(robot, q, dq, ddq)
    np.testing.assert_allclose(function(q, dq, ddq, other).full()[:, 0], regressor @ other, rtol=1e-12, atol=1e-11)
    symbols = [casadi.SX.sym(name, *function.size_in(k)) for k, name in enumerate(function.name_in())]
    slope = casadi.Function("slope", symbols, [casadi.jacobian(function(*symbols), symbols[-1])])
    np.testing.assert_allclose(slope(q, dq, ddq, other).full(), regressor, atol=1e-11)


def test_every_operation_of_the_tape_and_several_outputs() -> None:
    function = casadi_from_tape(record(every_operation, x=(3,)), "formulas")
    x = RNG.normal(size=3)
    found = function(x=x)
    for name, value in every_operation(x).items():
        np.testing.assert_allclose(found[name].full().reshape(value.shape), value, rtol=1e-14)


def test_an_identification_brings_its_terms() -> None:
    fit, run = small_fit()
    function = casadi_function(fit)
    for row in (0, 17):
        found = function(run.q[row], run.dq[row], run.ddq[row]).full()[:, 0]
        wanted = dynid.inverse_dynamics(fit.identified, run.q[row], run.dq[row], run.ddq[row])
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_without_casadi_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(dynid.errors.ArgumentError, match=r"pip install 'dynid\[casadi\]'"):
        casadi_function(dynid.robots.ddarm())
