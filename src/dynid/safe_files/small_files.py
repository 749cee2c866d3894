"""Read small text, JSON and TOML files that strangers may have written, such as settings, maps and results.

Only a regular file is read (a pipe would block, a device never ends), only up to a size, as UTF-8 with or without a
byte order mark. Whatever is wrong, a parser's error, an integer beyond 2^63 or half of a surrogate pair, becomes an
error of the caller's class with the file, the place inside it, the reason and the remedy. Callers then check types and
bounds of the values with `dynid.safe_files.records`.
"""

from __future__ import annotations

import io
import json
import os
import re
import stat
from collections.abc import Iterator
from typing import Any

from dynid.errors import DataError, DynidError

HAND_WRITTEN = 2**20
"""Size of the largest file that a person writes, such as a channel map or a recipe [bytes] (convention: real ones have
a few kilobytes)."""
WRITTEN = 64 * 2**20
"""Size of the largest file that dynid writes, such as a result or a report [bytes] (convention: those of seven joints
have about one megabyte)."""
LARGEST_WHOLE = 2**63
"""Integers in a file must be smaller: other programs hold them in 64 bits."""
DEEPEST = 64
"""Deepest nesting of elements in XML, and most dots in a key in TOML (convention: the time of its parser grows with the
square of them)."""
_HALF_LETTER = re.compile(r"\\u[dD][89a-fA-F]")
"""Escape in JSON that may be half of a surrogate pair, which is no letter by itself and cannot be written as UTF-8."""
_BETWEEN_KEYS = re.compile(r"[=,\[\]{}\n]")
"""Characters that end a key in TOML."""


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a regular file to read its bytes; anything else is refused without waiting.

    Raises:
        OSError: The system refuses, or the path is no regular file.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(None, "it is not a regular file", os.fspath(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_small(
    path: str | os.PathLike[str],
    *,
    most: int = HAND_WRITTEN,
    error: type[DynidError] = DataError,
    remedy: str | None = None,
) -> bytes:
    """Read all bytes of a small file.

    Args:
        path: The file.
        most: Largest number of bytes that is read.
        error: Class of the errors.
        remedy: Text that says what the user can do about a file that is not the right one.

    Raises:
        DynidError: Of class ``error``: the file cannot be read, is too large or is no regular file.
    """
    try:
        with open_regular(path) as stream:
            data = stream.read(most + 1)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        advice = remedy or "Check the name and the permissions."
        raise error(f"the file cannot be read: {reason}", path=path, remedy=advice) from failure
    if len(data) > most:
        raise error(f"the file has more than {most} bytes", path=path, remedy=remedy or "Is it the right file?")
    return data


def read_small_text(
    path: str | os.PathLike[str],
    *,
    most: int = HAND_WRITTEN,
    error: type[DynidError] = DataError,
    remedy: str | None = None,
) -> str:
    """Read a small file as text in UTF-8, with or without a byte order mark; arguments and errors as `read_small`."""
    data = read_small(path, most=most, error=error, remedy=remedy)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        place = f"byte {failure.start}"
        raise error("the file is not UTF-8 text", path=path, place=place, remedy=remedy or "Save it so.") from failure


def read_json(
    path: str | os.PathLike[str],
    *,
    most: int = WRITTEN,
    error: type[DynidError] = DataError,
    remedy: str | None = None,
    odd_names: bool = False,
) -> Any:
    """Read a JSON file; arguments and errors as `read_small`.

    With ``odd_names`` texts may hold halves of surrogate pairs, by which Python stands for names of files that are no
    text.
    """
    text = read_small_text(path, most=most, error=error, remedy=remedy)
    # every value but the first follows one of these characters; at about 100 bytes each, parsed values take 0.4 GB
    if sum(map(text.count, ",[{")) > WRITTEN // 16:
        raise error(f"the file holds more than {WRITTEN // 16} values", path=path, remedy=remedy)
    too_large = []

    def read_integer(digits: str) -> int:
        number = int(digits)
        if abs(number) >= LARGEST_WHOLE:
            too_large.append(digits)
        return number

    try:
        content = json.loads(text, parse_int=read_integer)
    except (ValueError, RecursionError) as failure:
        raise error(f"the file is no JSON: {_reason(failure)}", path=path, remedy=remedy) from failure
    if too_large or (not odd_names and _HALF_LETTER.search(text)):  # looking at every value takes time
        _check_values(content, path, error)
    return content


def read_toml(
    path: str | os.PathLike[str],
    *,
    error: type[DynidError] = DataError,
    remedy: str | None = None,
) -> dict[str, Any]:
    """Read a TOML file; arguments and errors as `read_small`."""
    import tomllib

    text = read_small_text(path, error=error, remedy=remedy)
    if max(part.count(".") for part in _BETWEEN_KEYS.split(text)) > DEEPEST:
        raise error(f"a name has more than {DEEPEST} dots", path=path, remedy=remedy or "Shorten it.")
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as failure:
        advice = remedy or "Mend the line it names."
        raise error(f"the file is not TOML: {_reason(failure)}", path=path, remedy=advice) from failure
    _check_values(content, path, error)
    return content


def _reason(failure: Exception) -> str:
    """Why a parser failed."""
    return "it is nested too deeply" if isinstance(failure, RecursionError) else str(failure)


def _check_values(content: Any, path: str | os.PathLike[str], error: type[DynidError]) -> None:
    """Refuse integers that do not fit into 64 bits, and texts that UTF-8 cannot hold."""
    for place, value in _leaves(content):
        if isinstance(value, int) and abs(value) >= LARGEST_WHOLE:
            raise error("the whole number is beyond 2^63", path=path, place=place, remedy="Write it as 1.5e20.")
        if isinstance(value, str) and not _is_text(value):
            raise error("the text holds half a letter", path=path, place=place, remedy="Remove it.")


def _is_text(value: str) -> bool:
    """Whether UTF-8 can hold a text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _leaves(content: Any) -> Iterator[tuple[str, Any]]:
    """Pairs (place, value) of every value that is no table or list, with a place such as ``inputs[2].sha256``.

    Keys come too, each with the place of its table.
    """
    waiting = [("", content)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            yield from ((place, key) for key in value)
            waiting += [(f"{place}.{key}".removeprefix("."), item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{place}[{k}]", item) for k, item in enumerate(value)]
        else:
            yield place, value
