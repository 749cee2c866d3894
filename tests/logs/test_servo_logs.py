"""Logs without torque: commands beside measured positions, from JSON, lists in cells and PyTorch archives."""

from __future__ import annotations

import json
import os
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaigns.fuzz_readers import mutate
from campaigns.log_writers import low_cmd, low_state, planted, torch_pickle, write_unitree
from dynid import Recipe, Robot, identify, read_recording
from dynid.errors import DataError, LogReadError
from dynid.gate.quality import check_recording
from dynid.logs import Commands, Recording, inspect_log, match_joints, read_lerobot, runs_in
from dynid.logs.readers import Options, read_table, torch_archive
from dynid.logs.readers.bags.unitree import decode_motors
from dynid.robot.zoo import ddarm

ROOT = Path(__file__).parents[2]
DATASETS = Path(os.environ.get("DYNID_DATASETS", ROOT.parent / "shared" / "datasets"))
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
    assert told is not None
    np.testing.assert_allclose(told.position[:, 0], np.radians(10.0 * np.arange(20)))
    assert told.enabled is not None
    assert told.enabled[:, 0].tolist() == [True] * 5 + [False] * 15
    assert told.kp is not None
    assert set(told.kp.ravel().tolist()) == {100.0}
    assert told.supply is not None
    np.testing.assert_allclose(told.supply, 7.4)
    assert recording.constants == {"kp": 100.0, "mass": 0.5}


def test_commands_with_a_clock_of_their_own_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "control.csv").write_text('stamp,q\n0,"[1, 2]"\n5000,"[3, 4]"\n')
    (tmp_path / "state.csv").write_text('stamp,q,on\n1000,"[1.1, 2.1]",0\n2000,"[1.2, 2.2]",1\n6000,"[1.3, 2.3]",1\n')
    channel_map = {
        "files": {"control": "control.csv", "state": "state.csv"},
        "time": {"column": "stamp", "unit": "us"},
        "position": {"file": "state", "columns": "q", "unit": "rad"},
        "reference": {"file": "control", "columns": "q", "unit": "rad"},
        "enabled": {"file": "state", "columns": "on"},
    }
    recording = read_recording(tmp_path, channel_map=channel_map)
    assert recording.commands is not None
    np.testing.assert_allclose(recording.time, [1e-3, 2e-3, 6e-3])
    np.testing.assert_allclose(recording.commands.time, [0.0, 5e-3])
    np.testing.assert_array_equal(recording.commands.position, [[1, 2], [3, 4]])
    # the flag of the state holds until the next one: off before the first, on from 2 ms on
    assert recording.commands.enabled is not None
    assert recording.commands.enabled.tolist() == [[False, False], [True, True]]


def test_commands_are_matched_by_joint_names() -> None:
    robot: Robot = ddarm()
    names = tuple(reversed(robot.joint_names))
    q = np.arange(15.0).reshape(5, 3)
    time = np.arange(5) / 100
    log = Recording(time=time, q=q, joint_names=names, commands=Commands(time=time, position=10 * q, kp=q))
    matched = match_joints(log, robot)
    assert matched.commands is not None
    np.testing.assert_array_equal(matched.commands.position, 10 * matched.q)
    np.testing.assert_array_equal(matched.commands.kp, matched.q)


def test_a_command_of_another_number_of_joints_is_refused() -> None:
    time = np.arange(5) / 100
    with pytest.raises(DataError, match="2 columns of commanded positions for 3"):
        Recording(time=time, q=np.zeros((5, 3)), commands=Commands(time=time, position=np.zeros((5, 2))))


def test_torque_based_commands_say_what_to_do_instead() -> None:
    robot: Robot = ddarm()
    time = np.arange(400) / 100
    q = np.sin(np.outer(time, [1.0, 2.0, 3.0]))
    log = Recording(time=time, q=q, commands=Commands(time=time, position=q))
    with pytest.raises(DataError, match="dynid actuate ROBOT LOG"):
        identify(robot, [log], recipe=Recipe(gate=False))
    found = [finding for finding in check_recording(log, robot=robot).findings if finding.code == "missing"]
    assert "dynid actuate" in found[0].remedy


def test_a_folder_of_json_files_holds_one_run_each(tmp_path: Path) -> None:
    servo_log(tmp_path / "a.json")
    servo_log(tmp_path / "b.json")
    assert [run.name for run in runs_in(tmp_path)] == ["a.json", "b.json"]
    (tmp_path / "log.csv").write_text("t,q\n0,1\n1,2\n")
    assert [run.name for run in runs_in(tmp_path)] == ["log.csv"]


def test_inspect_proposes_a_map_that_reads_the_commands(tmp_path: Path) -> None:
    path = servo_log(tmp_path / "run.json")
    proposed = tmp_path / "map.toml"
    proposed.write_text(inspect_log(path).toml)
    recording = read_recording(path, channel_map=proposed)
    assert recording.commands is not None
    assert recording.commands.enabled is not None
    assert recording.commands.kp is not None
    assert recording.commands.supply is not None


def test_inspect_leaves_unsigned_torques_out(tmp_path: Path) -> None:
    rows = [f'{10_000 * k},"[{0.1 * k}, {0.2 * k}]","[{abs(k - 9) * 0.1}, 0.0]"' for k in range(20)]
    (tmp_path / "state.csv").write_text("\n".join(["timestamp,positions,torques", *rows]) + "\n")
    text = inspect_log(tmp_path / "state.csv").toml
    assert "[effort]" not in text
    assert '"torques" is never negative' in text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('a,b\n1,"[1, 2]"\n2,"[1, 2, 3]"\n', "line 3"),
        ('a,b\n1,"[1, 2]"\n2,"[1, 2"\n3,"[1, 2]"\n', "line 3"),
        ('a,b\n1,"[1, 2]"\n2,"[1, [2]]"\n', "line 3"),
        ('a,b,c\n1,"[1, 2]"\n2,"[1, 2]"\n', "line 1"),
        ('a,b\n1,"[1, 2]"\n2,"[1, x]"\n', "line 3"),
        ('a,b\n1,"[1, 2]"\n2,7\n', None),
    ],
)
def test_broken_lists_are_refused_with_their_place(text: str, place: str | None, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(LogReadError) as caught:
        read_table(tmp_path / "log.csv")
    assert place is None or caught.value.place == place


def test_a_cut_last_line_of_lists_is_salvaged(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text('a,b\n1,"[1, 2]"\n2,"[3, 4]"\n3,"[5')
    table = read_table(tmp_path / "log.csv")
    np.testing.assert_array_equal(table.columns["b"], [[1, 2], [3, 4]])
    assert table.salvaged
    with pytest.raises(LogReadError):
        read_table(tmp_path / "log.csv", Options(strict=True))


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


def write_archive(path: Path, pickled: bytes, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", pickled)
        for name, data in members.items():
            archive.writestr(f"x/{name}", data)
    return path


GOOD = torch_pickle({"q": np.zeros((3, 2))})
HOSTILE = {
    "calls os.system": b"cos\nsystem\n(X\x02\x00\x00\x00lstR.",
    "builds an object": b"\x80\x02ccollections\nOrderedDict\n)\x81}b.",
    "numbers beyond the member": GOOD.replace(struct.pack("<i", 6), struct.pack("<i", 7)),
    "an unknown kind of numbers": GOOD.replace(b"DoubleStorage", b"QuantStorage!"),
    "a shape of billions": GOOD.replace(b"(J" + struct.pack("<i", 3), b"(J" + struct.pack("<i", 2**30)),
    "a member outside": GOOD.replace(b"X\x01\x00\x00\x000", b"X\x04\x00\x00\x00../0"),
    "no end": GOOD[:-1],
    "a list that holds itself": b"\x80\x02]q\x00h\x00a.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_torch_archives_are_refused(name: str, tmp_path: Path) -> None:
    path = write_archive(tmp_path / "log.pt", HOSTILE[name], {"data/0": bytes(48)})
    with pytest.raises(LogReadError) as caught:
        read_table(path)
    assert caught.value.remedy


def test_a_torch_archive_states_its_order_of_bytes(tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(3, 2)
    members = {"data/0": values.astype(">f8").tobytes(), "byteorder": b"big"}
    table = read_table(write_archive(tmp_path / "log.pt", torch_pickle({"q": values}), members))
    np.testing.assert_array_equal(table.columns["q"], values)


def test_a_torch_archive_under_the_name_of_numpy_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogReadError, match="PyTorch"):
        read_table(write_archive(tmp_path / "log.npz", GOOD, {"data/0": bytes(48)}))


@pytest.mark.skipif(not DATASETS.is_dir(), reason=f"the real data sets are not at {DATASETS}")
@pytest.mark.parametrize(
    ("path", "name", "shape", "rate_hz"),
    [
        ("go2/traj_0.pt", "go2", (4698, 12), 200.0),
        ("xl330/kp100_sin_sin.json", "xl330", (1124, 1), 187.0),
        ("so101/multisine", "so101", (6000, 6), 49.9),
        ("emps/DATA_EMPS.mat", "emps", (24841, 1), 1000.0),
    ],
)
def test_real_logs_of_servos(path: str, name: str, shape: tuple[int, int], rate_hz: float) -> None:
    recording = read_recording(DATASETS / path, channel_map=name, strict=True)
    assert recording.q.shape == shape
    assert (shape[0] - 1) / recording.duration == pytest.approx(rate_hz, rel=0.01)
    assert recording.commands is not None
    assert recording.commands.position.shape == shape


@pytest.mark.skipif(not DATASETS.is_dir(), reason=f"the real data sets are not at {DATASETS}")
def test_the_published_distance_of_commands_and_positions() -> None:
    """The README of the data sets: the sum of squares of go2 is 0.156 rad^2, joints 1-5 of so101 0.039 rad rms."""
    go2 = read_recording(DATASETS / "go2" / "traj_0.pt", channel_map="go2")
    assert go2.commands is not None
    assert np.mean(np.sum((go2.commands.position - go2.q) ** 2, axis=1)) == pytest.approx(0.156, abs=5e-4)
    total, count = 0.0, 0
    for run in runs_in(DATASETS / "so101" / "multisine", "so101"):
        log = read_recording(run, channel_map="so101")
        assert log.commands is not None
        total += float(np.sum((log.commands.position - log.q)[:, :5] ** 2))
        count += 5 * len(log.q)
    assert 0.02 < np.sqrt(total / count) < 0.06


MESSAGES = {
    "LowState": "uint8[2] head\nuint8 level_flag\nuint8 frame_reserve\nuint32[2] sn\nuint32[2] version\n"
    "uint16 bandwidth\n"
    "unitree_go/IMUState imu_state\nunitree_go/MotorState[20] motor_state\nunitree_go/BmsState bms_state\n"
    "int16[4] foot_force\nint16[4] foot_force_est\nuint32 tick\nuint8[40] wireless_remote\nuint8 bit_flag\n"
    "float32 adc_reel\nint8 temperature_ntc1\nint8 temperature_ntc2\nfloat32 power_v\nfloat32 power_a\n"
    "uint16[4] fan_frequency\nuint32 reserve\nuint32 crc\n",
    "IMUState": "float32[4] quaternion\nfloat32[3] gyroscope\nfloat32[3] accelerometer\n"
    "float32[3] rpy\nint8 temperature\n",
    "MotorState": "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 ddq\nfloat32 tau_est\nfloat32 q_raw\nfloat32 dq_raw\n"
    "float32 ddq_raw\nint8 temperature\nuint32 lost\nuint32[2] reserve\n",
    "BmsState": "uint8 version_high\nuint8 version_low\nuint8 status\nuint8 soc\nint32 current\nuint16 cycle\n"
    "int8[2] bq_ntc\nint8[2] mcu_ntc\nuint16[15] cell_vol\n",
    "LowCmd": "uint8[2] head\nuint8 level_flag\nuint8 frame_reserve\nuint32[2] sn\nuint32[2] version\n"
    "uint16 bandwidth\n"
    "unitree_go/MotorCmd[20] motor_cmd\nunitree_go/BmsCmd bms_cmd\nuint8[40] wireless_remote\nuint8[12] led\n"
    "uint8[2] fan\nuint8 gpio\nuint32 reserve\nuint32 crc\n",
    "MotorCmd": "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 tau\nfloat32 kp\nfloat32 kd\nuint32[3] reserve\n",
    "BmsCmd": "uint8 off\nuint8[3] reserve\n",
}
"""The definitions of unitree_go's messages."""


def test_messages_of_unitree_against_an_independent_decoder() -> None:
    """Our writers follow the definitions as rosbags reads them, and our reader finds the same numbers."""
    pytest.importorskip("rosbags")
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.EMPTY)
    types: dict[str, Any] = {}
    for name, text in MESSAGES.items():
        types |= get_types_from_msg(text, f"unitree_go/msg/{name}")
    store.register(types)
    q, dq, tau = (np.float32(x) for x in np.random.default_rng(3).normal(size=(3, 20)))
    state = store.deserialize_cdr(low_state(q, dq, tau), "unitree_go/msg/LowState")
    assert [motor.q for motor in state.motor_state] == q.tolist()
    assert [motor.tau_est for motor in state.motor_state] == tau.tolist()
    assert state.tick == 7
    sent = store.deserialize_cdr(low_cmd(q, dq, 20.0, 0.5), "unitree_go/msg/LowCmd")
    assert [motor.dq for motor in sent.motor_cmd] == dq.tolist()
    ((_, found),) = decode_motors([low_state(q, dq, tau)], "low_state")
    np.testing.assert_array_equal(found["position"][0], q)
    np.testing.assert_array_equal(found["velocity"][0], dq)
    np.testing.assert_array_equal(found["effort"][0], tau)
    ((_, found),) = decode_motors([low_cmd(q, dq, 20.0, 0.5)], "low_cmd")
    np.testing.assert_array_equal(found["command"][0], q)
    assert set(found["kp"].ravel()) == {20.0}
    assert set(found["mode"].ravel()) == {1.0}


def test_a_bag_of_a_quadruped(tmp_path: Path) -> None:
    log = planted(30)
    write_unitree(tmp_path / "run.db3", log)
    recording = read_recording(tmp_path / "run.db3", channel_map="unitree_go")
    assert recording.joint_names[:3] == ("FR_hip_joint", "FR_thigh_joint", "FR_calf_joint")
    np.testing.assert_array_equal(recording.q[:, :3], np.float32(log.q))
    assert recording.commands is not None
    np.testing.assert_array_equal(recording.commands.position[:, :3], np.float32(2.0 * log.q))
    assert recording.commands.kd is not None
    assert set(recording.commands.kd.ravel()) == {0.5}
    assert recording.commands.time[0] == pytest.approx(recording.time[0] - 1e-7, abs=1e-9)
    assert 'profile = "unitree_go"' in inspect_log(tmp_path / "run.db3").toml


def test_lerobot_actions_are_commands(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    feature = {"dtype": "float32", "shape": [3], "names": ["joint1.pos", "joint2.pos", "joint3.pos"]}
    info = {"codebase_version": "v3.0", "fps": 50, "features": {"observation.state": feature, "action": feature}}
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "info.json").write_text(json.dumps(info))
    rows = 2 * np.arange(60.0).reshape(20, 3)
    table = pa.table(
        {
            "timestamp": np.tile(np.arange(10) / 50.0, 2),
            "episode_index": np.repeat([0, 1], 10),
            "observation.state": list(rows),
            "action": list(rows + 1.0),
        }
    )
    (tmp_path / "data" / "chunk-000").mkdir(parents=True)
    pq.write_table(table, tmp_path / "data" / "chunk-000" / "file-000.parquet")
    runs = read_lerobot(tmp_path, unit="deg")
    assert len(runs) == 2
    assert runs[1].commands is not None
    np.testing.assert_allclose(runs[1].commands.position, np.radians(rows[10:] + 1.0))
    np.testing.assert_allclose(runs[1].q, np.radians(rows[10:]))
    info["features"]["action"] = {"dtype": "float32", "shape": [4], "names": None}  # type: ignore[index]
    (tmp_path / "meta" / "info.json").write_text(json.dumps(info))
    assert read_lerobot(tmp_path, unit="deg")[0].commands is None


def test_broken_descriptions_of_torch_archives_only_raise_our_errors(tmp_path: Path) -> None:
    """The zip's checksums hide most damage from the reader of the pickle, so the pickle itself is broken here."""
    good, refused = torch_pickle({"t": np.zeros(3), "q": np.zeros((3, 2))}), 0
    for seed in range(300):
        broken = mutate(random.Random(seed), good)
        path = write_archive(tmp_path / "log.pt", broken, {"data/0": bytes(24), "data/1": bytes(48)})
        try:
            torch_archive.read(path, Options())
        except LogReadError:
            refused += 1
    assert refused > 200
