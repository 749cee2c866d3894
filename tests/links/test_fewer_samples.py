"""Choices of long runs by fewer of their samples: the same terms, and parameters of all samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.estimation.linear.least_squares import WLS
from dynid.links.common import fewer_samples
from dynid.links.common.fewer_samples import PARTS, shorten_long
from dynid.links.identify import identify_experiments
from dynid.links.recipe import Recipe
from dynid.processing.experiment import Experiment
from dynid.processing.process import Processing, process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.memory import LaggedSign, lag_signal

ROBOT = zoo.cylindrical().with_terms(Viscous(0.5), Coulomb(1.0))


@pytest.fixture(scope="module")
def run() -> Experiment:
    """A run at 1 kHz whose dry friction of joint 2 follows with a lag."""
    path = sum_of_sines(3, seed=5)
    noise = Noise(position=1e-5, effort=0.2)
    log = simulate_experiment(ROBOT, path, rate_hz=1000.0, duration_s=12, noise=noise, seed=5)
    assert log.effort is not None
    effort = np.array(log.effort)
    effort[:, 1] += 8.0 * lag_signal(np.sign(path(log.time)[1][:, 1]), 0.05, 1000.0)
    return process(replace(log, effort=effort), Processing(cutoff_hz=8.0))


def test_short_runs_stay_as_they_are(run: Experiment) -> None:
    assert shorten_long([run])[0] is run


def test_parts_are_spread_over_a_run_and_cross_no_gap(run: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fewer_samples, "MANY", 3000)
    monkeypatch.setattr(fewer_samples, "FEWEST", 100)
    cut = replace(run, segment=(np.arange(run.samples) > 5000).astype(np.int64))
    (short,) = shorten_long([cut])
    assert short.samples == 3000
    assert (short.time[0], short.time[-1]) == (run.time[0], run.time[-1])
    same = short.segment[1:] == short.segment[:-1]
    np.testing.assert_allclose(np.diff(short.time)[same], 1e-3)
    assert int(short.segment[-1]) + 1 in (PARTS, PARTS + 1)
    assert (np.diff(np.searchsorted(run.time, short.time))[~same] > 1).sum() == PARTS - 1


def test_long_runs_select_the_same_terms_and_fit_all_samples(run: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = identify_experiments(ROBOT, [run], Recipe(), WLS())
    monkeypatch.setattr(fewer_samples, "PARTS", 4)
    monkeypatch.setattr(fewer_samples, "MANY", 5000)
    monkeypatch.setattr(fewer_samples, "FEWEST", 100)
    quick = identify_experiments(ROBOT, [run], Recipe(), WLS())
    kinds = {type(term) for term in whole.terms}
    assert LaggedSign in kinds
    assert {type(term) for term in quick.terms} == kinds
    assert quick.equations.information.samples.sum() == whole.equations.information.samples.sum()
    links = slice(0, quick.base.rank)
    away = (quick.estimate.values - whole.estimate.values)[links] / whole.estimate.stderr[links]
    assert np.abs(away).max() < 0.5
