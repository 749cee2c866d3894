"""One cutoff for all logs of a robot: chosen by prediction, used for held-out logs too, overruled by the user."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import DataError
from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import WLS
from dynid.links.common.common_cutoff import _best, choose_common_cutoff, take_offsets_off
from dynid.links.common.fewer_samples import thin_out
from dynid.links.common.run_differences import settle_runs
from dynid.links.identify import identify, identify_logs
from dynid.links.log_reader import LogReader
from dynid.links.recipe import Recipe
from dynid.links.validation import validate
from dynid.logs.recording import Recording
from dynid.processing.process import Chain, Processing, process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Viscous
from dynid.terms.motors import Offset

ROBOT = zoo.cylindrical().with_terms(Viscous(0.5))


def _log(seed: int, position: float = 1e-5, rate_hz: float = 200.0) -> Recording:
    return simulate_experiment(
        ROBOT, sum_of_sines(3, seed=seed), rate_hz=rate_hz, duration_s=8, noise=Noise(position=position, effort=0.05),
        seed=seed,
    )  # fmt: skip


@pytest.fixture(scope="module")
def logs() -> list[Recording]:
    return [_log(1), _log(2, position=1e-3), _log(3)]


def _cutoffs(runs) -> list[float]:
    return [run.derivation.smoothing.cutoff_hz for run in runs]


def test_a_held_out_log_that_is_too_short_for_the_chosen_cutoff_is_not_told_to_choose_it() -> None:
    slow = [simulate_experiment(ROBOT, sum_of_sines(3, period_s=20.0, seed=seed), rate_hz=100.0, duration_s=40,
                                noise=Noise(position=1e-3, effort=0.05), seed=seed) for seed in (1, 2)]  # fmt: skip
    short = slow[1].rows(slice(0, 100))
    reader = LogReader(robot=ROBOT, recipe=Recipe.bare(gate=False))
    with pytest.raises(DataError, match=r"a low-pass at .* Hz needs .*Record a longer motion") as error:
        identify_logs(reader, slow[:1], WLS(), held_out=[short])
    assert "auto" not in str(error.value)


def test_all_logs_and_the_proof_get_one_cutoff(logs: list[Recording]) -> None:
    own = {Chain.start(log, Processing()).options.cutoff_hz for log in logs}
    assert len(own) == 3  # each spectrum suggests another one
    reader = LogReader(robot=ROBOT, recipe=Recipe.bare(gate=False))
    fit, proof = identify_logs(reader, logs[:2], WLS(), held_out=logs[2:])
    (hz,) = set(_cutoffs([*fit.equations.excerpts, *proof]))
    (found,) = [finding for finding in fit.estimate.findings if finding.code == "common-cutoff"]
    assert f"{hz:.3g} Hz" in found.message
    assert all("chosen by the error on" in " ".join(run.processing_steps) for run in fit.equations.excerpts)


def test_a_held_out_part_gets_the_cutoff_of_the_training_part(logs: list[Recording]) -> None:
    recipe = Recipe.bare(gate=False, hold_out="40%")
    fit, proof = identify_logs(LogReader(robot=ROBOT, recipe=recipe), logs[:2], WLS())
    assert len(set(_cutoffs([*fit.equations.excerpts, *proof]))) == 1
    # what is held out has no say in the choice
    end = logs[1].time > 0.6 * logs[1].time[-1] + 1e-9
    spoilt = replace(logs[1], effort=np.where(end[:, None], -5.0 * logs[1].effort, logs[1].effort))
    again, _ = identify_logs(LogReader(robot=ROBOT, recipe=recipe), [logs[0], spoilt], WLS())
    np.testing.assert_array_equal(again.estimate.values, fit.estimate.values)


def test_streamed_logs_get_one_cutoff_from_their_first_pieces(logs: list[Recording]) -> None:
    reader = LogReader(robot=ROBOT, recipe=Recipe.bare(gate=False, stream=True))
    fit, proof = identify_logs(reader, logs[:2], WLS(), held_out=logs[2:])
    assert len(set(_cutoffs([*fit.equations.excerpts, *proof]))) == 1


def test_a_stated_cutoff_wins(logs: list[Recording]) -> None:
    fit = identify(ROBOT, logs[:2], Recipe.bare(gate=False, cutoff_hz=7.0), estimator=WLS())
    assert _cutoffs(fit.equations.excerpts) == [7.0, 7.0]
    assert not [finding for finding in fit.estimate.findings if finding.code == "common-cutoff"]


def test_prediction_mends_a_cutoff_that_is_far_too_low() -> None:
    low = Chain.start(_log(4), Processing(trim_s=0.5)).with_cutoff(0.6, "as a misled spectrum would")
    choice = choose_common_cutoff(ROBOT, [low])
    assert choice is not None
    assert choice.hz > 2.0
    other = _log(5, position=0.0)
    errors = [
        validate(
            identify(ROBOT, low.with_cutoff(hz, "").experiment(), Recipe.bare(), estimator=WLS()),
            process(other, cutoff_hz=hz),
        ).relative_error
        for hz in (0.6, choice.hz)
    ]
    assert errors[1] < 0.5 * errors[0]


WITH_OFFSETS = ROBOT.with_terms(Viscous(0.5), Offset(0.2))


def _with_offsets(log: Recording, *offsets: float) -> Recording:
    assert log.effort is not None
    return replace(log, effort=log.effort + np.array(offsets))


def test_offsets_of_runs_do_not_drown_the_differences_between_cutoffs(logs: list[Recording]) -> None:
    other = [logs[0], _with_offsets(logs[2], 300.0, -200.0, 100.0)]
    choices = [
        choose_common_cutoff(
            WITH_OFFSETS, [Chain.start(log, Processing(trim_s=0.5)).with_cutoff(0.6, "misled") for log in runs]
        )
        for runs in ([logs[0], logs[2]], other)
    ]
    ratios = []
    for choice in choices:
        assert choice is not None
        assert choice.hz > 2.0
        ratios.append(np.array(choice.errors) / choice.errors[0])
    assert choices[0].hz == choices[1].hz
    np.testing.assert_allclose(ratios[1], ratios[0], rtol=0.1)


def test_offsets_are_taken_off_as_from_the_runs_themselves(logs: list[Recording]) -> None:
    """Beside the plain way: nuisance parameters in a fit of all samples; a single run keeps its own."""
    offsets = ((3.0, 0.0, -1.0), (0.0, 0.0, 4.0), (-6.0, 2.0, 0.0))
    runs = [process(_with_offsets(log, *own), cutoff_hz=5.0) for log, own in zip(logs, offsets, strict=True)]
    equations = build_equations(WITH_OFFSETS, runs)
    settled = settle_runs(equations, ["offset"])
    assert settled is not None
    plain = build_equations(WITH_OFFSETS, settled.runs).information.weight().solve()
    quick = take_offsets_off(equations).information.weight().solve()
    np.testing.assert_allclose(quick, plain, rtol=0.02, atol=0.02)
    one = build_equations(WITH_OFFSETS, runs[:1])
    assert take_offsets_off(one) is one
    bare = build_equations(ROBOT, runs)
    assert take_offsets_off(bare) is bare


def test_slow_logs_limit_the_cutoff() -> None:
    chains = [Chain.start(log, Processing()) for log in (_log(6), _log(7, rate_hz=25.0))]
    choice = choose_common_cutoff(ROBOT, chains)
    assert choice is not None
    assert max(choice.cutoffs_hz) <= 0.45 * 25.0 * (1 + 1e-9)


def test_equals_go_to_the_spectrum() -> None:
    cutoffs = np.array([2.0, 4.0, 8.0])
    rng = np.random.default_rng(1)
    noisy = np.exp(rng.normal(scale=0.2, size=(3, 12)))
    assert _best(cutoffs, noisy, 8.0) == (2, False)
    assert _best(cutoffs, noisy * np.array([[1.0], [9.0], [9.0]]), 8.0) == (0, True)
    assert _best(cutoffs, np.ones((3, 12)) * np.array([[1.0], [1.006], [1.2]]), 4.0) == (1, False)  # 0.3 % is little


def test_a_thinned_run_holds_what_is_in_the_band_and_crosses_no_gap() -> None:
    log = _log(4, rate_hz=1000.0)
    run = process(log, Processing(filter_effort=False))
    valid, segment = run.valid.copy(), (np.arange(run.samples) > 3000).astype(np.int64)
    valid[1000:1100, 1] = False
    thin = thin_out(replace(run, valid=valid, segment=segment, effort=np.where(valid, run.effort, np.nan)), 2.0)
    assert thin.rate_hz == pytest.approx(1000.0 / 12)
    lost = ~thin.valid
    assert lost[:, 0].sum() in (1, 2)
    assert np.isfinite(thin.effort).all()
    assert np.all(np.abs(thin.time[lost[:, 1] & ~lost[:, 0]] - run.time[1050]) < 0.075)
    plain = np.interp(thin.time, run.time, run.effort[:, 0])
    assert np.std(thin.effort[:, 0] - plain) == pytest.approx(0.05, rel=0.3)  # the noise of single samples


def test_thinned_runs_choose_the_same_cutoff(monkeypatch: pytest.MonkeyPatch) -> None:
    log = _log(4, position=1e-3, rate_hz=1000.0)
    noise = np.random.default_rng(0).normal(size=log.q.shape)
    chains = [Chain.start(replace(log, effort=log.effort + 30.0 * noise), Processing())]
    quick = choose_common_cutoff(ROBOT, chains, band_hz=2.0)
    monkeypatch.setattr("dynid.links.common.common_cutoff.thin_out", lambda run, band_hz: run)
    whole = choose_common_cutoff(ROBOT, chains, band_hz=2.0)
    assert quick is not None
    assert whole is not None
    assert quick.hz == whole.hz
    # less noise of the outermost samples is carried beyond the ends
    assert np.all(np.array(quick.errors) < 1.05 * np.array(whole.errors))
