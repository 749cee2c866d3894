"""Messages of a bag as a table: one column per topic, quantity and joint, each with its clock.

sensor_msgs/JointState and geometry_msgs/WrenchStamped are decoded many messages at once, and so are the motors of
unitree_go (unitree.py). Messages of one publisher nearly always have the same layout: the same joint names and array
lengths at the same offsets. One message is walked through to find it; all others are compared on the bytes that fix it,
and then only sliced. docs/decisions.md has the measurement against a library.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.bags.unitree import MOTOR_KINDS, MOTOR_NAMES, decode_motors
from dynid.logs.readers.base import Table

Kind = str
Integers = NDArray[np.int64]
MAX_LAYOUTS = 256
"""Most layouts on one topic in one batch; a publisher has one, or a few."""
MAX_JOINTS = 512
"""Most joints in one message."""
_KINDS = {"sensor_msgs/JointState": "joints", "geometry_msgs/WrenchStamped": "wrench", **MOTOR_KINDS}


def message_kind(type_name: str) -> Kind | None:
    """Kind of a message type: "joints", "wrench", one of `MOTOR_KINDS`, or None for a type that is not used."""
    return _KINDS.get(type_name.replace("/msg/", "/"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decoded:
    """Messages of one layout."""

    index: Integers
    """(m,) which of the given messages these are."""
    stamp_ns: Integers
    """(m,) header stamps [ns]."""
    names: tuple[str, ...]
    """Joint names; empty for a wrench."""
    arrays: dict[str, Floats]
    """"position", "velocity", "effort" and what motors were told (m, len(names)), where present; "wrench" (m, 6)."""


def decode_messages(payloads: Sequence[bytes], kind: Kind, wire: str) -> Iterator[Decoded]:
    """Decode messages of one topic.

    Args:
        payloads: The messages' bytes.
        kind: "joints", "wrench", "low_state" or "low_cmd".
        wire: "cdr" (ROS 2) or "ros1".

    Raises:
        LogReadError: If a message is damaged or in an encoding not supported.
    """
    if kind in MOTOR_KINDS.values():
        if wire != "cdr":
            raise LogReadError("messages of unitree_go are read from ROS 2 bags only")
        for first, arrays in decode_motors(payloads, kind):
            index = first + np.arange(len(next(iter(arrays.values()))))
            yield Decoded(index=index, stamp_ns=np.zeros_like(index), names=MOTOR_NAMES, arrays=arrays)
        return
    lengths = np.fromiter((len(payload) for payload in payloads), dtype=np.int64, count=len(payloads))
    for length in np.unique(lengths):
        index = np.flatnonzero(lengths == length)
        block = np.frombuffer(b"".join(payloads[i] for i in index.tolist()), dtype=np.uint8).reshape(
            index.size, int(length)
        )
        yield from _decode_block(block, index, kind, wire)


def _decode_block(block: NDArray[np.uint8], index: Integers, kind: Kind, wire: str) -> Iterator[Decoded]:
    """Decode messages of equal length, layout by layout."""
    for _ in range(MAX_LAYOUTS):
        if not index.size:
            return
        layout = _Walk(block[0].tobytes(), wire).layout(kind)
        fixed = np.array(layout.fixed, dtype=np.intp)
        same = (block[:, fixed] == block[0, fixed]).all(axis=1)
        rows = block[same]
        yield Decoded(
            index=index[same],
            stamp_ns=_stamps(rows, layout),
            names=layout.names,
            arrays={name: _doubles(rows, layout, *span) for name, span in layout.arrays.items()},
        )
        block, index = block[~same], index[~same]
    raise LogReadError("the layout of its messages changes all the time")


def _doubles(rows: NDArray[np.uint8], layout: _Layout, start: int, count: int) -> Floats:
    """(m, count) doubles at one offset."""
    raw = np.ascontiguousarray(rows[:, start : start + 8 * count])
    return raw.view(f"{layout.order}f8").astype(np.float64).reshape(len(rows), count)


def _stamps(rows: NDArray[np.uint8], layout: _Layout) -> Integers:
    """(m,) header stamps [ns]."""
    raw = np.ascontiguousarray(rows[:, layout.stamp : layout.stamp + 8])
    parts = raw.view(f"{layout.order}u4").astype(np.int64).reshape(len(rows), 2)
    return np.asarray(parts[:, 0] * 1_000_000_000 + parts[:, 1])


@dataclass(slots=True)
class _Layout:
    """Offsets of the parts of a message."""

    order: str
    stamp: int = 0
    names: tuple[str, ...] = ()
    arrays: dict[str, tuple[int, int]] = field(default_factory=dict)
    fixed: list[int] = field(default_factory=list)
    """Bytes that must be equal in every message of this layout."""


class _Walk:
    """Walks through one message. ROS 1 and ROS 2 differ in alignment and texts, not in the order of fields."""

    def __init__(self, data: bytes, wire: str) -> None:
        self._data = data
        self._cdr = wire == "cdr"
        self._origin = 4 if self._cdr else 0
        if self._cdr and data[:2] not in (b"\0\0", b"\0\1"):
            raise LogReadError(f"message encoding {data[:2].hex()} is not plain CDR")
        self._out = _Layout(">" if self._cdr and data[1] == 0 else "<")
        self._out.fixed += range(min(2, self._origin))
        self._at = self._origin

    def layout(self, kind: Kind) -> _Layout:
        """The layout of the message."""
        if not self._cdr:
            self._at += 4  # the sequence number, which ROS 2 dropped
        self._out.stamp = self._at
        self._at += 8
        self._text()
        if kind == "wrench":
            self._array("wrench", 6)
            return self._out
        self._out.names = tuple(self._text() for _ in range(self._count(MAX_JOINTS)))
        if len(set(self._out.names)) != len(self._out.names):
            raise LogReadError("a joint is named twice in one message")
        for name in ("position", "velocity", "effort"):
            count = self._count(MAX_JOINTS)
            if count:
                self._array(name, count)
            if count != len(self._out.names):  # empty, or not one per joint: not usable by name
                self._out.arrays.pop(name, None)
        return self._out

    def _align(self, size: int) -> None:
        if self._cdr:
            self._at += -(self._at - self._origin) % size

    def _count(self, most: int) -> int:
        """A length, which is part of the layout."""
        self._align(4)
        if self._at + 4 > len(self._data):
            raise LogReadError("a message ends too early")
        (value,) = struct.unpack_from(f"{self._out.order}I", self._data, self._at)
        if value > most:
            raise LogReadError(f"a message declares {value} elements")
        self._out.fixed += range(self._at, self._at + 4)
        self._at += 4
        return int(value)

    def _text(self) -> str:
        """A string; its bytes belong to the layout."""
        length = self._count(len(self._data))
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise LogReadError("a message ends too early")
        self._out.fixed += range(start, self._at)
        return self._data[start : self._at].rstrip(b"\0").decode("utf-8")

    def _array(self, name: str, count: int) -> None:
        """Doubles, which are the contents and not the layout."""
        self._align(8)
        self._out.arrays[name] = (self._at, count)
        self._at += 8 * count
        if self._at > len(self._data):
            raise LogReadError("a message ends too early")


BATCH = 8192
"""Messages of a topic decoded at once."""
MAX_NAMES = 512
"""Most different joints on one topic."""
_AXES = ("force/x", "force/y", "force/z", "torque/x", "torque/y", "torque/z")


@dataclass(slots=True)
class _Topic:
    """Messages of one topic so far."""

    kind: str
    wire: str
    payloads: list[bytes] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    """Receive time of every message [ns]."""
    chunks: list[tuple[int, Decoded]] = field(default_factory=list)
    """(number of the batch's first message, decoded messages)."""


class MessageCollector:
    """Takes messages in file order, decodes them in batches, and makes the table."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}
        self._other: dict[str, str] = {}
        self.count = 0
        """Messages taken so far."""

    def wants(self, topic: str, type_name: str, wire: str) -> bool:
        """Announce a topic; whether its messages are of use."""
        kind = message_kind(type_name)
        if kind is None or wire not in ("cdr", "ros1"):
            self._other[topic] = type_name
            return False
        self._topics.setdefault(topic, _Topic(kind, wire))
        return True

    def add(self, topic: str, received_ns: int, payload: bytes) -> None:
        """Take one message of an announced topic."""
        entry = self._topics[topic]
        entry.payloads.append(payload)
        entry.received.append(received_ns)
        self.count += 1
        if len(entry.payloads) >= BATCH:
            _flush(entry)

    def table(self, *, notes: tuple[str, ...] = (), salvaged: tuple[str, ...] = ()) -> Table:
        """Make the table of all collected messages.

        Args:
            notes: Remarks of the reader.
            salvaged: What was lost of a damaged bag.

        Raises:
            LogReadError: If nothing of use was found; the remedy lists what the bag holds.
        """
        for entry in self._topics.values():
            _flush(entry)
        topics = {name: entry for name, entry in self._topics.items() if entry.received}
        if not topics:
            held = ", ".join(f"{name} ({kind})" for name, kind in list(self._other.items())[:8])
            raise LogReadError(
                "it holds no messages of sensor_msgs/JointState, geometry_msgs/WrenchStamped or unitree_go/LowState",
                remedy=f"It holds: {held}." if held else "It holds no messages at all.",
            )
        clocks = {name: _clock(entry) for name, entry in topics.items()}
        epoch = int(min(clock.min() for clock, _ in clocks.values()))
        columns: dict[str, Floats] = {}
        owners: dict[str, str] = {}
        for name, entry in topics.items():
            time = np.asarray((clocks[name][0] - epoch) * 1e-9, dtype=np.float64)
            _add_columns(columns, owners, name, entry, time)
        if not columns:
            raise LogReadError("its messages name no joints", remedy="Record the joint states of a robot.")
        clock_notes = tuple(f"{name}: {clock[1]}" for name, clock in clocks.items())
        left = (f"topics not used: {', '.join(list(self._other)[:12])}",) if self._other else ()
        units = {name: "s" if name in owners.values() else "SI" for name in columns}
        return Table(
            columns=columns,
            clocks=owners,
            units=units,
            epoch_ns=epoch,
            notes=(*notes, *clock_notes, *left),
            salvaged=salvaged,
        )


def _flush(entry: _Topic) -> None:
    """Decode what is waiting."""
    first = len(entry.received) - len(entry.payloads)
    entry.chunks += [(first, part) for part in decode_messages(entry.payloads, entry.kind, entry.wire)]
    entry.payloads = []


def _clock(entry: _Topic) -> tuple[Integers, str]:
    """(M,) time of every message [ns], and where it comes from: header stamps, or receive times without stamps."""
    received = np.array(entry.received, dtype=np.int64)
    stamps = np.zeros(received.size, dtype=np.int64)
    for first, part in entry.chunks:
        stamps[first + part.index] = part.stamp_ns
    if np.count_nonzero(stamps) <= received.size // 2 and received.size > 1:
        return received, "header stamps are empty, receive times used"
    delay = (received - stamps) * 1e-6
    return stamps, f"header stamps used; received {np.median(delay):.3g} ms later (spread {np.ptp(delay):.3g} ms)"


def _add_columns(columns: dict[str, Floats], owners: dict[str, str], name: str, entry: _Topic, time: Floats) -> None:
    """Add one topic's columns. Joints that occur in the same messages share a clock."""
    labels = list(dict.fromkeys(joint for _, part in entry.chunks for joint in part.names))
    labels = labels or ([""] if entry.kind == "wrench" else [])
    if len(labels) > MAX_NAMES:
        raise LogReadError(f"topic {name} names {len(labels)} different joints")
    present, arrays = _gather(entry, labels, time.size)
    signatures: dict[bytes, str] = {}
    for j, joint in enumerate(labels):
        rows = np.flatnonzero(present[:, j])
        mark = rows.tobytes()
        if mark not in signatures:
            number = f"#{len(signatures) + 1}" if signatures else ""
            signatures[mark] = f"{name}/time{number}"
            columns[signatures[mark]] = time[rows]
        for quantity, values in arrays.items():
            found = values[rows, j]
            if not np.isnan(found).all():
                key = f"{name}/{quantity}/{joint}" if joint else f"{name}/{quantity}"
                columns[key] = found
                owners[key] = signatures[mark]


def _gather(
    entry: _Topic, labels: list[str], total: int
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.bool_]], dict[str, Floats]]:
    """(total, joints) presence and values by quantity, NaN where a message lacks them."""
    place = {joint: j for j, joint in enumerate(labels)}
    told = {name: None for _, part in entry.chunks for name in part.arrays}
    quantities: tuple[str, ...] = _AXES if entry.kind == "wrench" else ("position", "velocity", "effort")
    quantities = tuple(told) if entry.kind in MOTOR_KINDS.values() else quantities
    arrays = {quantity: np.full((total, len(labels)), np.nan) for quantity in quantities}
    present = np.zeros((total, len(labels)), dtype=np.bool_)
    for first, part in entry.chunks:
        if not part.names and entry.kind == "joints":  # a message without any joint says nothing
            continue
        rows = (first + part.index)[:, None]
        where = np.array([place[joint] for joint in part.names or ("",)])
        present[rows, where] = True
        wrench = part.arrays.get("wrench")
        parts = part.arrays if wrench is None else {axis: wrench[:, k : k + 1] for k, axis in enumerate(_AXES)}
        for quantity, values in parts.items():
            arrays[quantity][rows, where] = values
    return present, arrays
