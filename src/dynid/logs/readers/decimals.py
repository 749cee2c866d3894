"""Decimal text to columns of doubles at memory speed: a small native kernel, compiled on first use, fed block by block.

The kernel (``decimals.ll``) converts every number it can decide, correctly rounded; the few it cannot (more than 19
digits, infinities) go to Python's own conversion. Several threads parse, for the kernel needs no interpreter.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import IO, Any

import numpy as np

from dynid.errors import LogReadError
from dynid.logs.readers.base import Floats, Options
from dynid.logs.readers.dialect import BLANK, Dialect, is_number

__all__ = ["parse_rows"]

BLOCK_BYTES = 2**21
"""Text handed to one thread at a time [bytes]."""
MAX_LINE = 2**24
"""Longest line [bytes]."""
_DONE, _CONVERT, _BAD, _SHORT = range(4)


def parse_rows(stream: IO[bytes], begin: int, end: int, dialect: Dialect, options: Options) -> tuple[Floats, bool]:
    """Parse the rows of numbers between two offsets of a file.

    Args:
        stream: The file.
        begin: Offset of the first row [bytes].
        end: Offset behind the last byte of text.
        dialect: How fields stand in a row.
        options: Whether a last line that was cut off is refused, and who is told of the progress.

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
