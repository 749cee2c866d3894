"""Closed-form torques: every text is read back and compared with inverse dynamics, and [Atkeson1986] appendix I."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.compiled import christoffel_coefficients, gravity_torque, inertia_matrix, record_quantity
from dynid.errors import ArgumentError
from dynid.export.formulas import TorqueExpressions, coefficient_expressions, torque_expressions
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot
from dynid.tape import record
from dynid.tape.expansion import expand_tape
from dynid.terms import SaturatingViscous, Stribeck
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia
from support.random_robots import random_robot

Floats = NDArray[np.float64]
Torques = Callable[[Floats, Floats, Floats, Floats], Any]
ARMS = ("scara", "puma560")
TOLERANCE = 1e-12


def arm(name: str) -> Robot:
    robot: Robot = getattr(dynid.robots, name)()
    return robot.with_terms(Viscous(0.3), Coulomb(0.7), RotorInertia(0.02), keep=True)


def states(robot: Robot, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(3, robot.dof))


def check(expressions: TorqueExpressions, torques: Torques, tolerance: float = TOLERANCE) -> None:
    """Compare a function that was made from text with the recursion, on several states."""
    robot = expressions.robot
    for seed in range(4):
        q, dq, ddq = states(robot, seed)
        expected = dynid.inverse_dynamics(robot, q, dq, ddq)
        found = np.asarray(torques(q, dq, ddq, expressions.values), dtype=float).ravel()
        np.testing.assert_allclose(found, expected, atol=tolerance * max(1.0, float(np.abs(expected).max())))


def from_python(text: str) -> Torques:
    names: dict[str, Any] = {}
    exec(compile(text, "closed form", "exec"), names)
    return names["joint_torques"]


POLAR = r"""\begin{align*}
\tau_{1} ={}& \mathit{ZZR}_{1} \left(\ddot{q}_{1}\right) \\
  &+ \mathit{MX}_{1} \left(5 \cdot 10^{-5} c_{1}\right) \\
  &+ \mathit{MY}_{1} \left(-5 \cdot 10^{-5} s_{1}\right) \\
  &+ \mathit{MX}_{2} \left(-\ddot{q}_{2} + 5 \cdot 10^{-5} c_{1}\right) \\
  &+ \mathit{MZ}_{2} \left(2 \ddot{q}_{1} q_{2} + 2 \dot{q}_{1} \dot{q}_{2} + 5 \cdot 10^{-5} s_{1}\right) \\
  &+ \mathit{M}_{2} \left(\ddot{q}_{1} q_{2}^{2} + 2 \dot{q}_{1} \dot{q}_{2} q_{2} + 5 \cdot 10^{-5} q_{2} s_{1}\right) \\
  &+ \mathit{FC}_{1} \left(f_{8}\right) \\
\tau_{2} ={}& \mathit{MX}_{2} \left(-\ddot{q}_{1}\right) \\
  &+ \mathit{MZ}_{2} \left(-\dot{q}_{1}^{2}\right) \\
  &+ \mathit{M}_{2} \left(\ddot{q}_{2} - \dot{q}_{1}^{2} q_{2} - 5 \cdot 10^{-5} c_{1}\right) \\
  &+ \mathit{FC}_{2} \left(f_{9}\right)
\end{align*}
"""  # noqa: E501
"""Torques of an arm that turns and slides, in a vertical plane of weak gravity."""


@pytest.mark.parametrize("name", ARMS)
def test_python_is_the_inverse_dynamics(name: str) -> None:
    expressions = torque_expressions(arm(name))
    check(expressions, from_python(expressions.python()))


def test_latex_of_a_polar_arm() -> None:
    robot = from_dh([DH(), DH(sigma=1, alpha=90)], degrees=True, name="polar", gravity=(0.0, -5e-5, 0.0))
    assert torque_expressions(robot.with_terms(Coulomb(0.7))).latex() == POLAR


@pytest.mark.parametrize("seed", range(4))
def test_random_robots_with_any_axes(seed: int) -> None:
    robot = random_robot(seed, joints=3, tree=bool(seed % 2), terms=True)
    if robot.dof == 0:
        pytest.skip("no moving joint")
    expressions = torque_expressions(robot)
    check(expressions, from_python(expressions.python()), tolerance=1e-10)


def test_base_parameters_of_rest_are_refused() -> None:
    robot = dynid.robots.ddarm()
    with pytest.raises(ArgumentError, match="another motion"):
        torque_expressions(robot, dynid.base_parameters(robot, static=True))
    with pytest.raises(ArgumentError, match="another robot"):
        torque_expressions(robot, dynid.base_parameters(dynid.robots.scara()))


def test_functions_other_than_sine_and_cosine_get_names() -> None:
    robot = dynid.robots.ddarm().with_terms(
        Stribeck(0.4, joint=1, scale=0.2), SaturatingViscous(0.2, joint=0), keep=True
    )
    expressions = torque_expressions(robot)
    check(expressions, from_python(expressions.python()))
    for function in ("tanh(", "exp(", "sqrt(", "abs("):
        assert function in expressions.text()


def test_what_cannot_be_written_is_refused_with_the_way_out() -> None:
    with pytest.raises(ArgumentError, match="generate_c"):
        expand_tape(record_quantity(dynid.robots.puma560(), "regressor"), most_terms=1000)
    with pytest.raises(ArgumentError, match="divides"):
        expand_tape(record(lambda q: np.array([1.0 / q[0]]), q=(1,)))
    expressions = torque_expressions(dynid.robots.ddarm())
    with pytest.raises(ArgumentError, match="ZZR1"):
        expressions.coefficient(expressions.robot.joint_names[0], "XX1")


def evaluate(text: str, names: dict[str, float]) -> float:
    """Value of a formula of one or several lines."""
    known: dict[str, object] = {"sin": math.sin, "cos": math.cos, **names}
    for line in text.splitlines():
        name, formula = line.split(" = ")
        known[name] = eval(formula, {"__builtins__": {}}, known)  # our own text
    return float(known[name])  # type: ignore[arg-type]


def test_an_unknown_kind_of_coefficients_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"kind is 'foo'\. Choose from inertia, gravity, christoffel"):
        coefficient_expressions(dynid.robots.scara(), "foo")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "robot", [dynid.robots.gautier_khalil_3r(), dynid.robots.stanford(), dynid.robots.scara()], ids=lambda r: r.name
)
def test_formulas_give_the_numbers(robot: Robot) -> None:
    q = np.random.default_rng(0).uniform(-1, 1, robot.dof)
    base = dynid.base_parameters(robot)
    values = dict(zip(base.names, base.project(robot.parameter_vector), strict=True))
    names = {**values, **{f"q{j + 1}": float(q[j]) for j in range(robot.dof)}}
    truth = {
        "inertia": inertia_matrix(robot, q),
        "gravity": gravity_torque(robot, q),
        "christoffel": christoffel_coefficients(robot, q),
    }
    for kind, numbers in truth.items():
        formulas = coefficient_expressions(robot, kind)  # type: ignore[arg-type]
        found = np.zeros_like(numbers)
        for name, text in formulas.items():
            index = tuple(int(digit) - 1 for digit in name[1:])
            found[index] = evaluate(text, names)
            found[(*index[:-2], *index[-2:][::-1])] = found[index]
        np.testing.assert_allclose(found, numbers, rtol=0, atol=1e-12 * max(1.0, np.abs(numbers).max()))
