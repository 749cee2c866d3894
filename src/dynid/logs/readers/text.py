"""CSV, TSV and blank-separated text, with or without a header.

The dialect (how the file separates fields, writes decimals and names columns) is detected; ambiguous files are refused.

Numbers are converted block by block in a small native kernel (``decimals.ll``), which is kept as machine code. It
converts every number that it can decide, correctly rounded; the few that it cannot (more than 19 digits, infinities) go
to Python's own conversion. Several threads parse, for the kernel needs no interpreter. docs/decisions.md has the
measurement against libraries.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import os
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

import numpy as np

from dynid.arrays import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Options, Table
from dynid.logs.readers.cell_lists import has_lists, spread_lists
from dynid.logs.units import declared_unit

HEAD_BYTES = 2**18
"""Bytes that are used to choose a dialect (convention: a header and some rows must fit)."""
TAIL_BYTES = 2**16
"""Bytes per step of the search for zeros at the end (convention)."""
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
        listed = None
        if has_lists(head):
            stream.seek(begin)
            listed = spread_lists(stream.read(end - begin), strict=options.strict)
            source, begin, end, head = io.BytesIO(listed.text), 0, len(listed.text), listed.text[:HEAD_BYTES]
            options = replace(options, delimiter=";", decimal=".")
            lost += ["the last line was cut off and left out"] * listed.is_cut
        elif _QUOTED.search(head):
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
    said = {name: word for name, word in zip(dialect.names, dialect.words) if word and name in words}
    columns = dict(zip(kept, values))
    if listed is not None:
        columns = listed.joined(columns)
    return Table(columns=columns, units=units, words=said, notes=tuple(notes), salvaged=tuple(lost))


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
    characters = np.frombuffer(text + b"\n", dtype=np.uint8).copy()
    is_inside = np.logical_xor.accumulate(characters == ord('"'))
    is_end = characters == ord("\n")
    if (is_inside & is_end).any():
        line = int(np.flatnonzero(is_inside[is_end])[0]) + 1
        raise LogReadError("a quotation mark is not closed", place=f"line {line}", remedy="Remove or mend the line.")
    characters[(characters == ord(",")) & ~is_inside] = ord(";")
    return bytes(characters[:-1][characters[:-1] != ord('"')])


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


BLOCK_BYTES = 2**21
"""Text that one thread parses at a time [bytes] (convention)."""
MAX_LINE = 2**24
"""Longest line [bytes] (convention)."""
_DONE, _CONVERT, _BAD, _SHORT = range(4)


def parse_rows(stream: IO[bytes], begin: int, end: int, dialect: Dialect, options: Options) -> tuple[Floats, bool]:
    """Parse the rows of numbers between two offsets of a file.

    Args:
        stream: The file.
        begin: Offset of the first row [bytes].
        end: Offset behind the last byte of text.
        dialect: Layout of the fields.
        options: Whether a last line that was cut off is refused, and the function that receives the progress.

    Returns:
        (columns, N) numbers, NaN where a field is empty, and whether a cut last line was left out.

    Raises:
        LogReadError: With the line number, if a field is no number or a row has another number of fields.
    """
    parser = _Parser(dialect)
    workers = _processors()
    waiting: deque[Future[Floats]] = deque()
    parts: list[Floats] = []
    line, cut, done = dialect.first_line + 1, False, 0
    with ThreadPoolExecutor(workers) as pool:
        for block, whole in _blocks(stream, begin, end):
            lines = int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == 10))
            cut = not whole and not options.strict and not parser.complete(block)
            if not cut:
                waiting.append(pool.submit(parser.parse, block, lines, line))
            line += lines
            done += len(block)
            options.tell(done, end - begin)
            if len(waiting) > 2 * workers:
                parts.append(waiting.popleft().result())
        parts += [future.result() for future in waiting]
    if not parts:
        raise LogReadError("it holds no data rows", remedy="Record it again.")
    return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0], cut


def _processors() -> int:
    """Processors this process may use, eight at most."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, 8)


def _blocks(stream: IO[bytes], begin: int, end: int) -> Iterator[tuple[bytes, bool]]:
    """The text in blocks of whole lines; a last line without line feed comes alone, marked as not whole."""
    stream.seek(begin)
    rest = b""
    while begin < end:
        data = stream.read(min(BLOCK_BYTES, end - begin))
        if not data:
            break
        begin += len(data)
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut], True
            rest = data[cut:]
        else:
            rest += data
        if len(rest) > MAX_LINE:
            raise LogReadError(f"a line is longer than {MAX_LINE} bytes", place=f"byte {begin}")
    if rest.strip():
        yield rest + b"\n", False


@dataclass(frozen=True, slots=True)
class _Parser:
    """Parses blocks of one dialect."""

    dialect: Dialect

    def parse(self, block: bytes, lines: int, first_line: int) -> Floats:
        """(columns, rows) of one block that ends in a line feed."""
        numeric = np.array(self.dialect.numeric)
        target = np.where(numeric, np.cumsum(numeric) - 1, -1).astype(np.int64)
        out = np.empty((int(numeric.sum()), lines))
        state = np.zeros(4, dtype=np.int64)
        text = block + bytes(8)  # the kernel looks eight bytes ahead
        kernel, powers, fives = _kernel()
        arguments = (
            text,
            len(block),
            ord(self.dialect.delimiter),
            ord(self.dialect.decimal),
            target.size,
            target.ctypes.data,
            out.ctypes.data,
            lines,
            powers.ctypes.data,
            fives.ctypes.data,
            state.ctypes.data,
        )
        while (status := kernel(*arguments)) != _DONE:
            self._continue(status, block, state, target, out, first_line)
        return out[:, : int(state[1])]

    def complete(self, line: bytes) -> bool:
        """Whether a line has all its fields."""
        try:
            self.parse(line, line.count(b"\n"), 1)
        except LogReadError:
            return False
        return True

    def _continue(self, status: int, block: bytes, state: Any, target: Any, out: Floats, first_line: int) -> None:
        """Convert the number the kernel stopped at and set the state behind it; or say what is wrong, and where."""
        position, row, field = (int(number) for number in state[:3])
        token = self._token(block, position)
        if status == _CONVERT and is_number(token, self.dialect.decimal):
            out[target[field], row] = float(token.replace(self.dialect.decimal, "."))
            state[0], state[3] = position + len(token), 1
            return
        above = block.count(b"\n", 0, position)
        if status == _BAD and is_number(token, self.dialect.decimal):
            reason = f"the row has more than {len(target)} fields"
        elif status == _SHORT:
            reason = f"the row has fewer than {len(target)} fields"
        else:
            reason = f"field {field + 1} ({self.dialect.names[field]}) should be a number, not '{token[:40]}'"
        raise LogReadError(
            reason,
            place=f"line {first_line + above}",
            remedy="Remove or mend the line.",
        )

    def _token(self, block: bytes, position: int) -> str:
        """The text of the field that begins there."""
        stops = (
            rb" \t\r\n" if self.dialect.delimiter == BLANK else rb" \r\n" + re.escape(self.dialect.delimiter.encode())
        )
        match = re.compile(b"[^" + stops + b"]*").match(block, position)
        return match[0].decode("utf-8", "replace") if match else ""


@cache
def _kernel() -> tuple[Any, Floats, Any]:
    """The compiled kernel and its two tables."""
    from dynid.tape.llvm.engine import load_code, optimise_text

    folder = resources.files(__package__)
    printed = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("nearest_double.ll", "decimals.ll"))
    code = load_code(f"rows {hashlib.sha256(printed.encode()).hexdigest()}", lambda: (optimise_text(printed), 2))
    integer, pointer = ctypes.c_int64, ctypes.c_void_p
    signature = ctypes.CFUNCTYPE(
        integer,
        ctypes.c_char_p,
        integer,
        ctypes.c_int8,
        ctypes.c_int8,
        integer,
        *[pointer] * 2,
        integer,
        *[pointer] * 3,
    )
    function = signature(code.address("parse_rows"))
    function.code = code  # type: ignore[attr-defined]  # as long as this lives, the function does
    return function, np.array([10.0**k for k in range(23)]), _powers_of_five()


def _powers_of_five() -> Any:
    """(651, 2) the 128 leading bits of 5^e for e = -342 to 308, rounded down, reciprocals up; high word first."""
    rows = []
    for e in range(-342, 309):
        power = 5 ** abs(e)
        length = power.bit_length()
        if e >= 0:
            bits = power << (128 - length) if length <= 128 else power >> (length - 128)
        else:
            bits = (1 << (length + 127)) // power + 1
            bits = bits if bits < 1 << 128 else bits >> 1
        rows.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(rows, dtype=np.uint64)


BLANK = " "
"""Stands for any run of spaces and tabs."""
SAMPLE_LINES = 50
"""Number of rows that are used to choose a dialect (convention)."""
HEADER_LINES = 100
"""Number of lines within which the numbers must begin (convention)."""
_CANDIDATES = tuple((delimiter, decimal) for delimiter in (",", ";", "\t", "|", BLANK) for decimal in (".", ","))
_NUMBER = re.compile(r"[+-]?(?:(?:\d++\.?\d*+|\.\d++)(?:e[+-]?\d++)?|nan|inf|infinity)", re.IGNORECASE | re.ASCII)
LONGEST_NUMBER = 1100
"""Most letters of a number (derivation: a double needs at most 767 digits, or 1077 when it is written in full)."""
LONGEST_NAME = 1000
"""Most letters of the name of a column (convention)."""
_COMMENT = re.compile(r"\A\s*(?:#|%|//)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Layout of the fields of a text file."""

    delimiter: str
    """One character; `BLANK` for any run of spaces and tabs."""
    decimal: str
    """"." or ","."""
    names: tuple[str, ...]
    """One per field; c1, c2, ... without a header."""
    numeric: tuple[bool, ...]
    """Which fields hold numbers; the others are passed over."""
    first_line: int
    """Index of the first row of numbers among the lines, from 0."""
    values: tuple[tuple[float, ...], ...]
    """The sampled rows, to tell two readings of the same text apart."""
    words: tuple[str | None, ...]
    """The word that a field holds in every sampled row; None for numbers and changing words."""
    units: tuple[str | None, ...]
    """The unit that a second header line, or brackets behind a name, declare; None without."""
    named: bool
    """Whether a header fits the fields."""
    doubt: int
    """0: numbers only; 1: some columns hold words; 2: some rows do not fit, for the parser to name."""


def is_number(token: str, decimal: str) -> bool:
    """Whether a field is a number with that decimal sign."""
    if len(token) > LONGEST_NUMBER:
        return False
    if decimal == ",":
        token = "!" if "." in token else token.replace(",", ".")
    return _NUMBER.fullmatch(token) is not None


def sniff(lines: list[str], options: Options) -> Dialect:
    """Choose the dialect of a file from its first lines.

    Raises:
        LogReadError: If no reading makes a table of numbers, or if two different ones do.
    """
    found = [
        dialect
        for delimiter, decimal in _CANDIDATES
        if options.delimiter in (None, delimiter) and options.decimal in (None, decimal)
        if (dialect := _read_as(lines, delimiter, decimal)) is not None
    ]
    headed = [dialect for dialect in found if dialect.named] or found
    best = min((dialect.doubt for dialect in headed), default=0)
    whole = [dialect for dialect in headed if dialect.doubt == best]
    if best == 2:
        return max(whole, key=lambda dialect: sum(dialect.numeric))
    commas = [dialect for dialect in headed if dialect.delimiter == "," and whole[0].decimal == ","]
    distinct = {(dialect.values, dialect.numeric): dialect for dialect in reversed([*whole, *commas])}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    content = [line for line in lines if line.strip()]
    words = [word for line in content for word in re.split(r"[,;|\s]+", line)]
    if not found and content and content[0].lstrip().startswith(("{", "[{", "[[")):
        raise LogReadError(
            "it is JSON under another ending",
            remedy="Give it the ending .json; dynid reads a list of records with one entry per sample.",
        )
    if not found and 1 <= len(content) <= 2 and not any(is_number(word, ".") for word in words):
        raise LogReadError(
            "it has no data rows: no line of numbers follows a header",
            place=f"line {_first_content(lines) + 1}",
            remedy="Record it again: at most the names of columns were written.",
        )
    if not found:
        raise LogReadError(
            "no line of numbers with a steady number of fields was found",
            place=f"line {_first_content(lines) + 1}",
            remedy="Check the file, or declare delimiter and decimal under [reader] in the channel map.",
        )
    readings = " or ".join(f"{len(d.numeric)} fields (delimiter {d.delimiter!r})" for d in distinct.values())
    raise LogReadError(
        f"it can be read as {readings}",
        place=f"line {whole[0].first_line + 1}",
        remedy="Declare delimiter and decimal under [reader] in the channel map.",
    )


def _first_content(lines: list[str]) -> int:
    """Index of the first line that is not blank."""
    return sum(1 for _ in takewhile(lambda line: not line.strip(), lines))


def _fields(line: str, delimiter: str) -> list[str]:
    """The fields of a line."""
    return line.split() if delimiter == BLANK else [field.strip() for field in line.split(delimiter)]


def _read_as(lines: list[str], delimiter: str, decimal: str) -> Dialect | None:
    """The file as a table in one dialect, or None if it is not one."""
    first = next((i for i, line in enumerate(lines[:HEADER_LINES]) if _starts_table(line, delimiter, decimal)), None)
    if first is None:
        return None
    rows = [_fields(line, delimiter) for line in lines[first : first + SAMPLE_LINES] if line.strip()]
    width = len(rows[0])
    fitting = [row for row in rows if len(row) == width]
    uneven = len(fitting) < len(rows) - (len(rows) > 1 and len(rows[-1]) < width)  # the last line may have been cut
    if width > MAX_COLUMNS or 2 * len(fitting) <= len(rows):
        return None
    shares = [_share_of_numbers([row[k] for row in fitting if row[k]], decimal) for k in range(width)]
    numeric = tuple(share > 0.0 for share in shares)
    words = [row[k] for row in fitting for k in range(width) if not numeric[k]]
    if not any(numeric) or any(_several(word) for word in words):
        return None
    said = [{row[k].strip("\"'") for row in fitting} for k in range(width)]
    header = _header(lines[:first], delimiter, width)
    names, units = header or (tuple(f"c{k + 1}" for k in range(width)), (None,) * width)
    values = tuple(tuple(_value(row[k], decimal) for k in range(width) if numeric[k]) for row in fitting)
    return Dialect(
        delimiter=delimiter,
        decimal=decimal,
        names=names,
        units=units,
        numeric=numeric,
        words=tuple(next(iter(field)) if len(field) == 1 and not numeric[k] else None for k, field in enumerate(said)),
        first_line=first,
        values=values,
        named=header is not None,
        doubt=2 if uneven or any(0.0 < share < 1.0 for share in shares) else int(not all(numeric)),
    )


def _share_of_numbers(tokens: list[str], decimal: str) -> float:
    """Which part of a column's fields are numbers; 0 for an empty column."""
    return sum(is_number(token, decimal) for token in tokens) / len(tokens) if tokens else 0.0


def _several(word: str) -> bool:
    """Whether a word is rather several fields that another delimiter separates."""
    parts = word.split()
    return bool(set(word) & set(",;\t|")) or (len(parts) > 1 and all(is_number(part, ".") for part in parts))


def _value(token: str, decimal: str) -> float:
    """The number in a field; minus infinity stands for a missing one, because NaN equals nothing."""
    usable = is_number(token, decimal) and token.lower().strip("+-") != "nan"
    return float(token.replace(decimal, ".")) if usable else float("-inf")


def _starts_table(line: str, delimiter: str, decimal: str) -> bool:
    """Whether at least half of a line's fields are numbers."""
    if _COMMENT.match(line):
        return False
    filled = [field for field in _fields(line, delimiter) if field]
    numbers = sum(is_number(field, decimal) for field in filled)
    return 0 < len(filled) <= 2 * numbers


def _header(above: list[str], delimiter: str, width: int) -> tuple[tuple[str, ...], tuple[str | None, ...]] | None:
    """Names and units: the lowest line above the numbers with the right number of fields, or the two lowest."""
    fitting = []
    for line in reversed(above):
        fields = [name.strip().strip("\"'").strip() for name in _fields(_COMMENT.sub("", line, count=1), delimiter)]
        if max(map(len, fields), default=0) > LONGEST_NAME:
            continue
        if len(fields) == width and any(fields) and (width > 1 or "," not in line):
            fitting.append(fields)
    if not fitting:
        return None
    second = [declared_unit(f"({field.strip('[]()')})")[1] for field in fitting[0]]
    if len(fitting) > 1 and all(unit or not field for unit, field in zip(second, fitting[0])):
        return _distinct(fitting[1]), tuple(second)
    return _distinct(fitting[0]), tuple(declared_unit(name)[1] for name in fitting[0])


def _distinct(fields: list[str]) -> tuple[str, ...]:
    """Names with the empty ones filled in and the repeated ones numbered."""
    names: list[str] = []
    for k, name in enumerate(fields):
        label = name or f"c{k + 1}"
        names.append(label if label not in names else f"{label}#{k + 1}")
    return tuple(names)
