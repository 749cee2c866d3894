"""Faults within a log: gains, drifting offsets and loads that come and go are named; clean logs are not accused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from campaigns import faults_within as campaign
from dynid.gate.quality import check_recording


@pytest.mark.parametrize("kind", ["nothing", "wrong gain", "drifting offset", "mixed loads"])
def test_the_fault_is_named(kind):
    word, said = campaign.run_case(kind, "panda", 2)
    assert word == "named", said


def test_a_joint_without_torque_does_not_stop_the_check():
    log = campaign.planted.clean_log("panda", 2)
    dead = replace(log, effort=log.effort * [1, 1, 1, 1, 1, 1, 0])
    assert "frozen" in check_recording(dead, campaign.planted.believed("panda")).codes
