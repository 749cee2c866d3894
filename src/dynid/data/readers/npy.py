"""NumPy arrays, read without NumPy's own loader: no pickles, and no allocation before the size is checked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynid.data.readers.base import Options, Table, bounded, flatten_array
from dynid.errors import LogReadError

__all__ = ["read", "read_array"]

MAX_HEADER = 65_536
"""Longest array header [bytes]; a record type of a thousand fields takes half of it."""


def read(path: Path, options: Options) -> Table:
    """Read one ``.npy``; a plain array becomes the column "array", a record array one column per field."""
    with path.open("rb") as stream:
        array = read_array(stream, path.stat().st_size)
    name = "" if array.dtype.names else "array"
    return Table(columns=flatten_array(name, array))


def read_array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array that fills `size` bytes of a stream exactly.

    Raises:
        LogReadError: If it holds Python objects, or if its shape does not agree with the size.
    """
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
    flat = np.frombuffer(stream.read(declared), dtype=dtype)
    return flat.reshape(shape, order="F" if fortran else "C")
