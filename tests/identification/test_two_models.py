"""One set of links, two frictions: planted truth, files, memory, and robots that move unlike their training."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dynid
from dynid.estimators.rows import torque_of_terms
from dynid.identification.identify import identify_experiments
from dynid.identification.rich.joint_friction import friction_table, joint_friction
from dynid.identification.rich.mechanisms import TILT, make_menu
from dynid.processing.experiment import Experiment
from dynid.robot import zoo
from dynid.terms import Hysteresis, SmoothSign, Stribeck
from dynid.terms.base import Reference, Term
from dynid.terms.load_dependent import LoadFriction
from estimators.planted import planted_run

ARM = zoo.ddarm().with_terms(dynid.RotorInertia(0.1), dynid.Viscous(0.5), dynid.Coulomb(0.8), dynid.Offset(0.1))
PRIOR = ARM.with_parameters(ARM.parameter_vector * np.where(np.arange(ARM.parameter_vector.size) < 30, 1.3, 0.0))


def run_of(terms: tuple[Term, ...] = (), *, seed: int = 0, noise: float = 0.2, speed: float = 1.0) -> Experiment:
    run = planted_run(ARM, noise=noise, samples=2400, motion=seed, seed=seed, period_s=8.0 / speed)
    values = np.array([term.value for term in terms])
    return replace(run, effort=run.effort + torque_of_terms(ARM, terms, values, run)) if terms else run


LINKS = Reference(ARM.parameter_vector).of_links(3)
RUBBING = (
    *(Hysteresis(2.0, joint=j, scale=0.1) for j in range(3)),
    *(LoadFriction(0.05, friction=SmoothSign(joint=j, scale=0.02), reference=LINKS) for j in range(3)),
)


def fitted(runs: Experiment | list[Experiment], friction: str = "rich") -> dynid.Identification:
    recipe = dynid.Recipe(friction=friction, terms=())  # type: ignore[arg-type]
    return identify_experiments(PRIOR, runs if isinstance(runs, list) else [runs], recipe, dynid.FeasibleWLS())


@cache
def rich_fit() -> dynid.Identification:
    return fitted(run_of(RUBBING))


def errors(fit: dynid.Identification, run: Experiment) -> tuple[float, float]:
    check = dynid.validate(fit, run)
    return check.relative_error, check.plain_error


def test_rich_friction_is_found_and_predicts_another_motion() -> None:
    rich, plain = errors(rich_fit(), run_of(RUBBING, seed=1))
    assert rich_fit().selection is not None
    assert "friction with memory" in rich_fit().selection.kept
    assert rich < 0.7 * plain


def test_plain_friction_needs_nothing_more() -> None:
    fit = fitted(run_of())
    rich, plain = errors(fit, run_of(seed=1))
    assert rich <= 1.02 * plain
    theta = dict(zip(fit.base.layout.names, fit.plain.theta.tolist(), strict=True))
    for joint in (1, 2, 3):
        assert theta[f"FC{joint}"] == pytest.approx(0.8, abs=0.1)
        assert theta[f"FV{joint}"] == pytest.approx(0.5, abs=0.15)


def test_both_models_have_the_same_links_and_no_negative_friction() -> None:
    fit = rich_fit()
    np.testing.assert_array_equal(fit.plain.theta[:30], fit.rich.theta[:30])
    assert fit.plain.theta[30:].reshape(3, 4)[:, :3].min() >= 0.0
    assert min(term.value for term in fit.rich.terms if term.is_non_negative) >= 0.0
    assert all(figure.dry.value >= 0.0 for figure in joint_friction(fit))


def test_links_are_truer_with_rich_friction_than_with_plain() -> None:
    run = run_of((*RUBBING, *(Stribeck(1.0, joint=j, scale=0.1) for j in range(3))), seed=2)
    truth = dynid.gravity_torque(ARM, run.q)
    fits = (fitted(run), fitted(run, "plain"))
    off = [np.linalg.norm(dynid.gravity_torque(fit.identified, run.q) - truth) for fit in fits]
    assert off[0] < 0.8 * off[1]


def test_a_joint_that_stood_still_in_training_does_not_explode() -> None:
    train = run_of(RUBBING)
    still = train.q.copy()
    still[:, 2] = 0.3
    dq, ddq = train.dq.copy(), train.ddq.copy()
    dq[:, 2] = ddq[:, 2] = 0.0
    effort = dynid.inverse_dynamics(ARM, still, dq, ddq) + np.random.default_rng(0).normal(size=dq.shape) * 0.2
    fit = fitted(replace(train, q=still, dq=dq, ddq=ddq, effort=effort))
    rich, plain = errors(fit, run_of(RUBBING, seed=3, speed=1.5))
    assert rich <= 1.5 * plain
    assert rich < 100.0


def test_load_friction_holds_at_the_edge_of_the_loads_of_training() -> None:
    menu = {m.name: m for m in make_menu(ARM, [run_of()], Reference(ARM.parameter_vector))}
    term = menu["friction that grows with the load"].terms[0]
    assert isinstance(term, LoadFriction)
    assert 0.0 < term.limit < np.inf
    assert TILT in menu


def test_runs_that_repeat_one_motion_lose_the_same_stretch() -> None:
    from dynid.estimators.equations import build_equations
    from dynid.estimators.folds import Folds

    twins = [run_of(RUBBING, noise=0.0), replace(run_of(RUBBING, noise=0.0), source="again")]
    one, two = (Folds(build_equations(PRIOR, runs), np.ones(3)).errors(()) for runs in (twins[:1], twins))
    np.testing.assert_allclose(two, 2.0 * one, rtol=0.05)


def test_predict_serves_logs_by_the_rich_and_single_states_by_the_plain_model() -> None:
    fit, run = rich_fit(), run_of(RUBBING, seed=4)
    np.testing.assert_allclose(fit.predict(run.q, run.dq, run.ddq), fit.torque(run), atol=1e-9)
    with pytest.warns(UserWarning, match="plain model"):
        single = fit.predict(run.q[5], run.dq[5], run.ddq[5])
    np.testing.assert_allclose(single, dynid.inverse_dynamics(fit.identified, run.q[5], run.dq[5], run.ddq[5]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(run_of(), "plain").predict(run.q[5], run.dq[5], run.ddq[5])


def test_a_result_file_keeps_both_models(tmp_path) -> None:
    fit, run = rich_fit(), run_of(RUBBING, seed=5)
    dynid.write_result(fit, tmp_path / "result.json")
    again = dynid.read_result(tmp_path / "result.json").identification()
    np.testing.assert_allclose(again.torque(run), fit.torque(run), atol=1e-9)
    np.testing.assert_allclose(again.plain.torque(run), fit.plain.torque(run), atol=1e-9)
    assert str(again)


def test_a_tilted_base_is_found_and_belongs_to_both_models() -> None:
    tilted = ARM.with_gravity([0.0, 9.81 * np.sin(0.05), -9.81 * np.cos(0.05)])
    run = planted_run(tilted, noise=0.1, samples=2400)
    fit = fitted(run)
    assert np.degrees(np.arccos(fit.robot.gravity @ tilted.gravity / 9.81**2)) < 0.5
    assert fit.identified.gravity is not None
    np.testing.assert_array_equal(fit.plain.robot.gravity, fit.rich.robot.gravity)


def test_the_table_of_friction_states_speeds_and_intervals() -> None:
    text = friction_table(joint_friction(rich_fit())).to_text()
    assert "±95 %" in text
    assert text.count("rad/s") >= 9
