"""The file of an `Information`.

Little-endian: the magic text, the version (4 bytes), the number of bytes in the body (8), their SHA-256 (32); then the
body: the length of the header (8), the header (JSON, UTF-8) and the numbers (float64): for each part in the header's
order and for each of its joints the upper triangle, row after row.
"""

from __future__ import annotations

import hashlib
import json
import operator
import struct
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import msgspec
import numpy as np

from dynid.errors import DataError
from dynid.files import write_atomically
from dynid.files.records import Text, Whole, as_record
from dynid.files.small_files import read_small
from dynid.information.partial_results import Part

MAGIC = b"dynid information\n"
VERSION = 2
"""Version of the file's layout."""
_PREFIX = struct.Struct("<IQ32s")
_LENGTH = struct.Struct("<Q")
_REMEDY = "Reduce the log again."


class _Facts(msgspec.Struct):
    """What the header of a file holds."""

    robot: Text
    fingerprint: Text
    columns: tuple[Whole, ...]
    supports: tuple[tuple[Whole, ...], ...]
    parts: list[tuple[int, int, int, tuple[Whole, ...]]]
    """Segment, level, position and numbers of samples of each part"""


LARGEST = 2**32
"""Size of the largest file that is read [bytes] (convention: a day of blocks of a humanoid)."""


def write(path: str | PathLike[str], facts: Mapping[str, Any], parts: Sequence[Part], *, force: bool) -> None:
    """Write a file, whole or not at all.

    Args:
        path: Destination.
        facts: What JSON can hold.
        parts: The matrices.
        force: Overwrite an existing file.
    """
    places = [[part.segment, part.level, part.position, list(part.samples)] for part in parts]
    header = json.dumps({**facts, "parts": places}, default=operator.index).encode()
    numbers = b"".join(_triangle(matrix) for part in parts for matrix in part.matrices)
    body = _LENGTH.pack(len(header)) + header + numbers
    prefix = _PREFIX.pack(VERSION, len(body), hashlib.sha256(body).digest())
    write_atomically(path, MAGIC + prefix + body, force=force)


def _triangle(matrix: Any) -> bytes:
    return bytes(matrix[np.triu_indices(len(matrix))].astype("<f8").tobytes())


def read(path: str | PathLike[str]) -> tuple[_Facts, tuple[Part, ...]]:
    """Read what `write` wrote.

    Returns:
        The facts and the parts.

    Raises:
        DataError: if the file cannot be read, is not of this kind, is cut short or damaged.
    """
    data = read_small(path, most=LARGEST)
    body = _checked_body(path, data)
    try:
        (size,) = _LENGTH.unpack_from(body)
        facts = as_record(json.loads(body[8 : 8 + size]), _Facts, path=path)
        parts = _parts(facts, np.frombuffer(body[8 + size :], dtype="<f8"))
    except DataError as error:
        reason = f"not an information file of this version: {error.reason}"
        raise DataError(reason, path=path, place=error.place, remedy=_REMEDY) from error
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, struct.error) as error:
        raise DataError("not an information file of this version", path=path, remedy=_REMEDY) from error
    return facts, parts


def _checked_body(path: str | PathLike[str], data: bytes) -> bytes:
    start = len(MAGIC) + _PREFIX.size
    if not data.startswith(MAGIC):
        raise DataError("not an information file", path=path, remedy="Give a file that Information.save wrote.")
    if len(data) < start:
        raise DataError("the file is cut short", path=path, remedy=_REMEDY)
    version, size, digest = _PREFIX.unpack_from(data, len(MAGIC))
    if version != VERSION:
        raise DataError(f"format version {version}, this program reads {VERSION}", path=path, remedy=_REMEDY)
    body = data[start:]
    if len(body) != size or hashlib.sha256(body).digest() != digest:
        raise DataError("the file is damaged or cut short", path=path, remedy=_REMEDY)
    return body


def _parts(facts: _Facts, numbers: Any) -> tuple[Part, ...]:
    widths = [len(support) + 1 for support in facts.supports]
    if len(numbers) != len(facts.parts) * sum(w * (w + 1) // 2 for w in widths):
        raise ValueError("as many numbers as the header says are expected")
    result, place = [], 0
    for segment, level, position, samples in facts.parts:
        matrices = []
        for width in widths:
            matrix = np.zeros((width, width))
            count = width * (width + 1) // 2
            matrix[np.triu_indices(width)] = numbers[place : place + count]
            matrices.append(matrix)
            place += count
        result.append(Part(segment, level, position, tuple(matrices), samples))
    return tuple(result)
