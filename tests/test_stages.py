"""Processor time by stage: the innermost stage counts, and the command line prints all of them."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from dynid import stages


@pytest.fixture(autouse=True)
def _unmeasured(monkeypatch):
    monkeypatch.setattr(stages, "_measured", None)


def _spin(clock, seconds):
    clock[0] += seconds


def test_every_second_belongs_to_the_innermost_stage(monkeypatch):
    clock = [2.0]
    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    times = stages.measure_stages()

    @stages.in_stage("process")
    def process():
        _spin(clock, 0.5)
        return 7

    with stages.stage("gate"):
        _spin(clock, 1.0)
        assert process() == 7
        _spin(clock, 0.25)

    @stages.in_stage("report")
    def fail():
        _spin(clock, 4.0)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fail()
    _spin(clock, 0.125)
    text = str(times)
    assert times.seconds["start"] == 2.125  # the time before, and what no stage claims
    assert times.seconds["gate"] == 1.25
    assert times.seconds["process"] == 0.5
    assert times.seconds["report"] == 4.0
    assert text.endswith("together 7.88")


def test_without_asking_nothing_is_counted():
    with stages.stage("read"):
        assert stages._measured is None


def test_the_command_prints_its_stages():
    command = [sys.executable, "-m", "dynid", "--timing", "check", "panda"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert all(f"{name} " in done.stderr.splitlines()[-1] for name in stages.STAGES)
