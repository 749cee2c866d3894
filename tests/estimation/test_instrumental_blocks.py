"""Instrumental variables block by block: the same as from whole arrays, in little memory; streamed logs are refused."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.estimation import scores as loop_blocks
from dynid.estimation.closed_loop.instrument_noise import end_window, noise_rows
from dynid.estimation.closed_loop.instrumental import _Measured, _Round
from dynid.estimation.closed_loop.loop_runs import LoopRuns, Motions
from dynid.estimation.physical.nearest import find_near_possible
from dynid.estimation.scores import solution_covariance
from dynid.kernels import regressor
from support.closed_loops import Scene, scene

CHOSEN = scene("gautier_khalil_3r")


def two_runs(chosen: Scene, filter_effort: bool) -> dynid.estimation.Samples:
    """Two logs, the second without some samples and with a gap."""
    first, second = (chosen.noisy(seed, filter_effort=filter_effort) for seed in (1, 2))
    segment = (np.arange(second.samples) > 333).astype(np.int64)
    valid = second.valid & (np.arange(second.samples) % 17 > 0)[:, None]
    return dynid.estimation.build_equations(
        chosen.prior, [first, replace(second, segment=segment, valid=valid)], base=chosen.base
    )


def simulated(equations: dynid.estimation.Samples) -> tuple[LoopRuns, np.ndarray, Motions]:
    runs, beta = LoopRuns.of(equations), equations.base.project(equations.robot.parameter_vector)
    return runs, beta, runs.simulate(beta)


@pytest.mark.parametrize("filter_effort", [False, True])
@pytest.mark.parametrize("memory", [0, 2**26])
def test_moments_of_blocks_are_those_of_whole_arrays(
    filter_effort: bool, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_blocks, "MEMORY", memory)
    equations = two_runs(CHOSEN, filter_effort)
    runs, beta, motions = simulated(equations)
    weights, links = np.array([1.0, 2.0, 0.5]), np.array(equations.base.columns) < 30
    found = _Round.of(runs, _Measured.of(runs, 97), beta, motions, weights)
    slope, right = np.zeros((beta.size, beta.size)), np.zeros(beta.size)
    for run, motion in zip(runs.runs, motions, strict=True):
        e, exact, remade = run.run, run.columns(motion), run.derived(motion)
        assert remade is not None
        measured, lost = (
            regressor(equations.robot, *states, columns=equations.base.columns)
            for states in ((e.q, e.dq, e.ddq), remade)
        )
        Y = np.where(links, measured + exact - lost, exact)
        turning = 1.0 - np.exp(-((motion.dq / 0.1) ** 2))  # dry friction in every joint
        Z = exact * end_window(e)[:, None, None] * (e.valid * turning)[:, :, None] * weights[None, :, None]
        slope += np.einsum("tjb,tjc->bc", Z, Y)
        right += np.einsum("tjb,tj->b", Z, np.where(e.valid, e.effort, 0.0))
    assert np.abs(found.slope - slope).max() < 1e-9 * np.abs(slope).max()
    np.testing.assert_allclose(found.beta, np.linalg.solve(slope, right), rtol=1e-9, atol=1e-9 * np.abs(beta).max())


@pytest.mark.parametrize("memory", [0, 2**26])
def test_rows_of_the_covariance_are_those_of_whole_arrays(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_blocks, "MEMORY", memory)
    runs, beta, motions = simulated(two_runs(CHOSEN, filter_effort=False))
    made = {}
    for size in (97, 10**6):
        measured = _Measured.of(runs, size)
        found = _Round.of(runs, measured, beta, motions, np.ones(3))
        blocks = measured.blocks
        made[size] = blocks, *noise_rows(runs, motions, found.beta, blocks, found.instruments, found.weights)
    blocks, rows, noise = made[97]
    _, whole_rows, whole_noise = made[10**6]
    cut_rows = [whole_rows[block.run][block.rows] for block in blocks]
    cut_noise = [whole_noise[block.run][block.rows] for block in blocks]
    assert len(blocks) == 22
    for made_here, cut_here in ((list(rows), cut_rows), (noise, cut_noise)):
        largest = max(np.abs(part).max() for part in cut_here)
        assert max(np.abs(a - b).max() for a, b in zip(made_here, cut_here, strict=True)) < 1e-9 * largest
    arguments = (found.slope, runs.rate_hz, 3)
    lazy, plain = (
        solution_covariance(arguments[0], H, v, *arguments[1:]) for H, v in ((rows, noise), (cut_rows, cut_noise))
    )
    np.testing.assert_allclose(lazy, plain, rtol=1e-9, atol=1e-9 * np.abs(plain).max())


def test_estimates_do_not_depend_on_the_blocks() -> None:
    equations = two_runs(CHOSEN, filter_effort=True)
    whole, blocks = (dynid.estimation.InstrumentalVariables(block=size).solve(equations) for size in (10**6, 500))
    assert np.abs((blocks.values - whole.values) / whole.stderr).max() < 1e-9
    np.testing.assert_allclose(blocks.stderr, whole.stderr, rtol=0.05)  # noise of different blocks is independent


def test_long_logs_need_the_memory_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_blocks, "MEMORY", 0)
    chosen = scene("gautier_khalil_3r", duration_s=100.0)
    runs, beta, motions = simulated(chosen.equations(chosen.noisy(1)))
    regressor_size = 8 * chosen.truth.q.size * beta.size
    peaks = {}
    for size in (500, 10**6):
        tracemalloc.start()
        measured = _Measured.of(runs, size)
        found = _Round.of(runs, measured, beta, motions, None)
        rows, noise = noise_rows(runs, motions, beta, measured.blocks, found.instruments, found.weights)
        solution_covariance(found.slope, rows, noise, runs.rate_hz, 3)
        peaks[size] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[500] < regressor_size < 3.0 * regressor_size < peaks[10**6]


@pytest.mark.filterwarnings("error")
def test_a_possible_robot_is_found_where_noise_turned_an_instrument_round() -> None:
    equations, truth = CHOSEN.equations(CHOSEN.noisy(1)), CHOSEN.values
    slope = equations.information.weight().R.T @ equations.information.weight().R
    slope[2, 2] = -1e-3 * slope[2, 2]  # less than nothing is known of XY2
    found = find_near_possible(equations, truth, slope)
    assert np.isfinite(found).all()
    others = np.arange(truth.size) != 2
    assert np.abs(found - truth)[others].max() < 0.3 * np.abs(truth).max()


@pytest.mark.parametrize(
    "estimator",
    [
        dynid.estimation.InstrumentalVariables(),
        dynid.estimation.DIDIM(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_the_beginning_of_a_streamed_log_is_not_taken_for_all_of_it(estimator: dynid.estimation.Estimator) -> None:
    known = CHOSEN.equations(CHOSEN.noisy(1))
    equations = dynid.estimation.Factors(
        robot=known.robot,
        base=known.base,
        information=known.information,
        blocks=known.blocks,
        excerpts=known.excerpts,
    )
    with pytest.raises(
        dynid.errors.ArgumentError, match=r"needs .*experiments.*these equations hold reduced equations"
    ):
        estimator.solve(equations)
