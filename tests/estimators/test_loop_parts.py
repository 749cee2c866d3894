"""The parts of estimators that simulate the loop, against direct solutions and closed forms."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimators.closed_loop.loop_estimator import LoopEstimator, _reversal_window, end_window, solve_scaled
from dynid.estimators.closed_loop.loop_runs import LoopRuns, welch_covariance
from support.closed_loops import scene

from .planted import experiment

CHOSEN = scene("gautier_khalil_3r")
WRONG = CHOSEN.base.project(CHOSEN.prior.parameter_vector)


@pytest.mark.parametrize("estimator", [dynid.estimators.DIDIM(), dynid.estimators.InstrumentalVariables()])
def test_a_round_solves_its_equations(estimator: LoopEstimator) -> None:
    """Far from the truth, with residuals: weights, step, condition and rough deviations by plain linear algebra."""
    log = CHOSEN.noisy(0)
    runs = LoopRuns.of(CHOSEN.equations(replace(log, valid=log.valid & (np.arange(log.samples) > 300)[:, None])))
    motions = runs.simulate(WRONG)
    made = estimator._round(runs, WRONG, motions)
    Z, Y, e = estimator.parts(runs.runs[0], motions[0], WRONG)
    weights = log.valid[301:].sum(axis=0) / (e**2).sum(axis=0)
    np.testing.assert_allclose(made.weights, weights, rtol=1e-9)
    Z, Y, e = Z * np.sqrt(weights)[:, None], Y * np.sqrt(weights)[:, None], e * np.sqrt(weights)
    A = np.einsum("tjb,tjc->bc", Z, Y)
    step = np.linalg.solve(A, np.einsum("tjb,tj->b", Z, e))
    np.testing.assert_allclose(made.step, step, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(made.scores[0], np.einsum("tjb,tj->tb", Z, e - Y @ step), atol=1e-6)
    assert np.abs(made.scores[0].sum(axis=0)).max() < 1e-6 * np.abs(made.scores[0]).sum()
    np.testing.assert_allclose(made.quick_stderr, np.sqrt(np.abs(np.diag(np.linalg.inv(A)))), rtol=1e-6)
    size = np.sqrt(np.diag(A))
    assert made.condition == pytest.approx(np.sqrt(np.linalg.cond(A / np.outer(size, size))), rel=1e-6)
    # a change of one parameter that changes all torques by 1e-9 of themselves
    np.testing.assert_allclose(made.resolution * size, 1e-9 * np.linalg.norm(Z @ WRONG), rtol=1e-6)


def test_rounds_end_when_steps_are_small_against_their_deviations() -> None:
    equations = CHOSEN.equations(CHOSEN.noisy(0))
    found = {t: dynid.estimators.DIDIM(tolerance=t, iterations=4).solve(equations) for t in (1e4, 0.1, 1e-7)}
    assert [one.extras["iterations"] for one in found.values()] == [1.0, 2.0, 4.0]
    assert [one.extras["simulations"] for one in found.values()] == [2.0, 3.0, 5.0]
    assert ["not settled after 4 simul" in "".join(f.message for f in one.findings) for one in found.values()] == [
        0,
        0,
        1,
    ]
    np.testing.assert_allclose(found[0.1].values, found[1e-7].values, atol=0.1 * found[0.1].stderr.min())
    np.testing.assert_allclose(found[0.1].noise_std, 0.1, rtol=0.5)


def test_equations_in_any_units_are_solved() -> None:
    rng = np.random.default_rng(0)
    units, A, right = 10.0 ** np.arange(-6.0, 6.0, 2.0), rng.normal(size=(6, 6)) + 4.0 * np.eye(6), rng.normal(size=6)
    values, condition = solve_scaled(A * np.outer(units, units), right)
    np.testing.assert_allclose(values, np.linalg.solve(A, right / units) / units, rtol=1e-9)
    size = np.sqrt(np.diag(A))
    assert condition == pytest.approx(np.sqrt(np.linalg.cond(A / np.outer(size, size))))
    for singular in (np.ones((2, 2)), np.array([[1.0, 0.0], [0.0, np.nan]])):
        with pytest.raises(IdentifiabilityError, match="does not determine"):
            solve_scaled(singular, np.ones(2))


def test_windows_of_instruments() -> None:
    """Half a second, or a tenth of a short stretch, at both ends; and where a joint with dry friction turns round."""
    run = experiment(*(np.zeros((700, 1)),) * 4, 100.0)
    found = end_window(replace(run, segment=np.repeat([0, 1, 2], [600, 95, 5])))
    expected = np.ones(700)
    for first, length, rise in ((0, 600, 50), (600, 95, 9)):
        ramp = np.sin(np.pi / 2.0 * (np.arange(rise) + 0.5) / rise) ** 2
        expected[first : first + rise] = ramp
        expected[first + length - rise : first + length] = ramp[::-1]
    np.testing.assert_allclose(found[:695], expected[:695])
    np.testing.assert_allclose(found[695:], 1.0)
    robot = dynid.robots.scara().with_terms(dynid.Coulomb(1.0), joints=["joint1", "joint3"])  # joint 3 slides
    half = np.sqrt(np.log(2.0))  # of the speed of a reversal: the window is one half
    for peak, slide in ((2.0, 0.06), (50.0, 0.1), (0.0, 0.1)):
        reference = SimpleNamespace(dq=np.outer([0.5, -1.0], [9.0, 9.0, peak, 9.0]))
        stub: Any = SimpleNamespace(
            simulator=SimpleNamespace(arm=SimpleNamespace(robot=robot)), loop=SimpleNamespace(reference=reference)
        )
        motion: Any = SimpleNamespace(dq=half * np.array([[0.1, 0.0, -slide, 0.0]]))
        np.testing.assert_allclose(_reversal_window(stub, motion), [[0.5, 1.0, 0.5, 1.0]])


@pytest.mark.parametrize(("far", "steps"), [(0.9, 0), (8.0, 3), (32.0, 5), (33.0, None)])
def test_steps_are_halved_until_the_misfit_is_at_most_twice_as_large(far: float, steps: int | None) -> None:
    """A misfit of three that grows with the way; some ways lead where the simulation fails."""
    stub: Any = SimpleNamespace(
        attempt=lambda values: None if abs(values[0] - 5.0) == 16.0 else values,
        misfit=lambda at: 3.0 + 3.0 * abs(at[0] - 5.0),
    )
    start = np.array([5.0])
    if steps is None:
        with pytest.raises(EstimationError, match="stops following"):
            LoopRuns.advance(stub, start, start - far, (start,))  # type: ignore[arg-type]
        return
    values, motions = LoopRuns.advance(stub, start, start - far, (start,))  # type: ignore[arg-type]
    assert values[0] == motions[0] == 5.0 - far / 2**steps


@pytest.mark.parametrize(
    ("lengths", "student", "left"),
    [([1000], 2.101, 0.8), ([3000], 2.048, 1.0 - 400 / 3000), ([150], 12.706, 0.25), ([700, 300], 2.110, 0.8)],
)
def test_the_spectral_density_of_white_scores_is_their_variance(
    lengths: list[int], student: float, left: float
) -> None:
    """Summed over unit impulses: one each. Windows of a tenth, from one second to two, are widened by Student's t."""
    total, slope = 0.0, np.full((1, 1), 2.0)
    for run, length in enumerate(lengths):
        for place in range(length):
            scores = [np.zeros((size, 1)) for size in lengths]
            scores[run][place] = 1.0
            total += welch_covariance(slope, scores, 100.0)[0, 0]
    assert total == pytest.approx(sum(lengths) / 4.0 * (student / 1.96) ** 2 / left, rel=1e-3)
    A, g = np.array([[2.0, 1.0], [0.5, 3.0]]), [np.random.default_rng(0).normal(size=(400, 2))]
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(
        welch_covariance(A, g, 100.0), inverse @ welch_covariance(np.eye(2), g, 100.0) @ inverse.T
    )


@pytest.mark.parametrize(
    ("rows", "start", "every", "records", "stride"),
    [
        (slice(None), 0.0, 5, [0, 1, 2], 1),
        (slice(2, None, 2), 1.8e-6, 5, [2, 4, 6], 1),
        (slice(900), -0.006, 1, [3, 8, 13], 5),  # records between the samples
        (slice(900), -0.010, 5, [1, 2, 3], 1),
    ],
)
def test_samples_among_the_control_instants(
    rows: slice, start: float, every: int, records: list[int], stride: int
) -> None:
    run = replace(CHOSEN.clean(), loop=replace(CHOSEN.loop, start_s=start)).rows(rows)
    (made,) = LoopRuns.of(CHOSEN.equations(run)).runs
    assert (made.every, made.rows[:3].tolist(), made.stride) == (every, records, stride)
    assert made.ticks == round((run.time[-1] - start) * 500.0) + 1
    np.testing.assert_allclose(made.commanded[0], CHOSEN.loop.reference.q[made.rows * every])


@pytest.mark.parametrize("rows", [slice(900), slice(4, 900, 2), slice(None)])
def test_a_simulated_motion_is_filtered_as_its_log_was(rows: slice) -> None:
    """Whatever samples are kept, and although the log begins between records; beyond the end if there is more."""
    start = 0.0 if rows == slice(None) else -0.006
    log = replace(CHOSEN.noisy(0, filter_effort=True), loop=replace(CHOSEN.loop, start_s=start))
    (every,) = LoopRuns.of(CHOSEN.equations(log.rows(slice(rows.stop)))).runs
    (made,) = LoopRuns.of(CHOSEN.equations(log.rows(rows))).runs
    assert log.derivation is not None
    assert log.smoothing is not None
    beyond = int(np.ceil(500.0 * log.derivation.smoothing.settling_s))
    assert made.ticks == min(round((made.run.time[-1] - start) * 500.0) + 1 + beyond, 5001)
    whole, motion = every.simulate(WRONG), made.simulate(WRONG)
    inner = slice(100, -100)
    kept = slice(*rows.indices(every.run.samples))
    for found, exact in zip(made.derived(motion) or (), log.derivation.motion(whole.q, whole.dq), strict=True):
        np.testing.assert_allclose(found[inner], exact[kept][inner], atol=1e-3 * np.abs(exact).max())
    residual = every.run.effort - log.smoothing.apply(whole.torque)
    found = made.torque_residual(motion)[inner]
    np.testing.assert_allclose(
        found, np.where(made.run.valid, residual[kept], 0.0)[inner], atol=0.02 * np.abs(residual).max()
    )


def test_misfits_and_motions_that_run_away() -> None:
    """Squared errors of valid torques over their squares, joint by joint; a metre or radian beyond the motion."""
    valid, torque = np.array([[True, True], [True, False]]), np.array([[2.0, 5.0], [4.0, 9.0]])
    run: Any = SimpleNamespace(
        run=SimpleNamespace(
            valid=valid, effort=np.array([[3.0, 4.0], [4.0, np.nan]]), q=np.array([[7.0, 7.2], [7.5, 7.1]])
        )
    )
    stub: Any = SimpleNamespace(runs=[run, run], equations=SimpleNamespace(robot=SimpleNamespace(dof=2)))
    motion: Any = SimpleNamespace(torque=torque)
    assert LoopRuns.misfit(stub, (motion, motion)) == pytest.approx(1.0 / 25.0 + 1.0 / 16.0)
    for off, follows in ((1.49, True), (1.51, False), (-1.51, False)):
        motions = (SimpleNamespace(q=run.run.q), SimpleNamespace(q=run.run.q + np.array([0.0, off])))
        stub.simulate = lambda _, motions=motions: motions
        assert LoopRuns.attempt(stub, WRONG) == (motions if follows else None)


@pytest.mark.parametrize(
    ("start", "reason"),
    [(2.2e-6, "at control instants"), (0.002, "within its reference"), (-0.002, "within its reference")],
)
def test_samples_elsewhere_are_refused(start: float, reason: str) -> None:
    late = replace(CHOSEN.clean(), loop=replace(CHOSEN.loop, start_s=start))
    with pytest.raises(ArgumentError, match=reason):
        LoopRuns.of(CHOSEN.equations(late))


@pytest.mark.parametrize(
    ("log_hz", "known_hz", "assumed_hz"), [(100.0, 1000, 4000), (300.0, 1200, 4200), (5000.0, 5000, 5000)]
)
def test_what_is_assumed_of_a_loop_is_said(log_hz: float, known_hz: int, assumed_hz: int) -> None:
    """The smallest multiple of the log's rate from 1 kHz on, or from 4 kHz on where the law is assumed, too."""
    count = int(2.5 * log_hz)
    states = dynid.processing.simulation.sum_of_sines(3, amplitude=0.8)(np.arange(count) / log_hz)
    noise = 0.1 * np.random.default_rng(0).normal(size=states[0].shape)
    log = experiment(*states, dynid.inverse_dynamics(CHOSEN.robot, *states) + noise, log_hz)
    law = dynid.control_loop.ComputedTorqueLaw(CHOSEN.robot, 900.0, 60.0)
    for given, rate_hz, kp, kd in ((law, known_hz, 900.0, 60.0), (None, assumed_hz, 2526.6, 100.53)):
        equations = dynid.estimators.build_equations(CHOSEN.prior, log, base=CHOSEN.base)
        looped, notes = dynid.estimators.DIDIM(law=given)._add_loops(equations)
        loop = looped.experiments[0].loop
        assert loop is not None
        assert isinstance(loop.law, dynid.control_loop.ComputedTorqueLaw)
        np.testing.assert_allclose(
            [loop.reference.rate_hz, np.mean(loop.law.kp), np.mean(loop.law.kd)], [rate_hz, kp, kd], rtol=1e-4
        )
        texts = " ".join(note.message for note in notes)
        assert ("computed torque by a robot near the data" in texts) == (given is None)
        assert f"the control rate is unknown; {rate_hz} Hz are assumed" in texts
        assert "the commanded motion is unknown" in texts
