"""Rows lost from a log whose stamps were written anew: found by positions against velocities, or against themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dynid.gate.quality import check_recording
from dynid.gate.signal_checks import check_lost_rows
from dynid.logs.recording import Recording
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo

Edit = Callable[[np.ndarray], np.ndarray]
ROWS = 1200


def _log(seed: int, *, speeds: bool = True, position_noise: float = 1e-5) -> Recording:
    noise = Noise(position=position_noise, velocity=1e-3 if speeds else 0.0, effort=0.1)
    motion = sum_of_sines(3, seed=seed)
    return simulate_experiment(
        zoo.ddarm(), motion, rate_hz=100, duration_s=ROWS / 100, noise=noise, with_velocity=speeds, seed=seed
    )


def _edited(log: Recording, rows: np.ndarray) -> Recording:
    """The log with these rows, and its clock as if nothing had happened."""
    assert log.effort is not None
    dq = None if log.dq is None else log.dq[rows]
    return replace(log, time=log.time[: rows.size], q=log.q[rows], dq=dq, effort=log.effort[rows])


@pytest.mark.parametrize("speeds", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_lost_rows_are_found_and_counted(seed: int, speeds: bool) -> None:
    log = _log(seed, speeds=speeds)
    lost = np.array([200, 201, 550, 900, 901, 902])
    (found,) = check_lost_rows(_edited(log, np.setdiff1d(np.arange(log.time.size), lost)))
    assert (found.code, found.severity) == ("missing", "warning")
    assert 2 <= found.evidence["places"] <= 3  # where the robot hardly moves nothing shows
    assert found.evidence["rows lost"] in (3, 4, 5, 6)


@pytest.mark.parametrize("speeds", [True, False])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("position_noise", [0.0, 1e-5, 1e-3])
def test_clean_logs_are_not_accused(seed: int, position_noise: float, speeds: bool) -> None:
    assert list(check_lost_rows(_log(seed, speeds=speeds, position_noise=position_noise))) == []


@pytest.mark.parametrize("speeds", [True, False])
def test_held_positions_and_spikes_and_coarse_encoders_are_no_lost_rows(speeds: bool) -> None:
    log = _log(1, speeds=speeds)
    held = log.q.copy()
    held[301:900:7] = held[300:899:7]  # a row repeats the one before, and the next one catches up
    spiked = log.q.copy()
    spiked[400, 1] += 0.2
    coarse = np.round(log.q / 2e-3) * 2e-3
    for q in (held, spiked, coarse):
        assert list(check_lost_rows(replace(log, q=q))) == []


def test_the_gate_reports_lost_rows() -> None:
    log = _log(2)
    rows = np.setdiff1d(np.arange(log.time.size), np.arange(300, 1000, 50))
    assert "missing" in {finding.code for finding in check_recording(_edited(log, rows)).findings}
