"""What a file may hold: types, bounds and versions, checked before anything uses a value.

A check is a function of a value and its place; it returns nothing, or raises `DataError` with the place. Checks are
built from one another::

    RUN = table({"schema": one_of(1), "inputs": list_of(table({"path": text(), "sha256": DIGEST}))})
    check_content(content, RUN, path="run.json")      # run.json: inputs[2].sha256: it should be a text, not 7
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from dynid.errors import DataError, DynidError

Check = Callable[[Any, str], None]
"""Checks a value at a place."""

LONGEST_TEXT = 100_000
"""Most letters of one text in a file (convention: the longest command line of usual systems)."""
LONGEST_PLACE = 200
"""Most letters of a place in a file (convention)."""
SHOWN = 60
"""Letters of a wrong value that an error shows (convention)."""


def check_content(
    content: Any,
    check: Check,
    *,
    path: str | PathLike[str] | None,
    place: str = "",
    error: type[DynidError] = DataError,
    remedy: str | None = None,
) -> None:
    """Check what was read from a file.

    Args:
        content: Content of the file.
        check: What it should be.
        path: The file, for the error.
        place: Where the content stands in the file.
        error: Class of the error.
        remedy: What the user can do about it.

    Raises:
        DynidError: Of class ``error``, with the file, the place inside it and the reason.
    """
    try:
        check(content, place)
    except DataError as failure:
        raise error(failure.reason, path=path, place=failure.place, remedy=remedy or failure.remedy) from None


def _wrong(place: str, wanted: str, value: Any) -> DataError:
    shown = repr(value) if not isinstance(value, dict | list) else f"a {'table' if isinstance(value, dict) else 'list'}"
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
    return DataError(f"it should be {wanted}, not {shown}", place=place or None)


def table(needed: Mapping[str, Check], allowed: Mapping[str, Check] | None = None, *, others: bool = False) -> Check:
    """A table with all the needed keys; further ones are checked where they are allowed, and refused otherwise.

    Args:
        needed: Key -> check of its value.
        allowed: Key -> check of its value, where it is there.
        others: Whether keys that are not listed may stand there, with any value.
    """
    known = {**needed, **(allowed or {})}

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(place, "a table", value)
        for key in needed:
            if key not in value:
                raise DataError(f"'{key}' is missing", place=place or None)
        for key, item in value.items():
            inside = f"{place}.{key[:SHOWN]}".removeprefix(".")
            if key in known:
                known[key](item, inside)
            elif not others:
                raise DataError("there is no such key", place=inside, remedy=f"The keys are: {', '.join(known)}.")

    return check


def mapping_of(item: Check, name: Check | None = None) -> Check:
    """A table with any keys, whose values are all of one kind, and its keys, too, where ``name`` is given."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(place, "a table", value)
        for key, entry in value.items():
            inside = f"{place}.{key[:SHOWN]}".removeprefix(".")
            if name is not None:
                name(key, inside)
            item(entry, inside)

    return check


def list_of(item: Check, *, least: int = 0, most: int | None = None) -> Check:
    """A list whose items are all of one kind."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list):
            raise _wrong(place, "a list", value)
        if len(value) < least or (most is not None and len(value) > most):
            size = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            raise DataError(f"it should have {size} items, not {len(value)}", place=place or None)
        for k, entry in enumerate(value):
            item(entry, f"{place}[{k}]")

    return check


def text(pattern: str | None = None, wanted: str = "a text", *, most: int = LONGEST_TEXT) -> Check:
    """A text without NUL; with a pattern, one that it matches as a whole."""
    compiled = None if pattern is None else re.compile(pattern)

    def check(value: Any, place: str) -> None:
        if not isinstance(value, str) or "\0" in value or (compiled is not None and not compiled.fullmatch(value)):
            raise _wrong(place, wanted, value)
        if len(value) > most:
            raise DataError(f"the text has more than {most} letters", place=place or None)

    return check


def number(least: float = -math.inf, most: float = math.inf, *, finite: bool = True) -> Check:
    """A number between two bounds."""
    wanted = "a finite number" if finite else "a number"
    wanted += f" from {least:g} up" if math.isfinite(least) else ""
    wanted += f" to {most:g}" if math.isfinite(most) else ""

    def check(value: Any, place: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong(place, wanted, value)
        if (finite and not math.isfinite(value)) or not (least <= value <= most or math.isnan(value)):
            raise _wrong(place, wanted, value)

    return check


def whole(least: int = 0, most: int = 2**53) -> Check:
    """A whole number between two bounds."""

    def check(value: Any, place: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise _wrong(place, f"a whole number from {least} to {most}", value)

    return check


def flag(value: Any, place: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise _wrong(place, "true or false", value)


def one_of(*known: str | int | None) -> Check:
    """One of the listed values."""
    wanted = "one of " + ", ".join(map(repr, known)) if len(known) > 1 else repr(known[0])

    def check(value: Any, place: str) -> None:
        if isinstance(value, bool | float | dict | list) or value not in known:
            raise _wrong(place, wanted, value)

    return check


def either(*checks: Check) -> Check:
    """What passes one of the checks; the error is that of the last one."""

    def check(value: Any, place: str) -> None:
        for first in checks[:-1]:
            try:
                return first(value, place)
            except DataError:
                continue
        return checks[-1](value, place)

    return check


def bounded(most: float) -> Check:
    """Anything whose numbers, also those in lists and tables inside it, are at most ``most`` in magnitude."""

    def check(value: Any, place: str) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                check(item, f"{place}.{key}"[:LONGEST_PLACE])
        elif isinstance(value, list):
            for number, item in enumerate(value):
                check(item, f"{place}[{number}]"[:LONGEST_PLACE])
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > most:
            raise DataError(f"{str(value)[:SHOWN]} is beyond {most:g}", place=place)

    return check


def anything(value: Any, place: str) -> None:
    """Any value that the parser gives."""


DIGEST = text(r"[0-9a-f]{64}", "a digest of 64 hexadecimal digits")
"""SHA-256."""
FILE_NAME = text(r"(?!\.{1,2}$)[^/\\\x00-\x1f]{1,255}", "the name of a file without folders")
"""Name of a file in the same folder."""
