"""Logs that the reader takes piece by piece are treated as logs in memory: delay, refusals, borders, progress."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import DataError, IdentifiabilityError
from dynid.identification import log_reader
from dynid.identification.log_reader import LogReader
from dynid.identification.recipe import Recipe
from dynid.logs.reading import read_stream
from dynid.logs.recording import Recording
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous

ROBOT = zoo.puma560().with_terms(Viscous(1.0), Coulomb(2.0))
MAP = {
    "time": {"column": "t", "unit": "s"},
    "position": {"columns": "q", "unit": "rad"},
    "effort": {"columns": "tau", "unit": "N m"},
}


def recording(duration_s: float = 20.0, rate_hz: float = 250.0) -> Recording:
    path = sum_of_sines(6, period_s=5.0, harmonics=5, amplitude=0.6, seed=3)
    noise = Noise(position=1e-5, effort=0.1)
    return simulate_experiment(ROBOT, path, rate_hz=rate_hz, duration_s=duration_s, noise=noise, delay_s=0.013, seed=1)


def saved(log: Recording, path: Path) -> Path:
    np.savez(path, t=log.time, q=log.q, tau=log.effort)
    return path


def reader(**settings: object) -> LogReader:
    return LogReader(robot=ROBOT, recipe=Recipe(gate=False, **settings), channel_map=MAP)  # type: ignore[arg-type]


def test_an_unknown_delay_is_estimated_with_the_robot() -> None:
    log, auto = recording(), reader(delay_s="auto")
    whole, streamed = auto.experiments([log])[0], list(auto.stream(log))
    assert "moved back" in whole.processing_steps[0]
    assert streamed[0].processing_steps[0] == whole.processing_steps[0]
    np.testing.assert_allclose(np.concatenate([run.effort for run in streamed]), whole.effort, atol=1e-9)


def test_logs_without_torques_or_motion_are_refused() -> None:
    log, plain = recording(10.0), reader()
    rest = np.tile(log.q[0], (len(log.q), 1)) + 1e-6 * np.random.default_rng(0).normal(size=log.q.shape)
    torqueless, resting = Recording(time=log.time, q=log.q), Recording(time=log.time, q=rest, effort=log.effort)
    for read in (plain.experiments, lambda logs: list(plain.stream(logs[0]))):
        with pytest.raises(DataError, match="no joint torques are mapped"):
            read([torqueless])
        with pytest.raises(IdentifiabilityError, match="no sample can be used"):
            read([resting])


def test_borders_leave_no_trace_with_a_low_cutoff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 0.5 Hz a filter remembers 16 s."""
    path, slow = saved(recording(240.0, 50.0), tmp_path / "log.npz"), reader(cutoff_hz=0.5)
    whole = slow.experiments([path])[0]
    monkeypatch.setattr(log_reader, "read_stream", partial(read_stream, rows=1000))
    parts = list(slow.stream(path))
    assert len(parts) > 2
    time, ddq = (np.concatenate([getattr(part, name) for part in parts]) for name in ("time", "ddq"))
    inner = (whole.time > 20.0) & (whole.time < 220.0)
    expected = np.stack([np.interp(whole.time[inner], time, column) for column in ddq.T], axis=1)
    np.testing.assert_allclose(expected, whole.ddq[inner], atol=1e-6 * np.abs(whole.ddq).max())
