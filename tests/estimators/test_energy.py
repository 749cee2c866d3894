"""Energy differences recover the parameters without accelerations ([GautierKhalil1992] eqs. 1-10)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimators.equations import build_equations
from dynid.estimators.linear.energy_differences import Energy, _cut_intervals, energy_equations, spline_weights
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.coupling import Coupling
from dynid.terms.friction import SmoothSign

from .planted import arm, equations_of, planted_run, still, truth, with_friction


def coupled() -> Robot:
    robot = zoo.ddarm()
    return robot.with_terms(
        *with_friction(robot).moving_joints[0].terms,
        Coupling({robot.joint_names[1]: 1.0, robot.joint_names[2]: 0.5}, rotor_inertia=0.2, viscous=0.3, coulomb=0.4),
    )


@pytest.mark.parametrize("robot", [zoo.ddarm(), arm(), zoo.scara(), coupled()], ids=lambda r: r.name)
def test_the_truth_without_noise(robot: Robot) -> None:
    equations = equations_of(robot, samples=4000, rate_hz=250.0)
    estimate = Energy().solve(equations)
    assert not estimate.undetermined.any()
    assert estimate.values == pytest.approx(truth(equations), abs=1e-6)


def test_accelerations_are_not_used() -> None:
    run = planted_run(arm(), samples=4000, rate_hz=250.0)
    equations = build_equations(arm(), replace(run, ddq=np.zeros_like(run.ddq)))
    assert Energy().solve(equations).values == pytest.approx(truth(equations), abs=1e-6)


def test_the_equations_are_the_papers() -> None:
    equations = equations_of(zoo.ddarm())
    rows = np.concatenate(
        [energy_equations(equations.robot, equations.base, part) for part in _cut_intervals(equations, 0.05)]
    )
    assert rows.shape == (299, 16)
    assert rows[:, :-1] @ truth(equations) == pytest.approx(rows[:, -1], abs=1e-6)


def test_terms_do_work_as_well() -> None:
    run = planted_run(arm(), samples=3000)
    term = SmoothSign(joint=1, scale=0.5)
    effort = run.effort.copy()
    effort[:, 1] += 3.0 * np.tanh(run.dq[:, 1] / 0.5)
    equations = build_equations(arm(), replace(run, effort=effort), terms=[term])
    estimate = Energy().solve(equations)
    assert estimate.names[-1] == term.name
    assert estimate.values[-1] == pytest.approx(3.0, abs=1e-5)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 12])
def test_quadrature_is_exact_for_polynomials(length: int) -> None:
    order = {1: 1, 2: 2, 3: 3, 4: 3}.get(length, 5)
    x = np.arange(length + 1.0)
    for power in range(order + 1):
        assert spline_weights(length) @ x**power == pytest.approx(length ** (power + 1) / (power + 1))


def test_unsupported_data() -> None:
    with pytest.raises(IdentifiabilityError, match="does not move"):
        Energy().solve(still(arm(), [0, 1, 2]))
    with pytest.raises(IdentifiabilityError, match="unknowns"):
        Energy(interval_s=10.0).solve(equations_of(arm()))
    with pytest.raises(ArgumentError):
        Energy(interval_s=0.0)
