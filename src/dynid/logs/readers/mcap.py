"""MCAP: read as a stream, every checksum verified; a file that a power failure cut off is kept up to the cut."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from dynid.errors import LogReadError
from dynid.logs.readers.base import Options, Table
from dynid.logs.readers.compression import unpack, unpack_beginning
from dynid.logs.readers.ros_topics import MessageCollector

__all__ = ["read"]

MAGIC = b"\x89MCAP0\r\n"
MAX_RECORD = 2**30
"""Largest record [bytes]; writers make chunks of about one megabyte."""
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 0x03, 0x04, 0x05, 0x06, 0x0F
_RECORD = struct.Struct("<BQ")
_MESSAGE_HEAD = struct.Struct("<HIQQ")
_CHUNK_HEAD = struct.Struct("<QQQI")


def read(path: Path, options: Options) -> Table:
    """Read the joint states and wrenches; what fails its checksum, and what follows a cut, is left out and reported."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        log = _Log(stream, size, options)
        try:
            log.read()
        except LogReadError as error:
            if options.strict or not log.collector.count:
                raise
            share = 100 * error_offset / size if (error_offset := log.offset) else 0.0
            log.salvaged.append(
                f"{log.collector.count} messages from the first {share:.0f} % of the file; "
                f"then {error.reason} (byte {error_offset})"
            )
    return log.collector.table(salvaged=tuple(log.salvaged))


class _Log:
    """The state of reading one file."""

    def __init__(self, stream: IO[bytes], size: int, options: Options) -> None:
        self._stream = stream
        self._size = size
        self._strict = options.strict
        self._tell = options.tell
        self._schemas: dict[int, str] = {}
        self._topics: dict[int, str] = {}
        self._crc = 0
        self._loose = False
        self.collector = MessageCollector()
        self.salvaged: list[str] = []
        self.offset = 0
        """Where the last whole record ended [bytes]."""

    def read(self) -> None:
        """Go through the data section."""
        head = self._stream.read(len(MAGIC))
        if head != MAGIC:
            raise LogReadError("it does not begin as an MCAP file", place="byte 0")
        self._crc = zlib.crc32(head)
        self.offset = len(MAGIC)
        while True:
            opcode, body, raw = self._next_record()
            if opcode == _DATA_END:
                self._check_end(body)
                return
            self._crc = zlib.crc32(raw, self._crc)
            self._crc = zlib.crc32(body, self._crc)
            if opcode == _CHUNK:
                self._chunk(body)
            else:
                self._loose |= opcode == _MESSAGE
                self._record(opcode, body)
            self.offset += len(raw) + len(body)
            self._tell(self.offset, self._size)

    def _next_record(self) -> tuple[int, bytes, bytes]:
        """Opcode, body and the raw head of the next record."""
        raw = self._stream.read(_RECORD.size)
        if len(raw) < _RECORD.size:
            raise LogReadError("the file ends before its data section does", place=f"byte {self.offset}")
        opcode, length = _RECORD.unpack(raw)
        left = self._size - self.offset - _RECORD.size
        if length > min(left, MAX_RECORD):
            if opcode == _CHUNK and length <= MAX_RECORD and not self._strict:
                self._cut_chunk(self._stream.read(left))
            raise LogReadError(
                f"a record of {length} bytes does not fit into the {left} left",
                place=f"byte {self.offset}",
                remedy="The file was cut off: copy it again from where it was recorded.",
            )
        return opcode, self._stream.read(length), raw

    def _chunk(self, body: bytes) -> None:
        """A packed block of records; one that fails its checksum is left out."""
        try:
            *_, size, crc = _CHUNK_HEAD.unpack_from(body)
            method, at = _text(body, _CHUNK_HEAD.size)
            (packed,) = struct.unpack_from("<Q", body, at)
            if at + 8 + packed != len(body):
                raise LogReadError("a chunk's length is wrong")
            records = unpack(method, body[at + 8 :], size)
            if crc and zlib.crc32(records) != crc:
                raise LogReadError("a chunk fails its checksum")
        except ImportError:
            raise
        except Exception as error:
            place = f"byte {self.offset}"
            if self._strict:
                raise LogReadError(f"a chunk is damaged ({error})", place=place) from error
            self.salvaged.append(f"a damaged chunk at {place} was left out ({error})")
            return
        for opcode, record in _records(records):
            self._record(opcode, record)

    def _cut_chunk(self, body: bytes) -> None:
        """The whole records at the beginning of a chunk that the file's end cuts off; no checksum vouches for them."""
        before = self.collector.count
        try:
            *_, size, _ = _CHUNK_HEAD.unpack_from(body)
            method, at = _text(body, _CHUNK_HEAD.size)
            for opcode, record in _records(unpack_beginning(method, body[at + 8 :], size)):
                self._record(opcode, record)
        except ImportError:
            raise
        except Exception:  # where exactly it was cut decides which
            pass
        if self.collector.count > before:
            self.salvaged.append(f"{self.collector.count - before} messages of a chunk cut off, not verified")

    def _record(self, opcode: int, body: bytes) -> None:
        """A schema, a channel or a message; everything else is passed over."""
        if opcode == _MESSAGE:
            channel, _, log_time, _ = _MESSAGE_HEAD.unpack_from(body)
            topic = self._topics.get(channel)
            if topic is not None:
                self.collector.add(topic, log_time, body[_MESSAGE_HEAD.size :])
        elif opcode == _SCHEMA:
            (number,) = struct.unpack_from("<H", body)
            self._schemas[number], _ = _text(body, 2)
        elif opcode == _CHANNEL:
            number, schema = struct.unpack_from("<HH", body)
            topic, at = _text(body, 4)
            wire, _ = _text(body, at)
            if self.collector.wants(topic, self._schemas.get(schema, "unknown"), wire):
                self._topics[number] = topic

    def _check_end(self, body: bytes) -> None:
        """Verify the data section's checksum; without chunks nothing else vouches for the messages."""
        (crc,) = struct.unpack_from("<I", body)
        if crc and crc != self._crc and (self._loose or self._strict):
            raise LogReadError("the data section fails its checksum", place=f"byte {self.offset}")


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The records of an unpacked chunk."""
    at = 0
    while at < len(data):
        opcode, length = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        if at + length > len(data):
            raise LogReadError("a record reaches beyond its chunk")
        yield opcode, data[at : at + length]
        at += length


def _text(data: bytes, at: int) -> tuple[str, int]:
    """A string and the offset behind it."""
    (length,) = struct.unpack_from("<I", data, at)
    if at + 4 + length > len(data):
        raise LogReadError("a text reaches beyond its record")
    return data[at + 4 : at + 4 + length].decode("utf-8"), at + 4 + length
