"""Logs read piece by piece: the same numbers as from memory, and a word where samples are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.estimation.estimate import Estimator
from dynid.estimation.linear.energy_differences import Energy
from dynid.estimation.linear.least_squares import OLS, WLS
from dynid.estimation.linear.link_by_link import LinkByLink
from dynid.estimation.linear.ridge import Ridge
from dynid.estimation.linear.robust import Huber
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.estimation.streamed_logs import stream_equations
from dynid.links.identify import identify, identify_equations
from dynid.links.recipe import Recipe
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.process import Processing, process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.processing.streaming import process_stream
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

ROBOT = zoo.cylindrical().with_terms(Viscous(0.5), Coulomb(0.3), Offset(0.1))
FACTORS = [OLS(), WLS(), FeasibleWLS(), Ridge(), LinkByLink()]
OPTIONS = Processing(cutoff_hz=10.0, rest=None)


def recording(seed: int, gap: bool = False) -> Recording:
    log = simulate_experiment(
        ROBOT, sum_of_sines(3, seed=seed), rate_hz=200, duration_s=30, noise=Noise(effort=0.05), seed=seed
    )
    return replace(log, time=log.time + np.where(np.arange(log.time.size) > 2500, 5.0, 0.0)) if gap else log


def pieces(log: Recording, rows: int = 900) -> Iterator[Experiment]:
    chunks = (log.rows(slice(start, start + rows)) for start in range(0, log.time.size, rows))
    return process_stream(chunks, OPTIONS, overlap_s=2.0)


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize(
    "estimator", [OLS(), WLS(), FeasibleWLS(), Ridge(), LinkByLink()], ids=lambda e: type(e).__name__
)
def test_the_same_numbers_as_from_memory(estimator: Estimator, gap: bool) -> None:
    logs = [recording(1, gap), recording(2)]
    runs = [process(log, cutoff_hz=10.0, rest=None) for log in logs]
    whole = identify(ROBOT, runs, Recipe.bare(), estimator=estimator)
    equations = stream_equations(ROBOT, [lambda log=log: pieces(log) for log in logs])  # type: ignore[misc]
    fit = identify_equations(equations, estimator)
    assert np.array_equal(equations.counts, whole.equations.counts)
    scale = np.maximum(np.abs(whole.estimate.values), np.abs(whole.estimate.stderr))
    # behind a gap the whole log's uniform clock starts anew, the stream's goes on: other instants are interpolated
    same = 1e-2 if gap else 1e-8
    assert np.max(np.abs(fit.estimate.values - whole.estimate.values) / scale) < same
    np.testing.assert_allclose(fit.estimate.stderr, whole.estimate.stderr, rtol=10.0 * same)
    np.testing.assert_allclose(fit.training_error, whole.training_error, rtol=10.0 * same)


@pytest.mark.parametrize("estimator", [Huber(), Energy()], ids=lambda e: type(e).__name__)
def test_what_needs_the_samples_says_so(estimator: Estimator) -> None:
    equations = stream_equations(ROBOT, [lambda: pieces(recording(1))])
    with pytest.raises(ArgumentError, match="hold reduced equations"):
        estimator.solve(equations)


def test_other_joints_and_no_logs_are_refused() -> None:
    with pytest.raises(ArgumentError, match="the log has 3"):
        stream_equations(zoo.panda(), [lambda: pieces(recording(1))])
    with pytest.raises(ArgumentError, match="no log"):
        stream_equations(ROBOT, [])


@pytest.mark.parametrize("gap", [False, True])
def test_a_long_log_is_streamed_once_and_has_nearly_the_blocks_of_memory(
    gap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [recording(1, gap), recording(2)]
    exact = stream_equations(ROBOT, [lambda log=log: pieces(log) for log in logs])  # type: ignore[misc]
    monkeypatch.setattr("dynid.estimation.streamed_logs.LONG", 1)
    monkeypatch.setattr("dynid.estimation.streamed_logs.CHUNK", 60)
    starts = []

    def stream(log: Recording) -> Iterator[Experiment]:
        starts.append(log)
        return pieces(log)

    once = stream_equations(ROBOT, [lambda log=log: stream(log) for log in logs])  # type: ignore[misc]
    assert len(starts) == len(logs)
    assert [len(blocks) for blocks in once.blocks] == [len(blocks) for blocks in exact.blocks]
    assert np.array_equal(once.counts, exact.counts)
    lengths = exact.information.samples[:, 0]
    aside = np.abs(np.cumsum(once.information.samples, axis=0) - np.cumsum(exact.information.samples, axis=0))
    assert aside.max() <= lengths.max() / 6.0  # where a gap ends a block it does so in both
    for joint in range(ROBOT.dof):
        one, other = (R.T @ R for R in (e.information.factor(joint) for e in (once, exact)))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())
    a, b = (WLS().solve(equations) for equations in (once, exact))
    np.testing.assert_allclose(a.values, b.values, rtol=1e-9, atol=1e-12)
