"""JSON logs, as test benches of servos write them: a list of records with one entry per sample, beside constants.

``{"kp": 100, "entries": [{"timestamp": 0.01, "position": 0.2}, ...]}`` gives the columns timestamp and position and the
constant kp. Lists of numbers are columns, too; nested names are joined by dots.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Options, Table, as_column, note_left_out

MAX_JSON = 2**30
"""Largest JSON file [bytes] (convention: it takes about ten times as much memory)."""
MAX_DEPTH = 8
"""Deepest nesting of names (convention)."""
_REMEDY = "Write one object per sample with the same numbers in each, or lists of equal length."


def read(path: Path, options: Options, rows: int) -> Iterator[Table]:
    """Read the records and constants of a JSON file."""
    if path.stat().st_size > MAX_JSON:
        raise LogReadError(f"it is larger than {MAX_JSON} bytes", remedy="Write large logs as Parquet or npz.")
    try:
        content = json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise LogReadError(f"it is no whole JSON ({error.msg})", place=place, remedy="Write it again.") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise LogReadError("it is no JSON text that can be read", remedy="Write it again.") from error
    parts = _Parts()
    if isinstance(content, list) and content and not isinstance(content[0], Mapping):
        content = {"array": content}
    parts.take("", {"": content} if isinstance(content, list) else content, 0)
    if not parts.columns:
        raise LogReadError("it holds no series of numbers", remedy=_REMEDY)
    notes = note_left_out("fields", parts.left_out)
    yield Table(columns=parts.columns, constants=parts.constants, words=parts.words, notes=notes)


class _Parts:
    """Columns, constants and words found so far."""

    def __init__(self) -> None:
        self.columns: dict[str, Floats] = {}
        self.constants: dict[str, float] = {}
        self.words: dict[str, str] = {}
        self.left_out: list[str] = []

    def take(self, prefix: str, content: Any, depth: int) -> None:
        """Take an object with constants, lists and further objects."""
        if not isinstance(content, Mapping) or depth > MAX_DEPTH:
            raise LogReadError("it is no object with records", remedy=_REMEDY)
        records = [key for key, value in content.items() if _is_records(value)]
        for key, value in content.items():
            name = f"{prefix}{key}"
            if key in records:
                self._records("" if len(records) == 1 else f"{name}.", value, name or "record")
            elif isinstance(value, Mapping):
                self.take(f"{name}.", value, depth + 1)
            elif isinstance(value, list):
                if value:
                    self._add(name, value, name)
            elif isinstance(value, str):
                self.words[name] = value
            elif value is not None:
                self.constants[name] = float(value)

    def _records(self, prefix: str, records: Sequence[Any], place: str) -> None:
        """Take a list of objects: one column for every field that holds numbers."""
        flat = [dict(_fields("", record, f"{place}[{k}]", 0)) for k, record in enumerate(records)]
        names = list(dict.fromkeys(name for record in flat for name in record))
        for name in names:
            values = [record.get(name) for record in flat]
            texts = {value for value in values if isinstance(value, str)}
            if texts:
                if len(texts) == 1:
                    self.words[prefix + name] = texts.pop()
                else:
                    self.left_out.append(prefix + name)
                continue
            self._add(prefix + name, values, f"{place}[...].{name}")

    def _add(self, name: str, values: Sequence[Any], place: str) -> None:
        """Add a column of numbers, or of lists of numbers of one length."""
        if len(self.columns) >= MAX_COLUMNS:
            raise LogReadError(f"it has more than {MAX_COLUMNS} fields", remedy=_REMEDY)
        width = next((len(value) for value in values if isinstance(value, list)), None)
        if width is not None:
            values = [[None] * width if value is None else value for value in values]
        try:
            array = np.array(values, dtype=np.float64)  # None becomes NaN
        except (TypeError, ValueError, OverflowError) as error:
            raise LogReadError("it holds other things than numbers", place=place, remedy=_REMEDY) from error
        if array.ndim > 3 or array.size == 0:
            raise LogReadError(f"an array of shape {array.shape} is no table", place=place, remedy=_REMEDY)
        self.columns[name] = as_column(array)


def _is_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _fields(prefix: str, record: object, place: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Name and value of every field of a record."""
    if not isinstance(record, Mapping) or depth > MAX_DEPTH:
        raise LogReadError("it is no object of numbers", place=place, remedy=_REMEDY)
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from _fields(f"{prefix}{key}.", value, place, depth + 1)
        else:
            yield f"{prefix}{key}", value
