"""Values of a channel map that cannot be meant are refused, each with its place and a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import DataError
from dynid.logs.reading import read_recording
from support.header_styles import write_columns

COLUMNS = {"position": "q{1..6}", "velocity": "dq{1..6}", "effort": "tau{1..6}"}
UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N m"}
MAP: dict[str, Any] = {
    "time": {"column": "t", "unit": "s"},
    **{key: {"columns": COLUMNS[key], "unit": UNITS[key]} for key in COLUMNS},
}
ALMOST = np.eye(6) + 1e-15 * np.ones((6, 6))
ALMOST[1] = ALMOST[0]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "run.csv"
    names = ["t", *(f"{x}{j}" for x in ("q", "dq", "tau") for j in range(1, 7))]
    values = np.column_stack([np.arange(50) / 100.0, np.random.default_rng(0).normal(size=(50, 18))])
    return write_columns(path, names, [values])


def _changed(section: str, **values: object) -> dict[str, Any]:
    return {**MAP, section: {**MAP.get(section, {}), **values}}


BAD = {
    "negative sample time": {**MAP, "time": {"sample_time": -1, "unit": "ms"}},
    "no sample time": {**MAP, "time": {"sample_time": 0, "unit": "ms"}},
    "sample time beside a column": _changed("time", sample_time=1),
    "two columns of time": _changed("time", column="q{1..2}"),
    "effort through no gear": _changed("effort", gear=0),
    "almost singular gear": _changed("position", gear=ALMOST.tolist()),
    "a column twice": _changed("position", columns=["q1", "q1", "q3", "q4", "q5", "q6"]),
    "no columns": _changed("position", columns=[]),
    "rated newton metres": _changed("effort", rated=5.0),
    "negative rated torque": _changed("effort", unit="%", rated=-1.0),
    "gear of a current alone": {**MAP, "current": {"columns": "tau{1..6}", "unit": "A", "gear": 100}},
    "names of two joints": {**MAP, "joints": ["a", "b"]},
}


@pytest.mark.parametrize("case", BAD)
def test_it_is_refused_with_its_place_and_a_remedy(case, log):
    with pytest.raises(DataError) as caught:
        read_recording(log, channel_map=BAD[case])
    assert caught.value.remedy
    assert "[" in str(caught.value) or "joints" in str(caught.value)


def test_units_of_torque_and_force_follow_the_joint(log):
    stanford = dynid.robots.stanford()
    kinds = [joint.kind for joint in stanford.moving_joints]
    slides = {"position": "m", "velocity": "m/s", "effort": "N"}
    right = dict(MAP)
    for key, unit in slides.items():
        right[key] = MAP[key] | {"unit": [unit if kind == "prismatic" else UNITS[key] for kind in kinds]}
    assert read_recording(log, stanford, channel_map=right).q.shape == (50, 6)
    with pytest.raises(DataError, match="is prismatic, but the unit of its column 'tau3' is one of torque"):
        read_recording(log, stanford, channel_map={**right, "effort": MAP["effort"]})
    geared = {**right, "effort": {**MAP["effort"], "gear": [1, 1, 500, 1, 1, 1]}}
    assert read_recording(log, stanford, channel_map=geared).effort is not None
    with pytest.raises(DataError, match="is revolute, but the unit of its column 'tau1' is one of force"):
        read_recording(log, dynid.robots.puma560(), channel_map=_changed("effort", unit="N"))


def test_missing_stamps_are_no_other_clock(log, tmp_path):
    rows = log.read_text().splitlines()
    for k in range(1, len(rows), 7):
        rows[k] = "nan," + rows[k].split(",", 1)[1]
    broken = tmp_path / "nan.csv"
    broken.write_text("\n".join(rows))
    recording = read_recording(broken, channel_map=MAP)
    assert recording.effort_time is None
    assert np.isnan(recording.time).sum() == 8


@pytest.mark.parametrize(("gear", "is_refused"), [(1e11, False), (1e29, True)])
def test_numbers_that_no_robot_reaches_are_refused_at_once(log: Path, gear: float, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(DataError, match=r"\[effort\].*'tau[1-6]' reaches .*, which no robot does"):
            read_recording(log, channel_map=_changed("effort", gear=[gear] * 6))
    else:
        assert read_recording(log, channel_map=_changed("effort", gear=[gear] * 6)).effort is not None
