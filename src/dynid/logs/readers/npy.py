"""NumPy arrays, read without NumPy's own loader: no pickles, and no allocation before the size is checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import LogReadError
from dynid.logs.readers.base import Options, Table, bounded, flatten_array

__all__ = ["pieces", "read", "read_array"]

MAX_HEADER = 65_536
"""Longest array header [bytes]; a record type of a thousand fields takes half of it."""
BLOCK_BYTES = 2**26
"""Read at a time [bytes]."""


def read(path: Path, options: Options) -> Table:
    """Read one ``.npy``; a plain array becomes the column "array", a record array one column per field."""
    with path.open("rb") as stream:
        array = read_array(stream, path.stat().st_size, options.tell)
    name = "" if array.dtype.names else "array"
    return Table(columns=flatten_array(name, array))


def pieces(path: Path, options: Options, rows: int) -> Iterator[Table]:
    """The same, so many rows at a time; each is mapped into memory when its turn comes, and let go with its table."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        shape, fortran, dtype = _header(stream, size)
        start = stream.tell()
    name = "" if dtype.names else "array"
    count = shape[0] if shape else 0
    stride = dtype.itemsize * math.prod(shape[1:])
    for first in range(0, count, rows):
        length = min(rows, count - first)
        if fortran:
            part = np.memmap(path, dtype, "r", start, shape, "F")[first : first + length]
        else:
            part = np.memmap(path, dtype, "r", start + first * stride, (length, *shape[1:]))
        yield Table(columns=flatten_array(name, np.asarray(part)))


def read_array(stream: IO[bytes], size: int, tell: Callable[[float, float], None]) -> NDArray[Any]:
    """Read an array that fills `size` bytes of a stream exactly; `tell` learns how many of how many bytes are read.

    Raises:
        LogReadError: If it holds Python objects, or if its shape does not agree with the size.
    """
    shape, fortran, dtype = _header(stream, size)
    data = bytearray(math.prod(shape) * dtype.itemsize)
    with memoryview(data) as whole:
        for start in range(0, len(data), BLOCK_BYTES):
            block = stream.read(min(BLOCK_BYTES, len(data) - start))
            whole[start : start + len(block)] = block
            if len(block) < min(BLOCK_BYTES, len(data) - start):
                raise LogReadError("the file ends inside the array", remedy="Record or export it again.")
            tell(start + len(block), len(data))
    flat = np.frombuffer(data, dtype=dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of the array that fills a stream of `size` bytes; the stream stands at its numbers then."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise LogReadError(f"array format {version} is not supported", place="byte 6")
    parse = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = parse(stream, max_header_size=MAX_HEADER)
    if dtype.hasobject:
        raise LogReadError(
            "it holds Python objects, which are never unpickled", remedy="Save numeric arrays (dtype float64)."
        )
    if len(shape) > 3 or any(extent < 0 for extent in shape):
        raise LogReadError(f"an array of shape {shape} is no table", remedy="Save one row per sample.")
    start = stream.tell()
    declared = math.prod(shape) * dtype.itemsize
    if declared != size - start:
        raise LogReadError(
            f"its header declares {declared} bytes of numbers, {size - start} are there",
            place=f"byte {start}",
            remedy="The file is truncated or damaged: record or export it again.",
        )
    bounded("the array", declared, declared)
    return shape, fortran, dtype
