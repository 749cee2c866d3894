"""A copy of a log, or of a part of it, adds nothing and proves nothing: it is refused, and named within a log."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.diagnosis.signals import _check_copies as check_repeated_samples
from dynid.identification.given_data import SeenSamples
from dynid.logs.recording import Recording
from dynid.processing.simulation import sum_of_sines
from dynid.workflows.validation_run import Validate
from support.header_styles import write_columns
from support.three_joints import HEADER, MAP

ROBOT = dynid.robots.gautier_khalil_3r()
NOISE = dynid.Noise(position=1e-5, effort=0.2)


def log_of(seed: int, digits: int = 4) -> Recording:
    """A log as a file has it, with rounded values."""
    made = dynid.simulate_experiment(
        ROBOT, sum_of_sines(3, seed=seed), rate_hz=100, noise=NOISE, duration_s=6, seed=seed
    )
    assert made.effort is not None
    return replace(made, q=np.round(made.q, digits), effort=np.round(made.effort, digits), source=f"run{seed}.csv")


RUN = log_of(1)


@pytest.mark.parametrize("part", [slice(0, 300), slice(250, 600), slice(100, 200)])
def test_a_part_of_another_log_is_refused_both_ways(part: slice) -> None:
    for first, second in ((RUN, RUN.rows(part)), (RUN.rows(part), RUN)):
        seen = SeenSamples()
        seen.add(first, first)
        with pytest.raises(dynid.errors.DataError, match="to the last digit"):
            seen.add(second, second)


def write_csv(recording: Recording, path: Path) -> Path:
    """A recording as a table with a header."""
    return write_columns(path, [HEADER], [recording.time, recording.q, recording.effort])


def test_validate_refuses_a_part_of_a_log_that_was_fitted_and_no_other(tmp_path: Path) -> None:
    chart = tomllib.loads(MAP)
    fitted = write_csv(RUN, tmp_path / "fitted.csv")
    recipe = dynid.Recipe.bare(hold_out="40%")
    fit = dynid.identify(ROBOT, fitted, recipe, channel_map=chart, estimator="wls")
    result = dynid.write_result(fit, tmp_path / "result.json")
    last = int(0.6 * RUN.time.size)
    for name, part, share in (("start", slice(0, 200), "5[45]"), ("short", slice(100, 140), "[78]")):
        log = write_csv(RUN.rows(part), tmp_path / f"{name}.csv")
        with pytest.raises(dynid.errors.DataError, match=rf"holds about {share} % of the samples of fitted\.csv"):
            dynid.workflows.run(Validate(result, [log], dynid.Recipe.bare(), chart))
    held_out = write_csv(RUN.rows(slice(last, None)), tmp_path / "held_out.csv")
    for unseen in (held_out, write_csv(log_of(2), tmp_path / "other.csv")):
        dynid.workflows.run(Validate(result, [unseen], dynid.Recipe.bare(), chart))


def test_other_logs_and_the_same_log_again_are_accepted() -> None:
    seen = SeenSamples()
    coarse = [log_of(seed, digits=1) for seed in (1, 2)]  # many rows agree by chance, no stretch does
    for recording in (RUN, log_of(2), RUN, *coarse):
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
    assert "row 200 repeats row 0" in found.message
    assert found.evidence["share"] == pytest.approx(0.75, abs=0.01)
    at_rest = Recording(time=RUN.time, q=np.zeros_like(RUN.q), effort=np.round(RUN.q, 0))
    for clean in (RUN, at_rest):
        assert not list(check_repeated_samples(clean))
