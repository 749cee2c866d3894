"""Planted causes are told apart: a load in some logs only, a wrong gain, other links, the same log twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.fleet.differences import Difference, is_clear_of_zero, percent
from dynid.fleet.fleet import Fleet, identify_fleet
from dynid.logs.recording import Recording
from dynid.robot.model import Robot
from fleet.small_fleet import DAY_S, RECIPE, ROBOT, START_S, arm, record

ARMS, DAYS, ODD = 6, 4, 3


def of_day(robot: Robot, day: int, number: int = ODD) -> Recording:
    log = record(robot, 10 * number + day, start_s=START_S + DAY_S * day, duration_s=5.0)
    return replace(log, source=f"day{day}")


@pytest.fixture(scope="module")
def clean() -> dict[str, list[Recording]]:
    """Six arms that differ in friction by a few per cent, each with four logs."""
    return {f"arm{k}": [of_day(arm(k), day, k) for day in range(DAYS)] for k in range(ARMS)}


def identify(logs: dict[str, list[Recording]]) -> Fleet:
    return identify_fleet(ROBOT, logs, RECIPE, window_days=1.0)


def with_odd(clean: dict[str, list[Recording]], logs: list[Recording]) -> Fleet:
    return identify(clean | {f"arm{ODD}": logs})


def told(fleet: Fleet) -> list[tuple[str, str, str]]:
    return [(d.arm, d.kind, d.what) for one in fleet.arms for d in one.differences]


def test_a_clean_fleet_stays_clean(clean: dict[str, list[Recording]]) -> None:
    assert told(identify(clean)) == []


@pytest.mark.parametrize("loaded", [(2, 3), (0,)])
def test_a_load_in_some_logs_is_told_with_them(clean: dict[str, list[Recording]], loaded: tuple[int, ...]) -> None:
    logs = [of_day(arm(ODD, load_kg=2.0 if day in loaded else 0.0), day) for day in range(DAYS)]
    found = with_odd(clean, logs)
    assert told(found) == [(f"arm{ODD}", "load", "link3")]  # and no change of friction or offsets
    sentence = found.arms[ODD].differences[0].sentence
    names = f"day{loaded[0]}" + (f" to day{loaded[-1]}" if len(loaded) > 1 else "")
    assert f" kg (95 %) in {len(loaded)} of 4 logs ({names}), beyond chance (p < 1e-9)" in sentence
    mass, half = sentence.split("held ")[1].split(" kg (95 %)")[0].split(" ± ")
    assert abs(float(mass) - 2.0) < 2.0 * float(half) < 1.0
    np.testing.assert_allclose(found.arms[ODD].own.values, identify(clean).arms[ODD].own.values, atol=0.15)


def test_two_loads_are_no_single_mass(clean: dict[str, list[Recording]]) -> None:
    loads = [0.0, 2.0, 6.0, 0.0]
    logs = [of_day(arm(ODD, load_kg=kg), day) for day, kg in enumerate(loads)]
    told = sorted(difference.told for difference in with_odd(clean, logs).arms[ODD].differences)
    assert [one.split(" in ")[1] for one in told] == ["1 of 4 logs (day1)", "1 of 4 logs (day2)"]
    np.testing.assert_allclose([float(one.split("held ")[1].split(" ")[0]) for one in told], [2.0, 6.0], rtol=0.05)


def test_a_wrong_gain_is_no_load(clean: dict[str, list[Recording]]) -> None:
    joint, scale = 1, np.array([1.0, 1.3, 1.0])
    found = with_odd(clean, [replace(log, effort=log.effort * scale) for log in clean[f"arm{ODD}"]])
    assert told(found) == [(f"arm{ODD}", "gain", ROBOT.joint_names[joint])]  # friction is that of the others
    value = found.arms[ODD].differences[0].sentence.split("measured ")[1].split(" times as large (95 %)")[0]
    gain, half = map(float, value.split(" ± "))
    assert abs(gain - 1.3) < 2.0 * half < 0.3


def test_other_links_are_no_load(clean: dict[str, list[Recording]]) -> None:
    theta = arm(ODD).parameter_vector.copy()
    theta[16:19] *= 1.4  # centre of mass of the second
    other = ROBOT.with_parameters(theta)
    found = with_odd(clean, [of_day(other, day) for day in range(DAYS)])
    assert told(found) == [(f"arm{ODD}", "links", "links")]
    assert "its links differ from those of the fleet" in found.summary()


def test_the_same_log_under_two_names_counts_once(clean: dict[str, list[Recording]]) -> None:
    copy = replace(clean["arm0"][0], source="copy")
    found = identify(clean | {"arm1": [*clean["arm1"], copy]})
    assert [(log.arm, log.name) for log in found.failed] == [("arm1", "copy")]
    assert "it is the same log as day0 (arm0)" in found.summary()
    assert found.arms[1].logs == DAYS
    np.testing.assert_array_equal(found.pool.shared, identify(clean).pool.shared)


def test_words_of_sizes_and_chances() -> None:
    assert [percent(0.3, 1.0), percent(-2.0, 1.0), percent(1.0, 0.0)] == [", +30 %", "", ""]
    one = Difference(arm="a", what="FC1", kind="own", chance=3e-5, told="FC1 is high")
    assert one.sentence == "FC1 is high, beyond chance (p = 3e-5)"
    assert is_clear_of_zero(np.array([1.9, 2.0, 2.1]))
    assert not is_clear_of_zero(np.array([-0.1, 0.05, 0.1]))


def test_what_a_load_mimics_and_two_causes_at_once(clean: dict[str, list[Recording]]) -> None:
    """The limits that docs/fleets.md states."""
    for parameters, factor in ((slice(0, 6), 1.5), (slice(10, 20), 1.4)):
        theta = arm(ODD).parameter_vector.copy()
        theta[parameters] *= factor
        other = ROBOT.with_parameters(theta)
        assert told(with_odd(clean, [of_day(other, 0)])) == [(f"arm{ODD}", "load", "link3")]
    loaded = of_day(arm(ODD, load_kg=2.0), 0)
    both = replace(loaded, effort=loaded.effort * [1.0, 1.3, 1.0])
    assert [d.kind for d in with_odd(clean, [both]).arms[ODD].differences][:1] == ["load"]
