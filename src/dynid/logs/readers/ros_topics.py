"""Collecting the messages of a bag into a table: one column per topic, quantity and joint, each with its clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dynid.errors import LogReadError
from dynid.logs.readers.base import Floats, Table
from dynid.logs.readers.ros_messages import Decoded, Integers, decode_messages, message_kind

__all__ = ["MessageCollector"]

BATCH = 8192
"""Messages of a topic decoded at once."""
MAX_NAMES = 512
"""Most different joints on one topic."""
_AXES = ("force/x", "force/y", "force/z", "torque/x", "torque/y", "torque/z")


@dataclass(slots=True)
class _Topic:
    """What is known of one topic so far."""

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
        """Everything collected.

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
                "it holds no messages of sensor_msgs/JointState or geometry_msgs/WrenchStamped",
                remedy=f"It holds: {held}." if held else "It holds no messages at all.",
            )
        clocks = {name: _clock(entry) for name, entry in topics.items()}
        epoch = int(min(clock.min() for clock, _ in clocks.values()))
        columns: dict[str, Floats] = {}
        owners: dict[str, str] = {}
        for name, entry in topics.items():
            time = np.asarray((clocks[name][0] - epoch) * 1e-9, dtype=np.float64)
            _add_columns(columns, owners, name, entry, time)
        said = tuple(f"{name}: {clock[1]}" for name, clock in clocks.items())
        left = (f"topics not used: {', '.join(list(self._other)[:12])}",) if self._other else ()
        units = {name: "s" if name in owners.values() else "SI" for name in columns}
        return Table(
            columns=columns, clocks=owners, units=units, epoch_ns=epoch, notes=(*notes, *said, *left), salvaged=salvaged
        )


def _flush(entry: _Topic) -> None:
    """Decode what is waiting."""
    first = len(entry.received) - len(entry.payloads)
    entry.chunks += [(first, part) for part in decode_messages(entry.payloads, entry.kind, entry.wire)]
    entry.payloads = []


def _clock(entry: _Topic) -> tuple[Integers, str]:
    """(M,) time of every message [ns], and where it comes from: header stamps unless nobody filled them in."""
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
    labels = list(dict.fromkeys(joint for _, part in entry.chunks for joint in part.names)) or [""]
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
    quantities = _AXES if entry.kind == "wrench" else ("position", "velocity", "effort")
    arrays = {quantity: np.full((total, len(labels)), np.nan) for quantity in quantities}
    present = np.zeros((total, len(labels)), dtype=np.bool_)
    for first, part in entry.chunks:
        rows = (first + part.index)[:, None]
        where = np.array([place[joint] for joint in part.names or ("",)])
        present[rows, where] = True
        wrench = part.arrays.get("wrench")
        parts = part.arrays if wrench is None else {axis: wrench[:, k : k + 1] for k, axis in enumerate(_AXES)}
        for quantity, values in parts.items():
            arrays[quantity][rows, where] = values
    return present, arrays
