"""Logs larger than memory in their loops: from files read chunk by chunk, with the numbers of logs in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.estimation.closed_loop.in_loop import InLoop, with_loop
from dynid.estimation.closed_loop.instrumental import Moments, _Measured, _Round
from dynid.estimation.closed_loop.loop_runs import LoopRuns
from dynid.estimation.closed_loop.loop_stream import StreamSearch
from dynid.estimation.closed_loop.measured_motion import SplinedMotion
from dynid.estimation.streamed_logs import stream_equations
from dynid.processing.process import Processing
from dynid.processing.simulation import sum_of_sines
from dynid.processing.streaming import process_stream
from support.closed_loops import EVERY, Scene, scene

CHOSEN = scene("gautier_khalil_3r", duration_s=30.0, friction_speed=None)
MOTION = sum_of_sines(3, amplitude=0.8, seed=0)
LOW_PASS = Processing(cutoff_hz=20.0, rest=None)
CHUNK = 311
Log = Callable[[], Iterator[dynid.Experiment]]


def recording(chosen: Scene = CHOSEN, noise: float = 1e-3) -> dynid.Recording:
    rng, run = np.random.default_rng(1), chosen.truth
    return dynid.Recording(
        time=run.time,
        q=run.q + noise * rng.normal(size=run.q.shape),
        effort=run.torque + 0.1 * rng.normal(size=run.q.shape),
    )


def saved(log: dynid.Recording, path: Path) -> Path:
    np.save(path, np.column_stack([log.time, log.q, log.effort]))
    return path


def chunks(path: Path, rows: int = CHUNK) -> Iterator[dynid.Recording]:
    """The rows of a file, a few at a time in memory."""
    table = np.load(path, mmap_mode="r")
    for start in range(0, len(table), rows):
        part = np.array(table[start : start + rows])
        yield dynid.Recording(time=part[:, 0], q=part[:, 1:4], effort=part[:, 4:])


def log(
    path: Path, law: dynid.loop.ControlLaw, options: Processing = LOW_PASS, motion: object = MOTION, rows: int = CHUNK
) -> Log:
    return lambda: with_loop(
        process_stream(chunks(path, rows), options, overlap_s=1.5), motion, law=law, rate_hz=500.0, longest=900
    )  # type: ignore[arg-type]


def in_memory(
    whole: dynid.Recording, law: dynid.loop.ControlLaw, options: Processing = LOW_PASS
) -> dynid.estimation.Factors:
    run = dynid.process(whole, cutoff_hz=options.cutoff_hz, rest=None, filter_effort=options.filter_effort)
    parts = with_loop([run], MOTION, law=law, rate_hz=500.0, longest=10**9)
    return dynid.estimation.build_equations(CHOSEN.prior, list(parts), base=CHOSEN.base)


def streamed(*logs: Log) -> dynid.estimation.Factors:
    return stream_equations(CHOSEN.prior, logs, base=CHOSEN.base)


@pytest.mark.parametrize("filter_effort", [False, True])
@pytest.mark.parametrize("estimator", [dynid.estimation.InstrumentalVariables(block=500), dynid.estimation.DIDIM()])
def test_a_file_in_many_chunks_gives_the_numbers_of_the_log_in_memory(
    estimator: dynid.estimation.Estimator, filter_effort: bool, tmp_path: Path
) -> None:
    options, law = replace(LOW_PASS, filter_effort=filter_effort), CHOSEN.loop.law
    whole = estimator.solve(in_memory(recording(), law, options))
    found = estimator.solve(streamed(log(saved(recording(), tmp_path / "log.npy"), law, options)))
    # the integrator's steps near rest follow from poses, of which a stream knows others
    assert np.abs((found.values - whole.values) / whole.stderr).max() < 1e-3
    np.testing.assert_allclose(found.stderr, whole.stderr, rtol=1e-4)
    np.testing.assert_allclose(found.noise_std, whole.noise_std, rtol=1e-4)
    assert [f.code for f in found.findings] == [f.code for f in whole.findings]
    assert found.extras == whole.extras
    assert np.abs((found.values - CHOSEN.values) / found.stderr).max() < 4.0


@pytest.mark.parametrize("estimator", [dynid.estimation.InstrumentalVariables(block=500), dynid.estimation.DIDIM()])
def test_with_the_same_steps_of_the_integrator_nothing_but_rounding_differs(
    estimator: dynid.estimation.Estimator, tmp_path: Path
) -> None:
    def stated(parts: Iterable[dynid.Experiment]) -> Iterator[dynid.Experiment]:
        """One step a period, in a stream and in memory."""
        return (replace(part, loop=replace(part.loop, friction_speed=0.1, substeps=1)) for part in parts)

    smooth, path = recording(scene("gautier_khalil_3r", duration_s=30.0)), tmp_path / "log.npy"
    pieces = log(saved(smooth, path), CHOSEN.loop.law)
    whole = in_memory(smooth, CHOSEN.loop.law)
    memory = dynid.estimation.build_equations(CHOSEN.prior, list(stated(whole.experiments)), base=CHOSEN.base)
    expected, found = estimator.solve(memory), estimator.solve(streamed(lambda: stated(pieces())))
    assert np.abs((found.values - expected.values) / expected.stderr).max() < 1e-5
    np.testing.assert_allclose(found.stderr, expected.stderr, rtol=1e-6)


def test_moments_and_the_laws_memory_are_carried_over_pieces(tmp_path: Path) -> None:
    """With a law that remembers, the simulation in memory is one piece too: equal to rounding."""
    law = dynid.loop.PID(kp=CHOSEN.loop.law.kp, ki=50.0, kd=CHOSEN.loop.law.kd)  # type: ignore[attr-defined]
    whole = in_memory(recording(), law)
    runs, beta = LoopRuns.of(whole), whole.base.project(whole.robot.parameter_vector)
    expected = _Round.of(runs, _Measured.of(runs, 500), beta, runs.simulate(beta), np.array([1.0, 2.0, 0.5]))
    search = StreamSearch[Moments].of(streamed(log(saved(recording(), tmp_path / "log.npy"), law)), 500, Moments)
    sums = search.attempt(beta)
    assert sums is not None
    found = sums.solve(np.array([1.0, 2.0, 0.5]))
    assert np.abs(found.slope - expected.slope).max() < 1e-9 * np.abs(expected.slope).max()
    np.testing.assert_allclose(found.beta, expected.beta, rtol=1e-9, atol=1e-9 * np.abs(beta).max())
    np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-8)
    np.testing.assert_allclose(sums.misfit, runs.misfit(runs.simulate(beta)), rtol=1e-8)


def test_behind_a_gap_the_simulation_starts_anew(tmp_path: Path) -> None:
    late = np.where(np.arange(CHOSEN.truth.time.size) > 1700, 2.0, 0.0)
    broken = recording()
    broken = replace(broken, time=broken.time + late)

    def motion(time: np.ndarray) -> tuple[np.ndarray, ...]:
        return MOTION(np.where(time > 18.0, time - 2.0, time))  # type: ignore[operator, no-any-return]

    path, law = saved(broken, tmp_path / "log.npy"), CHOSEN.loop.law
    found = dynid.estimation.InstrumentalVariables(block=500).solve(streamed(log(path, law, motion=motion)))
    run = dynid.process(broken, cutoff_hz=20.0, rest=None)
    parts = list(with_loop([run], motion, law=law, rate_hz=500.0, longest=10**9))
    assert len(parts) == 2
    equations = dynid.estimation.build_equations(CHOSEN.prior, parts, base=CHOSEN.base)
    whole = dynid.estimation.InstrumentalVariables(block=500).solve(equations)
    # behind a gap the whole log's uniform clock starts anew, the stream's goes on
    assert np.abs((found.values - whole.values) / whole.stderr).max() < 0.05
    np.testing.assert_allclose(found.stderr, whole.stderr, rtol=0.05)


def test_a_log_four_times_as_long_needs_no_more_memory(tmp_path: Path) -> None:
    peaks, law = [], CHOSEN.loop.law
    for duration_s in (10.0, 40.0):
        path = saved(
            recording(scene("gautier_khalil_3r", duration_s=duration_s, friction_speed=None)),
            tmp_path / f"{duration_s}.npy",
        )
        equations = streamed(log(path, law, rows=400))
        tracemalloc.start()
        dynid.estimation.InstrumentalVariables(block=256, iterations=1).solve(equations)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.15 * peaks[0]


def test_assumed_loops_of_a_stream_are_those_of_the_log_in_memory(tmp_path: Path) -> None:
    estimator = InLoop(estimator=dynid.estimation.InstrumentalVariables(block=500), rate_hz=500.0)
    quiet = recording(noise=1e-5)
    run = dynid.process(quiet, cutoff_hz=20.0, rest=None)
    whole = estimator.solve(dynid.estimation.build_equations(CHOSEN.prior, run, base=CHOSEN.base))
    path = saved(quiet, tmp_path / "log.npy")
    pieces = lambda: process_stream(chunks(path), LOW_PASS, overlap_s=1.5)  # noqa: E731
    found = estimator.solve(stream_equations(CHOSEN.prior, [pieces], base=CHOSEN.base))
    assert np.abs((found.values - whole.values) / whole.stderr).max() < 0.02  # gains scale with fewer poses
    np.testing.assert_allclose(found.stderr, whole.stderr, rtol=0.02)
    assert sum(f.code.startswith("assumed") for f in found.findings) == 2


def test_a_spline_in_pieces_is_the_spline_of_the_whole() -> None:
    from scipy.interpolate import CubicSpline

    time = np.arange(2000) / 100.0
    q = np.random.default_rng(0).normal(size=(2000, 2))
    motion = SplinedMotion((time[a : a + 130], q[a : a + 130]) for a in range(0, 2000, 130))
    whole = CubicSpline(time, q)
    for start in range(0, 1900, 190):
        asked = time[start] + np.arange(190 * EVERY + 1) / 500.0
        asked = asked[asked <= time[-1]]
        for order, values in enumerate(motion(asked)):
            np.testing.assert_allclose(values, whole(asked, order), atol=1e-8 * 100.0**order)


def test_what_a_stream_does_not_tell_is_said(tmp_path: Path) -> None:
    path, law = saved(recording(), tmp_path / "log.npy"), CHOSEN.loop.law
    good, estimator = log(path, law), dynid.estimation.InstrumentalVariables()
    with pytest.raises(dynid.errors.ArgumentError, match="the loop of 'arrays' is not known"):
        estimator.solve(streamed(lambda: process_stream(chunks(path), LOW_PASS, overlap_s=1.5)))

    def late() -> Iterator[dynid.Experiment]:
        for piece in good():
            assert piece.loop is not None
            yield replace(piece, loop=replace(piece.loop, start_s=piece.loop.start_s + 5.0))

    with pytest.raises(dynid.errors.ArgumentError, match="within its reference motion"):
        estimator.solve(streamed(late))
    times = iter(range(100))

    def shrinking() -> Iterator[dynid.Experiment]:
        pieces = list(good())
        return iter(pieces if next(times) < 3 else pieces[:-2])

    with pytest.raises(dynid.errors.ArgumentError, match="shorter than when it was read first"):
        estimator.solve(streamed(shrinking))


def test_streams_in_loops_leave_out_the_time_in_which_the_start_is_forgotten(tmp_path: Path) -> None:
    path, truth = saved(recording(), tmp_path / "log.npy"), CHOSEN.values
    pieces = lambda: process_stream(chunks(path), LOW_PASS, overlap_s=1.5)  # noqa: E731
    brought = InLoop(estimator=dynid.estimation.DIDIM(), law=CHOSEN.loop.law, rate_hz=500.0, motions=(lambda: MOTION,))
    found = brought.solve(stream_equations(CHOSEN.prior, [pieces], base=CHOSEN.base))
    away = np.abs((found.values - truth) / found.stderr)
    assert np.mean(away < 1.96) > 0.85
    assert away.max() < 3.5
