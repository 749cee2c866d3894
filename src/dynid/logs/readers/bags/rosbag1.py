"""ROS 1 bags (format 2.0), read as a stream: a bag that was never closed and has no index is read as well."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from dynid.errors import LogReadError
from dynid.logs.readers.bags.ros_messages import MessageCollector
from dynid.logs.readers.base import Options, Table, Unpacking, unpack_beginning

MAGIC = b"#ROSBAG V2.0\n"
MAX_RECORD = 2**30
"""Largest record [bytes] (convention)."""
_MESSAGE, _CHUNK, _CONNECTION = 0x02, 0x05, 0x07
"""Opcodes of records, from the ROS bag format 2.0."""
Fields = dict[bytes, bytes]


def read(path: Path, options: Options) -> Table:
    """Read the joint states and wrenches of a bag; what follows a cut is left out and reported."""
    size = path.stat().st_size
    bag = _Bag(size)
    lost = []
    with path.open("rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise LogReadError("it is not a ROS 1 bag of format 2.0", place="byte 0")
        offset = len(MAGIC)
        try:
            while offset < size:
                head = stream.read(4)
                fields = _fields(stream.read(_length(head, size - offset)))
                bag.take(fields, _body(stream, size, fields, bag, options))
                offset = stream.tell()
                options.tell(offset, size)
        except (LogReadError, struct.error, OSError, ValueError) as error:
            if options.strict or not bag.collector.count:
                raise LogReadError(
                    f"it is damaged ({error})",
                    place=f"byte {offset}",
                    remedy="Copy it again from where it was recorded, or mend it with `rosbag reindex`.",
                ) from error
            share = 100 * offset / size
            lost.append(f"{bag.collector.count} messages from the first {share:.0f} % of the file ({error})")
    return bag.collector.table(salvaged=tuple(lost))


def _body(stream: IO[bytes], size: int, fields: Fields, bag: _Bag, options: Options) -> bytes:
    """The body of the next record; of a chunk that the file's end cuts off, the bag takes what is whole."""
    head = stream.read(4)
    try:
        length = _length(head, size - stream.tell() + 4)
    except LogReadError:
        if not options.strict:
            bag.take_beginning(fields, stream.read(min(MAX_RECORD, size - stream.tell())))
        raise
    return stream.read(length)


class _Bag:
    """The state of reading one bag."""

    def __init__(self, size: int) -> None:
        self._unpacking = Unpacking(size)
        self._topics: dict[int, str] = {}
        self.collector = MessageCollector()

    def take(self, fields: Fields, body: bytes) -> None:
        """Take one record."""
        self._take(fields, body, self._unpacking.unpack)

    def take_beginning(self, fields: Fields, body: bytes) -> None:
        """Take the whole records at the beginning of a chunk that was cut off."""
        try:
            if fields.get(b"op") == bytes([_CHUNK]):
                self._take(fields, body, unpack_beginning)
        except (LogReadError, struct.error, OSError, ValueError, RuntimeError, EOFError):
            return  # which error depends on where the file was cut

    def _take(self, fields: Fields, body: bytes, open_chunk: Callable[[str, bytes, int], bytes]) -> None:
        opcode = fields.get(b"op", b"\0")[0]
        if opcode == _CHUNK:
            method = fields.get(b"compression", b"none").decode("ascii")
            for inner, data in _records(open_chunk(method, body, _number(fields, b"size"))):
                self.take(inner, data)
        elif opcode == _CONNECTION:
            topic = fields.get(b"topic", b"").decode("utf-8")
            kind = _fields(body).get(b"type", b"").decode("ascii")
            if self.collector.wants(topic, kind, "ros1"):
                self._topics[_number(fields, b"conn")] = topic
        elif opcode == _MESSAGE and (name := self._topics.get(_number(fields, b"conn"))) is not None:
            seconds, nanoseconds = struct.unpack("<II", fields.get(b"time", b""))
            self.collector.add(name, seconds * 1_000_000_000 + nanoseconds, body)


def _length(head: bytes, left: int) -> int:
    """A declared length, refused beyond what is left of the file."""
    if len(head) < 4:
        raise LogReadError("the file ends inside a record")
    (length,) = struct.unpack("<I", head)
    if length > min(left - 4, MAX_RECORD):
        raise LogReadError(f"a record of {length} bytes does not fit into the {left} left")
    return int(length)


def _number(fields: Fields, name: bytes) -> int:
    """An integer field."""
    (value,) = struct.unpack("<I", fields.get(name, b""))
    return int(value)


def _fields(data: bytes) -> Fields:
    """The ``name=value`` fields of a record's header."""
    fields, at = {}, 0
    while at < len(data):
        length = _length(data[at : at + 4], len(data) - at)
        name, equals, value = data[at + 4 : at + 4 + length].partition(b"=")
        if not equals:
            raise LogReadError("a record's header is damaged")
        fields[name] = value
        at += 4 + length
    return fields


def _records(data: bytes) -> Iterator[tuple[Fields, bytes]]:
    """The records of an unpacked chunk."""
    at = 0
    while at < len(data):
        length = _length(data[at : at + 4], len(data) - at)
        fields = _fields(data[at + 4 : at + 4 + length])
        if fields.get(b"op") == bytes([_CHUNK]):
            raise LogReadError("a chunk lies inside a chunk")
        at += 4 + length
        length = _length(data[at : at + 4], len(data) - at)
        yield fields, data[at + 4 : at + 4 + length]
        at += 4 + length
