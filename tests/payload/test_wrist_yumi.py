"""The YuMi log: a tool weighed on scales, its sensor turned and biased, its moments logged in N mm."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dynid.payload.sensing import Sensing
from dynid.payload.sensor_faults import check_wrench
from dynid.payload.wrist import identify_load
from dynid.processing.experiment import Experiment
from support.yumi_log import FRAME, LOG, WEIGHED, log, yumi

pytestmark = pytest.mark.skipif(not LOG.exists(), reason=f"the real data set is not at {LOG}")


@cache
def run() -> Experiment:
    pytest.importorskip("h5py")
    return log()


def test_mass_within_two_percent_of_the_scales() -> None:
    load = identify_load(yumi(), run(), sensor_frame=FRAME, sensing=Sensing(find=("orientation",)))
    assert load.mass == pytest.approx(WEIGHED, rel=0.02)
    assert np.all(load.com_stderr < 1e-3)
    in_sensor_axes = load.extras["R_frame_sensor"].T @ load.com
    np.testing.assert_allclose(in_sensor_axes, [-0.0062, 0.0053, 0.0273], atol=3e-3)
    assert np.isinf(load.stderr[:6]).all()
    assert not load.has_inertia
    assert np.all(load.extras["orientation_stderr"] < np.deg2rad(0.5))
    (turn,) = [finding for finding in load.findings if finding.code == "wrench-frame"]
    assert 59.0 <= turn.evidence["angle [deg]"] < 60.0
    np.testing.assert_allclose(load.bias[:3], [-1.09, -3.00, 6.78], atol=0.05)


def test_the_turned_sensor_is_proposed_and_so_are_newton_millimetres() -> None:
    log_in_newton_metres = run()
    assert log_in_newton_metres.wrench is not None
    wrong = replace(run(), wrench=log_in_newton_metres.wrench * np.repeat([1.0, 1000.0], 3))
    proposals = check_wrench(yumi(), wrong, sensor_frame=FRAME)
    assert [proposal.finding.code for proposal in proposals][:2] == ["unit", "wrench-frame"]
    assert proposals[1].sensing.find == ("orientation",)
