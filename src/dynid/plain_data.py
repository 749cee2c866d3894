"""Dataclasses as JSON data and back: the one serialiser of dynid, for results, cached experiments and reports.

A value is written with the name of its type in ``type`` and one entry per field. The caller lists the types that a file
may hold; a name outside the list is refused, and so is a field that the type does not have. Numbers keep every bit.
Nothing in a file is ever executed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from dynid.errors import DataError, ExportError

__all__ = ["build_dataclass", "from_plain", "subclasses", "to_plain"]

T = TypeVar("T")
_ARRAY_TYPES: Mapping[str, type[np.generic]] = {"b": np.bool_, "i": np.int64, "f": np.float64}
"""Kind of a NumPy array -> type of its entries."""


def to_plain(value: Any, types: Iterable[type[Any]]) -> Any:
    """Turn a value into data that JSON can hold; numbers that are not finite become text.

    Args:
        value: Numbers, text, arrays, mappings, sequences and dataclasses, nested to any depth.
        types: The dataclasses that may occur.

    Raises:
        ExportError: The value holds a type that could not be read back.
    """
    return _plain(value, frozenset(types))


def _plain(value: Any, types: frozenset[type[Any]]) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item(), types)
    if isinstance(value, float):
        return value if np.isfinite(value) else {"type": "float", "value": repr(value)}
    if isinstance(value, np.ndarray):
        return {"type": "array", "kind": value.dtype.kind, "shape": list(value.shape), "values": _numbers(value)}
    if isinstance(value, Mapping):
        return {"type": "mapping", "items": [[key, _plain(item, types)] for key, item in value.items()]}
    if isinstance(value, tuple | list):
        return [_plain(item, types) for item in value]
    kind = type(value)
    if kind not in types or not is_dataclass(kind):
        raise ExportError(f"no file of this kind can hold a {kind.__name__}")
    named = {field.name: _plain(getattr(value, field.name), types) for field in fields(kind) if field.init}
    return {"type": kind.__name__, **named}


def from_plain(value: Any, types: Iterable[type[Any]]) -> Any:
    """Turn the output of `to_plain` back into the value; lists become tuples.

    Args:
        value: The data read from JSON.
        types: The dataclasses that may occur.

    Raises:
        DataError: The data name a type or a field that is not known, or a field is missing.
    """
    return _restore(value, {kind.__name__: kind for kind in types})


def _restore(value: Any, types: Mapping[str, type[Any]]) -> Any:
    if isinstance(value, list):
        return tuple(_restore(item, types) for item in value)
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind == "array":
        if value["kind"] not in _ARRAY_TYPES:
            raise DataError(f"the file holds an array of kind '{value['kind']}', which is not known here")
        numbers = np.array([float(item) for item in value["values"]])
        return numbers.astype(_ARRAY_TYPES[value["kind"]]).reshape(value["shape"])
    if kind == "mapping":
        return {key: _restore(item, types) for key, item in value["items"]}
    if kind == "float":
        return float(value["value"])
    if not isinstance(kind, str) or kind not in types:
        raise DataError(
            f"the file holds a '{kind}', which is not known here",
            remedy="Import the module that defines it, then read the file in Python.",
        )
    return build_dataclass(types[kind], {name: _restore(item, types) for name, item in value.items() if name != "type"})


def build_dataclass(kind: type[T], values: Mapping[str, Any]) -> T:
    """Build a dataclass from named values after checking the names against its fields.

    Raises:
        DataError: A name is not a field of the dataclass, or a field without a default has no value.
    """
    known = {field.name: field for field in fields(kind) if field.init}  # type: ignore[arg-type]  # a dataclass
    foreign = [name for name in values if name not in known]
    if foreign:
        raise DataError(f"a {kind.__name__} has no field '{foreign[0]}'")
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise DataError(f"a {kind.__name__} needs the field '{name}'")
    return kind(**values)


def subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    """Every subclass of a class that is imported at present, the user's own included."""
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def _numbers(array: np.ndarray[Any, Any]) -> list[Any]:
    """Python numbers, row by row; text where they are not finite."""
    return [item if np.isfinite(item) else repr(float(item)) for item in array.ravel().tolist()]
