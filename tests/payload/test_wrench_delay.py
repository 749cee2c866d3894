"""Wrenches stamped late: found to a fraction of a sample, named, taken into account, and refused where senseless."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from dynid.errors import EstimationError
from dynid.payload.sensing import Sensing
from dynid.payload.sensor_faults import check_wrench, find_wrench_delay
from dynid.payload.wrench_equations import delayed_wrench
from dynid.payload.wrist import identify_load
from dynid.processing.experiment import Experiment
from payload.test_wrist import BIAS, LINK, ROBOT, TRUTH, run_of


def late_run(delay_s: float, noise: float = 0.1, R: np.ndarray | None = None) -> Experiment:
    """A run whose wrench is stamped late, noise added afterwards; its sensor may be turned."""
    clean, noisy = run_of(bias=BIAS), run_of(noise=noise, bias=BIAS)
    assert clean.wrench is not None
    assert noisy.wrench is not None
    turn = np.kron(np.eye(2), np.eye(3) if R is None else R)
    late = CubicSpline(clean.time, (clean.wrench - BIAS) @ turn)(clean.time - delay_s)
    return replace(clean, wrench=late + BIAS + (noisy.wrench - clean.wrench))


@pytest.mark.parametrize("delay_s", [0.0, 0.003, 0.05, -0.02])
def test_a_delay_is_found_within_its_interval(delay_s: float) -> None:
    found = find_wrench_delay(ROBOT, late_run(delay_s), sensor_frame=LINK)
    assert abs(found.seconds - delay_s) < 2.0 * found.half_width_s
    assert found.half_width_s < 1e-4


def test_a_late_wrench_is_named_and_taken_into_account() -> None:
    run = late_run(0.03)
    (proposal,) = check_wrench(ROBOT, run, sensor_frame=LINK)
    assert proposal.finding.code == "delay"
    assert proposal.finding.evidence["amount"] == pytest.approx(30.0, abs=0.5)
    (further,) = check_wrench(ROBOT, run, sensor_frame=LINK, sensing=Sensing(delay_s=0.01))
    assert further.finding.evidence["amount"] == pytest.approx(20.0, abs=0.5)
    assert further.sensing.delay_s == pytest.approx(0.03, abs=5e-4)
    wrong = identify_load(ROBOT, run, sensor_frame=LINK, physical=False)
    right = identify_load(ROBOT, run, sensor_frame=LINK, sensing=proposal.sensing, physical=False)
    assert np.all(right.stderr < 0.5 * wrong.stderr)
    assert np.abs((right.vector - TRUTH.vector) / right.stderr).max() < 4.5
    assert not check_wrench(ROBOT, run, sensor_frame=LINK, sensing=proposal.sensing)


def test_nothing_is_moved_out_of_a_hole_and_what_comes_after_it_is_kept() -> None:
    late, clean = late_run(0.1, noise=0.0), run_of(bias=BIAS).wrench  # 0.1 s are five samples
    hole = (np.arange(late.samples) >= 100) & (np.arange(late.samples) < 140)
    shifted = delayed_wrench(replace(late, wrench=np.where(hole[:, None], np.nan, late.wrench)), 0.1)
    assert np.isnan(shifted[95:135]).all()
    for known in (slice(94), slice(135, -6)):
        np.testing.assert_allclose(shifted[known], clean[known], atol=1e-6)


def test_a_log_without_a_wrench_has_no_delay() -> None:
    run = run_of()
    with pytest.raises(EstimationError, match="no delay"):
        find_wrench_delay(ROBOT, replace(run, wrench=np.full((run.samples, 6), np.nan)), sensor_frame=LINK)
