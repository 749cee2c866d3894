"""Small log files that ask for gigabytes or hours: each must be refused, or read, within 5 s and 1 GB."""

from __future__ import annotations

import io
import os
import sqlite3
import struct
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from campaigns.log_writers import joint_state
from dynid.errors import LogReadError
from dynid.logs.readers import read_table

from .mutants import MEMORY_LIMIT, SECONDS_LIMIT, own_peak, peak_of_children


def _field(name: bytes, value: bytes) -> bytes:
    return struct.pack("<I", len(name) + 1 + len(value)) + name + b"=" + value


def _record(fields: bytes, body: bytes, declared: int | None = None) -> bytes:
    return (
        struct.pack("<I", len(fields)) + fields + struct.pack("<I", len(body) if declared is None else declared) + body
    )


def bag_of_275_bytes(path: Path) -> None:
    """A chunk of a ROS 1 bag that declares four gigabytes and is cut off."""
    chunk = _field(b"op", b"\x05") + _field(b"compression", b"bz2") + _field(b"size", b"\xff\xff\xff\xff")
    path.write_bytes(b"#ROSBAG V2.0\n" + _record(chunk, b"BZh91AY&SY" + bytes(200), declared=0xFFFFFFF0))


def _mcap(records: list[tuple[int, bytes]]) -> bytes:
    return b"\x89MCAP0\r\n" + b"".join(struct.pack("<BQ", op, len(body)) + body for op, body in records)


def _chunk(data: bytes, declared: int, method: bytes = b"zstd") -> bytes:
    head = struct.pack("<QQQI", 0, 1, declared, 0) + struct.pack("<I", len(method)) + method
    return head + struct.pack("<Q", len(data)) + data


def mcap_of_two_kilobytes(path: Path) -> None:
    """A chunk that declares a terabyte and is cut off."""
    import zstandard

    body = _chunk(zstandard.compress(bytes(2**26)), 2**40)
    path.write_bytes(b"\x89MCAP0\r\n" + struct.pack("<BQ", 6, 2**30 - 1) + body)


def mcap_of_many_chunks(path: Path) -> None:
    """Thirty chunks, each below the bound of one chunk, of six million messages together."""
    import zstandard

    def text(word: bytes) -> bytes:
        return struct.pack("<I", len(word)) + word

    schema = struct.pack("<H", 1) + text(b"sensor_msgs/msg/JointState") + text(b"ros2msg") + text(b"")
    channel = struct.pack("<HH", 1, 1) + text(b"/j") + text(b"cdr") + text(b"")
    payload = joint_state(1, ("a",), [[1.0], [], []])
    message = struct.pack("<HIQQ", 1, 0, 1, 1) + payload
    inside = (struct.pack("<BQ", 5, len(message)) + message) * (60 * 2**20 // (len(message) + 9))
    packed = zstandard.ZstdCompressor(level=3).compress(inside)
    path.write_bytes(_mcap([(3, schema), (4, channel), *[(6, _chunk(packed, len(inside)))] * 30]))


def db3_with_a_view(path: Path) -> None:
    """A bag whose messages are a query without an end."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE topics(id INTEGER, name TEXT, type TEXT, serialization_format TEXT)")
        database.execute("INSERT INTO topics VALUES (1, '/j', 'sensor_msgs/msg/JointState', 'cdr')")
        database.execute(
            "CREATE VIEW messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
            "SELECT id, 1 AS topic_id, id AS timestamp, zeroblob(10000) AS data FROM n"
        )
    database.close()


def db3_with_a_trigger(path: Path) -> None:
    """A bag with a trigger."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE topics(id INTEGER, name TEXT, type TEXT, serialization_format TEXT)")
        database.execute("CREATE TABLE messages(id INTEGER, topic_id INTEGER, timestamp INTEGER, data BLOB)")
        database.execute("CREATE TRIGGER t AFTER INSERT ON messages BEGIN DELETE FROM topics; END")
    database.close()


def npz_of_bytes(path: Path) -> None:
    """An archive of bytes that become doubles, packed less than the ratio that alone would give it away."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|i1", "fortran_order": False, "shape": (120 * 2**20,)})
    noise = np.random.default_rng(0).integers(0, 256, 2**20, dtype=np.uint8).tobytes()
    packed = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with packed as archive, archive.open("q.npy", "w") as member:
        member.write(header.getvalue() + noise)
        for _ in range(119):
            member.write(bytes(2**20))


def quoted_decimals(path: Path) -> None:
    """Numbers in quotation marks; their text became a hundred times as large."""
    path.write_text("a,b\n" + '"1,5","2,5"\n' * 700_000)


def json_of_brackets(path: Path) -> None:
    """JSON that is nested a million levels deep."""
    path.write_text("[" * 1_000_000)


def hdf5_without_data(path: Path) -> None:
    """A data set of eighty gigabytes of which nothing is stored."""
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("q", shape=(10**10,), dtype="f8", chunks=(2**16,), compression="gzip")


def mat_of_zeros(path: Path) -> None:
    """Packed zeros in a MATLAB file."""
    from scipy.io import savemat

    savemat(path, {"q": np.zeros(10**8, dtype=np.uint8)}, do_compression=True)


def parquet_of_one_value(path: Path) -> None:
    """Two hundred million equal numbers in a few kilobytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = pa.table({"q": pa.array(np.zeros(10**7, dtype=np.int8))})
    with pq.ParquetWriter(path, part.schema) as writer:
        for _ in range(20):
            writer.write_table(part)


BOMBS: dict[str, tuple[str, Callable[[Path], None], bool]] = {
    "bag_of_275_bytes": (".bag", bag_of_275_bytes, True),
    "mcap_of_two_kilobytes": (".mcap", mcap_of_two_kilobytes, True),
    "mcap_of_many_chunks": (".mcap", mcap_of_many_chunks, True),
    "db3_with_a_view": (".db3", db3_with_a_view, True),
    "db3_with_a_trigger": (".db3", db3_with_a_trigger, True),
    "npz_of_bytes": (".npz", npz_of_bytes, True),
    "quoted_decimals": (".csv", quoted_decimals, True),
    "json_of_brackets": (".json", json_of_brackets, True),
    "hdf5_without_data": (".h5", hdf5_without_data, True),
    "mat_of_zeros": (".mat", mat_of_zeros, False),
    "parquet_of_one_value": (".parquet", parquet_of_one_value, False),
}
"""Name -> (suffix, how it is made, whether it is quickly made)."""


def try_bomb(name: str, folder: Path) -> tuple[str, list[str]]:
    """Make a bomb and read it: a line about it, and what is wrong."""
    suffix, make, _ = BOMBS[name]
    path = folder / f"{name}{suffix}"
    make(path)
    before = sum(os.times()[:4])
    try:
        table = read_table(path)
        outcome = f"read, {sum(column.size for column in table.columns.values())} numbers, {len(table.salvaged)} losses"
    except LogReadError as error:
        outcome = f"refused: {error.reason[:90]}"
    seconds = sum(os.times()[:4]) - before
    peak = max(own_peak(), peak_of_children())
    findings = [f"{name} took {seconds:.1f} s"] * (seconds > SECONDS_LIMIT)
    findings += [f"{name}: memory reached {peak / 1e9:.2f} GB"] * (peak > MEMORY_LIMIT)
    line = f"{name:22s} {path.stat().st_size:8d} bytes  {seconds:5.2f} s  peak {peak / 1e6:4.0f} MB  {outcome}"
    return line, findings


def attack_bombs(count: int, seed: int) -> list[str]:
    """Read as many bombs as asked for, the quickly made ones first."""
    names = sorted(BOMBS, key=lambda name: not BOMBS[name][2])[:count]
    with tempfile.TemporaryDirectory() as folder:
        return [finding for name in names for finding in try_bomb(name, Path(folder))[1]]
