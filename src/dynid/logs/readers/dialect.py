"""Detection of how a text file separates fields, writes decimals and names columns; ambiguous files are refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Options
from dynid.logs.units import declared_unit

__all__ = ["BLANK", "Dialect", "is_number", "sniff"]

BLANK = " "
"""Stands for any run of spaces and tabs."""
SAMPLE_LINES = 50
"""Number of rows that are used to choose a dialect (convention)."""
HEADER_LINES = 100
"""Number of lines within which the numbers must begin (convention)."""
_CANDIDATES = tuple((delimiter, decimal) for delimiter in (",", ";", "\t", "|", BLANK) for decimal in (".", ","))
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_COMMENT = re.compile(r"\s*(?:#|%|//)\s*")


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
    units: tuple[str | None, ...]
    """The unit that a second header line, or brackets behind a name, declare; None without."""
    named: bool
    """Whether a header fits the fields."""
    doubt: int
    """0: numbers only; 1: some columns hold words; 2: some rows do not fit, for the parser to name."""


def is_number(token: str, decimal: str) -> bool:
    """Whether a field is a number with that decimal sign."""
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
    header = _header(lines[:first], delimiter, width)
    names, units = header or (tuple(f"c{k + 1}" for k in range(width)), (None,) * width)
    values = tuple(tuple(_value(row[k], decimal) for k in range(width) if numeric[k]) for row in fitting)
    return Dialect(
        delimiter=delimiter,
        decimal=decimal,
        names=names,
        units=units,
        numeric=numeric,
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
