"""CSV, TSV and blank-separated text, with or without a header: the dialect is detected, and refused when ambiguous.

Numbers are converted block by block in a small native kernel that is compiled on first use (``decimals.ll``). It
converts every number that it can decide, correctly rounded; the few that it cannot (more than 19 digits, infinities) go
to Python's own conversion. Several threads parse, for the kernel needs no interpreter. docs/decisions.md has the
measurement against libraries.
"""

from __future__ import annotations

import ctypes
import io
import os
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import IO, Any

import numpy as np

from dynid.errors import LogReadError
from dynid.logs.readers.base import Floats, Options, Table
from dynid.logs.readers.dialect import BLANK, Dialect, is_number, sniff

__all__ = ["parse_rows", "read"]

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
        return match[0].decode("latin-1") if match else ""


@cache
def _kernel() -> tuple[Any, Floats, Any]:
    """The compiled kernel and its two tables."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    folder = resources.files(__package__)
    sources = [(folder / name).read_text(encoding="utf-8") for name in ("nearest_double.ll", "decimals.ll")]
    module = llvm.parse_assembly("\n".join(sources))
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
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
    function = signature(engine.get_function_address("parse_rows"))
    function.engine = engine  # type: ignore[attr-defined]  # the code lives as long as its engine
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
