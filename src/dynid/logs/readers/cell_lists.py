"""Text whose cells hold lists of numbers (``"[0.1, 0.2]"``), written as a plain table before it is parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import LogReadError

_LIST = re.compile(rb"[\[(]\s*[+-]?[.\d][^\[\]()\n]*,[^\[\]()\n]*[\])]")
"""A list of at least two numbers in brackets, on one line."""
_DELIMITERS = b",;\t|"
_REMEDY = "Write the same number of numbers into every cell of a column."


def has_lists(head: bytes) -> bool:
    """Whether the first line of data has cells with lists."""
    lines = head.split(b"\n", 2)
    return len(lines) > 1 and _LIST.search(lines[1]) is not None and _LIST.search(lines[0]) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedText:
    """A table with one number per field, fields separated by semicolons."""

    text: bytes
    widths: dict[str, int]
    """Column of lists -> numbers in each; its fields are called ``name[0]``, ``name[1]``, ..."""
    is_cut: bool
    """Whether a last line that was not whole was left out."""

    def joined(self, columns: dict[str, Floats]) -> dict[str, Floats]:
        """Columns with those of a list side by side, under its own name."""
        found: dict[str, Floats] = {}
        for name, values in columns.items():
            stem = name.rpartition("[")[0]
            if stem in self.widths:
                parts = [columns[f"{stem}[{k}]"] for k in range(self.widths[stem])]
                found.setdefault(stem, np.column_stack(parts))
            else:
                found[name] = values
        return found


def spread_lists(text: bytes, *, strict: bool) -> ListedText:
    """Write a text with lists in its cells as a plain table.

    Args:
        text: The whole text; its first line names the columns.
        strict: Refuse a last line that was cut off instead of leaving it out.

    Raises:
        LogReadError: A bracket is not closed, or lists of a column have different lengths; the place is the line.
    """
    header, _, body = text.partition(b"\n")
    body, is_cut = _whole_lines(body, strict)
    if not body:
        raise LogReadError("it holds no data rows", remedy="Record it again.")
    letters = np.frombuffer(body, dtype=np.uint8)
    opening, closing = np.isin(letters, [91, 40]), np.isin(letters, [93, 41])
    depth = np.cumsum(opening.astype(np.int32) - closing.astype(np.int32))
    ends = letters == 10
    wrong = (depth < 0) | (depth > 1) | (ends & (depth != 0))
    if wrong.any():
        line = 2 + int(np.count_nonzero(ends[: int(np.argmax(wrong))]))
        raise LogReadError("a bracket is not closed", place=f"line {line}", remedy="Remove or mend the line.")
    delimiter = next((mark for mark in _DELIMITERS if mark in header), ord(","))
    counts = _list_sizes(letters, opening, closing, depth, ends)
    names, widths = _header(header, chr(delimiter), _fields(body, delimiter), counts)
    plain = letters.copy()
    inside = depth == 1
    plain[(letters == 44) & inside] = 59
    plain[(letters == delimiter) & ~inside] = 59
    kept = plain[~(opening | closing | np.isin(letters, [34, 39]))]
    return ListedText(text=";".join(names).encode() + b"\n" + kept.tobytes(), widths=widths, is_cut=is_cut)


def _whole_lines(body: bytes, strict: bool) -> tuple[bytes, bool]:
    """The lines that end in a line feed, or whose brackets are closed."""
    cut = body.rfind(b"\n") + 1
    tail = body[cut:]
    if not tail.strip():
        return body[:cut], False
    first = body[: body.find(b"\n") + 1]
    marks = [first.count(mark) for mark in (b"[", b"]", b"(", b")", b'"', b",")]
    if not cut or [tail.count(mark) for mark in (b"[", b"]", b"(", b")", b'"', b",")] == marks:
        return body + b"\n", False
    if strict:
        raise LogReadError("its last line was cut off", remedy="Read it without strict to salvage it.")
    return body[:cut], True


Mask = NDArray[np.bool_]


def _list_sizes(
    letters: NDArray[np.uint8], opening: Mask, closing: Mask, depth: NDArray[np.int32], ends: Mask
) -> list[int]:
    """Numbers in each list of a row, the same in all rows."""
    commas = np.cumsum((letters == 44) & (depth == 1))
    sizes = commas[closing] - commas[opening] + 1
    line_of = np.cumsum(ends)[opening]
    filled = np.unique(line_of)
    per_line = len(sizes) // len(filled) if filled.size else 0
    counts = np.bincount(line_of)[filled] if filled.size else np.zeros(0, dtype=int)
    if per_line == 0 or (counts != counts[0]).any():
        odd = int(filled[int(np.argmax(counts != counts[0]))]) if filled.size else 0
        raise LogReadError("a row has another number of lists than the first", place=f"line {odd + 2}", remedy=_REMEDY)
    table = sizes.reshape(-1, per_line)
    wrong = (table != table[0]).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        k = int(np.argmax(table[row] != table[0]))
        raise LogReadError(
            f"a list holds {table[row, k]} numbers, the same one in the first row {table[0, k]}",
            place=f"line {int(filled[row]) + 2}",
            remedy=_REMEDY,
        )
    return [int(size) for size in table[0]]


def _fields(body: bytes, delimiter: int) -> list[bool]:
    """For each field of the first row, whether it holds a list."""
    line, depth, found, is_list = body[: body.find(b"\n")], 0, [], False
    for mark in line:
        depth += (mark in b"[(") - (mark in b"])")
        is_list = is_list or depth > 0
        if mark == delimiter and depth == 0:
            found.append(is_list)
            is_list = False
    return [*found, is_list]


def _header(header: bytes, delimiter: str, lists: list[bool], counts: list[int]) -> tuple[list[str], dict[str, int]]:
    """The names of all fields, and the lists among them."""
    names = [name.strip().strip("\"'").strip() for name in header.decode("utf-8", errors="replace").split(delimiter)]
    if len(names) != len(lists) or len(set(names)) != len(names) or sum(lists) != len(counts):
        raise LogReadError(
            f"its header names {len(names)} columns, its rows have {len(lists)}",
            place="line 1",
            remedy="Write one name for every column, each once.",
        )
    sizes = iter(counts)
    widths = {name: next(sizes) for name, is_list in zip(names, lists, strict=True) if is_list}
    spread = [[f"{name}[{k}]" for k in range(widths[name])] if name in widths else [name] for name in names]
    return [field for fields in spread for field in fields], widths
