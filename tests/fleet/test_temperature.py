"""Temperature: from the log to the fleet; friction that falls as the joint warms is told from wear."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.fleet.fleet import Fleet, identify_fleet
from dynid.fleet.trends import excess_scatter, fit_trend
from dynid.logs.reading import read_recording, read_stream
from dynid.logs.recording import Recording, Temperatures
from dynid.processing.process import process
from dynid.report.sections.fleet_sections import fleet_page
from fleet.small_fleet import DAY_S, MAP, RECIPE, ROBOT, START_S, arm, friction_place, record
from support.header_styles import write_columns

PER_KELVIN, PER_MONTH, MONTHS = -0.01, 0.03, 8
WARM = 25.0 + 10.0 * np.sin(1.9 * np.arange(MONTHS)) + np.arange(MONTHS)  # seasons, and a little warmer every month


def log(number: int, month: int, *, wear: float) -> Recording:
    """A log of an arm: its viscous friction of joint 1 falls by 1 % per kelvin and rises by `wear` per month."""
    warm = 1.0 + PER_KELVIN * (WARM[month] - 25.0)
    robot = arm(number, {"FV1": warm * (1.0 + wear * month)})
    start_s = START_S + 31.0 * DAY_S * month
    made = record(robot, 100 * number + month, start_s=start_s, duration_s=8.0, effort=0.05)
    size = made.time.size
    table = np.column_stack([WARM[month] + np.linspace(-1.0, 1.0, size), np.full((size, 2), 20.0)])
    return replace(made, temperature=Temperatures(time=made.time, values=table))


@pytest.fixture(scope="module")
def found() -> Fleet:
    """Two arms; the second wears."""
    arms = {f"arm{k}": [log(k, month, wear=PER_MONTH if k == 1 else 0.0) for month in range(MONTHS)] for k in range(2)}
    return identify_fleet(ROBOT, arms, RECIPE)


def test_warmth_is_told_from_wear(found: Fleet) -> None:
    assert [(d.arm, d.what, d.kind) for one in found.arms for d in one.differences] == [("arm1", "FV1", "change")]
    place = found.own_names.index("FV1")
    trends = [one.history.trend(place, 0) for one in found.arms]
    scatter = np.sqrt(excess_scatter([trend for trend in trends if trend is not None]))
    for number, (trend, wear) in enumerate(zip(trends, (0.0, PER_MONTH), strict=True)):
        new = arm(number).parameter_vector[friction_place("FV1")]  # at 25 degC
        month, std = 31.0 * DAY_S, scatter * trend.std
        mean_month, mean_warm = (MONTHS - 1) / 2.0, 1.0 + PER_KELVIN * (WARM.mean() - 25.0)
        assert abs(trend.slope - wear * new * mean_warm / month) < 4.0 * std
        assert (
            abs(trend.per_kelvin - PER_KELVIN * new * (1.0 + wear * mean_month)) < 4.0 * scatter * trend.per_kelvin_std
        )
        assert trend.per_kelvin_std * scatter < 0.15 * abs(trend.per_kelvin)
    (effect,) = [e for e in found.warmth if e.name == "FV1"]
    assert effect.arms == 2
    assert "FV1 changes by -0.0" in found.summary()
    assert [e.name for e in found.warmth if e.is_sure] == ["FV1"]  # joints 2 and 3 keep one temperature


def test_the_page_and_the_file_show_it(found: Fleet) -> None:
    page = fleet_page(found).to_markdown()
    assert "Friction and temperature" in page
    assert "FV1 of arm1 over time at" in page
    content = found.to_json()
    assert content["temperature"][0]["name"] == "FV1"
    assert content["arms"]["arm0"]["windows"][0]["temperature_degC"][1] == 20.0


def test_time_and_temperature_that_rise_together_are_not_told_apart() -> None:
    times, std = np.arange(8.0), np.full(8, 0.1)
    noise = 0.1 * np.random.default_rng(0).standard_normal(8)
    both = fit_trend(times, 20.0 + 3.0 * times + 1e-3 * noise, 1.0 + times + noise, std)
    alone = fit_trend(times, np.full(8, 20.0), 1.0 + times + noise, std)
    assert both.std > 100.0 * alone.std
    assert np.isnan(alone.per_kelvin)
    assert fit_trend(times[:3], np.full(3, np.nan), times[:3], std[:3]) is None


def write_warm(path: Path, made: Recording, warm: np.ndarray) -> None:
    write_columns(path, ["t,q0,q1,q2,tau0,tau1,tau2,warm"], [made.time, made.q, made.effort, warm])


def test_a_channel_map_reads_temperatures(tmp_path: Path) -> None:
    unit, shown = "degF", 77.0
    made = log(0, 0, wear=0.0)
    path = tmp_path / "log.csv"
    write_warm(path, made, np.full(made.time.size, shown))
    one = {**MAP, "temperature": {"columns": "warm", "unit": unit}}
    recording = read_recording(path, ROBOT, channel_map=one)
    assert recording.mean_temperature == pytest.approx([25.0, 25.0, 25.0])
    assert process(recording, cutoff_hz=10.0).temperature == pytest.approx([25.0, 25.0, 25.0])
    pieces = list(read_stream(path, ROBOT, channel_map=one, rows=300))
    assert all(piece.mean_temperature == pytest.approx([25.0, 25.0, 25.0]) for piece in pieces)
    assert read_recording(path, ROBOT, channel_map=MAP).temperature is None
    missing = {**MAP, "temperature": {"columns": "heat", "unit": unit, "optional": True}}
    assert read_recording(path, ROBOT, channel_map=missing).temperature is None


def test_the_store_keeps_temperatures(tmp_path: Path) -> None:
    for month in range(2):
        made = log(0, month, wear=0.0)
        write_warm(tmp_path / f"a{month}.csv", made, made.temperature.values[:, 0])  # type: ignore[union-attr]
    warm = {**MAP, "temperature": {"columns": "warm", "unit": "degC"}}
    first, again = (
        identify_fleet(ROBOT, f"{tmp_path}/{{arm}}.csv", RECIPE, channel_map=warm, store=tmp_path / "s") for _ in "12"
    )
    assert again.read == 0
    for a, b in zip(first.arms, again.arms, strict=True):
        np.testing.assert_array_equal(a.history.windows[0].temperature, b.history.windows[0].temperature)
    assert first.arms[0].history.windows[0].temperature == pytest.approx(np.full(3, WARM[0]), abs=0.05)
