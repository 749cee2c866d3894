"""MCAP: a stream of records, every checksum verified; a file that a power failure cut off is kept up to the cut.

The mcap library reads schemas, channels and chunks. Two things stand here by hand (docs/decisions.md): the frames of
the records, because lengths must be bounded by what is left of the file and a cut must be located to the byte, and the
head of a message, of which a log has millions.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from dynid.errors import LogReadError
from dynid.logs.readers.bags.ros_messages import MessageCollector
from dynid.logs.readers.base import Options, Table, Unpacking, unpack_beginning

MAGIC = b"\x89MCAP0\r\n"
MAX_RECORD = 2**30
"""Largest record [bytes]; convention: writers make chunks of about one megabyte."""
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 0x03, 0x04, 0x05, 0x06, 0x0F
"""Opcodes of records, from the MCAP specification."""
_FRAME = struct.Struct("<BQ")
"""Opcode and length of a record."""
_MESSAGE_HEAD = struct.Struct("<HIQQ")
"""Channel, sequence number, log time [ns] and publish time [ns] of a message."""


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
            share = 100 * log.offset / size
            log.salvaged.append(
                f"{log.collector.count} messages from the first {share:.0f} % of the file; "
                f"then {error.reason} (byte {log.offset})"
            )
    return log.collector.table(salvaged=tuple(log.salvaged))


class _Log:
    """The state of reading one file."""

    def __init__(self, stream: IO[bytes], size: int, options: Options) -> None:
        self._stream = stream
        self._size = size
        self._unpacking = Unpacking(size)
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
        raw = self._stream.read(_FRAME.size)
        if len(raw) < _FRAME.size:
            raise LogReadError("the file ends before its data section does", place=f"byte {self.offset}")
        opcode, length = _FRAME.unpack(raw)
        left = self._size - self.offset - _FRAME.size
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
        """Take the records of a packed chunk; a chunk that fails its checksum is left out."""
        from mcap.records import Chunk

        try:
            chunk = Chunk.read(_data_stream(body))
            records = self._unpacking.unpack(chunk.compression, chunk.data, chunk.uncompressed_size)
            if chunk.uncompressed_crc and zlib.crc32(records) != chunk.uncompressed_crc:
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
        """Take the whole records at the beginning of a chunk that was cut off; no checksum covers them."""
        before = self.collector.count
        try:
            stream = _data_stream(body)
            stream.read8(), stream.read8()  # times of the first and last message
            size, _ = stream.read8(), stream.read4()
            method = stream.read_prefixed_string()
            stream.read8()  # length of the packed records, some of which are missing
            for opcode, record in _records(unpack_beginning(method, body[stream.count :], size)):
                self._record(opcode, record)
        except ImportError:
            raise
        except Exception:  # which one depends on where exactly the file was cut
            pass
        if self.collector.count > before:
            self.salvaged.append(f"{self.collector.count - before} messages of a chunk cut off, not verified")

    def _record(self, opcode: int, body: bytes) -> None:
        """Take a schema, a channel or a message; everything else is passed over."""
        if opcode == _MESSAGE:
            channel, _, log_time, _ = _MESSAGE_HEAD.unpack_from(body)
            topic = self._topics.get(channel)
            if topic is not None:
                self.collector.add(topic, log_time, body[_MESSAGE_HEAD.size :])
        elif opcode == _SCHEMA:
            from mcap.records import Schema

            schema = Schema.read(_data_stream(body))
            self._schemas[schema.id] = schema.name
        elif opcode == _CHANNEL:
            from mcap.records import Channel

            found = Channel.read(_data_stream(body))
            kind = self._schemas.get(found.schema_id, "unknown")
            if self.collector.wants(found.topic, kind, found.message_encoding):
                self._topics[found.id] = found.topic

    def _check_end(self, body: bytes) -> None:
        """Verify the data section's checksum; without chunks nothing else vouches for the messages."""
        (crc,) = struct.unpack_from("<I", body)
        if crc and crc != self._crc and (self._loose or self._strict):
            raise LogReadError("the data section fails its checksum", place=f"byte {self.offset}")


def _data_stream(body: bytes) -> Any:
    """The body of a record as the mcap library reads it; it cannot read beyond the record."""
    from mcap.data_stream import ReadDataStream

    return ReadDataStream(BytesIO(body))


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The records of an unpacked chunk."""
    at = 0
    while at < len(data):
        opcode, length = _FRAME.unpack_from(data, at)
        at += _FRAME.size
        if not opcode:
            raise LogReadError("a record of a chunk has no kind")
        if at + length > len(data):
            raise LogReadError("a record reaches beyond its chunk")
        yield opcode, data[at : at + length]
        at += length
