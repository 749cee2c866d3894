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


def test_a_load_that_is_held_for_a_tenth_of_the_log_is_named():
    word, said = campaign.run_case("mixed loads", "panda", 7106)
    assert word == "named", said


@pytest.mark.skipif(not campaign.real_logs.DATA.is_dir(), reason="needs ../shared/datasets")
@pytest.mark.parametrize(
    ("kind", "name", "seed"),
    [
        ("wrong gain", "panda_gaz", 7018),  # it leaves more in one half of the log, as a change does
        ("mixed loads", "ur10_unisa", 7204),
        ("mixed loads", "tx40", 7118),
        ("drifting offset", "panda_unisa", 610013),  # that joint is slow or turns round nearly all the time
    ],
)
def test_the_fault_is_named_in_a_real_log(kind, name, seed):
    word, said = campaign.run_case(kind, name, seed)
    assert word == "named", said


def test_a_joint_without_torque_does_not_stop_the_check():
    log = campaign.planted.clean_log("panda", 2)
    dead = replace(log, effort=log.effort * [1, 1, 1, 1, 1, 1, 0])
    assert "frozen" in check_recording(dead, campaign.planted.believed("panda")).codes
