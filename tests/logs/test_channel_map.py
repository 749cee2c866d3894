"""The channel map: units, signs, gears, offsets, files, clocks; and what it says when something is missing."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import DataError, LogReadError
from dynid.logs.channel_map import ChannelMap, built_in_maps, read_channel_map
from dynid.logs.reading import read_recording
from dynid.logs.recording import Recording
from dynid.logs.units import parse_unit
from dynid.processing.process import process
from support.header_styles import write_columns

ROWS = 50
RNG = np.random.default_rng(1)
Q, TAU = RNG.normal(size=(ROWS, 3)), RNG.normal(size=(ROWS, 3))
T = np.arange(ROWS) * 0.002


def make(tmp_path: Path, **columns: Any) -> Path:
    path = tmp_path / "log.npz"
    np.savez(path, **{"t": T, "q": Q, "tau": TAU, **columns})
    return path


def base_map(**sections: Any) -> dict[str, Any]:
    usual = {
        "time": {"column": "t", "unit": "s"},
        "position": {"columns": "q", "unit": "rad"},
        "effort": {"columns": "tau", "unit": "N m"},
    }
    return {name: section for name, section in (usual | sections).items() if section is not None}


def read(tmp_path: Path, columns: dict[str, Any] | None = None, **sections: Any) -> Recording:
    """A log with some columns more, by the usual map with other sections."""
    return read_recording(make(tmp_path, **(columns or {})), channel_map=base_map(**sections))


@pytest.mark.parametrize(
    ("quantity", "unit", "factor"),
    [
        ("position", "deg", math.pi / 180),
        ("position", "mrad", 1e-3),
        ("position", "rev", 2 * math.pi),
        ("position", "mm", 1e-3),
        ("velocity", "rpm", math.pi / 30),
        ("velocity", "Grad/s", math.pi / 180),
        ("velocity", "mm/min", 1e-3 / 60),
        ("effort", "N mm", 1e-3),
        ("effort", "N·m", 1.0),
        ("effort", "kNm", 1e3),
        ("current", "mA", 1e-3),
        ("supply", "mV", 1e-3),
        *(("time", unit, factor) for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))),
    ],
)
def test_units_in_si(quantity: str, unit: str, factor: float) -> None:
    assert parse_unit(unit, quantity).factor == pytest.approx(factor, rel=1e-15)


def test_sign_gear_and_offset_in_this_order(tmp_path: Path) -> None:
    gear = np.array([[50.0, 0, 0], [0, 60, 0], [0, 12, -40]])
    position = {
        "columns": "q",
        "unit": "deg",
        "sign": [1, -1, 1],
        "gear": gear.tolist(),
        "offset": [0, -90, 5],
    }
    effort = {"columns": "tau", "unit": "N m", "gear": gear.T.tolist()}
    recording = read(tmp_path, position=position, effort=effort)
    wanted = np.linalg.solve(gear, (np.radians(Q) * [1, -1, 1]).T).T + np.radians([0, -90, 5])
    np.testing.assert_allclose(recording.q, wanted, rtol=1e-13)
    np.testing.assert_allclose(recording.effort, TAU @ gear, rtol=1e-13)


def test_currents_and_torque_constants(tmp_path: Path) -> None:
    current = {"columns": "i", "unit": "mA", "torque_constant": [0.1, 0.2, 0.3], "gear": [100, 50, 10]}
    recording = read(tmp_path, {"i": 1000 * TAU}, effort=None, current=current)
    np.testing.assert_allclose(recording.current, TAU, rtol=1e-14)
    np.testing.assert_allclose(recording.effort, TAU * [10, 10, 3], rtol=1e-14)
    with pytest.raises(DataError, match="both"):
        read(tmp_path, {"i": TAU}, current={"columns": "i", "unit": "A", "torque_constant": 0.1})


@pytest.mark.parametrize(
    ("gain", "value", "relative"),
    [
        (13.0, [13.0] * 3, [0.0] * 3),
        ("13 +- 0.65", [13.0] * 3, [0.05] * 3),
        (["13.0 +- 10 %", -8, "4 \u00b1 1"], [13.0, -8.0, 4.0], [0.1, 0.0, 0.25]),
        (["26/2 +/- 0", 8, 4], [13.0, 8.0, 4.0], [0.0] * 3),
    ],
)
def test_gains_of_currents_with_their_uncertainty(tmp_path: Path, gain: Any, value: Any, relative: Any) -> None:
    recording = read(tmp_path, {"i": TAU}, effort=None, current={"columns": "i", "unit": "A", "gain": gain})
    np.testing.assert_allclose(recording.effort, TAU * value, rtol=1e-14)
    np.testing.assert_allclose(recording.gain_std, relative, rtol=1e-14)
    np.testing.assert_allclose(process(recording, rest=None).gain_std, relative, rtol=1e-14)


def test_gains_of_torques_and_gains_that_mean_nothing(tmp_path: Path) -> None:
    effort = {"columns": "tau", "unit": "N m", "gain": "1 +- 0.1"}
    np.testing.assert_allclose(read(tmp_path, effort=effort).gain_std, [0.1, 0.1, 0.1])
    assert read(tmp_path).gain_std is None
    for wrong in ("1 +- x", "1 +- -1", "1 +- 2 +- 3", [], 0.0, ["1", "2"]):
        with pytest.raises(DataError, match=r"gain|values|number|deviation"):
            read(tmp_path, effort=effort | {"gain": wrong})
    with pytest.raises(DataError, match="gain"):
        read(tmp_path, position={"columns": "q", "unit": "deg", "gain": 2})


def test_per_cent_of_a_rated_torque(tmp_path: Path) -> None:
    effort = {"columns": "tau", "unit": "%", "rated": [200, 100, 50]}
    recording = read(tmp_path, effort=effort)
    np.testing.assert_allclose(recording.effort, TAU * [2, 1, 0.5], rtol=1e-14)
    with pytest.raises(DataError, match="per cent"):
        read(tmp_path, effort={"columns": "tau", "unit": "%"})


def test_transpose_width_and_counted_columns(tmp_path: Path) -> None:
    path = make(tmp_path, q_wide=Q.T, q_long=Q.reshape(-1), q_1=Q[:, 0], q_2=Q[:, 1], q_3=Q[:, 2])
    for position in (
        {"columns": "q_wide", "transpose": True},
        {"columns": "q_long", "width": 3},
        {"columns": "q_{1..3}"},
        {"columns": ["q_1", "q_2", "q_3"]},
        {"columns": "q[{0..2}]"},
    ):
        recording = read_recording(path, channel_map=base_map(position={**position, "unit": "rad"}))
        np.testing.assert_array_equal(recording.q, Q)


def test_channels_with_clocks_of_their_own(tmp_path: Path) -> None:
    slow = np.arange(10) * 0.01
    wrench = RNG.normal(size=(10, 6))
    section = {"columns": "w", "unit": ["N"] * 3 + ["N mm"] * 3, "time": "tw"}
    recording = read(tmp_path, {"tw": slow, "w": wrench}, wrench=section)
    np.testing.assert_array_equal(recording.wrench_time, slow)
    np.testing.assert_allclose(recording.wrench, wrench * [1, 1, 1, 1e-3, 1e-3, 1e-3])
    assert recording.effort_time is None


def test_no_time_column(tmp_path: Path) -> None:
    recording = read(tmp_path, time={"sample_time": 2, "unit": "ms"})
    np.testing.assert_allclose(recording.time, T, rtol=1e-14)
    assert not recording.isolated


WRONG = r"""
position = {columns = "q"} -> unit of position is not declared -> unit = "rad"
effort = {columns = "tau"} -> unit of effort is not declared -> unit = "N m"
time = {column = "t"} -> unit of time is not declared -> unit = "s"
time = {} -> no time column -> sample_time
position = {columns = "p", unit = "rad"} -> no column 'p' -> q
position = {columns = "q", unit = "furlong"} -> no unit of position -> deg
position = {columns = "q", unit = "N m"} -> no unit of position -> rad
position = {columns = "q", unit = "rad", sgin = 1} -> unknown field `sgin` -> sign
positions = {} -> unknown field `positions` -> position
position = {unit = "rad"} -> missing required field `columns` -> columns
position = {columns = "q", unit = "rad", sign = [1, 2, 1]} -> should be \+1 or -1 ->
position = {columns = "q", unit = "rad", sign = [1, 1]} -> 2 values for 3 joints ->
position = {columns = "q", unit = "rad", gear = [1, 0, 1]} -> singular ->
position = {columns = "q", unit = "rad", gear = [[1, 2], [3, 4]]} -> gear matrix ->
position = {columns = "q", unit = "rad", gear = [[1, 2], [3]]} -> equal length ->
position = {columns = "q", unit = "rad", offset = "a/b"} -> fraction ->
position = {columns = "q", unit = "rad", transpose = true} -> rows -> transpose
position = {columns = "q", unit = "rad", width = 3} -> width ->
wrench = {columns = "q", unit = "N"} -> three forces -> six
effort = {columns = "tau", unit = "N m", torque_constant = 1} -> only currents ->
files = {a = "../secret"} -> files\[ -> without folders
joints = 3 -> \[joints\] -> list of texts
profile = "none" -> no profile 'none' -> libfranka
"""
"""Key of a map -> what the refusal names -> what its remedy names."""


@pytest.mark.parametrize("case", WRONG.strip().splitlines())
def test_wrong_maps_say_what_to_do(case: str, tmp_path: Path) -> None:
    text, match, remedy = (part.strip() for part in case.split("->"))
    with pytest.raises(DataError, match=match) as caught:
        read(tmp_path, **tomllib.loads(text))
    assert remedy in (caught.value.remedy or "")


def test_a_map_changes_single_keys_of_its_profile(tmp_path: Path) -> None:
    path = tmp_path / "ur.csv"
    names = ["timestamp", *(f"actual_{part}_{j}" for part in ("q", "qd", "current") for j in range(6))]
    values = RNG.normal(size=(20, 19))
    write_columns(path, names, [values], " ")
    changes = {"profile": "ur_rtde", "position": {"unit": "deg"}, "current": {"torque_constant": 10}}
    assert read_recording(path, channel_map="ur_rtde").effort is None
    recording = read_recording(path, channel_map=changes)
    np.testing.assert_allclose(recording.q, np.radians(values[:, 1:7]), rtol=1e-14)
    np.testing.assert_allclose(recording.effort, 10 * values[:, 13:], rtol=1e-14)
    with pytest.raises(DataError, match="no column 'joint_temperatures_0'"):  # optional in the profile alone
        read_recording(path, channel_map={**changes, "temperature": {"unit": "K"}})
    without_column = {"profile": "ur_rtde", "time": {"sample_time": 2, "unit": "ms"}}
    np.testing.assert_allclose(np.diff(read_recording(path, channel_map=without_column).time), 0.002)


def test_libfranka_profile(tmp_path: Path) -> None:
    parts = ("state.q", "state.q_d", "state.dq", "state.dq_d", "state.tau_J", "state.tau_ext_hat_filtered")
    names = ["time", "success_rate", *(f"{part}[{j}]" for part in parts for j in range(7))]
    values = RNG.normal(size=(30, len(names)))
    values[:, 0] = np.arange(30)
    path = tmp_path / "log.csv"
    write_columns(path, names, [values], ", ")
    recording = read_recording(path, channel_map="libfranka")
    np.testing.assert_allclose(recording.time, np.arange(30) * 1e-3, rtol=1e-14)
    np.testing.assert_array_equal(recording.q, values[:, 2:9])
    np.testing.assert_array_equal(recording.effort, values[:, 30:37])


def test_several_files(tmp_path: Path) -> None:
    write_columns(tmp_path / "pos.csv", list("abc"), [Q])
    write_columns(tmp_path / "tau.csv", list("abc"), [TAU])
    sections = {
        "files": {"p": "pos.csv", "e": "tau*"},
        "time": {"sample_time": 2, "unit": "ms"},
        "position": {"file": "p", "columns": ["a", "b", "c"], "unit": "rad"},
        "effort": {"file": "e", "columns": ["a", "b", "c"], "unit": "N m"},
    }
    for paths in (tmp_path, [tmp_path / "tau.csv", tmp_path / "pos.csv"]):
        recording = read_recording(paths, channel_map=sections)
        np.testing.assert_array_equal(recording.q, Q)
        np.testing.assert_array_equal(recording.effort, TAU)
    with pytest.raises(LogReadError, match="match 'tau"):
        read_recording(tmp_path / "pos.csv", channel_map=sections)
    without: dict[str, Any] = {**sections, "position": {"columns": ["a", "b", "c"], "unit": "rad"}}
    with pytest.raises(DataError, match="several files"):
        read_recording(tmp_path, channel_map=without)
    write_columns(tmp_path / "tau.csv", list("uvw"), [TAU])
    without["position"]["columns"] = ["a", "b", "cc"]  # no file fits: each says what it lacks
    with pytest.raises(DataError, match=r"p: the log has no column 'cc'; e: the log has no column 'a'"):
        read_recording(tmp_path, channel_map=without)


def test_map_files(tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_text('[time]\ncolumn = "t"\nunit = "s"\n[position]\ncolumns = "q"\nunit = "deg"\n')
    np.testing.assert_allclose(read_recording(make(tmp_path), channel_map=path).q, np.radians(Q))
    path.write_text("[time\n")
    with pytest.raises(DataError, match="TOML"):
        read_channel_map(path)
    path.write_text("[position]\ncolumns = 3\n")
    with pytest.raises(DataError, match=r"map\.toml: \[position\] columns"):
        read_channel_map(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_channel_map(tmp_path / "none.toml")
    already = ChannelMap()
    assert read_channel_map(already) is already


def test_profiles_and_project_maps_load() -> None:
    maps = built_in_maps()
    assert len(maps) == 14
    assert set(maps) >= {"ur_rtde", "libfranka", "one_number_per_line", "joint_state"}
    for name, path in maps.items():
        assert read_channel_map(path).name == name
        assert read_channel_map(name).signals


@pytest.mark.parametrize(
    "header",
    ["t [ms];q1 [deg];q2 [deg]", "t;q1;q2\nms;deg;deg", "t;q1;q2\n[ms];[deg];[deg]", "# t (ms);q1 (deg);q2 (deg)"],
)
def test_units_that_the_log_itself_declares(header: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"{header}\n0;90;0\n2;0;180\n")
    first = header.split("\n")[0].removeprefix("# ").split(";")
    sections: dict[str, Any] = {"time": {"column": first[0]}, "position": {"columns": first[1:]}}
    recording = read_recording(path, channel_map=sections)
    np.testing.assert_allclose(recording.q, np.radians([[90, 0], [0, 180]]))
    np.testing.assert_allclose(recording.time, [0, 2e-3])
    sections["position"]["unit"] = "rad"
    recording = read_recording(path, channel_map=sections)
    np.testing.assert_array_equal(recording.q, [[90, 0], [0, 180]])
    assert any("overrides deg" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("q_{0..1}_{0..2}", "two ranges"),
        ("q_{2..0}", "counts down"),
        (["a_{joint}", "b_{joint}"], "finds the joints x, z, but the pattern before it x, y"),
    ],
)
def test_patterns_without_a_clear_meaning_are_refused_with_their_place(
    columns: Any, reason: str, tmp_path: Path
) -> None:
    path = make(tmp_path, **dict.fromkeys(("q_0_0", "a_x", "a_y", "b_x", "b_z"), T))
    with pytest.raises(DataError, match=reason) as caught:
        read_recording(path, channel_map=base_map(position={"columns": columns, "unit": "rad"}))
    assert (caught.value.place or "").startswith("[position] columns")
