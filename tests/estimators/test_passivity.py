"""Rotors and friction are possible: signs, both directions, motors that turn several joints."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from dynid.estimators.equations import build_equations
from dynid.estimators.linear.least_squares import WLS
from dynid.estimators.physical.definiteness import check_signs
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.robot import zoo
from dynid.terms.coupling import Coupling
from dynid.terms.friction import AsymmetricViscous, Coulomb, SmoothSign, Viscous
from dynid.terms.motors import Offset, RotorInertia
from estimators.planted import equations_of, planted_run

ROBOT = zoo.scara().with_terms(RotorInertia(0.1), Viscous(0.5), Coulomb(0.4), Offset(0.1))


def fitted(robot, run, terms=(), kind=FeasibleWLS):
    estimate = kind().solve(build_equations(robot, run, terms=terms))
    return dict(zip(estimate.names, estimate.values.tolist(), strict=True))


@pytest.mark.parametrize("wrong", [Coulomb(-0.5), Viscous(-0.5)])
def test_friction_never_drives(wrong: Coulomb | Viscous) -> None:
    driven = ROBOT.with_terms(RotorInertia(0.1), type(wrong)(0.0), Offset(0.1))
    theta = driven.parameter_vector.copy()
    theta[[10 * 4 + 3 * j + 1 for j in range(4)]] = wrong.value
    run = planted_run(driven.with_parameters(theta), noise=0.05, samples=600)
    free = fitted(driven, run, kind=WLS)
    held = fitted(driven, run)
    names = [f"{wrong.symbol}{j}" for j in (1, 2, 3, 4)]
    assert all(free[name] < -0.3 for name in names), "the data ask for it"
    assert all(0.0 <= held[name] < 1e-3 for name in names)


def test_both_directions_brake() -> None:
    terms = [AsymmetricViscous(joint=j) for j in range(4)]
    lopsided = ROBOT.with_terms(RotorInertia(0.1), Viscous(0.2), AsymmetricViscous(0.5), Coulomb(0.4), Offset(0.1))
    found = fitted(ROBOT, planted_run(lopsided, noise=0.02, samples=800), terms)
    for joint in (1, 2, 3, 4):
        assert abs(found[f"FVA{joint}"]) <= found[f"FV{joint}"] + 1e-4
        assert found[f"FVA{joint}"] > 0.2


def test_friction_that_surely_drives_is_named() -> None:
    equations = build_equations(ROBOT, planted_run(ROBOT, noise=0.05), terms=[SmoothSign(joint=2, scale=0.5)])
    estimate, wrong = WLS().solve(equations), ["FV2", "FC4", equations.terms[0].name]
    values = 1.0 - 2.0 * np.isin(estimate.names, [*wrong, "OF1"])  # an offset may have any sign
    for spread, named in ((1.0 / 1.97, wrong), (1.0 / 1.95, [])):
        covariance = spread**2 * np.eye(len(values))
        found = check_signs(equations, replace(estimate, values=values, covariance=covariance))
        assert re.findall(r"(\S+) -1 ", "".join(one.message for one in found)) == named


def test_the_rotors_of_coupled_motors_have_energy_in_every_motion() -> None:
    motors = Coupling(dict.fromkeys(ROBOT.joint_names[:2], 1.0), rotor_inertia=0.6, viscous=0.3, coulomb=0.1)
    # more than the joints' own rotors: impossible
    equations = equations_of(ROBOT.with_couplings(motors), noise=0.01, samples=800)
    estimate = FeasibleWLS().solve(equations)
    assert estimate.standard is not None
    theta = dict(zip(equations.base.layout.names, estimate.standard.tolist(), strict=True))
    coupled = next(value for name, value in theta.items() if name.startswith("IAM"))
    assert coupled**2 <= theta["IA1"] * theta["IA2"] * (1.0 + 1e-3) + 1e-9
    assert np.isfinite(estimate.stderr).any()
