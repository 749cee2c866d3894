"""Bags of ROS messages (ROS 1; ROS 2 in SQLite and MCAP files) as one column per topic, quantity and joint.

rosbags opens the bags and decodes sensor_msgs/JointState and geometry_msgs/WrenchStamped; an MCAP file that was never
closed is read by mcap up to its end. Messages of one publisher nearly always have the same names and lengths. So one
message in CDR is decoded; where all others have the same bytes outside of the numbers and the stamp, their numbers are
sliced at the same places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynid.arrays import Floats, Ints
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Options, Table

SUFFIXES = (".db3", ".mcap")
"""Endings of the files of a ROS 2 bag."""
_KINDS = ("sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped")
_AXES = ("force/x", "force/y", "force/z", "torque/x", "torque/y", "torque/z")
_REMEDY = "Copy it again from where it was recorded, or mend it: rosbag reindex, ros2 bag reindex or mcap recover."


class _Batch(NamedTuple):
    """Messages of one topic that have the same names."""

    places: Ints
    stamp_ns: Ints
    names: tuple[str, ...]
    numbers: dict[str, Floats]
    """Quantity -> (m, len(names)); those of a wrench have the name "" alone."""


def bag_files(folder: Path) -> list[Path]:
    """The files in the folder of a ROS 2 bag; none in any other folder."""
    return sorted(entry for entry in folder.iterdir() if entry.is_file() and entry.name.endswith(SUFFIXES))


def read(path: Path, options: Options, rows: int) -> Iterator[Table]:
    """Read the joint states and wrenches of a bag; what follows damage is left out and reported."""
    found: dict[tuple[str, str], list[tuple[int, bytes]]] = {}
    other: dict[str, str] = {}
    lost, bag = [], _one_file(path)
    try:
        for topic, kind, received, data in _messages(bag, options, other):
            found.setdefault((topic, kind), []).append((received, data))
    except ImportError:
        raise
    except Exception as error:
        if options.strict or not found:
            raise LogReadError(f"it is damaged ({error})", remedy=_REMEDY) from error
        lost.append(f"{sum(map(len, found.values()))} messages before the damage were kept ({error})")
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


def _messages(path: Path, options: Options, other: dict[str, str]) -> Iterator[tuple[str, str, int, bytes]]:
    """Topic, type, time of receipt [ns] and bytes of all messages of use; `other` gets the topics that are not used."""
    is_ros1 = path.suffix == ".bag"
    if is_ros1:
        from rosbags.rosbag1 import Reader, ReaderError
    else:
        from rosbags.rosbag2 import Reader, ReaderError  # type: ignore[assignment]
    try:
        reader = Reader(path)
        reader.open()
    except ReaderError:
        if options.strict or path.suffix != ".mcap":
            raise
        yield from _unclosed_mcap(path, other)
        return
    with_store = _decoder(is_ros1)
    try:
        wanted = [link for link in reader.connections if link.msgtype in _KINDS]
        other.update({link.topic: link.msgtype for link in reader.connections if link not in wanted})
        for link, received, data in reader.messages(wanted) if wanted else ():
            yield link.topic, link.msgtype, received, with_store(data, link.msgtype) if is_ros1 else data
    finally:
        reader.close()


def _decoder(is_ros1: bool) -> Any:
    """The function that brings a message of ROS 1 to CDR, or decodes one in CDR."""
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    return store.ros1_to_cdr if is_ros1 else store.deserialize_cdr


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


def _table(
    found: dict[tuple[str, str], list[tuple[int, bytes]]], notes: tuple[str, ...], salvaged: tuple[str, ...]
) -> Table:
    """The table of all messages, by topic and type."""
    columns: dict[str, Floats] = {}
    owners: dict[str, str] = {}
    said, clocks = [], {}
    for (topic, kind), messages in found.items():
        batches = list(_decode([data for _, data in messages], kind))
        clocks[topic], note = _clock(np.array([received for received, _ in messages]), batches)
        said.append(f"{topic}: {note}")
        _add_columns(columns, owners, topic, batches, clocks[topic])
    if not owners:
        raise LogReadError("its messages name no joints", remedy="Record the joint states of a robot.")
    epoch = int(min(clock.min() for clock in clocks.values()))
    times = {name: (columns[name] - epoch) * 1e-9 for name in dict.fromkeys(owners.values())}
    units = {name: "s" if name in times else "SI" for name in columns}
    return Table(
        columns={**columns, **times}, clocks=owners, units=units, epoch_ns=epoch, notes=(*said, *notes),
        salvaged=salvaged,
    )  # fmt: skip


def _decode(payloads: Sequence[bytes], kind: str) -> Iterator[_Batch]:
    """The numbers of messages in CDR, layout by layout."""
    decode = _decoder(is_ros1=False)
    stamp = slice(4, 12)  # bytes of the header's stamp in CDR
    lengths = np.array([len(payload) for payload in payloads])
    for length in np.unique(lengths).tolist():
        index = np.flatnonzero(lengths == length)
        block = np.frombuffer(b"".join(payloads[k] for k in index.tolist()), np.uint8).reshape(index.size, length)
        while index.size:
            first = block[0].tobytes()
            names, numbers = _numbers(decode(first, kind))
            order, free, at = ("<" if first[1] else ">"), np.ones(length, dtype=bool), 4
            places = {}
            for quantity, values in numbers.items():
                data = values.astype(f"{order}f8").tobytes()
                at = next(k for k in range(at, length, 8) if first[k : k + len(data)] == data)
                places[quantity] = slice(at, at + len(data))
                free[places[quantity]] = False
                at += len(data)
            free[stamp] = False
            same = (block[:, free] == block[0, free]).all(axis=1)
            rows = block[same]
            seconds, nanoseconds = np.ascontiguousarray(rows[:, stamp]).view(f"{order}u4").astype(np.int64).T
            yield _Batch(index[same], seconds * 10**9 + nanoseconds, names, {
                quantity: np.ascontiguousarray(rows[:, place]).view(f"{order}f8").astype(float)
                for quantity, place in places.items() if place.stop - place.start == 8 * len(names) or not names
            })  # fmt: skip
            block, index = block[~same], index[~same]


def _numbers(message: Any) -> tuple[tuple[str, ...], dict[str, Floats]]:
    """The joint names and the numbers of one message, in the order of its fields."""
    if hasattr(message, "wrench"):
        wrench = [getattr(getattr(message.wrench, word), axis) for word in ("force", "torque") for axis in "xyz"]
        return (), {"wrench": np.array(wrench)}
    names = tuple(message.name)
    if len(set(names)) < len(names):
        raise LogReadError("a joint is named twice in one message")
    parts = {quantity: np.asarray(getattr(message, quantity)) for quantity in ("position", "velocity", "effort")}
    return names, {quantity: values for quantity, values in parts.items() if values.size}


def _clock(received: Ints, batches: Sequence[_Batch]) -> tuple[Ints, str]:
    """(M,) time of every message [ns], and where it comes from: header stamps, or receive times without stamps."""
    stamps = np.zeros(received.size, dtype=np.int64)
    for batch in batches:
        stamps[batch.places] = batch.stamp_ns
    if np.count_nonzero(stamps) <= received.size // 2 and received.size > 1:
        return received, "header stamps are empty, receive times used"
    delay = (received - stamps) * 1e-6
    return stamps, f"header stamps used; received {np.median(delay):.3g} ms later (spread {np.ptp(delay):.3g} ms)"


def _add_columns(
    columns: dict[str, Any], owners: dict[str, str], topic: str, batches: Sequence[_Batch], time: Ints
) -> None:
    """Add one topic's columns. Joints that occur in the same messages share a clock."""
    parts: dict[tuple[str, str], list[tuple[Ints, Floats]]] = {}
    rows: dict[str, list[Ints]] = {}
    for batch in batches:
        for j, joint in enumerate(batch.names):
            rows.setdefault(joint, []).append(batch.places)
            for quantity, values in batch.numbers.items():
                parts.setdefault((quantity, joint), []).append((batch.places, values[:, j]))
        for k, axis in enumerate(_AXES if "wrench" in batch.numbers else ()):
            rows.setdefault("", []).append(batch.places)
            parts.setdefault((axis, ""), []).append((batch.places, batch.numbers["wrench"][:, k]))
    if len(parts) > MAX_COLUMNS:
        raise LogReadError(f"topic {topic} names {len(rows)} different joints")
    clocks: dict[bytes, str] = {}
    for (quantity, joint), pieces in parts.items():
        mine = np.unique(np.concatenate(rows[joint]))
        clock = clocks.setdefault(mine.tobytes(), f"{topic}/time{f'#{len(clocks) + 1}' if clocks else ''}")
        values = np.full(time.size, np.nan)
        for index, numbers in pieces:
            values[index] = numbers
        columns[clock] = time[mine]
        key = f"{topic}/{quantity}/{joint}".removesuffix("/")
        columns[key], owners[key] = values[mine], clock
