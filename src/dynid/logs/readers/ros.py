"""Bags of ROS messages (ROS 1; ROS 2 in SQLite and MCAP files) as one column per topic, quantity and joint.

rosbags opens the bags and decodes sensor_msgs/JointState and geometry_msgs/WrenchStamped; an MCAP file that was never
closed is read by mcap up to its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Floats, Ints
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Options, Table, refuse_bomb

SUFFIXES = (".db3", ".mcap")
"""Endings of the files of a ROS 2 bag."""
_KINDS = ("sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped")
_REMEDY = "Copy it again from where it was recorded, or mend it: rosbag reindex, ros2 bag reindex or mcap recover."


@dataclass(slots=True)
class _Topic:
    """The messages of one topic."""

    received_ns: list[int] = field(default_factory=list)
    stamps_ns: list[int] = field(default_factory=list)
    numbers: dict[tuple[str, ...], list[tuple[int, list[float]]]] = field(default_factory=dict)
    """Names of numbers, as ``position/elbow`` -> the messages that have them: place among all, and the numbers."""


def bag_files(folder: Path) -> list[Path]:
    """The files in the folder of a ROS 2 bag; none in any other folder."""
    return sorted(entry for entry in folder.iterdir() if entry.is_file() and entry.name.endswith(SUFFIXES))


def read(path: Path, options: Options, rows: int) -> Iterator[Table]:
    """Read the joint states and wrenches of a bag; what follows damage is left out and reported."""
    found: dict[str, _Topic] = {}
    other: dict[str, str] = {}
    lost, bag = [], _one_file(path)
    for file in bag_files(bag) if bag.is_dir() else [bag]:
        if file.suffix == ".mcap":
            refuse_bomb("the file", _unpacked_size(file), file.stat().st_size)
    try:
        for name, received, message in _messages(bag, other):
            topic = found.setdefault(name, _Topic())
            labels, numbers = _numbers(message)
            topic.numbers.setdefault(labels, []).append((len(topic.stamps_ns), numbers))
            topic.received_ns.append(received)
            topic.stamps_ns.append(message.header.stamp.sec * 10**9 + message.header.stamp.nanosec)
    except ImportError:
        raise
    except Exception as error:
        if not found:
            raise LogReadError(f"it is damaged ({error})", remedy=_REMEDY) from error
        kept = sum(len(topic.stamps_ns) for topic in found.values())
        lost.append(f"{kept} messages before the damage were kept ({error})")
    if not found:
        held = ", ".join(f"{name} ({kind})" for name, kind in list(other.items())[:8])
        raise LogReadError(
            "it holds no messages of sensor_msgs/JointState or geometry_msgs/WrenchStamped",
            remedy=f"It holds: {held}." if held else "It holds no messages at all.",
        )
    left = (f"topics not used: {', '.join(list(other)[:12])}",) if other else ()
    yield _table(found, left, tuple(lost))


def _one_file(path: Path) -> Path:
    """The file of a bag's folder without metadata; the bag itself otherwise."""
    if not path.is_dir() or (path / "metadata.yaml").exists():
        return path
    files = bag_files(path)
    if len(files) == 1:
        return files[0]
    raise LogReadError(
        f"it is a folder with {len(files)} files of a bag, and no metadata.yaml names them in order"
        if files
        else "it is a folder without a log that dynid recognises",
        remedy="Run `ros2 bag reindex`, name the log itself, or give a channel map whose [files] name the files of the "
        "run.",
    )


def _messages(path: Path, other: dict[str, str]) -> Iterator[tuple[str, int, Any]]:
    """Topic, time of receipt [ns] and content of all messages of use; `other` gets the topics that are not used."""
    from rosbags.typesys import Stores, get_typestore

    is_ros1 = path.suffix == ".bag"
    store = get_typestore(Stores.ROS1_NOETIC if is_ros1 else Stores.ROS2_HUMBLE)
    if is_ros1:
        from rosbags.rosbag1 import Reader, ReaderError
    else:
        from rosbags.rosbag2 import Reader, ReaderError  # type: ignore[assignment]
    try:
        reader = Reader(path)
        reader.open()
    except ReaderError:
        if path.suffix != ".mcap":
            raise
        for topic, kind, received, data in _unclosed_mcap(path, other):
            yield topic, received, store.deserialize_cdr(data, kind)
        return
    decode = store.deserialize_ros1 if is_ros1 else store.deserialize_cdr
    try:
        wanted = [link for link in reader.connections if link.msgtype in _KINDS]
        other.update({link.topic: link.msgtype for link in reader.connections if link not in wanted})
        for link, received, data in reader.messages(wanted) if wanted else ():
            yield link.topic, received, decode(data, link.msgtype)
    finally:
        reader.close()


def _unpacked_size(path: Path) -> int:
    """What the chunks of an MCAP file declare that they hold, up to its end or its first damage [bytes]."""
    from mcap.records import Chunk
    from mcap.stream_reader import StreamReader

    size = 0
    with suppress(Exception), path.open("rb") as stream:
        for record in StreamReader(stream, emit_chunks=True).records:
            size += record.uncompressed_size if isinstance(record, Chunk) else 0
    return size


def _unclosed_mcap(path: Path, other: dict[str, str]) -> Iterator[tuple[str, str, int, bytes]]:
    """The messages of an MCAP file without its end."""
    from mcap.records import Channel, Message, Schema
    from mcap.stream_reader import StreamReader

    schemas: dict[int, str] = {}
    topics: dict[int, tuple[str, str]] = {}
    with path.open("rb") as stream:
        for record in StreamReader(stream, validate_crcs=True).records:
            if isinstance(record, Schema):
                schemas[record.id] = record.name
            elif isinstance(record, Channel):
                topics[record.id] = (record.topic, schemas.get(record.schema_id, ""))
            elif isinstance(record, Message) and (found := topics.get(record.channel_id)):
                if found[1] in _KINDS:
                    yield *found, record.log_time, record.data
                else:
                    other[found[0]] = found[1]
    raise LogReadError("the file ends before its data section does")


def _numbers(message: Any) -> tuple[tuple[str, ...], list[float]]:
    """The names of the numbers of one message, and the numbers."""
    if hasattr(message, "wrench"):
        axes = [(word, axis) for word in ("force", "torque") for axis in "xyz"]
        return tuple(map("/".join, axes)), [getattr(getattr(message.wrench, word), axis) for word, axis in axes]
    parts = (message.position, message.velocity, message.effort)
    numbers = [number for part in parts for number in part.tolist()]
    return _labels(tuple(message.name), *(part.size for part in parts)), numbers


@lru_cache(maxsize=256)
def _labels(joints: tuple[str, ...], *sizes: int) -> tuple[str, ...]:
    """The names of the numbers of a joint state; quantities without one number for each joint have none."""
    if len(set(joints)) < len(joints):
        raise LogReadError("a joint is named twice in one message")
    parts = zip(("position", "velocity", "effort"), sizes, strict=True)
    named = [[f"{quantity}/{joint}" for joint in joints] if n == len(joints) else [""] * n for quantity, n in parts]
    return tuple(label for part in named for label in part)


def _table(found: Mapping[str, _Topic], notes: tuple[str, ...], salvaged: tuple[str, ...]) -> Table:
    """The table of all messages. Joints that occur in the same messages share a clock."""
    columns: dict[str, Any] = {}
    clocks: dict[str, str] = {}
    said = []
    for name, topic in found.items():
        time, note = _clock(np.array(topic.received_ns), np.array(topic.stamps_ns))
        said.append(f"{name}: {note}")
        parts: dict[str, list[tuple[Ints, Floats]]] = {}
        for labels, messages in topic.numbers.items():
            places, values = np.array([k for k, _ in messages]), np.array([numbers for _, numbers in messages])
            for label, column in zip(labels, values.T, strict=True):
                parts.setdefault(label, []).append((places, column))
        parts.pop("", None)
        if len(parts) > MAX_COLUMNS:
            raise LogReadError(f"topic {name} has {len(parts)} different numbers")
        own: dict[bytes, str] = {}
        for label, pieces in parts.items():
            places, values = (np.concatenate(each) for each in zip(*pieces, strict=True))
            order = np.argsort(places)
            clock = own.setdefault(places[order].tobytes(), f"{name}/time{f'#{len(own) + 1}' if own else ''}")
            columns[clock] = time[places[order]]
            columns[f"{name}/{label}"], clocks[f"{name}/{label}"] = values[order], clock
    if not clocks:
        raise LogReadError("its messages name no joints", remedy="Record the joint states of a robot.")
    epoch = int(min(columns[clock].min() for clock in clocks.values()))
    times = {clock: (columns[clock] - epoch) * 1e-9 for clock in clocks.values()}
    units = {name: "s" if name in times else "SI" for name in columns}
    return Table(
        columns={**columns, **times}, clocks=clocks, units=units, epoch_ns=epoch, notes=(*said, *notes),
        salvaged=salvaged,
    )  # fmt: skip


def _clock(received: Ints, stamps: Ints) -> tuple[Ints, str]:
    """(M,) time of every message [ns], and where it comes from: header stamps, or receive times without stamps."""
    if np.count_nonzero(stamps) <= received.size // 2 and received.size > 1:
        return received, "header stamps are empty, receive times used"
    delay = (received - stamps) * 1e-6
    return stamps, f"header stamps used; received {np.median(delay):.3g} ms later (spread {np.ptp(delay):.3g} ms)"
