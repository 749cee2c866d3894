"""Read JSON logs as test benches of servos write them: a list of records, one per sample, and constants next to it.

``{"kp": 100, "entries": [{"timestamp": 0.01, "position": 0.2}, ...]}`` gives the columns timestamp and position and the
constant kp. A list of numbers is a column, too. Names of nested objects are joined by dots.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, MAX_DEPTH, ColumnTable, Options, as_column, note_left_out

_REMEDY = "Write one object per sample with the same numbers in each, or lists of equal length."


def read(
    path: Path, options: Options, rows: int
) -> Iterator[ColumnTable]:  # this format has no options and is read whole
    """Read the records and constants of a JSON file."""
    content = _parse(path)
    if isinstance(content, list):  # a list without a name, of records or of numbers
        content = {"array": content}
    fields = _unroll_records(dict(_flatten("", content)))
    columns: dict[str, Floats] = {}
    constants = {}
    left_out = []
    for name, value in fields.items():
        listed = value if isinstance(value, list) else [value]
        if any(isinstance(item, str) for item in listed):
            left_out.append(name)
        elif isinstance(value, list) and value:
            columns[name] = _column(name, value)
        elif isinstance(value, int | float):
            constants[name] = float(value)
    if not columns or len(columns) > MAX_COLUMNS:
        raise LogReadError(f"it holds {len(columns) or 'no'} series of numbers", remedy=_REMEDY)
    yield ColumnTable(columns=columns, constants=constants, notes=note_left_out("fields", left_out))


def _parse(path: Path) -> Any:
    """The content of a JSON file."""
    try:
        return json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        reason = f"the JSON text is incomplete or malformed ({error.msg})"
        raise LogReadError(reason, place=place, remedy="Write it again.") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise LogReadError("it is no JSON text that can be read", remedy="Write it again.") from error


def _unroll_records(fields: dict[str, Any]) -> dict[str, Any]:
    """Replace every list of records by one list of values per key; a key that a record lacks gives None there.

    The name of the list becomes a prefix where there are several lists of records.
    """
    lists = [name for name, value in fields.items() if isinstance(value, list) and value and isinstance(value[0], dict)]
    for name in lists:
        samples = [dict(_flatten("", record)) for record in fields.pop(name)]
        prefix = "" if len(lists) == 1 else f"{name}."
        keys = dict.fromkeys(key for sample in samples for key in sample)
        fields |= {prefix + key: [sample.get(key) for sample in samples] for key in keys}
    return fields


def _flatten(prefix: str, content: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Names, joined by dots behind the prefix, and values of an object and of the objects in it."""
    if not isinstance(content, dict) or depth > MAX_DEPTH:
        raise LogReadError("it is no object with records", place=prefix or None, remedy=_REMEDY)
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _flatten(f"{prefix}{key}.", value, depth + 1)
        else:
            yield f"{prefix}{key}", value


def _column(name: str, values: list[Any]) -> Floats:
    """A column (N,) or (N, k) of numbers, or of lists of numbers of one length; None becomes NaN."""
    width = next((len(value) for value in values if isinstance(value, list)), None)
    if width is not None:
        values = [[None] * width if value is None else value for value in values]
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise LogReadError("it holds other things than numbers", place=name, remedy=_REMEDY) from error
    if array.ndim > 3 or array.size == 0:  # a matrix per sample is flattened; deeper nesting is no measurement
        raise LogReadError(f"an array of shape {array.shape} is no table", place=name, remedy=_REMEDY)
    return as_column(array)
