"""One planted log in every format, read back to the last bit; salvage, limits and hostile files."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from campaigns.log_writers import (
    BAG_MAP,
    CASES,
    FLAT_MAP,
    JOINTS,
    TYPES,
    Planted,
    joint_state,
    planted,
    write_bag,
    write_database,
    write_db3,
    write_mcap,
    write_text,
)
from dynid.errors import DataError, LogReadError
from dynid.identification.log_part import cut_recording
from dynid.logs.inspect import inspect_log
from dynid.logs.readers import Options, read_pieces, read_table
from dynid.logs.reading import read_recording
from dynid.processing.simulation import sum_of_sines

LOG = planted()


def assert_same(recording: Any, log: Planted, rows: slice = slice(None)) -> None:
    for name, wanted in (("time", log.time), ("q", log.q), ("dq", log.dq), ("effort", log.effort)):
        np.testing.assert_allclose(getattr(recording, name), wanted[rows], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_every_format_gives_the_planted_log_back(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    if case.needs:
        pytest.importorskip(case.needs)
    path = tmp_path / f"log{case.suffix}"
    case.write(path, LOG)
    recording = read_recording(path, channel_map=case.channel_map)
    assert_same(recording, LOG)
    np.testing.assert_allclose(recording.wrench, LOG.wrench, rtol=0, atol=1e-12)
    assert len(recording.sha256) == 64
    if case.suffix in (".mcap", ".bag", ".db3"):  # bags need no channel map
        recording = read_recording(path)
        order = [recording.joint_names.index(joint) for joint in JOINTS]
        np.testing.assert_array_equal(recording.q[:, order], LOG.q)
        assert any("header stamps used" in note for note in recording.notes)


# --- text -----------------------------------------------------------------------------------------------------------


DIALECTS = [(delimiter, ".") for delimiter in ",;\t| "] + [(delimiter, ",") for delimiter in ";\t| "]


@pytest.mark.parametrize(("delimiter", "decimal"), DIALECTS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_text_dialects(delimiter: str, end: str, decimal: str, mark: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write_text(path, LOG, delimiter, decimal, end)
    path.write_bytes(mark + path.read_bytes())
    assert_same(read_recording(path, channel_map=FLAT_MAP), LOG)


SMALL = r"""
"1 2\n3 4\n" -> ["c1", "c2"] -> [[1, 2], [3, 4]]
"# a b\n1 2\n3 4\n" -> ["a", "b"] -> [[1, 2], [3, 4]]
"made by hand\n\na;b\n1,5;2\n3,25;4\n" -> ["a", "b"] -> [[1.5, 2], [3.25, 4]]
'"a","b"\n1,\n,4\n' -> ["a", "b"] -> [[1, np.nan], [np.nan, 4]]
"a,b\n\n1,2\n\n3,4" -> ["a", "b"] -> [[1, 2], [3, 4]]
"a,b,\n1,2,\n3,4,\n" -> ["a", "b"] -> [[1, 2], [3, 4]]
"a,a\n1,2\n3,4\n" -> ["a", "a#2"] -> [[1, 2], [3, 4]]
"t,mode,q\n1,run,2\n3,hold,4\n" -> ["t", "q"] -> [[1, 2], [3, 4]]
"x\n0,5\n1,5\n" -> ["x"] -> [[0.5], [1.5]]
"a,b\n0,5\n1,5\n" -> ["a", "b"] -> [[0, 5], [1, 5]]
" 1.0\t 2 \n 3 \t4\n" -> ["c1", "c2"] -> [[1, 2], [3, 4]]
"0,5 1,5\n1 2,5\n" -> ["c1", "c2"] -> [[0.5, 1.5], [1, 2.5]]
"nan,-inf\n+1e3,.5\n" -> ["c1", "c2"] -> [[np.nan, -np.inf], [1000, 0.5]]
"""
"""Text -> names and rows of its table."""


@pytest.mark.parametrize("case", SMALL.strip().splitlines())
def test_small_texts(case: str, tmp_path: Path) -> None:
    text, names, values = map(eval, case.split(" -> "))
    path = tmp_path / "log.txt"
    path.write_text(text)
    table = read_table(path)
    assert list(table.names) == names
    np.testing.assert_array_equal(np.column_stack(list(table.columns.values())), values)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0,5\n1,5\n", "line 1"),
        ("0,5\n1\n2,5\n", "line 1"),
        ("a,b\n" + "1,2\n" * 80 + "3,4,5\n" * 20, "line 82"),
        ("only words\nand more\n", "line 1"),
        ("\0\1\2\3" * 20 + "x", "byte 0"),
    ],
)
def test_text_is_refused_with_its_place(text: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(LogReadError) as caught:
        read_table(path)
    assert caught.value.place == place
    assert caught.value.path == str(path)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (["1,2", "3,x", *["1,2"] * 60], "1 rows hold text where numbers should be (line 3)"),
        (
            [*["1,2"] * 80, "1.5.2,3", "1_0,3", "1,2", "", "z,z"],
            "3 rows hold text where numbers should be (lines 82 to 83, 86)",
        ),
        ([*["1,2"] * 80, "3,4,5", "1,2"], "1 rows have more than 2 fields (line 82) and were left out"),
        ([*["err,err"] * 10, *["1,2"] * 80], "10 rows hold no numbers (lines 2 to 11) and were left out"),
        ([*["##,@@"] * 10, *["1,2"] * 80], "10 rows hold no numbers (lines 2 to 11) and were left out"),
    ],
)
@pytest.mark.parametrize("pieces", [0, 30])
def test_corrupt_rows_are_missing_and_named(rows: list[str], names: str, pieces: int, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["t,q", *rows]) + "\n")
    tables = list(read_pieces(path, rows=pieces))
    assert names in " ".join(loss for table in tables for loss in table.salvaged)
    values = np.concatenate([np.column_stack(list(table.columns.values())) for table in tables])
    assert {tuple(row) for row in values[np.isfinite(values).all(axis=1)]} == {(1.0, 2.0)}


def test_rows_that_are_left_out_may_be_corrupt(tmp_path: Path) -> None:
    """A log with ten corrupt rows at its start is used, and with `rows` that leave them out they do not matter."""
    path, time = tmp_path / "log.csv", np.arange(600) * 0.01
    motion = sum_of_sines(3, seed=1)
    values = np.column_stack([time, motion(time)[0], motion(time)[2]])
    lines = [",".join(f"{x:.9g}" for x in row) for row in values]
    lines[:10] = ["oops," * 6 + "1e300"] * 5 + ["1e300," * 6 + "-1e250"] * 5
    path.write_text("t,q1,q2,q3,tau1,tau2,tau3\n" + "\n".join(lines) + "\n")
    sections = {"position": {"columns": "q{1..3}", "unit": "rad"}, "effort": {"columns": "tau{1..3}", "unit": "N m"}}
    log = read_recording(path, channel_map={"time": {"column": "t", "unit": "s"}, **sections})
    assert log.time.size == 595  # rows without any number belong to the header
    assert {finding.code for finding in log.findings} == {"salvaged"}
    assert not np.isfinite(log.q[:5]).any()
    whole, part = dynid.process(log), dynid.process(cut_recording(log, rows="5:"))
    np.testing.assert_allclose(whole.q, part.q, atol=1e-9)


def test_ambiguous_text_is_read_once_declared(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("0,5\n1,5\n")
    assert list(read_table(path, Options(decimal=",", delimiter=" ")).columns["c1"]) == [0.5, 1.5]


def test_cut_text_is_salvaged(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write_text(path, LOG)
    path.write_bytes(path.read_bytes()[:-200] + b"\0" * 4096)
    recording = read_recording(path, channel_map=FLAT_MAP)
    assert_same(recording, LOG, slice(0, len(recording.time)))
    assert [finding.code for finding in recording.findings] == ["salvaged"] * 2


# --- NumPy files ----------------------------------------------------------------------------------------------------


class Canary:
    """Creates a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    objects = np.array([Canary(canary)], dtype=object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "b.npz", q=objects)
    (tmp_path / "c.npy").write_bytes(pickle.dumps(Canary(canary)))
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as archive:
        archive.writestr("q.npy", pickle.dumps(Canary(canary)))
    for name in ("a.npy", "b.npz", "c.npy", "d.npz"):
        with pytest.raises(LogReadError):
            read_table(tmp_path / name)
    assert not canary.exists()


def test_names_in_archives_are_only_labels(tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    data = io.BytesIO()
    np.save(data, LOG.q)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../escape.npy", data.getvalue())
        archive.writestr("/absolute.npy", data.getvalue())
        link = zipfile.ZipInfo("link.npy")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, data.getvalue())
        archive.writestr("readme.txt", "hello")
    before = sorted(tmp_path.rglob("*"))
    table = read_table(path)
    assert set(table.names) == {"../../escape", "/absolute", "link"}
    assert sorted(tmp_path.rglob("*")) == before
    assert any("readme.txt" in note for note in table.notes)


def test_record_arrays_and_odd_types(tmp_path: Path) -> None:
    records = np.zeros(5, dtype=[("t", "<i4"), ("q", ">f4", (2,)), ("ok", "?")])
    records["q"] = np.arange(10).reshape(5, 2)
    np.save(tmp_path / "a.npy", records)
    table = read_table(tmp_path / "a.npy")
    np.testing.assert_array_equal(table.columns["q"], np.arange(10).reshape(5, 2))
    np.save(tmp_path / "b.npy", np.array([1j, 2]))
    np.save(tmp_path / "c.npy", np.array(["a", "b"]))
    np.save(tmp_path / "d.npy", np.asfortranarray(LOG.q))
    for name in ("b.npy", "c.npy"):
        with pytest.raises(LogReadError, match="real numbers"):
            read_table(tmp_path / name)
    np.testing.assert_array_equal(read_table(tmp_path / "d.npy").columns["array"], LOG.q)


# --- native readers in the child ------------------------------------------------------------------------------------


def test_hdf5_opens_no_other_file(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    secret = tmp_path / "secret.bin"
    secret.write_bytes(LOG.q.tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["q"] = LOG.q
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("q", shape=(3,), dtype="f8", external=[(str(secret), 0, 24)])
    with pytest.raises(LogReadError, match="another file"):
        read_table(path)
    with h5py.File(path, "w") as file:
        file["mine"] = LOG.dq
        file["stolen"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/q")
    assert read_table(path).names == ("mine",)


def test_matlab_layout_of_hdf5_and_declared_units(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        file["q"] = LOG.q.T
        file["q"].attrs["MATLAB_class"] = np.bytes_("double")
        file["q"].attrs["unit"] = "deg"
        file["name"] = np.bytes_("run 1")
    recording = read_recording(
        path, channel_map={"time": {"sample_time": 1, "unit": "ms"}, "position": {"columns": "q"}}
    )
    np.testing.assert_allclose(recording.q, np.radians(LOG.q), rtol=1e-14)


def test_arrow_lists_structs_and_timestamps(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    stamps = pa.array(LOG.stamps_ns, type=pa.timestamp("ns"))
    state = pa.FixedSizeListArray.from_arrays(pa.array(LOG.q.reshape(-1)), 3)
    inner = pa.StructArray.from_arrays([pa.array(LOG.dq[:, 0]), pa.array(["x"] * len(LOG.q))], ["speed", "word"])
    missing = pa.array([None, *range(1, len(LOG.q))], type=pa.int32())
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"stamp": stamps, "state": state, "inner": inner, "missing": missing}), path)
    table = read_table(path)
    np.testing.assert_array_equal(table.columns["state"], LOG.q)
    np.testing.assert_allclose(table.columns["stamp"] * 1e-9, LOG.time, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(table.columns["inner.speed"], LOG.dq[:, 0])
    assert table.units["stamp"] == "ns"
    assert np.isnan(table.columns["missing"][0])
    assert any("inner.word" in note for note in table.notes)


def test_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.csv"
    write_text(path, LOG)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(LogReadError, match="needs pandas"):
        read_table(path)


def test_missing_empty_and_odd_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    empty = [tmp_path / f"a.{suffix}" for suffix in ("csv", "npz", "mat", "mcap", "db3", "bag", "h5", "parquet")]
    for path in empty:
        path.write_bytes(b"")
    for path in (*empty, tmp_path / "gone.csv", tmp_path / "folder"):
        with pytest.raises(LogReadError):
            read_table(path)


# --- bags -----------------------------------------------------------------------------------------------------------


def test_truncated_mcap_is_salvaged_up_to_the_cut(tmp_path: Path) -> None:
    pytest.importorskip("mcap")
    path = tmp_path / "log.mcap"
    write_mcap(path, LOG)
    whole = path.read_bytes()
    for share in (0.3, 0.5, 0.8):
        path.write_bytes(whole[: int(share * len(whole))])
        recording = read_recording(path, channel_map=CASES["mcap"].channel_map)
        assert_same(recording, LOG, slice(0, len(recording.time)))
        assert len(recording.time) > 0.5 * share * len(LOG.time)
        assert any(f.code == "salvaged" for f in recording.findings)


def test_the_folder_of_a_ros2_bag_is_the_bag(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(LogReadError, match=r"without a log that dynid recognises"):
        read_recording(folder)
    write_db3(folder / "run_0.db3", LOG)
    assert_same(read_recording(folder, channel_map=CASES["rosbag2"].channel_map), LOG)
    assert inspect_log(folder).toml == inspect_log(folder / "run_0.db3").toml
    write_db3(folder / "run_1.db3", LOG)
    with pytest.raises(LogReadError, match="2 files of a bag"):
        read_recording(folder)


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_ros1_bag_variants_and_truncation(compression: str, tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    path = tmp_path / "log.bag"
    write_bag(path, LOG, compression)
    channel_map = CASES["rosbag1"].channel_map
    assert_same(read_recording(path, channel_map=channel_map), LOG)
    path.write_bytes(path.read_bytes()[: int(0.6 * path.stat().st_size)])
    with pytest.raises(LogReadError, match="rosbag reindex"):
        read_recording(path, channel_map=channel_map)


def write_states(path: Path, states: list[bytes], topics: tuple[str, ...] = ("/joint_states",)) -> None:
    """Joint states every millisecond, on the topics in turn."""
    sent = [(topics[k % len(topics)], 10**9 + k * 10**6, state) for k, state in enumerate(states)]
    write_database(path, dict.fromkeys(topics, TYPES["/joint_states"]), sent)


def test_two_publishers_on_one_topic(tmp_path: Path) -> None:
    states = []
    for k in range(30):
        states.append(joint_state(10**9 + k * 10**6, JOINTS, [LOG.q[k], [], []]))
        if k % 5 == 0:
            states.append(joint_state(10**9 + k * 10**6 + 7, ("finger",), [[0.01 * k], [], []]))
    path = tmp_path / "log.db3"
    write_states(path, states)
    recording = read_recording(path, channel_map=BAG_MAP)
    np.testing.assert_array_equal(recording.q, LOG.q[:30])
    assert recording.dq is None
    with pytest.raises(DataError, match="different messages"):
        read_recording(path, channel_map=BAG_MAP | {"joints": [*JOINTS, "finger"]})


def test_empty_stamps_and_several_topics(tmp_path: Path) -> None:
    states = [joint_state(0, JOINTS, [LOG.q[k], LOG.dq[k], []]) for k in range(20)]
    write_states(tmp_path / "a.db3", states)
    recording = read_recording(tmp_path / "a.db3")
    np.testing.assert_allclose(np.diff(recording.time), 1e-3, atol=1e-12)
    assert any("receive times" in note for note in recording.notes)
    write_states(tmp_path / "b.db3", states, ("/left", "/right"))
    with pytest.raises(DataError, match="several columns"):
        read_recording(tmp_path / "b.db3")
    named = {"position": {"columns": "/left/position/{joint}"}, "joints": list(JOINTS)}
    np.testing.assert_array_equal(read_recording(tmp_path / "b.db3", channel_map=named).q, LOG.q[:20:2])


def test_bag_without_useful_messages_says_what_it_holds(tmp_path: Path) -> None:
    write_database(tmp_path / "log.db3", {"/odom": "nav_msgs/msg/Odometry"}, [])
    with pytest.raises(LogReadError, match="odom"):
        read_table(tmp_path / "log.db3")


def test_damaged_message_counts(tmp_path: Path) -> None:
    states = [joint_state(10**9 + k, JOINTS, [LOG.q[k], [], []]) for k in range(20)]
    states[15] = states[15][:24] + struct.pack("<I", 2**31) + states[15][28:]
    write_states(tmp_path / "log.db3", states)
    recording = read_recording(tmp_path / "log.db3")
    assert len(recording.time) == 15
    assert [finding.code for finding in recording.findings] == ["salvaged"]
