"""CSV, TSV and blank-separated text, with or without a header: the dialect is found out, and refused when ambiguous."""

from __future__ import annotations

import io
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from dynid.errors import LogReadError
from dynid.logs.readers.base import Options, Table
from dynid.logs.readers.decimals import parse_rows
from dynid.logs.readers.dialect import sniff

__all__ = ["read"]

HEAD_BYTES = 2**18
"""Bytes looked at to choose a dialect; header and some rows must fit."""
TAIL_BYTES = 2**16
"""Step in which zero bytes at the end are looked for."""
_QUOTED = re.compile(rb'"[+-]?[.,\d][\d.,eE+-]*"')
"""A number in quotation marks, as writers put them around decimal commas."""


def read(path: Path, options: Options) -> Table:
    """Read a text file of numbers; missing fields become NaN, fields of words are left out and named in the notes."""
    if path.stat().st_size == 0:
        raise LogReadError("it is empty", remedy="Record it again.")
    with path.open("rb") as stream:
        source: IO[bytes] = stream
        begin, end, lost = _trim(stream, options)
        stream.seek(begin)
        head = stream.read(min(end - begin, HEAD_BYTES))
        if _QUOTED.search(head):
            stream.seek(begin)
            plain = _unquoted(stream.read(end - begin))
            source, begin, end, head = io.BytesIO(plain), 0, len(plain), plain[:HEAD_BYTES]
            options = replace(options, delimiter=";" if options.delimiter == "," else options.delimiter)
        dialect = sniff(_lines(head, complete=begin + len(head) == end), options)
        start = begin + _offset(head, dialect.first_line)
        values, cut = parse_rows(source, start, end, dialect, options)
    notes = []
    if not dialect.named:
        notes.append("no header: columns are named c1, c2, ...")
    if cut:
        lost.append(f"the last line was cut off and left out ({values.shape[1]} rows kept)")
    kept = [name for name, numeric in zip(dialect.names, dialect.numeric) if numeric]
    words = [name for name, numeric in zip(dialect.names, dialect.numeric) if not numeric]
    if words:
        notes.append(f"columns without numbers were left out: {', '.join(words)}")
    units = {name: unit for name, unit in zip(dialect.names, dialect.units) if unit and name in kept}
    return Table(columns=dict(zip(kept, values)), units=units, notes=tuple(notes), salvaged=tuple(lost))


def _trim(stream: IO[bytes], options: Options) -> tuple[int, int, list[str]]:
    """Where the text begins (after a byte order mark) and ends (before zeros of a power cut), and what is lost."""
    head = stream.read(4)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise LogReadError("it is UTF-16 text", place="byte 0", remedy="Save it as UTF-8.")
    begin = 3 if head[:3] == b"\xef\xbb\xbf" else 0
    size = end = stream.seek(0, os.SEEK_END)
    while end > begin:
        start = max(begin, end - TAIL_BYTES)
        stream.seek(start)
        block = stream.read(end - start)
        text = block.rstrip(b"\0")
        end -= len(block) - len(text)
        if text:
            break
    if end == size:
        return begin, end, []
    if options.strict or end == begin:
        raise LogReadError("it ends in zero bytes", place=f"byte {end}", remedy="Read it without strict to salvage it.")
    return begin, end, [f"{size - end} zero bytes at the end were left out"]


def _unquoted(text: bytes) -> bytes:
    """The text without quotation marks; commas outside of them, which separate fields, as semicolons."""
    characters = np.frombuffer(text + b"\n", dtype=np.uint8)
    marks = np.cumsum(characters == ord('"'))[characters == ord("\n")]
    if (odd := np.flatnonzero(marks % 2)).size:
        raise LogReadError(
            "a quotation mark is not closed", place=f"line {odd[0] + 1}", remedy="Remove or mend the line."
        )
    parts = text.split(b'"')
    parts[::2] = [part.replace(b",", b";") for part in parts[::2]]
    return b"".join(parts)


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
