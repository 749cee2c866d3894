"""One planted log, written in every format: the test matrix reads it back, the fuzzer breaks it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

JOINTS = ("shoulder", "elbow", "wrist")
TIMES_NS = 1_700_000_000_123_456_789
"""When the planted log began."""


@dataclass(frozen=True)
class Planted:
    """The numbers to find again."""

    stamps_ns: NDArray[np.int64]
    q: NDArray[np.float64]
    dq: NDArray[np.float64]
    effort: NDArray[np.float64]
    wrench: NDArray[np.float64]

    @property
    def time(self) -> NDArray[np.float64]:
        return (self.stamps_ns - self.stamps_ns[0]) * 1e-9


def planted(rows: int = 200, seed: int = 5) -> Planted:
    rng = np.random.default_rng(seed)
    stamps = TIMES_NS + 1_000_000 * np.arange(rows) + rng.integers(0, 1000, rows)
    q, dq, effort = (rng.normal(size=(rows, 3)) * scale for scale in (1.0, 2.0, 30.0))
    return Planted(stamps, q, dq, effort, rng.normal(size=(rows, 6)))


def flat(log: Planted) -> tuple[list[str], NDArray[np.float64]]:
    """Names and values as one wide table."""
    names = ["t", *(f"{part}_{j}" for part in ("q", "dq", "tau") for j in range(3)), *(f"w_{k}" for k in range(6))]
    return names, np.column_stack([log.time, log.q, log.dq, log.effort, log.wrench])


def arrays(log: Planted) -> dict[str, NDArray[np.float64]]:
    """The log as named matrices."""
    return {"t": log.time, "q": log.q, "dq": log.dq, "tau": log.effort, "w": log.wrench}


_UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N m", "wrench": ["N", "N", "N", "N m", "N m", "N m"]}


def _map(time: str, *columns: str) -> dict[str, Any]:
    """The map of these columns: of time, position, velocity, effort and wrench."""
    signals = zip(_UNITS.items(), columns, strict=True)
    return {"time": {"column": time, "unit": "s"}} | {
        key: {"columns": column, "unit": unit} for (key, unit), column in signals
    }


FLAT_MAP = _map("t", "q_{0..2}", "dq_{0..2}", "tau_{0..2}", "w_{0..5}")
WIDE_MAP = _map("t", "q", "dq", "tau", "w")
STRUCT_MAP = _map("log.t", "log.q", "log.dq", "log.tau", "log.w")
NPY_MAP = _map("array[0]", "array[{1..3}]", "array[{4..6}]", "array[{7..9}]", "array[{10..15}]")
BAG_MAP = {"profile": "joint_state", "joints": list(JOINTS)}


def write_text(path: Path, log: Planted, delimiter: str = ",", decimal: str = ".", end: str = "\n") -> None:
    names, values = flat(log)
    rows = [delimiter.join(repr(float(value)).replace(".", decimal) for value in row) for row in values]
    path.write_bytes((end.join([delimiter.join(names), *rows]) + end).encode())


def write_npy(path: Path, log: Planted) -> None:
    np.save(path, flat(log)[1])


def write_npz(path: Path, log: Planted) -> None:
    np.savez_compressed(path, **arrays(log))


def write_mat(path: Path, log: Planted) -> None:
    from scipy.io import savemat

    savemat(path, {"log": arrays(log)})


def write_hdf5(path: Path, log: Planted) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, values in arrays(log).items():
            file.create_dataset(f"log/{name}", data=values, compression="gzip", chunks=True)


def _arrow_table(log: Planted) -> Any:
    import pyarrow as pa

    names, values = flat(log)
    return pa.table({name: values[:, k] for k, name in enumerate(names)})


def write_parquet(path: Path, log: Planted) -> None:
    import pyarrow.parquet as pq

    pq.write_table(_arrow_table(log), path)


def write_feather(path: Path, log: Planted) -> None:
    import pyarrow.feather as feather

    feather.write_feather(_arrow_table(log), str(path), compression="uncompressed")


def write_json(path: Path, log: Planted) -> None:
    """One record per sample, as test benches of servos write them, beside constants and texts."""
    names, values = flat(log)
    entries = [dict(zip(names, map(float, row), strict=True)) for row in values]
    path.write_text(json.dumps({"mass": 0.5, "motor": "servo", "entries": entries}))


# --- ROS messages ---------------------------------------------------------------------------------------------------


def _string(out: bytearray, text: str, ros1: bool) -> None:
    data = text.encode() + (b"" if ros1 else b"\0")
    _align(out, 4, ros1)
    out += struct.pack("<I", len(data)) + data


def _align(out: bytearray, size: int, ros1: bool) -> None:
    if not ros1:
        out += b"\0" * (-(len(out) - 4) % size)


def _header(stamp_ns: int, ros1: bool, number: int) -> bytearray:
    out = bytearray(struct.pack("<I", number) if ros1 else b"\0\1\0\0")
    out += struct.pack("<II", *divmod(int(stamp_ns), 1_000_000_000))
    _string(out, "base", ros1)
    return out


def joint_state(stamp_ns: int, names: tuple[str, ...], parts: list[Any], ros1: bool = False, number: int = 0) -> bytes:
    out = _header(stamp_ns, ros1, number)
    _align(out, 4, ros1)
    out += struct.pack("<I", len(names))
    for name in names:
        _string(out, name, ros1)
    for part in parts:
        _align(out, 4, ros1)
        out += struct.pack("<I", len(part))
        if len(part):
            _align(out, 8, ros1)
            out += np.asarray(part, dtype="<f8").tobytes()
    return bytes(out)


def wrench_stamped(stamp_ns: int, values: Any, ros1: bool = False, number: int = 0) -> bytes:
    out = _header(stamp_ns, ros1, number)
    _align(out, 8, ros1)
    return bytes(out + np.asarray(values, dtype="<f8").tobytes())


def messages(log: Planted, ros1: bool = False) -> list[tuple[str, int, bytes]]:
    """(topic, receive time, bytes), the joints in an order that changes from message to message."""
    out = []
    for k, stamp in enumerate(log.stamps_ns):
        order = [0, 1, 2] if k % 3 else [2, 0, 1]
        names = tuple(JOINTS[j] for j in order)
        parts = [log.q[k, order], log.dq[k, order], log.effort[k, order]]
        out.append(("/joint_states", int(stamp) + 500_000, joint_state(stamp, names, parts, ros1, k)))
        out.append(("/wrist", int(stamp) + 600_000, wrench_stamped(stamp, log.wrench[k], ros1, k)))
    return out


TYPES = {"/joint_states": "sensor_msgs/msg/JointState", "/wrist": "geometry_msgs/msg/WrenchStamped"}


def write_mcap(path: Path, log: Planted) -> None:
    from mcap.writer import Writer

    with path.open("wb") as stream:
        writer = Writer(stream, chunk_size=4096)  # packed by Zstandard
        writer.start("ros2", "test")
        channels = {}
        for topic, kind in TYPES.items():
            schema = writer.register_schema(kind, "ros2msg", b"")
            channels[topic] = writer.register_channel(topic, "cdr", schema)
        for k, (topic, received, data) in enumerate(messages(log)):
            writer.add_message(channels[topic], received, data, received, k)
        writer.finish()


def write_db3(path: Path, log: Planted) -> None:
    write_database(path, TYPES, messages(log))


def write_database(path: Path, kinds: dict[str, str], sent: list[tuple[str, int, bytes]]) -> None:
    """A ROS 2 bag of some topics: (topic, receive time, bytes) of each message."""
    import sqlite3

    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT, qos TEXT)"
    )
    database.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)")
    numbers = {topic: k + 1 for k, topic in enumerate(kinds)}
    for topic, kind in kinds.items():
        database.execute("INSERT INTO topics VALUES (?, ?, ?, 'cdr', '')", (numbers[topic], topic, kind))
    rows = [(numbers[topic], received, data) for topic, received, data in sent]
    database.executemany("INSERT INTO messages(topic_id, timestamp, data) VALUES (?, ?, ?)", rows)
    database.commit()
    database.close()


def write_bag_folder(folder: Path, log: Planted) -> None:
    """A ROS 2 bag split in two, with the metadata that rosbag2 writes."""
    folder.mkdir(exist_ok=True)
    half = len(log.time) // 2
    names = [f"{folder.name}_{k}.db3" for k in range(2)]
    for name, rows in zip(names, (slice(0, half), slice(half, None)), strict=True):
        write_db3(folder / name, Planted(*(part[rows] for part in vars(log).values())))
    topics = "".join(
        f"    - topic_metadata:\n        name: {topic}\n        type: {kind}\n        serialization_format: cdr\n"
        f"      message_count: {len(log.time)}\n"
        for topic, kind in TYPES.items()
    )
    listed = "".join(f"    - {name}\n" for name in names)
    (folder / "metadata.yaml").write_text(
        "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: sqlite3\n"
        f"  duration:\n    nanoseconds: {log.stamps_ns[-1] - log.stamps_ns[0]}\n"
        f"  starting_time:\n    nanoseconds_since_epoch: {log.stamps_ns[0]}\n"
        f"  message_count: {2 * len(log.time)}\n  topics_with_message_count:\n{topics}"
        f'  compression_format: ""\n  compression_mode: ""\n  relative_file_paths:\n{listed}'
        "  files:\n" + "".join(f"    - path: {name}\n      message_count: {len(log.time)}\n" for name in names)
    )


def write_bag(path: Path, log: Planted, compression: str = "bz2") -> None:
    """Through an independent writer."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    path.unlink(missing_ok=True)
    store = get_typestore(Stores.ROS1_NOETIC)
    writer = Writer(path)
    if compression != "none":
        writer.set_compression(Writer.CompressionFormat[compression.upper()])
    writer.chunk_threshold = 8192
    with writer:
        links = {topic: writer.add_connection(topic, kind, typestore=store) for topic, kind in TYPES.items()}
        for topic, received, data in messages(log, ros1=True):
            writer.write(links[topic], received, data)


@dataclass(frozen=True)
class Case:
    """One row of the test matrix."""

    suffix: str
    write: Callable[[Path, Planted], None]
    channel_map: dict[str, Any] | None
    needs: str | None = None


CASES = {
    "csv": Case(".csv", write_text, FLAT_MAP),
    "json": Case(".json", write_json, FLAT_MAP),
    "npy": Case(".npy", write_npy, NPY_MAP),
    "npz": Case(".npz", write_npz, WIDE_MAP),
    "mat": Case(".mat", write_mat, STRUCT_MAP),
    "hdf5": Case(".h5", write_hdf5, STRUCT_MAP, "h5py"),
    "parquet": Case(".parquet", write_parquet, FLAT_MAP, "pyarrow"),
    "feather": Case(".feather", write_feather, FLAT_MAP, "pyarrow"),
    "mcap": Case(".mcap", write_mcap, BAG_MAP, "mcap"),
    "rosbag1": Case(".bag", write_bag, BAG_MAP, "rosbags"),
    "rosbag2": Case(".db3", write_db3, BAG_MAP, "rosbags"),
    "rosbag2_folder": Case("", write_bag_folder, BAG_MAP, "rosbags"),
}
"""Format -> how to write the planted log and the map that reads it."""
