"""The file of an `Information`: the magic text, the SHA-256 of the rest, and the rest in MessagePack.

Of every triangle the upper half is kept, row after row, as little-endian float64.
"""

from __future__ import annotations

import hashlib
from os import PathLike
from typing import Any, TypeVar

import msgspec
import numpy as np

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.files import write_atomically
from dynid.files.small_files import read_small

T = TypeVar("T")
MAGIC = b"dynid information 3\n"
LARGEST = 2**32
"""Size of the largest file that is read [bytes] (convention: a day of blocks of a humanoid)."""


def _pack(R: Floats) -> bytes:
    return R[np.triu_indices(len(R))].astype("<f8").tobytes()


def _unpack(kind: type, packed: Any) -> Floats:
    numbers = np.frombuffer(packed, dtype="<f8")
    R = np.zeros((int(np.sqrt(2 * numbers.size)),) * 2)
    R[np.triu_indices(len(R))] = numbers
    return R


def write(path: str | PathLike[str], content: object, *, force: bool) -> None:
    """Write a file, whole or not at all."""
    body = msgspec.msgpack.encode(content, enc_hook=_pack)
    write_atomically(path, MAGIC + hashlib.sha256(body).digest() + body, force=force)


def read(path: str | PathLike[str], kind: type[T]) -> T:
    """Read what `write` wrote.

    Raises:
        DataError: The file cannot be read, is not of this kind, is cut short or damaged.
    """
    data = read_small(path, most=LARGEST)
    if not data.startswith(MAGIC):
        raise DataError("not an information file of this version", path=path, remedy="Give one of Information.save.")
    digest, body = data[len(MAGIC) : len(MAGIC) + 32], data[len(MAGIC) + 32 :]
    try:
        if hashlib.sha256(body).digest() != digest:
            raise ValueError("it is damaged or cut short")
        return msgspec.msgpack.decode(body, type=kind, dec_hook=_unpack)
    except (TypeError, ValueError) as error:  # msgspec's own are of these kinds
        raise DataError(f"not a whole information file: {error}", path=path, remedy="Reduce the log again.") from error
