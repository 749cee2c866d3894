"""Dataclasses as JSON data and back: the one serialiser of dynid, for results, cached experiments and reports.

A value is written with the name of its type in ``type`` and one entry per field. The caller lists the types that a file
may hold; a name outside the list is refused, and so is a field that the type does not have. Numbers keep every bit.
Nothing in a file is ever executed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from dynid.errors import DataError, ExportError
from dynid.files.schema import Check, anything, check_content, either, list_of, one_of, table, text, whole

T = TypeVar("T")
_ARRAY_TYPES: Mapping[str, type[np.generic]] = {"b": np.bool_, "i": np.int64, "f": np.float64}
"""Kind of a NumPy array -> type of its entries."""
LONGEST_NAME = 60
"""Letters of a foreign name or value that an error shows (convention)."""
LARGEST_WHOLE = 2.0**53
"""Whole numbers of arrays are smaller: a double, through which they pass, holds each of them exactly."""
_NOT_FINITE = text(r"nan|-?inf", "a number, nan, inf or -inf")

_WITHOUT_COMMAS = frozenset({float, int, bool, NoneType})
"""Types of values whose text has no comma."""
_encode = json.JSONEncoder(allow_nan=False).encode
"""``json.dumps(value, allow_nan=False)``, which would make an encoder for every value."""


def json_texts(value: object, indent: str = "\n") -> tuple[str, str]:
    """The texts of ``json.dumps(value, indent=1, allow_nan=False)`` and ``json.dumps(value, sort_keys=True)``.

    Every number is turned into text once. With an indent, Python's encoder goes through every number in Python; here
    its compiled half writes flat lists.
    """
    inner = indent + " "
    if isinstance(value, dict) and value:
        entries = [(key, _encode(key), *json_texts(entry, inner)) for key, entry in value.items()]
        indented = [f"{shown}: {text}" for _, shown, text, _ in entries]
        in_order = [f"{shown}: {text}" for _, shown, _, text in sorted(entries, key=itemgetter(0))]
        return f"{{{inner}{f',{inner}'.join(indented)}{indent}}}", f"{{{', '.join(in_order)}}}"
    if isinstance(value, list | tuple) and value:
        if _WITHOUT_COMMAS.issuperset(map(type, value)):
            text = _encode(value)
            return f"[{inner}{text[1:-1].replace(', ', f',{inner}')}{indent}]", text
        texts, in_one_line = zip(*(json_texts(entry, inner) for entry in value), strict=True)
        return f"[{inner}{f',{inner}'.join(texts)}{indent}]", f"[{', '.join(in_one_line)}]"
    return (_encode(value),) * 2


def _entry(value: Any, place: str) -> None:
    """An entry of an array."""
    if type(value) not in (int, float, bool):
        _NOT_FINITE(value, place)


def _pair(value: Any, place: str) -> None:
    """A key and its value."""
    list_of(anything, least=2, most=2)(value, place)
    either(text(), whole())(value[0], f"{place}[0]")


_FORMS: Mapping[str, Check] = {
    "array": table(
        {
            "type": one_of("array"),
            "kind": one_of(*_ARRAY_TYPES),
            "shape": list_of(whole(), most=4),
            "values": list_of(_entry),
        }
    ),
    "mapping": table({"type": one_of("mapping"), "items": list_of(_pair)}),
    "float": table({"type": one_of("float"), "value": _NOT_FINITE}),
}
"""What stands in a file for an array, a mapping, and a number that is not finite."""


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


def from_plain(value: Any, types: Iterable[type[Any]], place: str = "") -> Any:
    """Turn the output of `to_plain` back into the value; lists become tuples.

    Args:
        value: The data read from JSON.
        types: The dataclasses that may occur.
        place: Where the data stand in their file, for errors.

    Raises:
        DataError: The data name a type or a field that is not known, a field is missing, or a value does not fit its
            field; the error names the place in the data.
    """
    return _restore(value, {kind.__name__: kind for kind in types}, place)


def _restore(value: Any, types: Mapping[str, type[Any]], place: str) -> Any:
    if isinstance(value, list):
        return tuple([_restore(item, types, f"{place}[{k}]") for k, item in enumerate(value)])
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind in ("array", "mapping", "float"):
        check_content(value, _FORMS[kind], path=None, place=place)
    if kind == "array":
        return _restore_array(value, place)
    if kind == "mapping":
        return {key: _restore(item, types, f"{place}.{key}") for key, item in value["items"]}
    if kind == "float":
        return float(value["value"])
    if not isinstance(kind, str) or kind not in types:
        raise DataError(
            f"the file holds a '{str(kind)[:LONGEST_NAME]}', which is not known here",
            place=place or None,
            remedy="Import the module that defines it, then read the file in Python.",
        )
    fields_there = {
        name: _restore(item, types, f"{place}.{name[:LONGEST_NAME]}") for name, item in value.items() if name != "type"
    }
    return build_dataclass(types[kind], fields_there, place)


def _restore_array(value: Mapping[str, Any], place: str) -> np.ndarray[Any, Any]:
    numbers = np.array([float(item) for item in value["values"]])
    is_whole = value["kind"] != "f"
    if math.prod(value["shape"]) != numbers.size:
        raise DataError(f"{numbers.size} numbers have no shape {value['shape']}", place=place or None)
    if is_whole and not (np.isfinite(numbers).all() and (np.abs(numbers) < LARGEST_WHOLE).all()):
        raise DataError("an array of whole numbers holds another one", place=place or None)
    return numbers.astype(_ARRAY_TYPES[value["kind"]]).reshape(value["shape"])


def build_dataclass(kind: type[T], values: Mapping[str, Any], place: str = "") -> T:
    """Build a dataclass from named values after checking the names and the types of its fields.

    Args:
        kind: The dataclass.
        values: Name -> value.
        place: Where the values stand in their file, for errors.

    Raises:
        DataError: A name is not a field of the dataclass, a field without a default has no value, or a value is of
            another type than its field.
    """
    known = {field.name: field for field in fields(kind) if field.init}  # type: ignore[arg-type]  # a dataclass
    foreign = [name for name in values if name not in known]
    if foreign:
        raise DataError(f"a {kind.__name__} has no field '{foreign[0][:LONGEST_NAME]}'", place=place or None)
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise DataError(f"a {kind.__name__} needs the field '{name}'", place=place or None)
    hints = _hints(kind)  # type: ignore[arg-type]
    for name, value in values.items():
        if not _fits(value, hints.get(name, Any)):
            reason = f"the value does not fit a {kind.__name__}: {repr(value)[:LONGEST_NAME]}"
            raise DataError(reason, place=f"{place}.{name}".removeprefix("."))
    return kind(**values)


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    """Type of every field; of none where a type is imported for checkers alone."""
    try:
        return get_type_hints(kind)
    except NameError:
        return {}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, as far as a type can tell."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inside)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in inside)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is None or hint is NoneType:
        return value is None
    if origin is np.ndarray:
        entries = get_args(inside[1])[0] if len(inside) > 1 and get_args(inside[1]) else Any
        is_stated = isinstance(entries, type) and entries is not np.generic
        return isinstance(value, np.ndarray) and (not is_stated or value.dtype.kind == np.dtype(entries).kind)
    if origin is tuple and inside and inside[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(inside) and all(map(_fits, value, inside))
    if origin in (tuple, list, Sequence, Iterable, frozenset, set):
        return isinstance(value, tuple | list) and all(_fits(item, inside[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(_fits(k, inside[0]) and _fits(v, inside[1]) for k, v in value.items())
    if isinstance(hint, type) and issubclass(hint, Enum):
        return any(value == each.value for each in hint)
    return not isinstance(hint, type) or isinstance(value, hint)


def subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    """Every subclass of a class that is imported at present, the user's own included."""
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def _numbers(array: np.ndarray[Any, Any]) -> list[Any]:
    """Python numbers, row by row; text where they are not finite."""
    numbers: list[Any] = array.ravel().tolist()
    return numbers if np.isfinite(array).all() else [n if math.isfinite(n) else repr(float(n)) for n in numbers]
