"""Parts of a log kept aside: what is judged was never seen, and a log with one channel map tells its couplings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import signal

from dynid.errors import ArgumentError, DataError
from dynid.estimators.linear.least_squares import WLS
from dynid.identification.identify import identify, with_coupled_motors
from dynid.identification.log_part import HoldOut, read_hold_out, split_recording
from dynid.identification.log_reader import LogReader
from dynid.identification.recipe import Recipe
from dynid.identification.validation import validate
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

ROOT = Path(__file__).parents[2]
ROBOT = zoo.cylindrical().with_terms(Viscous(0.5), Coulomb(0.3), Offset(0.1))


@pytest.fixture(scope="module")
def log() -> Recording:
    return simulate_experiment(
        ROBOT, sum_of_sines(3, seed=1), rate_hz=200, duration_s=12, noise=Noise(effort=0.05), seed=1
    )


def test_rules_are_read_from_text() -> None:
    assert read_hold_out("40%") == HoldOut("last", 40.0)
    assert read_hold_out("12:16.5") == HoldOut("range", 12.0, 16.5)
    assert read_hold_out("every:3:0.75") == HoldOut("every", 3, 0.75)
    for wrong in ("40", "0%", "100%", "16:12", "every:1:0.5", "every:3:0", "half", "nan:3", "-1:3"):
        with pytest.raises(ArgumentError, match="Write 40% for the last"):
            read_hold_out(wrong)


def split_log(log: Recording, recipe: Recipe) -> tuple[Experiment, Experiment]:
    """The training part and the held-out part, without the gate."""
    (used,), (held,) = LogReader(robot=ROBOT, recipe=replace(recipe, gate=False)).training_and_proof([log])
    return used, held


def test_an_end_is_cut_off(log: Recording) -> None:
    used, held = split_recording(log, read_hold_out("25%"))
    assert used.time[-1] < 9.0 <= held.time[0] + 1e-9
    assert used.time.size + held.time.size == log.time.size
    assert np.isfinite(used.effort).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("own_clock", [False, True])
def test_torques_in_between_are_known_to_one_side_only(log: Recording, own_clock: bool) -> None:
    given = replace(log, effort_time=log.time + 1e-3) if own_clock else log
    used, held = split_log(given, Recipe(cutoff_hz=10.0, hold_out="every:3:1"))
    assert not (used.valid & held.valid[: used.samples]).any()
    inside = (held.time - log.time[0]) // 1.0 % 3 == 2
    assert np.array_equal(np.isfinite(held.effort[:, 0]), inside)
    spoilt = replace(given, effort=np.where(((log.time // 1.0) % 3 == 2)[:, None], 2.0 * log.effort, log.effort))
    again = split_log(spoilt, Recipe(cutoff_hz=10.0, hold_out="every:3:1"))[0]
    if not own_clock:
        assert np.array_equal(again.effort[again.valid], used.effort[used.valid])  # held-out torques act on nothing


def test_infinite_torques_count_as_missing(log: Recording) -> None:
    share = (np.arange(log.time.size) % 5 == 0)[:, None]  # a fifth of the samples
    for missing in (np.nan, np.inf):
        holed = replace(log, effort=np.where(share, missing, log.effort))
        with pytest.raises(DataError, match="not finite"):  # blanking a third on purpose excuses no other holes
            split_log(holed, Recipe(cutoff_hz=10.0, hold_out="every:3:1"))


def test_nothing_left_to_one_side_is_refused(log: Recording) -> None:
    with pytest.raises(DataError, match="none of the log's 12 s would be held out"):
        split_recording(log, read_hold_out("20:30"))
    with pytest.raises(DataError, match="all of the log's"):
        split_recording(log, read_hold_out("0:30"))


def test_the_error_in_a_band_is_that_of_plain_filtering(log: Recording) -> None:
    """Measured and predicted torques low-passed with SciPy, ends left out, compared."""
    used, held = split_log(log, Recipe(band_hz=5.0, hold_out="40%", dead_band=0.0))
    fit = identify(ROBOT, used, Recipe.bare(band_hz=5.0), estimator=WLS())
    check = validate(fit, held, trim_s=0.4)
    sections = signal.butter(4, 5.0, fs=200.0, output="sos")
    smooth = [signal.sosfiltfilt(sections, x, axis=0)[80:-80] for x in (held.effort, fit.torque(held))]
    expected = 100.0 * np.linalg.norm(smooth[0] - smooth[1]) / np.linalg.norm(smooth[0])
    assert check.relative_error == pytest.approx(expected, rel=1e-9)
    assert check.band_hz == 5.0
    assert "below 5 Hz" in check.verdict
    holes = replace(held, effort=np.where(np.arange(held.samples)[:, None] % 97 == 50, np.nan, held.effort))
    holes = replace(holes, valid=holes.valid & np.isfinite(holes.effort))
    assert validate(fit, holes, trim_s=0.4).relative_error == pytest.approx(expected, rel=0.1)


def test_the_band_bounds_the_cutoff(log: Recording) -> None:
    (run,) = LogReader(robot=ROBOT, recipe=Recipe(band_hz=2.0, gate=False)).experiments([log])
    recipe = " ".join(run.processing_steps)
    assert "for a band of 2 Hz" in recipe
    with pytest.raises(ArgumentError, match="band_hz"):
        Recipe(band_hz=0.0)


def test_gears_beside_the_diagonal_are_couplings() -> None:
    robot = zoo.get("tx40").with_couplings()
    found = with_coupled_motors(robot, ROOT / "channel_maps" / "tx40.toml")
    assert [dict(c.ratios) for c in found.couplings] == [{robot.joint_names[4]: 1.0, robot.joint_names[5]: 1.0}]
    assert with_coupled_motors(found, ROOT / "channel_maps" / "tx40.toml") is found
    assert not with_coupled_motors(zoo.get("ur10"), ROOT / "channel_maps" / "ur10_unisa.toml").couplings
