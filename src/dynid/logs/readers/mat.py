"""MATLAB files up to version 7.2 (7.3 is HDF5). SciPy can crash on corrupt files: runs in the guarded child."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynid.logs.readers.base import MAX_DEPTH, Options, Table, as_column, note_left_out, refuse_bomb


def read(path: Path, options: Options, rows: int) -> Iterator[Table]:
    """Read every real array; fields of structs are named ``struct.field``."""
    from scipy.io import loadmat

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variables = loadmat(path, chars_as_strings=False, verify_compressed_data_integrity=True)
    columns = {}
    skipped = []
    for name, value in variables.items():
        if name.startswith("__"):
            continue
        for key, array in _numeric(name, value, 0):
            columns[key] = as_column(array)
        if not any(key == name or key.startswith(f"{name}.") for key in columns):
            skipped.append(name)
    refuse_bomb("the file", sum(column.nbytes for column in columns.values()), path.stat().st_size)
    yield Table(columns=columns, notes=note_left_out("variables", skipped))


def _numeric(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The real arrays in a variable, through single structs and cells."""
    if not isinstance(value, np.ndarray) or depth > MAX_DEPTH:
        return
    if value.dtype.names and value.size == 1:
        record = value.reshape(-1)[0]
        for part in value.dtype.names:
            yield from _numeric(f"{name}.{part}", record[part], depth + 1)
    elif value.dtype.kind in "fiub" and value.size:
        yield name, value
