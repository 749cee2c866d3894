"""Terms: their shapes, their causality, and that planted ones are found again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.compiled import inverse_dynamics
from dynid.errors import ArgumentError
from dynid.estimators.equations import build_equations
from dynid.estimators.linear.least_squares import WLS
from dynid.estimators.rows import RobotTorques, torque_of_terms
from dynid.robot import zoo
from dynid.spatial import rotation_about
from dynid.terms.base import Motion, Reference, Term
from dynid.terms.coupling import MotorFriction
from dynid.terms.friction import Coulomb, SaturatingViscous, SmoothSign, Stribeck, Viscous
from dynid.terms.load_dependent import BaseTilt, CrossTalk, DriveGain, LoadFriction, horizontal_axes
from dynid.terms.memory import Hysteresis, LaggedSign
from dynid.terms.motors import Offset
from dynid.terms.springs import AngleHarmonic
from estimators.planted import planted_run
from support.terms_page import PAGE, page

ROBOT = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))
REFERENCE = Reference(ROBOT.parameter_vector)
TERMS: list[Term] = [
    SmoothSign(joint=0, scale=0.2),
    Stribeck(joint=1, scale=0.2),
    SaturatingViscous(joint=2),
    AngleHarmonic(joint=1, order=2, sine=True),
    Hysteresis(joint=0, scale=0.05),
    LaggedSign(joint=1, scale=0.05),
    MotorFriction(ratios=((0, 1.0), (1, -1.0)), friction=SmoothSign(joint=1, scale=0.1)),
    LoadFriction(friction=SmoothSign(joint=1, scale=0.1), reference=REFERENCE),
    CrossTalk(joint=0, source=1, reference=REFERENCE),
    DriveGain(joint=1, reference=REFERENCE),
]


def motion(samples: int = 400) -> Motion:
    run = planted_run(ROBOT, samples=samples)
    return Motion(run.q, run.dq, run.ddq, run.rate_hz)


@pytest.mark.parametrize("term", TERMS, ids=lambda f: f.name)
def test_causal_and_only_on_the_joints_that_it_says(term: Term) -> None:
    whole = motion()
    begin = Motion(whole.q[:150], whole.dq[:150], whole.ddq[:150], whole.rate_hz)
    few, all_rows = (term.column(RobotTorques(ROBOT), rows) for rows in (begin, whole))
    assert set(few) == set(term.acts_on(ROBOT.joint_names))
    for joint, column in few.items():
        np.testing.assert_allclose(all_rows[joint][:150], column, atol=1e-12)


def test_units_of_terms_on_a_sliding_joint() -> None:
    equations = build_equations(ROBOT, planted_run(ROBOT, samples=200), terms=[AngleHarmonic(joint=j) for j in (1, 2)])
    assert equations.units[-2:] == ("N m", "N"), "the third joint slides"


def test_hysteresis_is_the_stop_operator() -> None:
    q = motion().q[:, 0]
    state = [0.0]
    for step in np.diff(q):
        state.append(float(np.clip(state[-1] + step / 0.05, -1.0, 1.0)))
    np.testing.assert_allclose(Hysteresis(joint=0, scale=0.05).along(q, q, q, 100.0), state, atol=1e-12)


def test_lagged_sign_follows_a_step() -> None:
    dq = np.concatenate([-np.ones(10), np.ones(200)])
    y = LaggedSign(joint=0, scale=0.1).along(dq, dq, dq, 100.0)
    np.testing.assert_allclose(y[:10], -1.0)
    assert y[20] == pytest.approx(1.0 - 2.0 * np.exp(-11 / 10.0))


def test_base_tilt_is_the_derivative_with_respect_to_gravity() -> None:
    robot = zoo.puma560()
    run = planted_run(robot, samples=50)
    at = Motion(run.q, 0.0 * run.dq, 0.0 * run.ddq, 100.0)
    tilt = BaseTilt(axis=0, reference=Reference(robot.parameter_vector))
    angle = 1e-6
    turned = robot.with_gravity(rotation_about(horizontal_axes(robot.gravity)[0], angle) @ robot.gravity)
    zero = np.zeros_like(run.q)
    change = inverse_dynamics(turned, run.q, zero, zero) - inverse_dynamics(robot, run.q, zero, zero)
    for joint, column in tilt.column(RobotTorques(robot), at).items():
        np.testing.assert_allclose(change[:, joint] / angle, column, atol=1e-4)


def test_planted_terms_are_found() -> None:
    run = planted_run(ROBOT, samples=2000, noise=0.01)
    terms = TERMS[:6]
    planted = np.array([0.5, 0.4, 0.3, 0.2, 0.6, 0.5])
    run = replace(run, effort=run.effort + torque_of_terms(ROBOT, terms, planted, run))
    equations = build_equations(ROBOT, run, terms=terms)
    estimate = WLS().solve(equations)
    assert estimate.names[-6:] == tuple(f.name for f in terms)
    np.testing.assert_array_less(np.abs(estimate.values[-6:] - planted), 4.0 * estimate.stderr[-6:])
    kept = WLS().solve(equations.keep(terms[:2]))
    assert len(kept.names) == equations.base.rank + 2


@pytest.mark.parametrize("chosen", [slice(None), slice(0, 5), slice(8, None)])
def test_torques_are_the_same_with_columns_that_a_fit_has_left(chosen: slice) -> None:
    """Bit by bit: what was fitted before must not show."""
    run = planted_run(ROBOT, samples=1537)
    run = replace(run, segment=np.repeat([0, 1, 2], [411, 1003, 123]))
    terms = TERMS[chosen]
    values = np.random.default_rng(1).normal(size=len(terms))
    plain = torque_of_terms(ROBOT, terms, values, run)
    build_equations(ROBOT, run, terms=TERMS)
    np.testing.assert_array_equal(torque_of_terms(ROBOT, terms, values, run), plain)


def test_parallel_filter_keeps_the_parameters() -> None:
    run = planted_run(ROBOT, samples=3000)
    equations = build_equations(ROBOT, run, band_hz=5.0)
    truth = equations.base.project(ROBOT.parameter_vector)
    np.testing.assert_allclose(WLS().solve(equations).values, truth, atol=1e-8)


def test_samples_that_do_not_count_never_reach_their_neighbours() -> None:
    run = planted_run(ROBOT, samples=3000)
    valid = np.ones(run.q.shape, dtype=bool)
    valid[500:700] = False
    spoilt = np.where(valid, run.effort, 1e6)
    equations = build_equations(ROBOT, replace(run, effort=spoilt, valid=valid), band_hz=5.0)
    np.testing.assert_allclose(WLS().solve(equations).values, equations.base.project(ROBOT.parameter_vector), atol=1e-8)


def test_scales_must_be_positive() -> None:
    with pytest.raises(ArgumentError):
        Hysteresis(joint=0, scale=0.0)


def test_the_page_of_terms_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make pages"
