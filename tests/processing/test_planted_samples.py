"""Which samples are marked, and which noise is found: planted at known places and of known size."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from dynid.array_types import Floats
from dynid.logs.recording import Recording
from dynid.processing.cutoff import _floor, _signal, _spectrum, choose_common_cutoff, noise_through
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth, CentralDifferences, MeasuredVelocity
from dynid.processing.outliers import absurd_samples, longest_spike, saturated_samples, unwrap_angles
from dynid.processing.process import Processing, process
from dynid.processing.streaming import process_stream
from support.exact_runs import exact_run

RNG = np.random.default_rng(0)
TIME = np.arange(4000) / 200.0


def test_spikes_are_marked_where_they_were_planted() -> None:
    clean = np.sin(2.0 * TIME) + 1e-3 * RNG.normal(size=TIME.size)
    assert not absurd_samples(clean[:, None]).any()
    spiked, planted = clean.copy(), np.zeros(TIME.size, dtype=bool)
    for start, width, height in ((500, 1, 0.2), (900, 2, -0.3), (1500, 3, 0.5), (2000, 40, 60.0)):
        spiked[start : start + width] += height
        planted[start : start + width] = True
    spiked[3000:3004] += 40.0  # longer than a spike, and less than 20 ranges away
    spiked[3500:] += 0.5  # a jump that stays
    spiked[3200] += 0.02  # below 5 % of the range
    np.testing.assert_array_equal(absurd_samples(spiked[:, None])[:, 0], planted)
    spiked[[100, 200]] = np.nan
    np.testing.assert_array_equal(absurd_samples(spiked[:, None])[:, 0], planted)
    assert np.flatnonzero(absurd_samples(spiked[:, None], 1)).tolist() == [500, *range(2000, 2040)]
    clean[100:176], clean[1000:1076] = 1e5, 100.0  # more than 2 % together, so that the first ones hide the others
    assert np.flatnonzero(absurd_samples(clean[:, None])).tolist() == [*range(100, 176), *range(1000, 1076)]


def test_a_signal_at_rest_may_change_its_last_digits() -> None:
    rest = 2.0 + 1e-8 * RNG.integers(-1, 2, TIME.size)
    rest[[700, 800, 1000, 1001, 1002, 1003]] += [3e-7, 1.5e-7, 5e-6, 5e-6, 5e-6, 5e-6]
    rest[2000:2010] += 3e-6
    assert np.flatnonzero(absurd_samples(rest[:, None])).tolist() == [700, 1000, 1001, 1002, 1003]


def test_a_spike_is_at_most_twelve_milliseconds_and_three_samples() -> None:
    rates_hz = (50.0, 100.0, 200.0, 300.0, 1000.0)
    assert [longest_spike(np.arange(100) / rate_hz) for rate_hz in rates_hz] == [1, 1, 2, 3, 3]


def test_clipped_samples_are_those_at_the_limit_and_no_digit_below() -> None:
    effort = 10.0 * np.sin(2.0 * np.pi * TIME) + 0.1 * RNG.normal(size=TIME.size)
    assert not saturated_samples(effort[:, None]).any()
    clipped = np.clip(effort, -8.0, 8.0)
    at_limit = np.abs(effort) >= 8.0
    rows = np.flatnonzero(at_limit)
    clipped[rows[::7]] *= 1.0 - 1e-11  # the last digits, as unit conversions leave them
    long = np.zeros_like(at_limit)
    for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
        long[run] = len(run) >= 4
    np.testing.assert_array_equal(saturated_samples(clipped[:, None])[:, 0], long)
    for count in (39, 41):  # too few to judge, and enough
        assert saturated_samples(clipped[rows[0] - 12 : rows[0] - 12 + count, None]).any() == (count > 39)
    clipped[rows[::3]] *= 1.0 - 1e-7  # a sensor that resolves more than that is not clipped
    assert not saturated_samples(clipped[:, None]).any()
    signals = np.column_stack([np.round(effort / 4.0), np.zeros(TIME.size)])  # coarse, and dead
    assert not saturated_samples(signals).any()


def test_whole_turns_are_undone_and_counted() -> None:
    angle = np.column_stack([3.0 * TIME, 4.0 * np.sin(TIME), 0.1 * TIME])
    wrapped = (angle + np.pi) % (2.0 * np.pi) - np.pi
    found, jumps = unwrap_angles(wrapped)
    np.testing.assert_allclose(found, angle, atol=1e-9)
    turns = np.abs(np.diff(np.round((angle - wrapped) / (2.0 * np.pi)), axis=0)).sum(axis=0)
    np.testing.assert_array_equal(jumps, turns)
    wrapped[2000:, 2] += 2.0 * np.pi - 0.6  # no whole turn: the robot was moved
    np.testing.assert_array_equal(unwrap_angles(wrapped)[1], turns)


def test_noise_and_motion_have_their_power_in_the_spectrum() -> None:
    """By Parseval a sine of amplitude A has N A^2 / 4 over all bins; white noise has its variance in each, steps that
    add up have theirs over (2 sin(pi f / rate))^2."""
    white, steps = 1e-3 * np.random.default_rng(3).normal(size=(2, TIME.size))
    motion = 0.5 * np.sin(2.0 * np.pi * 1.5 * TIME)
    found = _spectrum(np.column_stack([motion + white, motion + np.cumsum(steps)]), 200.0)
    np.testing.assert_allclose(found.bins @ found.signal, TIME.size * 0.5**2 / 4.0, rtol=0.02)
    np.testing.assert_allclose(found.noise[:, 0], 1e-6, rtol=0.1)
    high = found.frequency_hz > 10.0
    density = 1e-6 / (2.0 * np.sin(np.pi * found.frequency_hz / 200.0)) ** 2
    assert found.bins[high] @ found.noise[high, 1] == pytest.approx(found.bins[high] @ density[high], rel=0.1)
    assert found.noise[0, 1] < density[found.frequency_hz > 1.0].max()
    assert not found.signal[high].any()


def test_the_floor_is_that_of_the_narrow_band_where_it_is_clearly_lower() -> None:
    """One bin in a hundred of the spectrum lies in each hundredth of the rate: 400 bins in the narrow band."""
    frequency = np.arange(1, 5001) / 10_000.0
    power = np.where(frequency[:, None] > 0.45, 1.0, [1.3, 1.6]) * np.log(2.0)  # six deviations of 400 bins: 30 %
    np.testing.assert_allclose(_floor(power, frequency), [1.3, 1.0])
    np.testing.assert_allclose(_floor(power[:10], frequency[:10]), power[9] / np.log(2.0))


def test_a_signal_hidden_in_single_bands_is_the_common_excess_of_a_third_of_an_octave() -> None:
    """Of 10 000 bins a band shows 16 %; three of them together show what is above their scatter, 4 %."""
    noise, bins = np.full((12, 1), 2.0), np.full(12, 1e4)
    thirds = [[5.0, 1.1, 1.1], [1.12, 1.15, 1.03], [1.01, 1.02, 0.97], [1.17, 0.9, 0.9]]
    wanted = [[4.0, 0.1, 0.1], [0.1, 0.1, 0.1], [0.0, 0.0, 0.0], [0.17, 0.0, 0.0]]
    frequency = 0.7 * 2.0 ** np.append(0.0, (np.arange(1, 12) + 0.1) / 9.0)
    found = _signal(frequency, bins, np.reshape(thirds, (12, 1)) * noise, noise)
    np.testing.assert_allclose(found, np.reshape(wanted, (12, 1)) * noise, atol=1e-9)


@pytest.mark.parametrize("adds_up", [False, True], ids=["white", "steps add up"])
def test_the_cutoff_is_the_best_for_the_accelerations(adds_up: bool) -> None:
    pulses = np.exp(-0.5 * ((TIME[:, None] - [4.0, 9.0, 15.0]) / [0.3, 0.2, 0.25]) ** 2)
    curved = pulses * (((TIME[:, None] - [4.0, 9.0, 15.0]) / [0.3, 0.2, 0.25]) ** 2 - 1.0) / np.square([0.3, 0.2, 0.25])
    noise = 1e-4 * np.random.default_rng(1).normal(size=TIME.size)
    measured = pulses.sum(axis=1) + (0.1 * np.cumsum(noise) if adds_up else noise)

    def error(cutoff_hz: float) -> float:
        smoothing = Butterworth(200.0, cutoff_hz)
        return float(np.std(CentralDifferences().motion(measured[:, None], None, smoothing).ddq[:, 0] - curved.sum(1)))

    chosen, reason, predicted = choose_common_cutoff(
        [([measured[:, None]], 200.0)], differentiation=CentralDifferences()
    )
    total, lost, passed = (float(share) for share in re.findall(r"(\S+) %", reason))
    assert (total, float(np.hypot(lost, passed))) == pytest.approx((100.0 * predicted,) * 2, rel=0.08)  # two digits
    assert error(chosen) < 1.15 * min(map(error, np.geomspace(2.0, 20.0, 40)))
    assert predicted == pytest.approx(error(chosen) / curved.sum(axis=1).std(), rel=0.5)


def test_settling_is_where_an_impulse_has_died_away() -> None:
    low_pass, impulse = Butterworth(1000.0, 10.0), np.zeros((4001, 1))
    impulse[2000] = 1.0
    response = np.abs(low_pass.apply(impulse)[:, 0])
    outside = int(1000.0 * low_pass.settling_s)
    assert response[2000 + outside :].sum() < 4e-3 * response.sum()
    assert response[2000 + outside // 2 :].sum() > 4e-3 * response.sum()


def test_pieces_of_which_one_lacks_a_channel_are_joined_without_it() -> None:
    q = np.column_stack([np.sin(TIME), np.cos(TIME)])
    log = Recording(time=TIME, q=q, effort=3.0 * q, wrench=np.ones((TIME.size, 6)))
    first, second = log.rows(slice(0, 300)), log.rows(slice(300, None))
    options = Processing(cutoff_hz=10.0, rest=None)
    (whole,) = process_stream([first, second], options, overlap_s=10.0)
    np.testing.assert_allclose(whole.effort, 3.0 * whole.q, atol=1e-3)
    assert whole.wrench is not None
    for parts in ([replace(first, wrench=None), second], [first, replace(second, wrench=None)]):
        (joined,) = process_stream(parts, options, overlap_s=10.0)
        assert joined.wrench is None
        np.testing.assert_array_equal(joined.effort, whole.effort)


def test_an_observer_sees_every_raw_and_every_processed_piece() -> None:
    raw: list[Recording] = []
    processed: list[Experiment] = []

    class Observer:
        def observe_raw(self, piece: Recording, period_s: float) -> None:
            assert period_s == pytest.approx(1.0 / 200.0)
            raw.append(piece)

        def observe_processed(self, experiment: Experiment) -> None:
            processed.append(experiment)

    q = np.sin(TIME)[:, None]
    log = Recording(time=TIME, q=q, effort=q)
    pieces = [log.rows(slice(*rows)) for rows in ((0, 100), (100, 800), (800, 1600), (1600, 2400), (3200, 4000))]
    given = list(process_stream(pieces, Processing(cutoff_hz=10.0, rest=None), overlap_s=0.3, check=Observer()))
    assert raw == pieces
    assert processed == given


def test_noise_behind_a_filter_has_the_power_that_the_filter_passes() -> None:
    """White noise of standard deviation s behind a gain G(f) keeps s^2 times the mean of G^2 up to rate / 2."""
    noise = np.random.default_rng(5).normal(size=(TIME.size, 2)) * [0.1, 0.02]
    effort = 5.0 * np.sin(4.0 * np.pi * TIME)[:, None] + noise
    effort[[0, 2900], 0] = np.nan  # noise is that of the longest stretch
    effort[2901:] *= 100.0
    run = exact_run(TIME, (noise, noise, noise), effort=effort)

    def gain(frequency_hz: Floats) -> Floats:
        return np.sqrt(np.clip(1.0 - frequency_hz / 20.0, 0.0, None))  # the mean of its square is 10 / 100

    for cutoff_hz in (5.0, 20.0, None):
        np.testing.assert_allclose(noise_through(run, cutoff_hz, gain), np.sqrt(0.1) * np.array([0.1, 0.02]), rtol=0.2)
    assert not noise_through(run.rows(slice(1, 64)), 5.0, gain).any()
    assert noise_through(run.rows(slice(1, 65)), 5.0, gain).all()


def test_parts_of_an_experiment_are_spread_over_it() -> None:
    run = replace(exact_run(TIME, (TIME[:, None],) * 3), segment=np.arange(TIME.size) // 2100)
    parts = run.parts(600, 3)
    assert np.split(np.round(200.0 * parts.time), 3)[1].tolist() == list(range(1900, 2100))
    assert parts.time[[0, -1]].tolist() == TIME[[0, -1]].tolist()
    assert np.bincount(parts.segment).tolist() == [200, 200, 200]
    assert np.bincount(run.parts(900, 3).segment).tolist() == [300, 250, 50, 300]
    assert run.parts(4000, 3) is run
    start = np.where(run.segment == 0, TIME[0], TIME[2100])
    np.testing.assert_allclose(run.by_segment(lambda part: part - part[0], run.q)[:, 0], TIME - start)


@pytest.mark.parametrize("differentiation", [CentralDifferences(), MeasuredVelocity()], ids=str)
def test_late_torques_are_moved_back_to_the_motion(differentiation: CentralDifferences) -> None:
    wave, slope = np.sin(2.0 * TIME), 2.0 * np.cos(2.0 * TIME)
    log = Recording(time=TIME, q=wave[:, None], dq=slope[:, None], effort=np.cos(3.0 * (TIME - 0.0123))[:, None])
    found = process(log, cutoff_hz=20.0, effort_delay_s=0.0123, rest=None, differentiation=differentiation)
    for name, truth in (("dq", slope), ("ddq", -4.0 * wave), ("effort", np.cos(3.0 * TIME))):
        np.testing.assert_allclose(getattr(found, name)[:, 0], np.interp(found.time, TIME, truth), atol=4e-3)
