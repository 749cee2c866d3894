"""NumPy's arrays (.npy) and archives of them (.npz), read without NumPy's own loader.

No pickles are opened, nothing is allocated before its size is checked, and every member of an archive is checked
against its declared size and compression ratio before a byte is unpacked.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Options, Table, flatten_array, refuse_bomb

MAX_HEADER = 65_536
"""Longest array header [bytes]; convention: a record type of a thousand fields takes half of it."""
BLOCK_BYTES = 2**26
"""Bytes read at a time; convention."""


def read(path: Path, options: Options) -> Table:
    """Read an array or an archive of arrays."""
    with path.open("rb") as stream:
        is_archive = stream.read(2) == b"PK"
    return _read_archive(path, options) if is_archive else _read_array_file(path, options)


def _read_array_file(path: Path, options: Options) -> Table:
    """Read one ``.npy``; a plain array becomes the column "array", a record array one column per field."""
    with path.open("rb") as stream:
        array = _read_array(stream, path.stat().st_size, options.tell)
    name = "" if array.dtype.names else "array"
    return Table(columns=flatten_array(name, array))


def pieces(path: Path, options: Options, rows: int) -> Iterator[Table]:
    """Read an array a given number of rows at a time; a piece is mapped into memory when its turn comes."""
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


def _read_array(
    stream: IO[bytes], size: int, tell: Callable[[float, float], None], *, stored: int | None = None
) -> NDArray[Any]:
    """Read an array that fills `size` bytes of a stream exactly; `tell` learns how many of how many bytes are read.

    The doubles that it becomes are bounded by the bytes that hold it in an archive, ``stored``.

    Raises:
        LogReadError: If it holds Python objects, or if its shape does not agree with the size.
    """
    shape, fortran, dtype = _header(stream, size)
    if stored is not None:
        refuse_bomb("the array", math.prod(shape) * max(dtype.itemsize, 8), stored)
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
    refuse_bomb("the array", declared, declared)
    return shape, fortran, dtype


def _read_archive(path: Path, options: Options) -> Table:
    """Read every numeric array of an ``.npz``. Member names are labels only: nothing is written to them."""
    columns: dict[str, Floats] = {}
    notes = []
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        check_members(members, path.stat().st_size)
        done, stored = 0, sum(member.compress_size for member in members)
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                notes.append(f"member '{name[:80]}' is not an array and was left out")
                continue
            columns |= _read_member(archive, member, name)
            done += member.compress_size
            options.tell(done, stored)
    if not columns and any(member.filename.endswith("data.pkl") for member in members):
        raise LogReadError("it is an archive of PyTorch", remedy="Give it the ending .pt, and read it again.")
    return Table(columns=columns, notes=tuple(notes))


def check_members(members: list[zipfile.ZipInfo], stored: int) -> None:
    """Refuse bombs and encrypted members."""
    if len(members) > MAX_COLUMNS:
        raise LogReadError(f"it has {len(members)} members")
    refuse_bomb("the archive", sum(member.file_size for member in members), stored)
    for member in members:
        refuse_bomb(f"member '{member.filename[:80]}'", member.file_size, member.compress_size)


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> dict[str, Floats]:
    """One array; text and other non-numeric arrays are refused, for a log has no use for them."""
    try:
        with archive.open(member) as stream:
            array = _read_array(stream, member.file_size, lambda done, whole: None, stored=member.compress_size)
            if stream.read(1):
                raise LogReadError("it is longer than declared")
        return flatten_array(name, array)
    except LogReadError as error:
        place = f"member '{name[:80]}'" + (f", {error.place}" if error.place else "")
        raise LogReadError(error.reason, place=place, remedy=error.remedy) from error
