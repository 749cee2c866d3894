"""Convert nested dataclasses to data that JSON can hold, and back: the content of dynid's result files.

`to_plain` converts a dataclass to a dict of its fields and the name of its type, ``{"type": "Inertia", "mass": 2.0,
...}``; `from_plain` builds the dataclass again. Numbers keep every bit. The caller lists the types that a file may
hold. Any other name of a type is refused, and so is a field that the type does not have or a value of another type.
Nothing in a file is ever executed. `json_values` and `pick` write data for other programs, which dynid does not read
back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from dynid.errors import DataError, ExportError
from dynid.safe_files.records import SHOWN

_ARRAY_TYPES: Mapping[str, type[np.generic]] = {"b": np.bool_, "i": np.int64, "f": np.float64}
"""``dtype.kind`` of a NumPy array -> type of its entries."""
LARGEST_WHOLE = 2.0**53
"""Integers in an array must be smaller in size: `_array` reads them as doubles, which hold all smaller ones exactly."""


def to_plain(value: Any, types: Iterable[type[Any]]) -> Any:
    """Convert a value to data that JSON can hold; numbers that are not finite become text.

    Args:
        value: Numbers, text, arrays, mappings, sequences and dataclasses, nested to any depth.
        types: The dataclasses that may occur.

    Raises:
        ExportError: The value holds a type that could not be read back.
    """
    known = frozenset(types)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.generic):
        return to_plain(value.item(), known)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": repr(value)}
    if isinstance(value, np.ndarray):
        numbers = [n if math.isfinite(n) else repr(float(n)) for n in value.ravel().tolist()]
        return {"type": "array", "kind": value.dtype.kind, "shape": list(value.shape), "values": numbers}
    if isinstance(value, Mapping):
        return {"type": "mapping", "items": [[key, to_plain(item, known)] for key, item in value.items()]}
    if isinstance(value, tuple | list):
        return [to_plain(item, known) for item in value]
    kind = type(value)
    if kind not in known or not is_dataclass(kind):
        raise ExportError(f"no file of this kind can hold a {kind.__name__}")
    named = {field.name: to_plain(getattr(value, field.name), known) for field in fields(kind) if field.init}
    return {"type": kind.__name__, **named}


def from_plain(value: Any, types: Iterable[type[Any]], place: str = "") -> Any:
    """Convert the output of `to_plain` back to the value; lists become tuples.

    Args:
        value: The data read from JSON.
        types: The dataclasses that may occur.
        place: Where the data are in their file, such as ``robot.links[2]``; errors name it.

    Raises:
        DataError: The data name a type or a field that is not known, a field is missing, or a value does not fit its
            field; the error names the place in the data.
    """
    return _restore(value, {kind.__name__: kind for kind in types}, place)


def pick(item: object, *names: str) -> dict[str, Any]:
    """Collect some fields of a value in a dict of values that JSON can hold."""
    return {name: json_values(getattr(item, name)) for name in names}


def json_values(value: Any) -> Any:
    """Convert numbers, text, arrays, mappings and sequences to values that JSON can hold; None for infinity and NaN."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: json_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _restore(value: Any, types: Mapping[str, type[Any]], place: str) -> Any:
    """Convert data back, as `from_plain`, but with the types in a table: name -> type."""
    if isinstance(value, list):
        return tuple([_restore(item, types, f"{place}[{k}]") for k, item in enumerate(value)])
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind in ("array", "mapping", "float"):
        try:
            return _FORMS[kind](value, types, place)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"this is no {kind}: {error!r:.100}", place=place or None) from error
    if not isinstance(kind, str) or kind not in types:
        raise DataError(
            f"the file holds a '{str(kind)[:SHOWN]}', which is not known here",
            place=place or None,
            remedy="Import the module that defines it, then read the file in Python.",
        )
    inside = {k: _restore(v, types, f"{place}.{k[:SHOWN]}") for k, v in value.items() if k != "type"}
    return _build(types[kind], inside, place)


def _array(value: Mapping[str, Any], types: Mapping[str, type[Any]], place: str) -> np.ndarray[Any, Any]:
    """Build an array from the dict that `to_plain` makes of it; ValueError where the dict is not consistent."""
    numbers = np.array([float(item) for item in value["values"]])
    if value["kind"] != "f" and not (np.abs(numbers) < LARGEST_WHOLE).all():  # also refuses NaN
        raise ValueError("an array of whole numbers holds another one")
    if not all(type(length) is int and length >= 0 for length in value["shape"]):
        raise ValueError(f"an array has no shape {value['shape']}")
    return numbers.astype(_ARRAY_TYPES[value["kind"]]).reshape(value["shape"])


_FORMS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, type[Any]], str], Any]] = {
    "array": _array,
    "mapping": lambda value, types, place: {
        key: _restore(item, types, f"{place}.{key}") for key, item in value["items"]
    },
    "float": lambda value, types, place: float(value["value"]),
}
"""Value of ``type`` in a file, for values that are no dataclasses -> function that builds the value."""


def _build(kind: type[Any], values: Mapping[str, Any], place: str) -> Any:
    """Build a dataclass after checking the names and the types of its fields."""
    known = {field.name: field for field in fields(kind) if field.init}
    if foreign := [name for name in values if name not in known]:
        raise DataError(f"a {kind.__name__} has no field '{foreign[0][:SHOWN]}'", place=place or None)
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise DataError(f"a {kind.__name__} needs the field '{name}'", place=place or None)
    hints = field_hints(kind)
    for name, value in values.items():
        if not _fits(value, hints.get(name, Any)):
            reason = f"the value does not fit a {kind.__name__}: {repr(value)[:SHOWN]}"
            raise DataError(reason, place=f"{place}.{name}".removeprefix("."))
    return kind(**values)


def field_hints(kind: Any) -> Mapping[str, Any]:
    """Field of a dataclass -> its type hint, with annotations.

    Empty where a hint names a type that only type checkers import (``if TYPE_CHECKING``); such fields are not checked.
    """
    return _read_hints(kind)


@cache
def _read_hints(kind: Any) -> Mapping[str, Any]:
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError:
        return {}
    return {field.name: hints[field.name] for field in fields(kind)}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value read from a file fits the type hint of its field; hints of a form not listed here always fit."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Annotated:
        return _fits(value, inside[0])
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inside)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in inside)  # 1 is not True
    if hint is float or hint is int:
        return isinstance(value, (int, float) if hint is float else int) and not isinstance(value, bool)
    if hint is NoneType:
        return value is None
    if origin is np.ndarray:  # the hint is ndarray[shape, dtype[entries]]
        entries = get_args(inside[1])[0] if len(inside) > 1 and get_args(inside[1]) else Any
        is_stated = isinstance(entries, type) and entries is not np.generic
        return isinstance(value, np.ndarray) and (not is_stated or value.dtype.kind == np.dtype(entries).kind)
    if origin is tuple and inside and inside[-1] is not Ellipsis:  # one type per element, as tuple[int, float]
        return isinstance(value, tuple) and len(value) == len(inside) and all(map(_fits, value, inside))
    if origin in (tuple, Sequence):
        return isinstance(value, tuple | list) and all(_fits(item, inside[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(_fits(k, inside[0]) and _fits(v, inside[1]) for k, v in value.items())
    return not isinstance(hint, type) or isinstance(value, hint)
