"""CSV, TSV and blank-separated text, with or without a header: the dialect is found out, and refused when ambiguous."""

from __future__ import annotations

import mmap
from pathlib import Path

from dynid.data.readers.base import Options, Table
from dynid.data.readers.decimals import parse_rows
from dynid.data.readers.dialect import sniff
from dynid.errors import LogReadError

__all__ = ["read"]

HEAD_BYTES = 2**20
"""Bytes looked at to choose a dialect; header and some rows must fit."""
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", ""), (b"\xfe\xff", ""))


def read(path: Path, options: Options) -> Table:
    """Read a text file of numbers; missing fields become NaN, fields of words are left out and named in the notes."""
    if path.stat().st_size == 0:
        raise LogReadError("it is empty", remedy="Record it again.")
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _read_bytes(data, options)


def _read_bytes(data: mmap.mmap, options: Options) -> Table:
    """Sniff, parse, name."""
    begin, end, notes = _trim(data, options)
    head = data[begin : min(end, begin + HEAD_BYTES)]
    lines = _lines(head, complete=begin + len(head) == end)
    dialect = sniff(lines, options)
    start = begin + _offset(head, dialect.first_line)
    values, cut = parse_rows(data, start, end, dialect, options.strict)
    if not dialect.named:
        notes.append("no header: columns are named c1, c2, ...")
    if cut:
        notes.append(f"salvaged: the last line was cut off and left out ({values.shape[1]} rows kept)")
    kept = [name for name, numeric in zip(dialect.names, dialect.numeric) if numeric]
    words = [name for name, numeric in zip(dialect.names, dialect.numeric) if not numeric]
    if words:
        notes.append(f"columns without numbers were left out: {', '.join(words)}")
    return Table(columns=dict(zip(kept, values)), notes=tuple(notes))


def _trim(data: mmap.mmap, options: Options) -> tuple[int, int, list[str]]:
    """Where the text begins and ends: behind a byte order mark, before the zeros that a power cut leaves."""
    begin, end = 0, len(data)
    for mark, encoding in _MARKS:
        if data[: len(mark)] == mark:
            begin = len(mark)
            if not encoding:
                raise LogReadError("it is UTF-16 text", place="byte 0", remedy="Save it as UTF-8.")
    if data[end - 1] != 0:
        return begin, end, []
    while end > begin and data[end - 1] == 0:
        block = data[max(begin, end - 4096) : end]
        end -= len(block) - len(block.rstrip(b"\0"))
    if options.strict or end == begin:
        raise LogReadError("it ends in zero bytes", place=f"byte {end}", remedy="Read it without strict to salvage it.")
    return begin, end, [f"salvaged: {len(data) - end} zero bytes at the end were left out"]


def _lines(head: bytes, *, complete: bool) -> list[str]:
    """The first lines as text; a last one that is not whole is dropped."""
    if b"\0" in head:
        raise LogReadError("it is not text", place=f"byte {head.index(0)}", remedy="Give it the suffix of its format.")
    if b"\r" in head and b"\n" not in head:
        raise LogReadError("its lines end in carriage returns only", remedy="Save it with line feeds.")
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        text = head.decode("latin-1")
    lines = text.split("\n")
    if not complete and len(lines) == 1:
        raise LogReadError(f"its first line is longer than {HEAD_BYTES} bytes", place="line 1")
    return lines if complete else lines[:-1]


def _offset(head: bytes, line: int) -> int:
    """Byte at which a line begins."""
    position = 0
    for _ in range(line):
        position = head.index(b"\n", position) + 1
    return position
