"""Logs without torque: commands beside measured positions, from JSON, lists in cells and PyTorch archives."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from dynid import read_recording
from dynid.errors import DataError, LogReadError
from dynid.logs import read_lerobot
from dynid.logs.inspect import inspect_log
from dynid.logs.readers import read_table
from dynid.logs.recording import Commands, Recording
from dynid.robot.zoo import gautier_khalil_3r
from support.servo_logs import DATASETS, write_lerobot

SERVO_MAP = {
    "time": {"column": "timestamp", "unit": "s"},
    "position": {"columns": "position", "unit": "rad"},
    "reference": {"columns": "goal_position", "unit": "deg"},
    "enabled": {"columns": "torque_enable"},
    "kp": {"columns": "kp"},
    "supply": {"columns": "volts", "unit": "mV"},
}


def servo_log(path: Path, rows: int = 20) -> Path:
    entries = [
        {"position": 0.1 * k, "goal_position": 10.0 * k, "timestamp": 0.01 * k, "torque_enable": k < 5, "volts": 7400.0}
        for k in range(rows)
    ]
    path.write_text(json.dumps({"kp": 100, "mass": 0.5, "motor": "xl", "entries": entries}))
    return path


def test_commands_of_a_json_log_in_si_units(tmp_path: Path) -> None:
    recording = read_recording(servo_log(tmp_path / "run.json"), channel_map=SERVO_MAP)
    told = recording.commands
    assert recording.effort is None
    np.testing.assert_allclose(told.position[:, 0], np.radians(10.0 * np.arange(20)))
    assert told.enabled[:, 0].tolist() == [True] * 5 + [False] * 15
    assert set(told.kp.ravel().tolist()) == {100.0}
    np.testing.assert_allclose(told.supply, 7.4)
    two = {**SERVO_MAP, "supply": {"columns": ["volts", "timestamp"], "unit": "V"}}
    with pytest.raises(DataError, match="one voltage for all drives"):
        read_recording(tmp_path / "run.json", channel_map=two)


def test_commands_with_a_clock_of_their_own_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "control.csv").write_text("stamp,q1,q2\n0,1,2\n5000,3,4\n")
    (tmp_path / "state.csv").write_text("stamp,q1,q2,on\n1000,1.1,2.1,0\n2000,1.2,2.2,1\n6000,1.3,2.3,1\n")
    channel_map = {
        "files": {"control": "control.csv", "state": "state.csv"},
        "time": {"column": "stamp", "unit": "us"},
        "position": {"file": "state", "columns": "q{1..2}", "unit": "rad"},
        "reference": {"file": "control", "columns": "q{1..2}", "unit": "rad"},
        "enabled": {"file": "state", "columns": "on"},
    }
    recording = read_recording(tmp_path, channel_map=channel_map)
    np.testing.assert_allclose(recording.time, [1e-3, 2e-3, 6e-3])
    np.testing.assert_allclose(recording.commands.time, [0.0, 5e-3])
    np.testing.assert_array_equal(recording.commands.position, [[1, 2], [3, 4]])
    # the flag of the state holds until the next one: off before the first, on from 2 ms on
    assert recording.commands.enabled.tolist() == [[False, False], [True, True]]


def test_a_command_of_another_number_of_joints_is_refused() -> None:
    time = np.arange(5) / 100
    with pytest.raises(DataError, match="2 commanded positions for 3 columns of q"):
        Recording(time=time, q=np.zeros((5, 3)), commands=Commands(time=time, position=np.zeros((5, 2))))


def test_inspect_proposes_a_map_that_reads_the_commands(tmp_path: Path) -> None:
    path = servo_log(tmp_path / "run.json")
    told = read_recording(path, channel_map=tomllib.loads(inspect_log(path).toml)).commands
    assert all(part is not None for part in (told.enabled, told.kp, told.supply))


@pytest.mark.parametrize(
    "text",
    [
        '{"entries": [{"a": 1}, {"a": "x"}]}',
        '{"a": {"b": 3}}',
        "[[1, 2], [3]]",
        "{",
        '{"e": [{"a": [1, 2]}, {"a": [1]}]}',
    ],
)
def test_json_without_series_of_numbers_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(text)
    with pytest.raises(LogReadError):
        read_table(tmp_path / "log.json")


def test_json_keeps_missing_numbers_as_nan_and_lists_as_matrices(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('[{"q": [1, 2], "s": {"v": 3}}, {"q": null, "s": {"v": null}}]')
    table = read_table(tmp_path / "log.json")
    np.testing.assert_array_equal(table.columns["q"], [[1, 2], [np.nan, np.nan]])
    np.testing.assert_array_equal(table.columns["s.v"], [3, np.nan])


@pytest.mark.skipif(not DATASETS.is_dir(), reason=f"the real data sets are not at {DATASETS}")
@pytest.mark.parametrize(
    ("path", "name", "shape", "rate_hz"),
    [
        ("xl330/kp100_sin_sin.json", "xl330", (1124, 1), 187.0),
        ("emps/DATA_EMPS.mat", "emps", (24841, 1), 1000.0),
    ],
)
def test_real_logs_of_servos(path: str, name: str, shape: tuple[int, int], rate_hz: float) -> None:
    recording = read_recording(DATASETS / path, channel_map=name)
    assert recording.q.shape == shape
    assert (shape[0] - 1) / recording.duration == pytest.approx(rate_hz, rel=0.01)
    assert recording.commands.position.shape == shape


def test_lerobot_actions_are_commands(tmp_path: Path) -> None:
    rows = 2 * np.arange(60.0).reshape(20, 3)
    columns = {"timestamp": np.tile(np.arange(10) / 50.0, 2), "episode_index": np.repeat([0, 1], 10),
               "observation.state": rows, "action": rows + 1.0}  # fmt: skip
    write_lerobot(tmp_path, ["joint1.pos", "joint2.pos", "joint3.pos"], 50, columns)
    runs = read_lerobot(tmp_path, unit="deg")
    assert len(runs) == 2
    np.testing.assert_allclose(runs[1].commands.position, np.radians(rows[10:] + 1.0))
    np.testing.assert_allclose(runs[1].q, np.radians(rows[10:]))
    write_lerobot(tmp_path, ["joint1.pos", "gripper.pos", "joint3.pos"], 50, columns)  # a percentage, no angle
    arm = read_lerobot(tmp_path, unit="deg")[0]
    np.testing.assert_allclose(arm.q, np.radians(rows[:10, [0, 2]]))
    assert (arm.joint_names, [finding.code for finding in arm.findings]) == (("joint1", "joint3"), ["unit"])
    with pytest.raises(DataError, match=r"percentage .* Hold the robot's gripper"):
        read_lerobot(tmp_path, gautier_khalil_3r(), unit="deg")
    proposal = inspect_log(tmp_path)
    assert 'columns = ["observation.state[0]", "observation.state[2]"]' in proposal.toml
    assert any("percentage" in note for note in proposal.notes)
    info = json.loads((tmp_path / "meta" / "info.json").read_text())
    info["features"]["action"] = {"dtype": "float32", "shape": [4], "names": None}
    (tmp_path / "meta" / "info.json").write_text(json.dumps(info))
    assert read_lerobot(tmp_path, unit="deg")[0].commands is None
