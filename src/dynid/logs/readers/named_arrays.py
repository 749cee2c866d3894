"""Read files of named arrays: NumPy's (.npy, .npz), MATLAB's (.mat; since 7.3 these are HDF5), and HDF5.

Pickles are never opened. SciPy can crash on corrupt files, and a few corrupt bytes of HDF5 can ask for gigabytes or
loop for ever: all but .npy are read in the guarded child. None of these formats has options, and all but .npy are read
whole: ``options`` and ``rows`` are there because every reader has them.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import (
    MAX_COLUMNS,
    MAX_DEPTH,
    ColumnTable,
    Options,
    as_column,
    flatten_array,
    note_left_out,
    refuse_bomb,
)


def read_npy(path: Path, options: Options, rows: int) -> Iterator[ColumnTable]:
    """Read an array, mapped into memory, so many rows at a time (0: all at once)."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not 0 < array.ndim <= 3:
        raise LogReadError(f"an array of shape {array.shape} is no table", remedy="Save one row per sample.")
    name = "" if array.dtype.names else "array"  # a record array has one column per field
    for first in range(0, len(array), rows or max(len(array), 1)):
        yield ColumnTable(columns=flatten_array(name, np.asarray(array[first : first + rows] if rows else array)))


def read_npz(path: Path, options: Options, rows: int) -> Iterator[ColumnTable]:
    """Read every numeric array of an archive. Names of members are used as labels; no file of that name is written."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if len(members) > MAX_COLUMNS:
        raise LogReadError(f"it has {len(members)} members")
    refuse_bomb("the archive", sum(member.file_size for member in members), path.stat().st_size)
    for member in members:
        refuse_bomb(f"member '{member.filename[:80]}'", member.file_size, member.compress_size)
    columns: dict[str, Floats] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for member in members:
            if member.filename.endswith(".npy"):
                name = member.filename.removesuffix(".npy")
                columns |= flatten_array(name, arrays[name])
    others = [member.filename for member in members if not member.filename.endswith(".npy")]
    if not columns and others:
        remedy = "Save its numbers as plain arrays, with numpy.savez for one."
        raise LogReadError("it is an archive without arrays, as PyTorch writes it", remedy=remedy)
    yield ColumnTable(columns=columns, notes=note_left_out("members", others))


def read_mat(path: Path, options: Options, rows: int) -> Iterator[ColumnTable]:
    """Read every real array of a file up to version 7.2; fields of structs are named ``struct.field``."""
    from scipy.io import loadmat

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variables = loadmat(path, chars_as_strings=False, verify_compressed_data_integrity=True)
    # variable -> its arrays by column name; names with underscores are SciPy's remarks about the file
    arrays = {name: dict(_numeric(name, value, 0)) for name, value in variables.items() if not name.startswith("__")}
    columns = {key: as_column(array) for found in arrays.values() for key, array in found.items()}
    skipped = [name for name, found in arrays.items() if not found]
    refuse_bomb("the file", sum(column.nbytes for column in columns.values()), path.stat().st_size)
    yield ColumnTable(columns=columns, notes=note_left_out("variables", skipped))


def _numeric(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Names and values of the real arrays in a variable: itself, or fields of a struct, at any depth."""
    if not isinstance(value, np.ndarray) or depth > MAX_DEPTH:
        return
    if value.dtype.names and value.size == 1:  # a single struct
        record = value.reshape(-1)[0]
        for part in value.dtype.names:
            yield from _numeric(f"{name}.{part}", record[part], depth + 1)
    elif value.dtype.kind in "fiub" and value.size:
        yield name, value


def read_hdf5(path: Path, options: Options, rows: int) -> Iterator[ColumnTable]:
    """Read every numeric dataset, named ``group.dataset``. Links to other files are not followed."""
    import h5py

    found: dict[str, Any] = {}

    def collect(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("#"):  # MATLAB's own tables begin with '#'
            found[name.replace("/", ".")] = item
        if len(found) > MAX_COLUMNS:
            raise LogReadError(f"it has more than {MAX_COLUMNS} datasets")

    columns: dict[str, Floats] = {}
    units: dict[str, str] = {}
    skipped = []
    with warnings.catch_warnings(), h5py.File(path, "r") as file:
        warnings.simplefilter("ignore")
        file.visititems(collect)
        _refuse_unsafe(found, path.stat().st_size)
        for name, dataset in found.items():
            if not dataset.shape or dataset.dtype.hasobject or (dataset.dtype.names is None and _not_real(dataset)):
                skipped.append(name)
                continue
            array = np.asarray(dataset[()])
            if "MATLAB_class" in dataset.attrs:  # MATLAB stores arrays in column-major order
                array = array.T
            columns |= flatten_array(name, array)
            for value in (dataset.attrs.get("units"), dataset.attrs.get("unit")):
                text = value.decode(errors="replace") if isinstance(value, bytes) else value
                units |= {name: text} if isinstance(text, str) else {}
    yield ColumnTable(columns=columns, units=units, notes=note_left_out("datasets", skipped))


def _not_real(dataset: Any) -> bool:
    """Whether a dataset holds text or references; MATLAB stores characters and references to cells as integers."""
    kind = dataset.attrs.get("MATLAB_class", b"")
    return dataset.dtype.kind not in "fiub" or kind in (b"char", b"cell")


def _refuse_unsafe(found: dict[str, Any], stored: int) -> None:
    """Refuse datasets that declare absurd sizes for a file of ``stored`` bytes, or lie in other files."""
    for name, dataset in found.items():
        if dataset.external or dataset.is_virtual:
            raise LogReadError(
                f"dataset '{name}' keeps its numbers in another file, which is not opened",
                remedy="Export the log as one self-contained file.",
            )
        if dataset.shape is not None:
            refuse_bomb(f"dataset '{name}'", dataset.size * dataset.dtype.itemsize, stored)
