"""Rotors and friction of identified robots: signs, coupled motors, power that friction takes, definite inertia."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dynid.estimation.physical.feasible as feasible_module
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.linear.least_squares import WLS
from dynid.estimation.physical import conic
from dynid.estimation.physical.bounds import Bounds
from dynid.estimation.physical.definiteness import check_inertia, random_poses
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.estimation.physical.passivity import FED_IN, Passivity, distinct_rows
from dynid.estimation.rows import RobotTorques, torque_of_terms
from dynid.kernels import inertia_matrix, inverse_dynamics
from dynid.links.identify import identify_equations
from dynid.processing.experiment import Experiment
from dynid.robot import zoo
from dynid.robot.check import check_robot
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.terms.base import LinkTorques, Motion, SteadyMotion, Term
from dynid.terms.coupling import CoupledCoulomb, CoupledInertia, CoupledViscous, Coupling, MotorFriction
from dynid.terms.friction import (
    AngleFriction,
    AsymmetricViscous,
    Coulomb,
    CubicViscous,
    QuadraticViscous,
    SaturatingViscous,
    SmoothSign,
    Stribeck,
    Viscous,
)
from dynid.terms.load_dependent import DriveGain, LoadFriction, Reference
from dynid.terms.memory import Hysteresis, LaggedSign
from dynid.terms.motors import Offset, RotorInertia
from dynid.terms.springs import AngleHarmonic
from estimation.planted import planted_run

Floats = NDArray[np.float64]
WRIST = {"joint5": 1.0, "joint6": 1.0}


def with_values(robot: Robot, *terms: RotorInertia | Viscous | Coulomb | Offset) -> Robot:
    """The robot with terms of any values, also such that no joint has: `with_terms` refuses those."""
    plain = robot.with_terms(*(type(term)(abs(term.value)) for term in terms))
    theta = plain.parameter_vector.copy()
    for place, placed in enumerate(plain.terms, start=10 * plain.dof):
        theta[place] = next((term.value for term in terms if type(term) is type(placed.term)), theta[place])
    return plain.with_parameters(theta)


def pendulum() -> Robot:
    body = Inertia.from_com(2.0, (0.3, 0.0, 0.0), np.diag([0.01, 0.02, 0.02]))
    robot = from_dh([DH(alpha=np.pi / 2)], name="pendulum", inertias=[body])
    return robot.with_terms(RotorInertia(0.05), Viscous(0.4), Coulomb(0.6), Offset(0.1))


def tx40(coupling: Coupling) -> Robot:
    return zoo.tx40().with_terms(RotorInertia(0.05), Viscous(0.4), Coulomb(0.3), Offset(0.1), coupling)


def tx40_run(planted: Robot, noise: float = 0.02) -> Experiment:
    return planted_run(planted, noise=noise, samples=1200, amplitude=0.9)


# --- what terms declare -----------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    scale=st.floats(0.01, 0.5), speed=st.floats(0.05, 3.0), sign=st.sampled_from([-1.0, 1.0]), start=st.floats(-2, 2)
)
@pytest.mark.parametrize("kind", [Hysteresis, LaggedSign])
def test_steady_torque_is_where_memory_settles(
    kind: type[Hysteresis | LaggedSign], scale: float, speed: float, sign: float, start: float
) -> None:
    term, rate = kind(joint=0, scale=scale), 1000.0
    count = int(rate * (2.5 * scale / speed + 12.0 * scale)) + 2
    moving = sign * speed * np.repeat([-1.0, 1.0], count)  # the other way first, which must be forgotten
    settled = term.along(start + np.cumsum(moving) / rate, moving, 0.0 * moving, rate)[-1]
    state = SteadyMotion(q=np.array([start]), speed=np.array([sign * speed]), load=np.ones(1))
    assert term.steady_torque(state)[0] == pytest.approx(settled, abs=1e-3)


@settings(deadline=None)
@given(q=st.floats(-3, 3), speed=st.floats(0.01, 3.0), sign=st.sampled_from([-1.0, 1.0]))
def test_what_does_not_rub_has_no_steady_torque(q: float, speed: float, sign: float) -> None:
    state = SteadyMotion(q=np.array([q]), speed=np.array([sign * speed]), load=np.ones(1))
    for term in (Offset(joint=0), RotorInertia(joint=0), AngleHarmonic(joint=0, order=2)):
        assert term.steady_torque(state) == 0.0
    assert DriveGain(joint=0, reference=Reference(np.zeros(1))).surface(("a",)) is None


@settings(deadline=None)
@given(st.lists(st.floats(-2, 2), min_size=3, max_size=3), st.floats(-2, 2), st.floats(-2, 2))
def test_matrices_of_coupled_terms_are_their_columns(dq: list[float], first: float, second: float) -> None:
    if not first or not second:
        return
    ratios, rates = {"a": first, "c": second}, np.array(dq)
    for term, entries in (
        (CoupledViscous(ratios=ratios), CoupledViscous(ratios=ratios).viscosity((0, 2))),
        (CoupledInertia(ratios=ratios), CoupledInertia(ratios=ratios).inertia((0, 2))),
    ):
        matrix = np.zeros((3, 3))
        for pair, part in entries.items():
            matrix[pair] = part
        rows = term.rows((0, 2), rates, rates, rates)
        assert (matrix @ rates)[[0, 2]] == pytest.approx([rows[0], rows[2]])


def test_a_motor_and_its_selected_friction_rub_on_one_surface() -> None:
    names = ("a", "b", "c")
    own = CoupledCoulomb(ratios={"c": 2.0, "a": 1.0}).surface(names)
    selected = MotorFriction(ratios=((2, 2.0), (0, 1.0)), friction=SmoothSign(joint=2, scale=0.1)).surface(names)
    assert own == selected == ((0, 1.0), (2, 2.0))


# --- friction takes power ---------------------------------------------------------------------------------------------

FRICTION: dict[str, tuple[tuple[Term, ...], tuple[float, ...]]] = {
    "smooth sign": ((SmoothSign(joint=0, scale=0.2),), (0.5,)),
    "Stribeck": ((Stribeck(joint=0, scale=0.3),), (-2.0,)),
    "saturating": ((SaturatingViscous(joint=0), AsymmetricViscous(joint=0)), (-1.5, 0.9)),
    "angle": ((AngleFriction(joint=0, scale=0.1), AngleFriction(joint=0, scale=0.1, sine=True)), (0.9, -0.8)),
    "memory": ((Hysteresis(joint=0, scale=0.1), LaggedSign(joint=0, scale=0.05)), (0.3, -1.5)),
}


def fed_equations(name: str, coulomb: float) -> Samples:
    """A pendulum whose friction feeds power in at some speeds: no robot."""
    terms, values = FRICTION[name]
    planted = with_values(pendulum(), RotorInertia(0.05), Viscous(0.2), Coulomb(coulomb), Offset(0.1))
    run = planted_run(planted, samples=1500, amplitude=1.2)
    torque = inverse_dynamics(planted, run.q, run.dq, run.ddq)
    effort = torque + torque_of_terms(planted, terms, np.array(values), run)
    noise = 0.02 * np.random.default_rng(3).normal(size=effort.shape)
    return build_equations(pendulum(), replace(run, effort=effort + noise), terms=terms)


@pytest.mark.parametrize("name", FRICTION)
def test_identified_friction_never_feeds_power_in(name: str) -> None:
    equations = fed_equations(name, coulomb=-0.4)
    run, terms = equations.experiments[0], equations.terms
    found = FeasibleWLS().solve(equations)
    assert found.standard is not None
    # the friction itself, by inverse dynamics at constant speed, on a grid of its own within the data
    rng = np.random.default_rng(0)
    fast = np.abs(run.dq).max()
    speed = rng.choice([-1.0, 1.0], 4000) * np.exp(rng.uniform(np.log(2e-3 * fast), np.log(fast), 4000))
    q = rng.uniform(run.q.min(), run.q.max(), 4000)
    robot = pendulum().with_parameters(found.standard)
    moving, resting = (
        inverse_dynamics(robot, q[:, None], v[:, None], np.zeros((4000, 1)))[:, 0] for v in (speed, np.zeros(4000))
    )
    state = SteadyMotion(q=q, speed=speed, load=np.zeros(4000))
    extra = sum(
        value * term.steady_torque(state)
        for term, value in zip(terms, found.values[equations.base.rank :], strict=True)
    )
    against = np.sign(speed) * (moving - resting + extra)
    typical = float(np.sqrt(np.mean(run.effort**2)))
    assert against.min() >= -10.0 * FED_IN * typical  # between the grid's states a little more
    assert "friction of joint1" in found.at_bound


def test_without_the_constraint_that_friction_feeds_power_in() -> None:
    equations = fed_equations("memory", coulomb=-0.4)
    free = FeasibleWLS(signs=False).solve(equations)
    values = dict(zip(free.names, free.values, strict=True))
    assert values["FC1"] + values["FH1(0.1)"] + values["FL1(0.05)"] < -1.0


def test_dry_friction_may_be_negative_where_the_sum_is_not() -> None:
    terms = (SmoothSign(joint=0, scale=0.01), LaggedSign(joint=0, scale=0.05))
    planted = with_values(pendulum(), RotorInertia(0.05), Viscous(0.4), Coulomb(-0.5), Offset(0.1))
    run = planted_run(planted, samples=2000, amplitude=1.2, noise=0.005)
    columns = [term.along(run.q[:, 0], run.dq[:, 0], run.ddq[:, 0], run.rate_hz) for term in terms]
    effort = run.effort + (0.2 * columns[0] + 1.2 * columns[1])[:, None]
    found = FeasibleWLS().solve(build_equations(pendulum(), replace(run, effort=effort), terms=terms))
    values = dict(zip(found.names, found.values, strict=True))
    assert values["FC1"] == pytest.approx(-0.5, abs=0.05)  # FC + FL = 0.7 at steady speed: no power is fed in
    assert "friction of joint1" not in found.at_bound


def test_friction_by_the_load_takes_power_at_every_load() -> None:
    reference = Reference(pendulum().parameter_vector)
    term = LoadFriction(friction=SmoothSign(joint=0, scale=0.1), reference=reference)
    run = planted_run(pendulum(), samples=1500, amplitude=1.2, noise=0.02)
    columns = term.column(_links(pendulum()), _motion(run))[0]
    equations = build_equations(pendulum(), replace(run, effort=run.effort - 0.5 * columns[:, None]), terms=[term])
    found = FeasibleWLS().solve(equations)
    values = dict(zip(found.names, found.values, strict=True))
    most = float(np.abs(run.effort - 0.5 * columns[:, None]).max())
    fast = float(np.abs(run.dq).max())
    share = values[term.name] * most + values["FC1"] + values["FV1"] * fast
    assert share >= -0.02
    assert WLS().solve(equations).values[-1] < -0.3


def _links(robot: Robot) -> LinkTorques:
    return RobotTorques(robot)


def _motion(run: Experiment) -> Motion:
    return Motion(run.q, run.dq, run.ddq, run.rate_hz)


# --- rotors -----------------------------------------------------------------------------------------------------------


def test_rotor_inertia_is_not_negative_beside_selected_terms() -> None:
    planted = with_values(pendulum(), RotorInertia(-0.1), Viscous(0.4), Coulomb(0.6), Offset(0.1))
    term = SmoothSign(joint=0, scale=0.1)
    equations = build_equations(pendulum(), planted_run(planted, noise=0.01), terms=[term])
    found = identify_equations(equations, FeasibleWLS())
    assert found.standard[found.base.layout.index("IA1")] >= 0.0
    assert "indefinite-inertia" not in found.estimate.codes


@pytest.mark.parametrize("further", [(), (SaturatingViscous(joint=4), SaturatingViscous(joint=5))])
def test_motors_that_no_robot_has_become_possible_ones(further: tuple[Term, ...]) -> None:
    """A coupling of 0.15 beside rotor inertias of 0.05: the planted inertia matrix is indefinite."""
    planted = tx40(Coupling(WRIST, rotor_inertia=0.15, viscous=0.8, coulomb=0.1))
    poses = random_poses(planted, 500)
    assert np.linalg.eigvalsh(inertia_matrix(planted, poses))[:, 0].max() < 0.0
    equations = build_equations(tx40(Coupling(WRIST)), tx40_run(planted), terms=further)
    found = identify_equations(equations, FeasibleWLS())
    assert "indefinite-inertia" not in found.estimate.codes
    assert {"rotor inertia of joint5+joint6", "viscous friction of joint5+joint6"} <= set(found.estimate.at_bound)
    robot = tx40(Coupling(WRIST)).with_parameters(found.standard)
    assert np.linalg.eigvalsh(inertia_matrix(robot, poses))[:, 0].min() > 0.0
    (motor,) = robot.couplings
    own = {joint.name: {type(t): t.value for t in joint.terms} for joint in robot.moving_joints}
    for kind, between in ((RotorInertia, motor.rotor_inertia), (Viscous, motor.viscous)):
        first, last = own["joint5"][kind], own["joint6"][kind]
        assert first * last - between**2 >= -1e-6 * (first + last) ** 2
        assert between > 0.01  # the border of what is possible, and no more


def test_the_impossible_motors_are_reported_by_estimators_that_do_not_know_them() -> None:
    planted = tx40(Coupling(WRIST, rotor_inertia=0.15))
    found = identify_equations(build_equations(tx40(Coupling(WRIST)), tx40_run(planted)), WLS())
    (finding,) = [f for f in found.estimate.findings if f.code == "indefinite-inertia"]
    assert finding.evidence["poses"] == 2000.0
    assert finding.evidence["smallest eigenvalue [kg m^2]"] < 0.0


def test_possible_motors_are_left_alone_and_covered() -> None:
    planted = tx40(Coupling(WRIST, rotor_inertia=0.03, viscous=0.2, coulomb=0.1))
    equations = build_equations(tx40(Coupling(WRIST)), tx40_run(planted))
    found = FeasibleWLS().solve(equations)
    assert not [name for name in found.at_bound if "+" in name]
    truth = equations.base.project(planted.parameter_vector)
    sigmas = (found.values - truth) / found.stderr
    names = ["IAM6", "FVM6", "FCM6", "FV5", "FV6"]
    assert np.abs(sigmas[[found.names.index(name) for name in names]]).max() < 4.0


def test_uncertainty_counts_what_the_constraint_moved() -> None:
    planted = tx40(Coupling(WRIST, rotor_inertia=0.15))
    equations = build_equations(tx40(Coupling(WRIST)), tx40_run(planted))
    held, plain = FeasibleWLS().solve(equations), WLS().solve(equations)
    place = held.names.index("IAM6")
    moved = abs(held.values[place] - plain.values[place])
    assert moved > 5.0 * plain.stderr[place]
    low, high = held.interval()[place]
    assert low < plain.values[place] < high  # what the data alone say is not excluded


@settings(max_examples=20, deadline=None)
@given(own=st.floats(0.01, 1.0), between=st.floats(0.0, 1.0), ratio=st.floats(-2.0, 2.0))
def test_check_robot_knows_couplings(own: float, between: float, ratio: float) -> None:
    if abs(ratio) < 1e-3:
        return
    robot = zoo.puma560().with_terms(RotorInertia(own), Coupling({"joint5": 1.0, "joint6": ratio}, between))
    matrix = np.array([[own, between * ratio], [between * ratio, own]])
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if abs(smallest) > 1e-4:
        assert ("impossible-coupling" in check_robot(robot).codes) == (smallest < 0.0)


def test_check_robot_knows_signs_of_couplings() -> None:
    robot = zoo.puma560().with_terms(RotorInertia(1.0), Viscous(1.0), Coupling(WRIST, 0.1, -0.1))
    (finding,) = check_robot(robot).about("negative-friction")
    assert finding.where == "motor of joint5+joint6"


# --- the inertia matrix -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["panda", "puma560", "tx40", "ur10"])
def test_possible_robots_have_a_definite_inertia_matrix(name: str) -> None:
    robot = zoo.get(name).with_terms(RotorInertia(0.1), Viscous(0.1), Coulomb(0.1), Offset())
    equations = build_equations(robot, planted_run(robot, samples=300))
    assert not check_inertia(equations, robot.parameter_vector, np.zeros(0))
    impossible = with_values(robot, RotorInertia(-5.0), Viscous(0.1), Coulomb(0.1), Offset())
    (finding,) = check_inertia(equations, impossible.parameter_vector, np.zeros(0))
    assert finding.code == "indefinite-inertia"


def test_terms_of_one_sign_are_held_by_their_signs() -> None:
    equations = build_equations(pendulum(), planted_run(pendulum(), samples=300))
    held = Passivity.of(equations)
    names = equations.base.layout.names
    assert {names[k] for k in held.nonnegative} == {"IA1", "FV1", "FC1"}
    assert len(held.rows) == 0
    assert not held.blocks


def speed_powers(coulomb: float, square: float, cube: float) -> tuple[Floats, Floats]:
    """Friction ``coulomb + 0.4 v + square v^2 + cube v^3``, planted and identified, lowest power first."""
    powers = [QuadraticViscous(joint=0), CubicViscous(joint=0)]
    robot = with_values(pendulum(), RotorInertia(0.05), Viscous(0.4), Coulomb(coulomb), Offset(0.1))
    run = planted_run(robot, noise=0.02)
    bent = run.effort + square * run.dq * np.abs(run.dq) + cube * run.dq**3
    equations = build_equations(pendulum(), replace(run, effort=bent), terms=powers)
    found = FeasibleWLS(prior_weight=1.0).solve(equations)
    names, values = equations.base.layout.names, found.values[equations.base.rank :]
    own = [found.standard[names.index(name)] for name in ("FC1", "FV1")]
    return np.array([coulomb, 0.4, square, cube]), np.array([*own, *values])


@pytest.mark.parametrize(("coulomb", "square", "cube"), [(0.6, -0.2, -0.01), (0.0, -0.5, 0.1), (0.3, -0.6, 0.05)])
def test_powers_of_the_speed_feed_no_power_in_at_any_speed(coulomb: float, square: float, cube: float) -> None:
    planted, found = speed_powers(coulomb, square, cube)
    speeds = np.geomspace(1e-3, 1e3, 2000)[:, None] ** np.arange(4)
    assert np.min(speeds @ planted) < 0.0
    assert np.all(speeds @ found >= -1e-6 * (speeds @ np.abs(found)))


def test_powers_of_the_speed_that_take_power_are_left_alone() -> None:
    """Dry and viscous friction make up for a negative square."""
    planted, found = speed_powers(0.6, -0.55, 0.2)
    np.testing.assert_allclose(found, planted, rtol=0.03)


def test_what_is_absent_is_in_no_constraint() -> None:
    """A file that holds neither couplings nor rotors: their signs and blocks would leave the program no interior."""
    robot = tx40(Coupling(WRIST, rotor_inertia=0.03, viscous=0.2, coulomb=0.1))
    equations = build_equations(robot, tx40_run(robot), terms=[SmoothSign(joint=4, scale=0.1)])
    names = equations.base.layout.names
    for gone, blocks in ((("IAM6",), 2), (("IA5", "IA6", "IAM6"), 1), (("FV5", "FV6", "FVM6"), 1)):
        left = Passivity.of(equations).without([names.index(name) for name in gone])
        assert len(left.blocks) == blocks
        assert not {names[k] for k in left.nonnegative if k < len(names)} & set(gone)
    whole = Passivity.of(equations)
    share = whole.rows[:, -2:].any(axis=0)
    assert share.tolist() == [True, False]  # joint 5 shares its viscous friction with the smooth sign
    assert not left.rows[:, -2:].any()  # without viscous friction there is none to share
    assert (
        FeasibleWLS(bounds=Bounds(absent=("IA5", "IA6", "IAM6", "FVM6", "FCM6"))).solve(equations).standard is not None
    )


def test_the_fallback_of_the_cone_solver_holds_friction_and_motors(monkeypatch: pytest.MonkeyPatch) -> None:
    for equations in (
        fed_equations("memory", coulomb=-0.4),
        build_equations(tx40(Coupling(WRIST)), tx40_run(tx40(Coupling(WRIST, rotor_inertia=0.15)))),
    ):
        expected = FeasibleWLS(prior_weight=1.0).solve(equations)
        with monkeypatch.context() as patch:
            patch.setattr(feasible_module, "solve_cone_program", lambda program: None)
            found = FeasibleWLS(prior_weight=1.0).solve(equations)
        assert "solver-fallback" in found.codes
        run = equations.experiments[0]
        away = equations.torque(found.values, run) - equations.torque(expected.values, run)
        assert np.linalg.norm(away) < 0.02 * np.linalg.norm(run.effort)


def test_intervals_cover_motors_at_the_border_of_what_is_possible() -> None:
    """Rotor inertias of 0.05 and a coupling of 0.05: the matrix of the motors is singular."""
    planted, base, hits = tx40(Coupling(WRIST, rotor_inertia=0.05, viscous=0.4)), None, []
    for seed in range(15):
        run = planted_run(planted, noise=0.05, samples=600, amplitude=0.9, seed=seed)
        equations = build_equations(tx40(Coupling(WRIST)), run, base=base)
        base = equations.base
        low, high = FeasibleWLS(prior_weight=1.0).solve(equations).interval().T
        truth = base.project(planted.parameter_vector)
        hits.append((low <= truth) & (truth <= high))
    assert np.mean(hits) > 0.94


@given(seed=st.integers(0, 1000), rows=st.integers(1, 60), columns=st.integers(1, 4))
def test_distinct_rows_are_those_of_numpy(seed: int, rows: int, columns: int) -> None:
    table = np.random.default_rng(seed).integers(-2, 3, size=(rows, columns)) * 0.5
    assert np.array_equal(distinct_rows(table), np.unique(table, axis=0, return_index=True)[1])


@pytest.mark.parametrize("alike", [4, 300])  # of 600 rows 2 are too few: others must be added
def test_many_rows_are_held_although_few_are_tried_first(monkeypatch: pytest.MonkeyPatch, alike: int) -> None:
    random = np.random.default_rng(3)
    size, rows = 12, 600
    program = conic.ConeProgram(
        matrix=random.normal(size=(20, size)),
        target=10.0 * random.normal(size=20),
        centre=np.zeros(size),
        pull=np.full(size, 0.1),
        bodies=0,
        margin=0.0,
        nonnegative=(),
        at_most=np.zeros((0, size)),
        limit=np.zeros(0),
        equal=np.zeros((0, size)),
        value=np.zeros(0),
        passive=random.normal(size=(rows, size)),
        allowed=random.uniform(0.1, 1.0, size=rows),
    )
    monkeypatch.setattr(conic, "ALIKE", alike)
    sizes = []
    whole = conic._solve_checked

    def counted(part: conic.ConeProgram) -> tuple[np.ndarray, float] | None:
        sizes.append(len(part.allowed))
        return whole(part)

    monkeypatch.setattr(conic, "_solve_checked", counted)
    found, expected = conic.solve_cone_program(program), whole(program)
    assert found is not None
    assert expected is not None
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
    assert sizes[0] == rows // alike
    assert len(sizes) > 1
    assert np.min(program.passive @ found[0] + program.allowed) > -1e-7
