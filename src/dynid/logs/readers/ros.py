"""Read bags of ROS messages (ROS 1; ROS 2 in SQLite and MCAP files): one column per topic, quantity and joint.

The library rosbags opens the bags and decodes sensor_msgs/JointState and geometry_msgs/WrenchStamped. An MCAP file that
was never closed has no index at its end, which rosbags needs; it is read by the library mcap, message by message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dynid.array_types import Floats, Ints
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, ColumnTable, Options, refuse_bomb

SUFFIXES = (".db3", ".mcap")
"""Endings of the files of a ROS 2 bag."""
_KINDS = ("sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped")
"""Types of the messages that are read."""
_REMEDY = "Copy it again from where it was recorded, or mend it: rosbag reindex, ros2 bag reindex or mcap recover."


@dataclass(slots=True)
class _Topic:
    """The messages of one topic, in the order of the bag."""

    received_ns: list[int] = field(default_factory=list)
    """Time at which each message was received [ns]."""
    stamps_ns: list[int] = field(default_factory=list)
    """Time in the header of each message [ns]; 0 where the sender left it empty."""
    values: dict[tuple[str, ...], list[tuple[int, list[float]]]] = field(default_factory=dict)
    """Labels of a message's numbers, as ``position/elbow`` -> the messages that have them: index among all messages of
    the topic, and the numbers. A number with the empty label is not used."""


def bag_files(folder: Path) -> list[Path]:
    """The files in the folder of a ROS 2 bag; none in any other folder."""
    return sorted(entry for entry in folder.iterdir() if entry.is_file() and entry.name.endswith(SUFFIXES))


def read(path: Path, options: Options, rows: int) -> Iterator[ColumnTable]:
    """Read the joint states and wrenches of a bag; what follows damage is left out and reported.

    Args:
        path: A file, or the folder of a ROS 2 bag.
        options: Not used; bags have no options.
        rows: Not used; bags are read whole.
    """
    found: dict[str, _Topic] = {}
    other: dict[str, str] = {}  # topics that are not used -> type of their messages
    lost = []
    bag = _one_file(path)
    for file in bag_files(bag) if bag.is_dir() else [bag]:
        if file.suffix == ".mcap":
            refuse_bomb("the file", _unpacked_size(file), file.stat().st_size)
    try:
        for name, received, message in _messages(bag, other):
            topic = found.setdefault(name, _Topic())
            labels, numbers = _labelled_numbers(message)
            topic.values.setdefault(labels, []).append((len(topic.stamps_ns), numbers))
            topic.received_ns.append(received)
            topic.stamps_ns.append(message.header.stamp.sec * 10**9 + message.header.stamp.nanosec)
    except ImportError:  # a library is missing
        raise
    except Exception as error:  # a damaged file can raise any error of the libraries: keep what came before it
        if not found:
            raise LogReadError(f"it is damaged ({error})", remedy=_REMEDY) from error
        kept = sum(len(topic.stamps_ns) for topic in found.values())
        lost.append(f"{kept} messages before the damage were kept ({error})")
    if not found:
        contents = ", ".join(f"{name} ({kind})" for name, kind in list(other.items())[:8])
        raise LogReadError(
            "it holds no messages of sensor_msgs/JointState or geometry_msgs/WrenchStamped",
            remedy=f"It holds: {contents}." if contents else "It holds no messages at all.",
        )
    unused = (f"topics not used: {', '.join(list(other)[:12])}",) if other else ()
    yield _table(found, unused, tuple(lost))


def _one_file(path: Path) -> Path:
    """What to open for a path: the one file in the folder of a bag without metadata, else the path itself.

    Raises:
        LogReadError: It is a folder without metadata and without just one such file.
    """
    if not path.is_dir() or (path / "metadata.yaml").exists():
        return path
    files = bag_files(path)
    if len(files) == 1:
        return files[0]
    if files:
        reason = f"it is a folder with {len(files)} files of a bag, and no metadata.yaml names them in order"
    else:
        reason = "it is a folder without a log that dynid recognises"
    raise LogReadError(
        reason,
        remedy=(
            "Run `ros2 bag reindex`, name the log itself, or give a channel map whose [files] name the files of the "
            "run."
        ),
    )


def _messages(path: Path, other: dict[str, str]) -> Iterator[tuple[str, int, Any]]:
    """Topic, time of receipt [ns] and decoded message of all joint states and wrenches.

    Topics of other types are added to `other`, with their types.
    """
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
        # perhaps it was never closed
        for topic, kind, received, data in _unclosed_mcap(path, other):
            yield topic, received, store.deserialize_cdr(data, kind)
        return
    decode = store.deserialize_ros1 if is_ros1 else store.deserialize_cdr
    try:
        # a connection is what a bag has for each topic (and sender): its name and the type of its messages
        wanted = [connection for connection in reader.connections if connection.msgtype in _KINDS]
        other.update({each.topic: each.msgtype for each in reader.connections if each not in wanted})
        for connection, received, data in reader.messages(wanted) if wanted else ():
            yield connection.topic, received, decode(data, connection.msgtype)
    finally:
        reader.close()


def _unpacked_size(path: Path) -> int:
    """Unpacked size that the chunks of an MCAP file declare, up to its end or its first damage [bytes]."""
    from mcap.records import Chunk
    from mcap.stream_reader import StreamReader

    size = 0
    with suppress(Exception), path.open("rb") as stream:
        for record in StreamReader(stream, emit_chunks=True).records:
            size += record.uncompressed_size if isinstance(record, Chunk) else 0
    return size


def _unclosed_mcap(path: Path, other: dict[str, str]) -> Iterator[tuple[str, str, int, bytes]]:
    """Topic, type, time of receipt [ns] and encoded message, of an MCAP file that was never closed.

    Raises:
        LogReadError: Always, behind the last message, so that the caller reports the loss.
    """
    from mcap.records import Channel, Message, Schema
    from mcap.stream_reader import StreamReader

    schemas: dict[int, str] = {}
    topics: dict[int, tuple[str, str]] = {}  # channel -> topic and type
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


def _labelled_numbers(message: Any) -> tuple[tuple[str, ...], list[float]]:
    """Labels of the numbers of one wrench or joint state, and the numbers."""
    if hasattr(message, "wrench"):
        axes = [(word, axis) for word in ("force", "torque") for axis in "xyz"]
        return tuple(map("/".join, axes)), [getattr(getattr(message.wrench, word), axis) for word, axis in axes]
    parts = (message.position, message.velocity, message.effort)
    numbers = [number for part in parts for number in part.tolist()]
    return _labels(tuple(message.name), *(part.size for part in parts)), numbers


@lru_cache(maxsize=256)
def _labels(joints: tuple[str, ...], *sizes: int) -> tuple[str, ...]:
    """The labels of a joint state's numbers: positions, velocities, efforts.

    A quantity without one number for each joint cannot be assigned to joints: its labels are empty.
    """
    if len(set(joints)) < len(joints):
        raise LogReadError("a joint is named twice in one message")
    labels: list[str] = []
    for quantity, size in zip(("position", "velocity", "effort"), sizes, strict=True):
        labels += [f"{quantity}/{joint}" for joint in joints] if size == len(joints) else [""] * size
    return tuple(labels)


def _table(found: Mapping[str, _Topic], notes: tuple[str, ...], salvaged: tuple[str, ...]) -> ColumnTable:
    """Make the table of all topics, with the notes and the losses of the reader."""
    columns: dict[str, Any] = {}
    clocks: dict[str, str] = {}
    clock_notes = []
    for name, topic in found.items():
        time, note = _choose_times(np.array(topic.received_ns), np.array(topic.stamps_ns))
        clock_notes.append(f"{name}: {note}")
        _add_columns(name, topic, time, columns, clocks)
    if not clocks:
        raise LogReadError("its messages name no joints", remedy="Record the joint states of a robot.")
    epoch = int(min(columns[clock].min() for clock in clocks.values()))
    times = {clock: (columns[clock] - epoch) * 1e-9 for clock in clocks.values()}
    units = {name: "s" if name in times else "SI" for name in columns}
    return ColumnTable(
        columns={**columns, **times}, clocks=clocks, units=units, epoch_ns=epoch, notes=(*clock_notes, *notes),
        salvaged=salvaged,
    )  # fmt: skip


def _add_columns(name: str, topic: _Topic, time: Ints, columns: dict[str, Any], clocks: dict[str, str]) -> None:
    """Add the columns of a topic and their clocks; joints that occur in the same messages share a clock.

    Args:
        name: Name of the topic.
        topic: Its messages.
        time: (M,) time of every message [ns].
        columns: Gets the columns, and the clocks in nanoseconds.
        clocks: Gets for every column the name of its clock.
    """
    pieces: dict[str, list[tuple[Ints, Floats]]] = {}  # label -> (indices of messages, numbers)
    for labels, messages in topic.values.items():
        indices = np.array([index for index, _ in messages])
        values = np.array([numbers for _, numbers in messages])
        for label, column in zip(labels, values.T, strict=True):
            pieces.setdefault(label, []).append((indices, column))
    pieces.pop("", None)
    if len(pieces) > MAX_COLUMNS:
        raise LogReadError(f"topic {name} has {len(pieces)} different numbers")
    clock_of: dict[bytes, str] = {}  # indices of messages, as bytes -> name of their clock
    for label, parts in pieces.items():
        indices, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(indices)
        suffix = f"#{len(clock_of) + 1}" if clock_of else ""
        clock = clock_of.setdefault(indices[order].tobytes(), f"{name}/time{suffix}")
        columns[clock] = time[indices[order]]
        columns[f"{name}/{label}"] = values[order]
        clocks[f"{name}/{label}"] = clock


def _choose_times(received: Ints, stamps: Ints) -> tuple[Ints, str]:
    """Time (M,) of every message [ns], and a note: header stamps, or times of receipt where most stamps are empty."""
    if np.count_nonzero(stamps) <= received.size // 2 and received.size > 1:
        return received, "header stamps are empty, receive times used"
    delay = (received - stamps) * 1e-6
    return stamps, f"header stamps used; received {np.median(delay):.3g} ms later (spread {np.ptp(delay):.3g} ms)"
