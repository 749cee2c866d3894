"""Logs that a relay passed on: the robot's clock comes back from the motion, and only where there was a relay."""

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.processing.timing import on_source_clock, source_clock
from dynid.processing.uniform import Cleaning


def motion(time: np.ndarray) -> np.ndarray:
    """(N, 3) smooth positions [rad]."""
    return np.stack([np.sin(0.9 * time + k) + 0.3 * np.sin(2.3 * time + 2.0 * k) for k in range(3)], axis=1)


def relayed(source_hz: float, relay_hz: float, duration_s: float = 20.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stamps of the relay, positions it passed on, and when they were true."""
    stamps = np.arange(0.0, duration_s, 1.0 / relay_hz)
    true = np.floor(stamps * source_hz + 1e-9) / source_hz
    return stamps, motion(true), true


@pytest.mark.parametrize(("source_hz", "relay_hz"), [(29.4, 30.0), (96.0, 100.0), (480.0, 500.0)])
def test_source_clock_is_recovered(source_hz: float, relay_hz: float) -> None:
    stamps, q, true = relayed(source_hz, relay_hz)
    clock = source_clock(stamps, q)
    assert clock is not None
    assert clock.period_s == pytest.approx(1.0 / source_hz, rel=1e-3)
    assert not clock.fresh[1:][np.diff(true) == 0.0].any()
    assert clock.fresh[1:][np.diff(true) > 0.0].all()
    error = clock.time - true
    assert np.std(error) < 0.04 / source_hz, "a constant delay stays, nothing else"


def hampered(outages: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stamps, positions and true times of a reader that jitters, at times is slow, and at times gets no news.

    Args:
        outages: Number of outages, each of four samples of a source at 1 kHz.
        seed: Of the jitter.
    """
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0.0008, 0.0012, 8000)
    for start in (2000, 5000):
        steps[start : start + 40] = rng.uniform(0.0013, 0.0019, 40)  # most of these steps pass over a sample
    stamps = np.cumsum(steps)
    index = np.floor(stamps * 1000.0)
    for start in np.linspace(0.5, stamps[-1] - 0.5, outages):
        late = (stamps >= start) & (stamps < start + 0.004)
        index[late] = np.floor(start * 1000.0)
    return stamps, motion(index / 1000.0), index / 1000.0


@pytest.mark.parametrize("outages", [0, 12])
def test_slow_readers_and_outages_are_counted(outages: int) -> None:
    stamps, q, true = hampered(outages)
    clock = source_clock(stamps, q)
    assert clock is not None
    assert clock.period_s == pytest.approx(0.001, rel=1e-4)
    assert np.array_equal(clock.fresh[1:], np.diff(true) > 0.0)
    assert np.ptp(clock.time - true) < 0.0001, "no sample is miscounted"


def test_counts_that_contradict_the_stamps_are_not_used() -> None:
    stamps, q, _ = hampered(0)
    late = stamps + 0.01 * (stamps > 4.0)  # the motion goes on, the stamps leap: one of the two is wrong
    assert source_clock(late, q) is None


def test_long_repetitions_are_standstill() -> None:
    _, q, _ = relayed(96.0, 100.0)
    held = np.concatenate([q[:900], np.repeat(q[900:901], 400, axis=0), q[901:]])
    time = np.arange(len(held)) / 100.0
    clock = source_clock(time, held)
    assert clock is not None
    assert clock.fresh[905:1290].all(), "they are not dropped as repeated rows"
    assert np.ptp(clock.time - time) < 3.0 / 96.0


def test_accelerations_come_back() -> None:
    stamps, q, _ = relayed(29.4, 30.0)
    recording = dynid.Recording(time=stamps, q=q, effort=np.zeros_like(q))
    step = 1e-4
    worst = {}
    for name, cleaning in (("relay", Cleaning(relayed=False)), ("source", Cleaning())):
        run = dynid.process(recording, cutoff_hz=8.0, rest=None, cleaning=cleaning)
        truth = (motion(run.time + step) - 2.0 * motion(run.time) + motion(run.time - step)) / step**2
        worst[name] = float(np.abs(run.ddq - truth).max())
    assert worst["source"] < 0.15 < 2.0 < worst["relay"]


def test_repeated_rows_are_reported() -> None:
    stamps, q, _ = relayed(29.4, 30.0)
    log = dynid.Recording(time=stamps, q=q, effort=np.zeros_like(q))
    run = dynid.process(log, cutoff_hz=8.0)
    repeated = stamps.size - np.unique(q[:, 0]).size
    assert run.dropped["repeated row"] == 3 * repeated
    assert f"{repeated} of 600 rows repeat the one before: a relay's stamps, " in run.processing_steps[0]
    assert float(run.processing_steps[0].split()[-2]) == pytest.approx(29.4, rel=1e-3)
    for own in ({"effort_time": stamps}, {"wrench": np.ones((600, 6)), "wrench_time": stamps}, {"isolated": True}):
        assert on_source_clock(replace(log, **own))[1] == ""


@pytest.mark.parametrize("jitter", [0.0, 1e-4, 2e-3])
def test_honest_clocks_are_left_alone(jitter: float) -> None:
    rng = np.random.default_rng(5)
    stamps = np.arange(0.0, 20.0, 0.01) + rng.uniform(-jitter, jitter, 2000)
    assert source_clock(stamps, motion(stamps)) is None
    coarse = np.round(motion(stamps), 3)  # coarse encoders repeat values too, but not in step with a clock
    assert source_clock(stamps, coarse) is None
    assert source_clock(stamps, np.zeros((stamps.size, 3))) is None
