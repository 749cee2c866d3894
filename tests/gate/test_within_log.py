"""Faults within a log: gains, drifting offsets and loads that come and go are named; clean logs are not accused."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dynid.gate.quality import check_recording

PATH = Path(__file__).parents[1] / "campaigns" / "faults_within.py"
SPEC = importlib.util.spec_from_file_location("faults_within", PATH)
assert SPEC is not None
campaign = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = campaign
assert SPEC.loader is not None
SPEC.loader.exec_module(campaign)


@pytest.mark.parametrize("kind", ["nothing", "wrong gain", "drifting offset", "mixed loads"])
def test_the_fault_is_named(kind):
    named, said = campaign.run_case(kind, "panda", 2)
    assert named, said


def test_a_joint_without_torque_does_not_stop_the_check():
    log = campaign.planted.clean_log("panda", 2)
    dead = replace(log, effort=log.effort * [1, 1, 1, 1, 1, 1, 0])
    assert "frozen" in check_recording(dead, campaign.planted.believed("panda")).codes
