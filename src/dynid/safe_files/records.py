"""Check the content of a file against a type, by msgspec, before anything uses a value.

A file of dynid is described by a `msgspec.Struct` whose fields are its keys; the types below bound texts and numbers::

    class Input(Struct, forbid_unknown_fields=True):
        path: Text
        sha256: Digest

    as_record(content, Input, path="run.json")      # run.json: inputs[2].sha256: expected `str`, got `int`
"""

from __future__ import annotations

import atexit
import gc
from os import PathLike
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from dynid.errors import DataError, DynidError

# msgspec frees types of nested structs twice if Python's last collection clears them: a crash after the work is done
atexit.register(gc.freeze)

T = TypeVar("T")
Text = Annotated[str, Meta(max_length=100_000, pattern=r"\A[^\0]*\Z")]
"""A text without NUL, of bounded length."""
Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
"""A SHA-256 digest in hexadecimal."""
FileName = Annotated[str, Meta(pattern=r"\A(?!\.{1,2}\Z)[^/\\\x00-\x1f]{1,255}\Z")]
"""Name of a file without folders."""
Whole = Annotated[int, Meta(ge=0, le=2**53)]
"""A count; up to 2^53 a double holds every integer."""
Finite = Annotated[float, Meta(ge=-1e300, le=1e300)]
"""A finite number."""

SHOWN = 60
"""Number of characters of a wrong name or value that an error message shows (convention)."""


def as_record(
    content: Any,
    kind: type[T],
    *,
    path: str | PathLike[str] | None = None,
    error: type[DynidError] = DataError,
    remedy: str | None = None,
) -> T:
    """Convert what was read from a file to a type, here a `msgspec.Struct` with all its fields checked.

    Args:
        content: Content of the file as JSON or TOML gives it: dicts, lists, texts and numbers.
        kind: The type that it should be.
        path: The file, for the error message.
        error: Class of the error.
        remedy: Text that says what the user can do about it.

    Raises:
        DynidError: Of class ``error``, with the file, the place inside it and the reason.
    """
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as failure:
        reason, inside = split_failure(failure)
        raise error(reason, path=path, place=inside.removeprefix(".") or None, remedy=remedy) from failure


def check_bounded(value: Any, most: float, place: str = "") -> None:
    """Refuse numbers in a value, and in lists and tables inside it, that are larger than ``most`` in magnitude.

    Raises:
        DataError: There is one; the error names its place.
    """
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            check_bounded(item, most, f"{place}.{key}".removeprefix("."))
    elif isinstance(value, int | float) and abs(value) > most:
        raise DataError(f"{str(value)[:60]} is beyond {most:g}", place=place)


def split_failure(failure: msgspec.ValidationError) -> tuple[str, str]:
    """Split msgspec's message into the reason and the place, such as ``.inputs[2].sha256``."""
    reason, _, place = str(failure).partition(" - at `")
    if " matching regex " in reason:
        reason = "the text is not of the form that belongs here: a digest, a name of a file without folders"
    return f"{reason[:1].lower()}{reason[1:]}", place.removesuffix("`").removeprefix("$")
