"""Write and read the file of an `Information`: a magic text, the SHA-256 of the content, the content in MessagePack.

An `Information` holds the least-squares equations of a log as upper triangular matrices, one per joint and stretch of
the log; its methods `save` and `load` call `write` and `read`. The content is the dataclass itself, field by field. Of
every triangular matrix only the upper half is stored, row after row, as little-endian float64.
"""

from __future__ import annotations

import hashlib
from os import PathLike
from typing import Any, TypeVar

import msgspec
import numpy as np

from dynid.array_types import Floats
from dynid.errors import DataError
from dynid.safe_files import write_atomically
from dynid.safe_files.small_files import read_small

T = TypeVar("T")
MAGIC = b"dynid information 3\n"
LARGEST_FILE = 2**32
"""Size of the largest file that is read [bytes] (convention: more than a day of a humanoid's logs gives)."""


def write(path: str | PathLike[str], content: object, *, force: bool) -> None:
    """Write a file atomically.

    Args:
        path: Destination.
        content: A dataclass whose arrays are all upper triangular matrices.
        force: Overwrite an existing file.
    """
    body = msgspec.msgpack.encode(content, enc_hook=_pack)
    write_atomically(path, MAGIC + hashlib.sha256(body).digest() + body, force=force)


def read(path: str | PathLike[str], kind: type[T]) -> T:
    """Read what `write` wrote.

    Args:
        path: The file.
        kind: Dataclass of the content.

    Raises:
        DataError: The file cannot be read, is not of this kind, is cut short or damaged.
    """
    data = read_small(path, most=LARGEST_FILE)
    if not data.startswith(MAGIC):
        raise DataError("not an information file of this version", path=path, remedy="Give one of Information.save.")
    body_start = len(MAGIC) + hashlib.sha256().digest_size
    digest = data[len(MAGIC) : body_start]
    body = data[body_start:]
    try:
        if hashlib.sha256(body).digest() != digest:
            raise ValueError("it is damaged or cut short")
        return msgspec.msgpack.decode(body, type=kind, dec_hook=_unpack)
    except (TypeError, ValueError) as error:  # msgspec's own errors are subclasses of ValueError
        raise DataError(f"not a whole information file: {error}", path=path, remedy="Reduce the log again.") from error


def _pack(R: Floats) -> bytes:
    """Bytes of the upper half of a triangular matrix (w, w); msgspec calls this for types that it does not know."""
    return R[np.triu_indices(len(R))].astype("<f8").tobytes()


def _unpack(kind: type, packed: Any) -> Floats:  # msgspec gives the kind; it is always an array here
    """Triangular matrix (w, w) from its ``w (w + 1) / 2`` stored entries."""
    numbers = np.frombuffer(packed, dtype="<f8")
    R = np.zeros((int(np.sqrt(2 * numbers.size)),) * 2)  # w is the largest integer not above sqrt(w (w + 1))
    R[np.triu_indices(len(R))] = numbers
    return R
