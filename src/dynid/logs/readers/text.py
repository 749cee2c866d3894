"""CSV, TSV and blank-separated text, with or without a header, read by pandas.

`read` is the reader. The dialect (delimiter, decimal sign, names and units of the columns) is found from the first
lines by `sniff`; ambiguous files are refused. A field with text where numbers should be is a missing sample, and so is
an empty one; notes name the lines.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import numpy as np

from dynid.array_types import Floats, Ints
from dynid.errors import LogReadError
from dynid.logs.column_names import quantity_in, words_of
from dynid.logs.readers.base import MAX_COLUMNS, ColumnTable, Options, note_left_out
from dynid.logs.units import declared_unit

HEAD_BYTES = 2**18
"""Bytes at the beginning that are used to choose a dialect, and at the end that are searched for a last line that was
cut off (convention: enough for a header and some rows)."""
SAMPLE_LINES, HEADER_LINES = 50, 100
"""Number of rows that are used to choose a dialect, and of lines within which the numbers must begin (convention)."""
LONGEST_FIELD = 1100
"""Most letters of a number (derivation: a double needs at most 1077 when it is written in full) and of the name of a
column (convention)."""
LARGEST_SKIPPED_SHARE = 0.05
"""Largest share of lines with too many fields (convention: that of missing samples, `dynid.processing.Cleaning`)."""
BLANK = " "
"""Delimiter that stands for any number of spaces and tabs."""
_NUMBER = re.compile(r"[+-]?(?:(?:\d++\.?\d*+|\.\d++)(?:e[+-]?\d++)?|nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_COMMENT = re.compile(r"\A\s*(?:#|%|//)\s*")


def read(path: Path, options: Options, rows: int) -> Iterator[ColumnTable]:
    """Read a text file of numbers; columns of words are left out and named in the notes.

    Args:
        path: The file.
        options: Delimiter and decimal sign where they are known.
        rows: Rows per table; 0 for one table of the whole file.
    """
    with path.open("rb") as file:
        stream, lost = _without_zeros(file)
        head = stream.read(HEAD_BYTES)
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise LogReadError("it is UTF-16 text", place="byte 0", remedy="Save it as UTF-8.")
        head = head.removeprefix(b"\xef\xbb\xbf")  # the byte order mark of UTF-8
        dialect = sniff(_lines(head, is_whole=not stream.read(1)), options)
        notes = () if dialect.named else ("no header: columns are named c1, c2, ...",)
        words = [name for name, numeric in zip(dialect.names, dialect.numeric) if not numeric]
        table = ColumnTable(
            columns={},
            units={name: unit for name, unit in zip(dialect.names, dialect.units) if unit and name not in words},
            notes=(*notes, *note_left_out("columns", words)),
        )
        if dialect.corrupt:
            lost.append(f"{len(dialect.corrupt)} rows hold no numbers ({_ranges(dialect.corrupt)}) and were left out")
        for columns, faults in _parse(stream, dialect, rows):
            yield replace(table, columns=columns, salvaged=(*lost, *faults))
            lost = []  # they are told with the first table only


def _without_zeros(stream: IO[bytes]) -> tuple[IO[bytes], list[str]]:
    """The text without zero bytes at its end, as a power failure leaves them, and a list of notes about them."""
    size = stream.seek(0, io.SEEK_END)
    if size == 0:
        raise LogReadError("it is empty", remedy="Record it again.")
    stream.seek(size - 1)
    has_zeros = stream.read() == b"\0"
    stream.seek(0)
    if not has_zeros:
        return stream, []
    text = stream.read().rstrip(b"\0")
    if not text:
        raise LogReadError("it holds zero bytes only", remedy="Record it again.")
    return io.BytesIO(text), [f"{size - len(text)} zero bytes at the end were left out"]


def _lines(head: bytes, *, is_whole: bool) -> list[str]:
    """The first lines as text.

    Args:
        head: The first bytes of the file.
        is_whole: Whether they are the whole file; otherwise the last line is dropped, because it may be cut.
    """
    if b"\0" in head:
        raise LogReadError("it is not text", place=f"byte {head.index(0)}", remedy="Give it the suffix of its format.")
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        text = head.decode("latin-1")
    lines = text.split("\n")
    if not is_whole and len(lines) == 1:
        raise LogReadError(f"its first line is longer than {HEAD_BYTES} bytes", place="line 1")
    return lines if is_whole else lines[:-1]


def _parse(stream: IO[bytes], dialect: Dialect, rows: int) -> Iterator[tuple[dict[str, Floats], list[str]]]:
    """Parse the rows with pandas, piece by piece.

    Args:
        stream: The text.
        dialect: Layout of the text.
        rows: Rows per piece; 0 for one piece.

    Yields:
        Column -> values (N,) of a piece, and clauses about samples that are missing or were left out.
    """
    import pandas as pd

    has_cut_line = _is_cut(stream, dialect)
    stream.seek(0)
    for _ in range(dialect.first_line):
        stream.readline()
    begin = stream.tell()
    done = 0  # rows of earlier pieces
    for number, row in enumerate(stream if dialect.quoted else (), start=dialect.first_line + 1):
        if row.count(b'"') % 2:  # pandas would take all following lines for one field
            reason, remedy = "a quotation mark is not closed", "Remove or mend the line."
            raise LogReadError(reason, place=f"line {number}", remedy=remedy)
    stream.seek(begin)
    if has_cut_line:
        stream, begin = io.BytesIO(stream.read().rpartition(b"\n")[0]), 0
    try:
        with warnings.catch_warnings(record=True) as skips:  # pandas warns of lines with too many fields
            warnings.simplefilter("always")
            frames = pd.read_csv(
                stream, sep=r"\s+" if dialect.delimiter == BLANK else dialect.delimiter, decimal=dialect.decimal,
                header=None, names=range(len(dialect.names)), index_col=False, engine="c", low_memory=False,
                skipinitialspace=True, na_values=["NAN"], encoding="utf-8", encoding_errors="replace",
                on_bad_lines="warn", chunksize=rows or None,
                float_precision="round_trip",
            )  # fmt: skip
            for frame in frames if rows else [frames]:
                columns, bad = _numbers(frame, dialect)
                faults = ["the last line was cut off and left out"] if has_cut_line and not done else []
                if bad.size:
                    lines = _lines_of_rows(stream, begin, bad + done, dialect.first_line)
                    what = f"{bad.size} rows hold text where numbers should be ({_ranges(lines)})"
                    faults.append(f"{what}: these samples are missing")
                skipped = [int(word) for skip in skips for word in re.findall(r"line (\d+):", str(skip.message))]
                faults += _describe_skipped([line + dialect.first_line for line in skipped], dialect, len(frame))
                skips.clear()
                done += len(frame)
                yield columns, faults
    except pd.errors.EmptyDataError as error:
        raise LogReadError("it holds no data rows", remedy="Record it again.") from error


def _numbers(frame: Any, dialect: Dialect) -> tuple[dict[str, Floats], Ints]:
    """The columns of numbers of a pandas frame: name -> values (N,); and the rows in which one of them holds text."""
    import pandas as pd

    columns = {}
    bad = np.zeros(len(frame), dtype=bool)
    for k, name in enumerate(dialect.names):
        if not dialect.numeric[k]:
            continue
        column = frame[k]
        if column.dtype.kind not in "fiu":  # pandas found other things than floats and integers
            text = column.astype(str).str.replace(dialect.decimal, ".", regex=False).where(column.notna())
            column = pd.to_numeric(text, errors="coerce")
            bad |= (column.isna() & text.notna()).to_numpy()
        columns[name] = column.to_numpy(dtype=np.float64)
    return columns, np.flatnonzero(bad)


def _describe_skipped(lines: Sequence[int], dialect: Dialect, rows: int) -> list[str]:
    """A clause about lines with too many fields, which pandas left out.

    Args:
        lines: The lines, counted from 1.
        dialect: Layout of the text.
        rows: Number of rows that were read.

    Raises:
        LogReadError: More than `LARGEST_SKIPPED_SHARE` of the rows, and more than one, have too many fields.
    """
    what = f"{len(lines)} rows have more than {len(dialect.names)} fields"
    if len(lines) > max(LARGEST_SKIPPED_SHARE * rows, 1):
        raise LogReadError(what, place=f"line {lines[0]}", remedy="Remove or mend these lines.")
    return [f"{what} ({_ranges(lines)}) and were left out"] if lines else []


def _lines_of_rows(stream: IO[bytes], begin: int, rows: Ints, first_line: int) -> list[int]:
    """Lines in the file, counted from 1, of some rows of numbers, counted from 0; blank lines are no rows.

    Args:
        stream: The text; its position is kept, because pandas is still reading.
        begin: Byte at which the first row begins.
        rows: The rows.
        first_line: Index of the line of the first row.
    """
    place = stream.tell()
    wanted = set(rows.tolist())
    stream.seek(begin)
    filled = (number for number, line in enumerate(stream, start=first_line + 1) if line.strip())
    found = [number for row, number in enumerate(filled) if row in wanted]
    stream.seek(place)
    return found


def _ranges(lines: Sequence[int]) -> str:
    """Ascending lines as text: ``lines 2 to 11, 40``; the first six ranges of many."""
    # in a range of consecutive lines the difference of line and index is constant
    ranges = [[line for _, line in group] for _, group in groupby(enumerate(lines), lambda pair: pair[1] - pair[0])]
    words = [f"{some[0]} to {some[-1]}" if len(some) > 1 else str(some[0]) for some in ranges]
    plural = "s" if len(lines) > 1 else ""
    more = " ..." if len(words) > 6 else ""
    return f"line{plural} {', '.join(words[:6])}{more}"


def _is_cut(stream: IO[bytes], dialect: Dialect) -> bool:
    """Whether the last line was cut off: it has no line break at its end, and not all fields or a broken number."""
    stream.seek(max(0, stream.seek(0, io.SEEK_END) - HEAD_BYTES))
    last = stream.read().rpartition(b"\n")[2].decode("utf-8", "replace")
    fields = _fields(last, dialect.delimiter)
    numbers = [field for field, numeric in zip(fields, dialect.numeric) if numeric and field]
    is_whole = len(fields) == len(dialect.names) and all(is_number(field, dialect.decimal) for field in numbers)
    return bool(last.strip()) and not is_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Layout of a text file, with what its first lines tell."""

    delimiter: str
    """One character; `BLANK` for any number of spaces and tabs."""
    decimal: str
    """Decimal sign, a point or a comma."""
    names: tuple[str, ...]
    """One per field; c1, c2, ... without a header."""
    numeric: tuple[bool, ...]
    """For each field whether it holds numbers; other fields are left out."""
    first_line: int
    """Index of the first row of numbers among the lines, from 0."""
    values: tuple[tuple[float, ...], ...]
    """The first rows of numbers; they show whether two dialects read the same text alike."""
    units: tuple[str | None, ...]
    """For each field the unit that a line of units, or brackets behind the name, declare; None without."""
    named: bool
    """Whether a header fits the fields."""
    corrupt: tuple[int, ...]
    """Lines between the header and the first row of numbers that look like rows, but hold no numbers; from 1."""
    quoted: bool
    """Whether fields stand in quotation marks."""
    doubt: int
    """0: numbers only; 1: some columns hold only words; 2: some rows have other numbers of fields, or text among the
    numbers of a column; `_parse` will name them."""


def is_number(token: str, decimal: str) -> bool:
    """Whether a field is a number with that decimal sign."""
    if len(token) > LONGEST_FIELD:
        return False
    if decimal == ",":
        token = "!" if "." in token else token.replace(",", ".")  # "!" is no number
    return _NUMBER.fullmatch(token) is not None


def sniff(lines: list[str], options: Options) -> Dialect:
    """Choose the dialect of a file from its first lines.

    Raises:
        LogReadError: If no reading makes a table of numbers, or if two different ones do.
    """
    if options.delimiter is None:
        _refuse_commas_of_two_kinds(lines[:SAMPLE_LINES])
    found = [
        dialect
        for delimiter in ",;\t|" + BLANK
        for decimal in ".,"
        if options.delimiter in (None, delimiter) and options.decimal in (None, decimal)
        if (dialect := _read_as(lines, delimiter, decimal)) is not None
    ]
    if not found:
        raise _no_table(lines)
    headed = [dialect for dialect in found if dialect.named] or found  # a header that fits is evidence
    least_doubt = min(dialect.doubt for dialect in headed)
    best = [dialect for dialect in headed if dialect.doubt == least_doubt]
    if least_doubt == 2:  # a damaged file: the dialect that finds most columns of numbers
        return max(best, key=lambda dialect: sum(dialect.numeric))
    # with a comma as decimal sign the comma could also be the delimiter, even if it leaves more doubt
    commas = [dialect for dialect in headed if dialect.delimiter == "," and best[0].decimal == ","]
    distinct = {(dialect.values, dialect.numeric): dialect for dialect in reversed([*best, *commas])}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    readings = " or ".join(f"{len(d.numeric)} fields (delimiter {d.delimiter!r})" for d in distinct.values())
    raise LogReadError(
        f"it can be read as {readings}",
        place=f"line {best[0].first_line + 1}",
        remedy="Declare delimiter and decimal under [reader] in the channel map.",
    )


def _refuse_commas_of_two_kinds(lines: list[str]) -> None:
    """Refuse rows in which commas separate fields and decimals, too: each has more fields than names, and no point."""
    head, *rows = [list(filter(None, _fields(line, ","))) for line in lines if line.strip()] or [[]]
    if rows and 1 < len(head) < min(map(len, rows)) and not any(set(line) & set(".;\t|") for line in lines[1:]):
        raise LogReadError("commas separate the fields and the decimals", place="line 2",
                           remedy="Write it with semicolons between the fields, or with decimal points.")  # fmt: skip


def _no_table(lines: list[str]) -> LogReadError:
    """The error for text that is no table of numbers."""
    content = [line for line in lines if line.strip()]
    words = [word for line in content for word in re.split(r"[,;|\s]+", line)]
    place = f"line {next((k for k, line in enumerate(lines) if line.strip()), len(lines)) + 1}"
    if 1 <= len(content) <= 2 and not any(is_number(word, ".") for word in words):
        remedy = "Record it again: at most the names of columns were written."
        return LogReadError("it has no data rows: no line of numbers follows a header", place=place, remedy=remedy)
    remedy = "Check the file, or declare delimiter and decimal under [reader] in the channel map."
    return LogReadError("no line of numbers with a steady number of fields was found", place=place, remedy=remedy)


def _fields(line: str, delimiter: str) -> list[str]:
    """The fields of a line, without blanks around them; a delimiter in quotation marks does not separate."""
    if delimiter == BLANK:
        return line.split()
    parts = next(csv.reader([line], delimiter=delimiter), []) if '"' in line else line.split(delimiter)
    return [field.strip() for field in parts]


def _read_as(lines: list[str], delimiter: str, decimal: str) -> Dialect | None:
    """Read the first lines in one dialect; None if they make no table of numbers."""
    first = next((i for i, line in enumerate(lines[:HEADER_LINES]) if _starts_table(line, delimiter, decimal)), None)
    if first is None:
        return None
    sample = [line for line in lines[first : first + SAMPLE_LINES] if line.strip()]
    rows = [_fields(line, delimiter) for line in sample]
    width = len(rows[0])
    fitting = [row for row in rows if len(row) == width]
    uneven = len(fitting) < len(rows) - (len(rows) > 1 and len(rows[-1]) < width)  # the last line may have been cut
    if width > MAX_COLUMNS or 2 * len(fitting) <= len(rows):
        return None
    fields = [[row[k] for row in fitting] for k in range(width)]
    # for each column the share of numbers among the fields that are not empty
    shares = [
        sum(is_number(token, decimal) for token in column if token) / max(sum(map(bool, column)), 1)
        for column in fields
    ]
    numeric = tuple(share > 0.0 for share in shares)
    words = [word for column, is_numeric in zip(fields, numeric) if not is_numeric for word in column]
    if not any(numeric) or any(_holds_fields(word) for word in words):
        return None
    header = _header(lines[:first], delimiter, width)
    names, units, corrupt = header or (tuple(f"c{k + 1}" for k in range(width)), (None,) * width, ())
    is_mixed = any(0.0 < share < 1.0 for share in shares)
    return Dialect(
        delimiter=delimiter,
        decimal=decimal,
        names=names,
        units=units,
        corrupt=corrupt,
        numeric=numeric,
        first_line=first,
        values=tuple(tuple(_value(row[k], decimal) for k in range(width) if numeric[k]) for row in fitting),
        named=header is not None,
        quoted=any('"' in line for line in sample),
        doubt=2 if uneven or is_mixed else 0 if all(numeric) else 1,
    )


def _holds_fields(word: str) -> bool:
    """Whether a field of text looks like several fields that another delimiter separates."""
    parts = word.split()
    return bool(set(word) & set(",;\t|")) or (len(parts) > 1 and all(is_number(part, ".") for part in parts))


def _value(token: str, decimal: str) -> float:
    """The number in a field; minus infinity for a missing one, because a NaN is not equal to itself."""
    usable = is_number(token, decimal) and token.lower().strip("+-") != "nan"
    return float(token.replace(decimal, ".")) if usable else float("-inf")


def _starts_table(line: str, delimiter: str, decimal: str) -> bool:
    """Whether a line can be the first row of the table: at least half of its fields are numbers."""
    if _COMMENT.match(line):
        return False
    filled = [field for field in _fields(line, delimiter) if field]
    numbers = sum(is_number(field, decimal) for field in filled)
    return 0 < len(filled) <= 2 * numbers


def _header(
    above: list[str], delimiter: str, width: int
) -> tuple[tuple[str, ...], tuple[str | None, ...], tuple[int, ...]] | None:
    """Find names and units of the columns in the lines above the numbers.

    Of the lines with the right number of different fields, the one with most words for quantities has the names, the
    lowest of several equal ones. A line of units may be below it.

    Args:
        above: The lines above the first row of numbers.
        delimiter: The delimiter.
        width: Number of fields.

    Returns:
        Names, units, and the lines below the names that are neither units nor numbers, counted from 1; None if no line
        has the right number of fields.
    """
    fitting: dict[int, list[str]] = {}  # line -> its fields, from the lowest line to the highest
    for number, line in reversed(list(enumerate(above, start=1))):
        fields = [name.strip("\"' ") for name in _fields(_COMMENT.sub("", line, count=1), delimiter)]
        fits = len(fields) == width and any(fields) and (width > 1 or "," not in line)
        if fits and max(map(len, fields)) <= LONGEST_FIELD:
            fitting[number] = fields
    if not fitting:
        return None
    spelled = {line: [declared_unit(f"({field.strip('[]()')})")[1] for field in fitting[line]] for line in fitting}
    of_units = {line for line in fitting if all(unit or not field for unit, field in zip(spelled[line], fitting[line]))}
    named = [line for line in fitting if line not in of_units] or [min(fitting)]
    distinct = [line for line in named if len(set(fitting[line])) == width] or named[:1]
    place = max(distinct, key=lambda line: sum(quantity_in(words_of(word)) is not None for word in fitting[line]))
    below = sorted(line for line in fitting if line > place)
    listed = next((spelled[line] for line in below if line not in named), None)
    names: list[str] = []
    for k, name in enumerate(fitting[place]):
        label = name or f"c{k + 1}"
        names.append(label if label not in names else f"{label}#{k + 1}")
    corrupt = tuple(line for line in below if line in named)
    return tuple(names), tuple(listed or [declared_unit(name)[1] for name in fitting[place]]), corrupt
