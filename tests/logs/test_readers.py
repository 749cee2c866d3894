"""One planted log in every format, read back to the last bit; salvage, limits and hostile files."""

from __future__ import annotations

import io
import os
import pickle
import sqlite3
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaigns.log_writers import (
    CASES,
    FLAT_MAP,
    JOINTS,
    Planted,
    arrays,
    flat,
    joint_state,
    planted,
    write_bag,
    write_db3,
    write_mcap,
    write_text,
)
from dynid.errors import DataError, LogReadError
from dynid.logs.inspect import inspect_log
from dynid.logs.readers import Options, read_table
from dynid.logs.readers.bags.ros_messages import MessageCollector, decode_messages
from dynid.logs.readers.base import BOMB_BYTES
from dynid.logs.readers.safe_child import SafeChild
from dynid.logs.reading import read_recording, read_stream

LOG = planted()


def assert_same(recording: Any, log: Planted, rows: slice = slice(None)) -> None:
    for name, wanted in (("time", log.time), ("q", log.q), ("dq", log.dq), ("effort", log.effort)):
        np.testing.assert_allclose(getattr(recording, name), wanted[rows], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.full])
def test_every_format_gives_the_planted_log_back(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    if case.needs:
        pytest.importorskip(case.needs)
    path = tmp_path / f"log{case.suffix}"
    case.write(path, LOG)
    recording = read_recording(path, channel_map=case.channel_map, strict=True)
    assert_same(recording, LOG)
    np.testing.assert_allclose(recording.wrench, LOG.wrench, rtol=0, atol=1e-12)
    assert len(recording.sha256) == 64


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case.suffix in (".mcap", ".bag", ".db3") and case.full]
)
def test_bags_need_no_channel_map(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    if case.needs:
        pytest.importorskip(case.needs)
    path = tmp_path / f"log{case.suffix}"
    case.write(path, LOG)
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
    assert_same(read_recording(path, channel_map=FLAT_MAP, strict=True), LOG)


@pytest.mark.parametrize(
    ("text", "names", "values"),
    [
        ("1 2\n3 4\n", ["c1", "c2"], [[1, 2], [3, 4]]),
        ("# a b\n1 2\n3 4\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("made by hand\n\na;b\n1,5;2\n3,25;4\n", ["a", "b"], [[1.5, 2], [3.25, 4]]),
        ('"a","b"\n1,\n,4\n', ["a", "b"], [[1, np.nan], [np.nan, 4]]),
        ("a,b\n\n1,2\n\n3,4", ["a", "b"], [[1, 2], [3, 4]]),
        ("a,b,\n1,2,\n3,4,\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("a,a\n1,2\n3,4\n", ["a", "a#2"], [[1, 2], [3, 4]]),
        ("t,mode,q\n1,run,2\n3,hold,4\n", ["t", "q"], [[1, 2], [3, 4]]),
        ("x\n0,5\n1,5\n", ["x"], [[0.5], [1.5]]),
        ("a,b\n0,5\n1,5\n", ["a", "b"], [[0, 5], [1, 5]]),
        ("  1.0\t 2 \n 3 \t4\n", ["c1", "c2"], [[1, 2], [3, 4]]),
        ("0,5 1,5\n1 2,5\n", ["c1", "c2"], [[0.5, 1.5], [1, 2.5]]),
        ("nan,-inf\n+1e3,.5\n", ["c1", "c2"], [[np.nan, -np.inf], [1000, 0.5]]),
    ],
)
def test_small_texts(text: str, names: list[str], values: list[list[float]], tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text)
    table = read_table(path, Options(strict=True))
    assert list(table.names) == names
    np.testing.assert_array_equal(np.column_stack(list(table.columns.values())), values)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0,5\n1,5\n", "line 1"),
        ("0,5\n1\n2,5\n", "line 1"),
        ("a,b\n1,2\n3,x\n" + "1,2\n" * 60, "line 3"),
        ("a,b\n1,2\n3\n" + "1,2\n" * 60, "line 3"),
        ("a,b\n" + "1,2\n" * 80 + "3,x\n1,2\n", "line 82"),
        ("a,b\n" + "1,2\n" * 80 + "3\n1,2\n", "line 82"),
        ("a,b\n" + "1,2\n" * 80 + "3,4,5\n1,2\n", "line 82"),
        ("a,b\n" + "1,2\n" * 80 + "1.5.2,3\n1,2\n", "line 82"),
        ("a,b\n" + "1,2\n" * 80 + "1_0,3\n1,2\n", "line 82"),
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


def test_ambiguous_text_is_read_once_declared(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("0,5\n1,5\n")
    assert list(read_table(path, Options(decimal=",", delimiter=" ")).columns["c1"]) == [0.5, 1.5]


def test_cut_text_is_salvaged_and_strictly_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write_text(path, LOG)
    path.write_bytes(path.read_bytes()[:-200] + b"\0" * 4096)
    recording = read_recording(path, channel_map=FLAT_MAP)
    assert_same(recording, LOG, slice(0, len(recording.time)))
    assert [finding.code for finding in recording.findings] == ["salvaged"] * 2
    with pytest.raises(LogReadError):
        read_recording(path, channel_map=FLAT_MAP, strict=True)


def random_decimals() -> Iterator[str]:
    """Every shape of number a log may hold, halfway cases included."""
    rng = np.random.default_rng(3)
    for bits in rng.integers(0, 2**63, 4000):
        yield repr(float(np.int64(bits).view(np.float64)))
    for digits, exponent in zip(rng.integers(1, 22, 4000), rng.integers(-345, 312, 4000)):
        yield f"{rng.integers(0, 9)}{''.join(map(str, rng.integers(0, 10, digits)))}e{exponent}"
    for digits, value in zip(rng.integers(0, 26, 4000), rng.uniform(-2, 2, 4000)):
        yield f"{value:.{digits}f}"
    for mantissa, exponent in zip(rng.integers(2**52, 2**53, 4000), rng.integers(-6, 8, 4000)):
        yield f"{2 * int(mantissa) + 1}e{exponent}"


def test_decimals_are_rounded_correctly(tmp_path: Path) -> None:
    tokens = list(random_decimals())
    path = tmp_path / "numbers.txt"
    path.write_text("x\n" + "\n".join(tokens) + "\n")
    (found,) = read_table(path).columns.values()
    wanted = np.array([float(token) for token in tokens])
    different = (found.view(np.uint64) != wanted.view(np.uint64)) & ~(np.isnan(found) & np.isnan(wanted))
    assert not [tokens[k] for k in np.flatnonzero(different)]


def test_text_in_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.logs.readers.text.BLOCK_BYTES", 1000)
    path = tmp_path / "log.csv"
    write_text(path, LOG)
    assert_same(read_recording(path, channel_map=FLAT_MAP), LOG)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\nx", 150)[:-300])
    path.write_text("a,b\n" + "1,2\n" * 3000 + "1,z\n" + "1,2\n" * 3000)
    with pytest.raises(LogReadError, match="line 3002"):
        read_table(path)


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


def test_bombs_are_refused_before_unpacking(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2 * BOMB_BYTES // 8,)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("q.npy", "w") as member:
        member.write(header.getvalue())
        for _ in range(2 * BOMB_BYTES // 2**20):
            member.write(bytes(2**20))
    with pytest.raises(LogReadError, match="bomb"):
        read_table(path)
    huge = tmp_path / "huge.npy"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 9)})
    huge.write_bytes(header.getvalue())
    with pytest.raises(LogReadError, match="declares"):
        read_table(huge)


def test_a_joint_state_without_joints_is_passed_over(tmp_path: Path) -> None:
    collector = MessageCollector()
    assert collector.wants("/j", "sensor_msgs/msg/JointState", "cdr")
    collector.add("/j", 1, joint_state(1, (), [[], [], []]))
    for stamp in (2, 3):
        collector.add("/j", stamp, joint_state(stamp, ("a",), [[0.5 * stamp], [], []]))
    table = collector.table()
    np.testing.assert_array_equal(table.columns["/j/position/a"], [1.0, 1.5])
    empty = MessageCollector()
    empty.wants("/j", "sensor_msgs/msg/JointState", "cdr")
    empty.add("/j", 1, joint_state(1, (), [[], [], []]))
    with pytest.raises(LogReadError, match="name no joints"):
        empty.table()


def test_the_child_ends_with_its_owner(tmp_path: Path) -> None:
    with SafeChild() as child:
        path = tmp_path / "log.npz"
        np.savez(path, q=LOG.q)
        np.testing.assert_array_equal(child.read("npz", path, Options()).columns["q"], LOG.q)
        process = child._process
        assert process is not None
    assert process.returncode is not None


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


def test_hdf5_blow_up_is_contained(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "blow.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("q", shape=(10**12,), dtype="f8", chunks=(2**16,), compression="gzip")
    with pytest.raises(LogReadError, match="bomb"):
        read_table(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("q", shape=(10**7, 10), dtype="f8", chunks=(2**16, 10), compression="gzip")
    with pytest.raises(LogReadError):
        read_table(path)


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
    monkeypatch.setattr("dynid.logs.readers.text._kernel", lambda: (_ for _ in ()).throw(ImportError(name="llvmlite")))
    with pytest.raises(LogReadError, match="needs llvmlite"):
        read_table(path)


@pytest.mark.parametrize("name", ["gone.csv", "folder"])
def test_no_such_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(LogReadError):
        read_table(tmp_path / name)


def test_empty_and_odd_files(tmp_path: Path) -> None:
    for name in ("a.csv", "a.npz", "a.mat", "a.mcap", "a.db3", "a.bag", "a.h5", "a.parquet"):
        path = tmp_path / name
        path.write_bytes(b"")
        with pytest.raises(LogReadError):
            read_table(path)


def test_interrupt_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.csv"
    write_text(path, LOG)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynid.logs.readers.text.sniff", interrupt)
    with pytest.raises(KeyboardInterrupt):
        read_table(path)


# --- bags -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZSTD"])
@pytest.mark.parametrize("chunk_size", [0, 4096])
def test_mcap_variants(compression: str, chunk_size: int, tmp_path: Path) -> None:
    pytest.importorskip("mcap")
    path = tmp_path / "log.mcap"
    write_mcap(path, LOG, compression, chunk_size)
    assert_same(read_recording(path, channel_map=CASES["mcap"].channel_map, strict=True), LOG)


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
        assert any(f.code == "salvaged" and "%" in f.message for f in recording.findings)
        with pytest.raises(LogReadError):
            read_recording(path, channel_map=CASES["mcap"].channel_map, strict=True)


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZSTD"])
def test_mcap_cut_inside_its_only_chunk_is_salvaged(compression: str, tmp_path: Path) -> None:
    pytest.importorskip("mcap")
    long = planted(6000)
    path = tmp_path / "log.mcap"
    write_mcap(path, long, compression, chunk_size=2**24)
    path.write_bytes(path.read_bytes()[: int(0.6 * path.stat().st_size)])
    recording = read_recording(path, channel_map=CASES["mcap"].channel_map)
    assert 0.3 * len(long.time) < len(recording.time) < 0.8 * len(long.time)
    assert_same(recording, long, slice(0, len(recording.time)))
    assert any("of a chunk cut off" in finding.message for finding in recording.findings)
    with pytest.raises(LogReadError):
        read_recording(path, channel_map=CASES["mcap"].channel_map, strict=True)


def test_the_folder_of_a_ros2_bag_is_the_bag(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "metadata.yaml").write_text("rosbag2_bagfile_information: {}\n")
    with pytest.raises(LogReadError, match=r"without a log that dynid recognises"):
        read_recording(folder)
    write_db3(folder / "run_0.db3", LOG)
    assert_same(read_recording(folder, channel_map=CASES["rosbag2"].channel_map), LOG)
    assert inspect_log(folder).toml == inspect_log(folder / "run_0.db3").toml
    write_db3(folder / "run_1.db3", LOG)
    with pytest.raises(LogReadError, match=r"2 files of a bag.*run_0\.db3, run_1\.db3"):
        read_recording(folder)


@pytest.mark.parametrize("suffix", [".db3", ".mcap"])
def test_a_split_ros2_bag_is_read_in_the_order_of_its_metadata(tmp_path: Path, suffix: str) -> None:
    if suffix == ".mcap":
        pytest.importorskip("mcap")
    write = {".db3": write_db3, ".mcap": write_mcap}[suffix]
    case = CASES[{".db3": "rosbag2", ".mcap": "mcap"}[suffix]]
    folder = tmp_path / "run"
    folder.mkdir()
    edges = [0, 20, 45, len(LOG.time)]
    names = [f"run_{k}{suffix}" for k in (9, 10, 2)]  # neither the order of the alphabet nor that of the numbers
    for name, (start, stop) in zip(names, pairwise(edges), strict=True):
        write(folder / name, replace(LOG, **{key: value[start:stop] for key, value in vars(LOG).items()}))
    write(folder / f"other{suffix}", LOG)
    metadata = folder / "metadata.yaml"
    listed = "".join(f"    - run/{name}\n" for name in names)  # as older versions write them
    metadata.write_text(f"rosbag2_bagfile_information:\n  version: 4\n  relative_file_paths:\n{listed}  duration: 1\n")
    recording = read_recording(folder, channel_map=case.channel_map)
    assert_same(recording, LOG)
    assert f"metadata.yaml does not name them: other{suffix}" in " ".join(recording.notes)
    assert sum(part.time.size for part in read_stream(folder, channel_map=case.channel_map, rows=7)) == len(LOG.time)
    assert inspect_log(folder).toml == inspect_log(folder / names[0]).toml
    (folder / names[1]).unlink()
    with pytest.raises(LogReadError, match=rf"metadata\.yaml names {names[1]}, which is not in the folder"):
        read_recording(folder)


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        ("- run_0.db3\n- run_0.db3\n", "names a file twice"),
        ("- run_0.db3\n- notes.csv\n", r"names notes\.csv, which is no file of a bag"),
        ("- ../secret.db3\n", r"names secret\.db3, which is not in the folder"),
        ("- ..\n", r"names \.\., which is not in the folder"),
    ],
)
def test_metadata_that_name_what_they_must_not_are_refused(tmp_path: Path, listed: str, reason: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write_db3(folder / "run_0.db3", LOG)
    write_db3(tmp_path / "secret.db3", LOG)
    (folder / "notes.csv").write_text("t,q\n0,1\n")
    (folder / "metadata.yaml").write_text(f"relative_file_paths:\n{listed}")
    with pytest.raises(LogReadError, match=reason):
        read_recording(folder, channel_map=CASES["rosbag2"].channel_map)


def test_metadata_of_many_empty_lines_take_no_time(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write_db3(folder / "run_0.db3", LOG)
    (folder / "metadata.yaml").write_text("\n" * 4_000_000 + "relative_file_paths:\n- run_0.db3\n")
    assert_same(read_recording(folder, channel_map=CASES["rosbag2"].channel_map), LOG)


def test_ros1_bag_cut_inside_its_only_chunk_is_salvaged(tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    path = tmp_path / "log.bag"
    write_bag(path, LOG, "none", chunk_size=2**20)
    path.write_bytes(path.read_bytes()[: int(0.3 * path.stat().st_size)])
    recording = read_recording(path, channel_map=CASES["rosbag1"].channel_map)
    assert len(recording.time) > 0.2 * len(LOG.time)
    assert_same(recording, LOG, slice(0, len(recording.time)))


def test_damaged_mcap_chunk_is_left_out(tmp_path: Path) -> None:
    pytest.importorskip("mcap")
    path = tmp_path / "log.mcap"
    write_mcap(path, LOG, "NONE")
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 0xFF
    path.write_bytes(data)
    recording = read_recording(path, channel_map=CASES["mcap"].channel_map)
    assert 0 < len(recording.time) < len(LOG.time)
    kept = np.isin(np.round(LOG.time * 1e9), np.round((recording.time + LOG.time[-1] - recording.time[-1]) * 1e9))
    np.testing.assert_array_equal(recording.q, LOG.q[kept])
    with pytest.raises(LogReadError):
        read_recording(path, channel_map=CASES["mcap"].channel_map, strict=True)


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_ros1_bag_variants_and_truncation(compression: str, tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    path = tmp_path / "log.bag"
    write_bag(path, LOG, compression)
    channel_map = CASES["rosbag1"].channel_map
    assert_same(read_recording(path, channel_map=channel_map, strict=True), LOG)
    path.write_bytes(path.read_bytes()[: int(0.6 * path.stat().st_size)])
    recording = read_recording(path, channel_map=channel_map)
    assert 0 < len(recording.time) < len(LOG.time)
    assert_same(recording, LOG, slice(0, len(recording.time)))
    assert any(finding.code == "salvaged" for finding in recording.findings)


def test_joint_states_agree_with_an_independent_decoder() -> None:
    pytest.importorskip("rosbags")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    payloads = []
    for k in range(40):
        names = tuple(f"joint_{'x' * (k % 5)}{j}" for j in range(1 + k % 4))
        size = len(names) if k % 3 else 0
        parts = [LOG.q[k, : len(names)][: len(names)], LOG.dq[k, :size], []]
        parts[0] = np.resize(parts[0], len(names))
        parts[1] = np.resize(parts[1], size) if size else []
        payloads.append(joint_state(1_000 + k, names, parts))
    seen = set()
    for part in decode_messages(payloads, "joints", "cdr"):
        for row, k in enumerate(part.index):
            message = store.deserialize_cdr(payloads[k], "sensor_msgs/msg/JointState")
            assert part.names == tuple(message.name)
            np.testing.assert_array_equal(part.arrays["position"][row], message.position)
            np.testing.assert_array_equal(part.arrays.get("velocity", np.zeros((99, 0)))[row], message.velocity)
            assert part.stamp_ns[row] == message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
            seen.add(int(k))
    assert seen == set(range(40))


def write_states(path: Path, states: list[bytes], topics: tuple[str, ...] = ("/joint_states",)) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE topics(id INTEGER PRIMARY KEY, name, type, serialization_format)")
    database.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)")
    for k, topic in enumerate(topics):
        database.execute("INSERT INTO topics VALUES (?, ?, 'sensor_msgs/msg/JointState', 'cdr')", (k, topic))
    rows = [(k % len(topics), 10**9 + k * 10**6, state) for k, state in enumerate(states)]
    database.executemany("INSERT INTO messages(topic_id, timestamp, data) VALUES (?, ?, ?)", rows)
    database.commit()
    database.close()


def test_two_publishers_on_one_topic(tmp_path: Path) -> None:
    states = []
    for k in range(30):
        states.append(joint_state(10**9 + k * 10**6, JOINTS, [LOG.q[k], [], []]))
        if k % 5 == 0:
            states.append(joint_state(10**9 + k * 10**6 + 7, ("finger",), [[0.01 * k], [], []]))
    path = tmp_path / "log.db3"
    write_states(path, states)
    recording = read_recording(path, channel_map={"profile": "joint_state", "joints": list(JOINTS)})
    np.testing.assert_array_equal(recording.q, LOG.q[:30])
    assert recording.dq is None
    with pytest.raises(DataError, match="different messages"):
        read_recording(path, channel_map={"profile": "joint_state", "joints": [*JOINTS, "finger"]})


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


def test_hostile_sqlite_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.logs.readers.bags.rosbag2.BASE_SECONDS", 0.2)
    path = tmp_path / "log.db3"
    write_db3(path, LOG)
    database = sqlite3.connect(path)
    database.execute("DROP TABLE messages")
    database.execute(
        "CREATE VIEW messages AS WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM c) "
        "SELECT id, 99 AS topic_id, id AS timestamp, zeroblob(8) AS data FROM c"
    )
    database.commit()
    database.close()
    with pytest.raises(LogReadError):
        read_table(path)


def test_bag_without_useful_messages_says_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "log.db3"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE topics(id INTEGER PRIMARY KEY, name, type, serialization_format)")
    database.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)")
    database.execute("INSERT INTO topics VALUES (1, '/odom', 'nav_msgs/msg/Odometry', 'cdr')")
    database.commit()
    database.close()
    with pytest.raises(LogReadError, match="odom"):
        read_table(path)


def test_damaged_message_counts(tmp_path: Path) -> None:
    states = [joint_state(10**9 + k, JOINTS, [LOG.q[k], [], []]) for k in range(20)]
    states[15] = states[15][:24] + struct.pack("<I", 2**31) + states[15][28:]
    write_states(tmp_path / "log.db3", states)
    with pytest.raises(LogReadError):
        read_recording(tmp_path / "log.db3", strict=True)


def test_flat_and_wide_agree() -> None:
    names, values = flat(LOG)
    assert len(names) == values.shape[1] == 1 + sum(array.shape[1] for array in list(arrays(LOG).values())[1:])
