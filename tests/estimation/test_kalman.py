"""Kalman filters: equal to one another and to recursive least squares where all is linear; planted truth elsewhere."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.estimate import Estimator
from dynid.estimation.linear.least_squares import OLS
from dynid.estimation.linear.recursive import Recursive
from dynid.estimation.noisy.belief import Belief
from dynid.estimation.noisy.direct_model import DirectModel
from dynid.estimation.noisy.kalman import Kalman, OnlineFilter
from dynid.estimation.noisy.likelihood import ML
from dynid.estimation.noisy.linearisation import linearisation
from dynid.kernels import forward_dynamics, regressor
from dynid.logs.recording import Recording
from dynid.loop.laws import assumed_law
from dynid.loop.loop import Loop, ReferenceMotion
from dynid.loop.simulator import simulate_loop
from dynid.parameters.base import base_parameters
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.studies.compare.condition import Condition
from dynid.studies.compare.trial import Setting, make_trial, planted_robot
from dynid.terms.friction import Viscous
from dynid.terms.motors import RotorInertia

from .planted import planted_run

Floats = NDArray[np.float64]


@cache
def robot() -> Robot:
    return zoo.ddarm().with_terms(RotorInertia(0.1), Viscous(0.5))


@cache
def equations(position: float, torque: float, seconds: float = 4.0) -> Samples:
    log = simulate_experiment(
        robot(),
        sum_of_sines(3, amplitude=0.8, period_s=4.0),
        rate_hz=200.0,
        duration_s=seconds,
        noise=Noise(position=position, effort=torque),
        with_velocity=False,
        seed=1,
    )
    start = robot().with_parameters(1.1 * robot().parameter_vector)
    return build_equations(start, process(log, cutoff_hz=None))


def planted() -> Floats:
    return base_parameters(robot()).project(robot().parameter_vector)


@pytest.mark.parametrize("square_root", [False, True])
@pytest.mark.parametrize("points", [False, True])
def test_all_filters_are_recursive_least_squares_on_a_linear_problem(points: bool, square_root: bool) -> None:
    run = planted_run(robot(), noise=0.5, samples=150, rate_hz=10.0)
    base = base_parameters(robot())
    Y = regressor(robot(), run.q, run.dq, run.ddq, columns=base.columns)
    belief = Belief.of(np.zeros(base.rank), np.full(base.rank, 1e3), square_root=square_root)
    nothing = np.zeros((base.rank, 1))
    for k in range(150):
        if points:
            belief = belief.predict_by_points(lambda x: x, nothing, 0.5)
        else:
            belief = belief.predict(belief.mean, np.eye(base.rank), nothing)
        belief = belief.correct(Y[k], run.effort[k], np.full(3, 0.5))
    A, b = Y.reshape(-1, base.rank), run.effort.reshape(-1)
    # the batch answer with the same start, by the normal equations of another library
    information = A.T @ A / 0.25 + 1e-6 * np.eye(base.rank)
    assert belief.mean == pytest.approx(np.linalg.solve(information, A.T @ b / 0.25), rel=1e-6, abs=1e-6)
    assert belief.covariance == pytest.approx(np.linalg.inv(information), rel=1e-5, abs=1e-8)
    recursive = Recursive().begin(robot()).update(run.q, run.dq, run.ddq, run.effort)
    assert belief.mean == pytest.approx(recursive.values, rel=1e-5, abs=1e-5)


def test_square_roots_change_nothing() -> None:
    data = equations(1e-4, 0.1, 1.0)
    for kind in ("extended", "unscented"):
        plain, root = (
            Kalman(kind=kind, square_root=flag, position_std=1e-4, torque_std=0.1, torque_between="smooth").solve(data)  # type: ignore[arg-type]
            for flag in (False, True)
        )
        assert root.values == pytest.approx(plain.values, rel=1e-8, abs=1e-8)
        assert root.stderr == pytest.approx(plain.stderr, rel=1e-6)


@pytest.mark.parametrize(("kind", "std"), [("extended", 1e-6), ("unscented", 1e-7)])
def test_without_noise_the_truth_is_found(kind: str, std: float) -> None:
    data = equations(0.0, 0.0, 2.0)
    filtered = Kalman(
        kind=kind,  # type: ignore[arg-type]
        position_std=std,
        torque_std=1e3 * std,
        torque_between="smooth",
        passes=2,
    ).solve(data)
    error = np.abs(filtered.values - planted()) / np.abs(planted()).max()
    assert error.max() < 1e-6


def test_noise_on_positions_that_spoils_least_squares() -> None:
    data = equations(1e-3, 0.1)
    plain, filtered = OLS().solve(data), Kalman(position_std=1e-3, torque_std=0.1, torque_between="smooth").solve(data)
    size = np.linalg.norm(planted())
    assert np.linalg.norm(filtered.values - planted()) < 0.01 * size
    assert np.linalg.norm(plain.values - planted()) > 0.3 * size
    assert np.sqrt(np.mean(((filtered.values - planted()) / filtered.stderr) ** 2)) < 4.0


def test_noise_levels_are_found() -> None:
    note = Kalman(torque_std=0.1, torque_between="smooth").solve(equations(1e-3, 0.1)).findings[-1].message
    assert 0.7e-3 < float(note.split("by ")[1].split(",")[0]) < 1.4e-3


def test_derivatives_of_a_step() -> None:
    base = base_parameters(robot())
    model = DirectModel(robot(), base)
    rng = np.random.default_rng(0)
    state = np.concatenate([rng.normal(size=6), base.project(robot().parameter_vector)])
    torque = rng.normal(size=(3, 3))
    mean, F, G = model.linear_step(state, torque, 0.01)
    assert mean == pytest.approx(model.steps(state[None], torque, 0.01)[0], abs=1e-12)
    h = 1e-6
    moved = model.steps(state + h * np.eye(state.size), torque, 0.01)
    back = model.steps(state - h * np.eye(state.size), torque, 0.01)
    assert pytest.approx((moved - back) / (2 * h), abs=1e-7) == F.T
    for j in range(3):
        shift = h * np.eye(3)[j]
        up, down = (model.steps(state[None], torque + sign * shift, 0.01)[0] for sign in (1, -1))
        assert G[:, j] == pytest.approx((up - down) / (2 * h), abs=1e-7)


def test_a_step_follows_the_forward_dynamics() -> None:
    base = base_parameters(robot())
    rng = np.random.default_rng(1)
    q, dq, tau = rng.normal(size=(3, 3))
    state = np.concatenate([q, dq, base.project(robot().parameter_vector)])
    after = DirectModel(robot(), base).steps(state[None], np.tile(tau, (3, 1)), 1e-5)[0]
    assert (after[3:6] - dq) / 1e-5 == pytest.approx(forward_dynamics(robot(), q, dq, tau), rel=1e-3, abs=1e-3)


def test_linearisation_against_differences() -> None:
    arm = zoo.puma560().with_terms(RotorInertia(0.1), Viscous(0.5))
    base = base_parameters(arm)
    beta = base.project(arm.parameter_vector)
    evaluate = linearisation(arm, base)
    rng = np.random.default_rng(2)
    states = rng.normal(size=(3, 6))
    at = evaluate.single(*states, beta)
    assert evaluate.many(*states, beta) == pytest.approx(at, abs=1e-12)
    h = 1e-6
    for direction in range(18):
        step = h * np.eye(18)[direction].reshape(3, 6)
        up, down = (regressor(arm, *(states + sign * step), columns=base.columns) @ beta for sign in (1, -1))
        assert at[:, direction] == pytest.approx((up - down) / (2 * h), abs=1e-6)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ArgumentError):
        Kalman(kind="other")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="noise levels"):
        Kalman().begin(robot(), np.zeros(3), rate_hz=100.0)
    with pytest.raises(ArgumentError, match="start"):
        Kalman(start=(1.0,), position_std=1e-3, torque_std=0.1).begin(robot(), np.zeros(3), rate_hz=100.0)


def test_running_away_is_said() -> None:
    broken = Kalman(start=tuple(-planted()), position_std=1e-3, torque_std=0.1, square_root=True)
    state = broken.begin(robot(), np.zeros(3), rate_hz=1.0)
    with pytest.raises(EstimationError, match="run away"):
        _pushed(state, 60)


def _pushed(state: OnlineFilter, steps: int) -> None:
    for _ in range(steps):
        state = state.predict(np.full(3, 1e3))


def test_torques_between_samples_follow_the_loop() -> None:
    """A loop of 2 kHz logged at 100 Hz: torques are not held for a sample."""
    trial = make_trial(Setting(robot=planted_robot(zoo.gautier_khalil_3r()), duration_s=4.0), Condition(), 1)
    data = build_equations(trial.robot, trial.raw, base=trial.base)
    told = Kalman(position_std=1e-3, torque_std=trial.torque_std)
    found, smooth, held = (replace(told, torque_between=way).solve(data) for way in (None, "smooth", "held"))  # type: ignore[arg-type]
    assert found.values == pytest.approx(smooth.values, abs=1e-12)
    assert any(f.code == "held-torques" and "20 times in a sample" in f.message for f in held.findings)
    errors = [np.sqrt(np.mean(((e.values - trial.truth) / e.stderr) ** 2)) for e in (found, held)]
    assert errors[0] < 0.7 * errors[1]


def test_held_torques_act_half_a_control_period_late() -> None:
    """A law at 500 Hz logged at 100 Hz: taken as acting at once, its torques look like too little friction."""
    reference = ReferenceMotion.of(sum_of_sines(3, amplitude=0.8, period_s=4.0), rate_hz=500.0, duration_s=4.0)
    loop = Loop(law=assumed_law(robot(), 3.0), reference=reference)
    run = simulate_loop(robot(), loop, every=5)
    log = process(Recording(time=run.time, q=run.q, effort=run.torque), cutoff_hz=None, rest=None)
    data = build_equations(robot(), replace(log, loop=loop))
    places = [k for k, name in enumerate(data.names) if name.startswith("FV")]
    found = [Kalman(position_std=1e-5, torque_std=0.01, torque_delay_s=s).solve(data).values for s in (None, 0.0)]
    late, at_once = (np.abs(values - planted())[places] for values in found)
    assert np.all(late < 0.2 * at_once)


def test_what_does_not_fit_is_said_or_refused() -> None:
    data = equations(1e-3, 0.1)
    honest = Kalman(position_std=1e-3, torque_std=0.1, start_std=0.12).solve(data)
    assert honest.codes == {"noise-levels"}
    optimistic = Kalman(position_std=1e-3, torque_std=0.001, start_std=0.12).solve(data)
    assert optimistic.findings[0].code == "misfit"
    assert optimistic.inflation.max() > 2.0
    run = data.experiments[0]
    flipped = build_equations(data.robot, replace(run, effort=-run.effort))
    with pytest.raises(EstimationError, match=r"run away|do not move"):
        Kalman(position_std=1e-3, torque_std=0.1).solve(flipped)


@pytest.mark.parametrize("level", [-1.0, np.nan, np.inf, "a"])
@pytest.mark.parametrize("name", ["position_std", "torque_std"])
def test_nonsense_noise_levels_are_refused(name: str, level: object) -> None:
    with pytest.raises(ArgumentError, match=name):
        Kalman(**{name: level})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="torque_std has shape"):
        Kalman(position_std=1e-3, torque_std=(1.0, 2.0)).begin(robot(), np.zeros(3), rate_hz=100.0)


@pytest.mark.parametrize("estimator", [Kalman(), ML()], ids=["kalman", "likelihood"])
def test_noise_is_no_motion(estimator: Estimator) -> None:
    rng = np.random.default_rng(0)
    q = 0.3 + 1e-4 * rng.normal(size=(400, 3))
    log = Recording(time=np.arange(400) / 100.0, q=q, effort=5.0 + 0.1 * rng.normal(size=q.shape))
    data = build_equations(robot(), process(log, cutoff_hz=None, rest=None))
    with pytest.raises(IdentifiabilityError, match="no joint moves"):
        estimator.solve(data)
