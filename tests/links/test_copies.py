"""A copy of a log, or of a part of it, adds nothing and proves nothing: it is refused, and named within a log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.gate.signal_checks import check_repeated_samples
from dynid.links.common.copies import SeenSamples
from dynid.logs.recording import Recording
from dynid.processing.simulation import sum_of_sines

ROBOT = dynid.robots.gautier_khalil_3r()
NOISE = dynid.Noise(position=1e-5, effort=0.2)


def log(seed: int, digits: int = 4) -> Recording:
    """A log as a file has it, with rounded values."""
    made = dynid.simulate_experiment(
        ROBOT, sum_of_sines(3, seed=seed), rate_hz=100, noise=NOISE, duration_s=6, seed=seed
    )
    assert made.effort is not None
    return replace(made, q=np.round(made.q, digits), effort=np.round(made.effort, digits), source=f"run{seed}.csv")


RUN = log(1)


@pytest.mark.parametrize("part", [slice(0, 300), slice(250, 600), slice(100, 200)])
def test_a_part_of_another_log_is_refused_both_ways(part: slice) -> None:
    for first, second in ((RUN, RUN.rows(part)), (RUN.rows(part), RUN)):
        seen = SeenSamples()
        seen.add(first, first)
        with pytest.raises(dynid.errors.DataError, match="to the last digit"):
            seen.add(second, second)


def test_other_logs_and_the_same_log_again_are_accepted() -> None:
    seen = SeenSamples()
    coarse = [log(seed, digits=1) for seed in (1, 2)]  # many rows agree by chance, no stretch does
    for recording in (RUN, log(2), RUN, *coarse):
        seen.add(recording, recording)


def test_identify_refuses_data_that_are_given_twice() -> None:
    run = dynid.process(RUN)
    table = {"time": RUN.time, "q": RUN.q, "effort": RUN.effort}
    for data in ([run, run], [run, dynid.process(RUN)], [table, table], [RUN, RUN]):
        with pytest.raises(dynid.errors.ArgumentError, match="items 1 and 2 of data are the same"):
            dynid.identify(ROBOT, data, dynid.Recipe.bare(), estimator="wls")
    with pytest.raises(dynid.errors.DataError, match=r"those of 'run1\.csv'"):
        dynid.identify(ROBOT, [RUN, RUN.rows(slice(0, 300))], dynid.Recipe.bare(), estimator="wls")


def test_a_log_that_holds_a_stretch_several_times_is_named() -> None:
    part = RUN.rows(slice(0, 200))
    four = {name: np.concatenate([getattr(part, name)] * 4) for name in ("q", "effort")}
    repeated = Recording(time=np.arange(800) / 100, **four)
    (found,) = check_repeated_samples(repeated)
    assert found.code == "repeated-samples"
    assert "row 200 (2 s) repeats row 0 (0 s)" in found.message
    assert found.evidence["share"] == pytest.approx(0.75, abs=0.01)
    at_rest = Recording(time=RUN.time, q=np.zeros_like(RUN.q), effort=np.round(RUN.q, 0))
    for clean in (RUN, at_rest):
        assert not list(check_repeated_samples(clean))
