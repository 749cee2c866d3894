"""NumPy's arrays (.npy), mapped into memory, and archives of them (.npz); pickles are never opened."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dynid.arrays import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Options, Table, flatten_array, refuse_bomb


def read(path: Path, options: Options, rows: int) -> Iterator[Table]:
    """Read an array, a given number of rows at a time, or an archive of arrays."""
    if zipfile.is_zipfile(path):
        yield _read_archive(path)
        return
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not 0 < array.ndim <= 3:
        raise LogReadError(f"an array of shape {array.shape} is no table", remedy="Save one row per sample.")
    name = "" if array.dtype.names else "array"  # a record array has one column per field
    for first in range(0, len(array), rows or max(len(array), 1)):
        yield Table(columns=flatten_array(name, np.asarray(array[first : first + rows] if rows else array)))


def _read_archive(path: Path) -> Table:
    """Read every numeric array of an ``.npz``. Member names are labels only: nothing is written to them."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if len(members) > MAX_COLUMNS:
        raise LogReadError(f"it has {len(members)} members")
    refuse_bomb("the archive", sum(member.file_size for member in members), path.stat().st_size)
    for member in members:
        refuse_bomb(f"member '{member.filename[:80]}'", member.file_size, member.compress_size)
    arrays = [member.filename.removesuffix(".npy") for member in members if member.filename.endswith(".npy")]
    if not arrays and any(member.filename.endswith("data.pkl") for member in members):
        remedy = "Save its tensors as plain arrays, with numpy.savez for one."
        raise LogReadError("it is an archive of PyTorch, which is not read", remedy=remedy)
    columns: dict[str, Floats] = {}
    with np.load(path, allow_pickle=False) as archive:
        for name in arrays:
            columns |= flatten_array(name, archive[name])
    others = [member.filename for member in members if not member.filename.endswith(".npy")]
    return Table(columns=columns, notes=tuple(f"member '{name[:80]}' is no array and was left out" for name in others))
