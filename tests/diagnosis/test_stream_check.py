"""The check of a log in pieces: its faults are counted, and its suspects are tested in pieces spread over it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from campaigns.diagnosis import simulate
from dynid.diagnosis.log_check import StreamCheck
from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording
from dynid.processing.streaming import process_stream

CASE = simulate("puma560", 5)


def check(log: Recording) -> StreamCheck:
    """The check of a log in pieces of 300 rows, 1.2 s."""
    gate = StreamCheck(CASE.robot)
    list(process_stream((log.rows(slice(k, k + 300)) for k in range(0, log.time.size, 300)), check=gate))
    return gate


def test_faults_are_counted_and_suspects_tested() -> None:
    assert check(CASE.log).report().clean
    q, effort, time = np.array(CASE.log.q), -CASE.log.effort, np.array(CASE.log.time)
    q[[1300, 2000, 3250], 2] += 3.0
    effort[1500:1507, 4] = np.nan
    time[4000:] += 0.1
    log = replace(CASE.log, q=q, effort=effort, time=time)
    report = check(log).report()
    told = [(f.code, f.joint, f.severity, f.evidence["count"]) for f in report.findings if "count" in f.evidence]
    assert told == [
        ("spikes", "joint3", "warning", 3),
        ("not-finite", "joint5", "warning", 7),
        ("gap", None, "warning", 1),
    ]
    assert "flipped" in report.codes


def test_what_no_stream_can_have() -> None:
    with pytest.raises(DataError, match="no piece"):
        StreamCheck().report()
    with pytest.raises(ArgumentError, match="one clock"):
        list(process_stream([replace(CASE.log, effort_time=CASE.log.time)]))
