"""HDF5 and MATLAB 7.3. A few corrupt bytes can ask for gigabytes or loop for ever: runs in the guarded child."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Options, Table, flatten_array, note_left_out, refuse_bomb


def read(path: Path, options: Options, rows: int) -> Iterator[Table]:
    """Read every numeric dataset, named ``group.dataset``. Links to other files are not followed."""
    import h5py

    found: dict[str, Any] = {}

    def collect(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("#"):
            found[name.replace("/", ".")] = item
        if len(found) > MAX_COLUMNS:
            raise LogReadError(f"it has more than {MAX_COLUMNS} datasets")

    columns: dict[str, Floats] = {}
    units: dict[str, str] = {}
    skipped = []
    with warnings.catch_warnings(), h5py.File(path, "r") as file:
        warnings.simplefilter("ignore")
        file.visititems(collect)
        _check(found, path.stat().st_size)
        for name, dataset in found.items():
            if not dataset.shape or dataset.dtype.hasobject or (dataset.dtype.names is None and _not_real(dataset)):
                skipped.append(name)
                continue
            columns |= flatten_array(name, _values(dataset))
            units |= _declared_unit(name, dataset)
    yield Table(columns=columns, units=units, notes=note_left_out("datasets", skipped))


def _not_real(dataset: Any) -> bool:
    """Whether it holds text, references or the like; MATLAB stores characters and cell references as integers."""
    kind = dataset.attrs.get("MATLAB_class", b"")
    return dataset.dtype.kind not in "fiub" or kind in (b"char", b"cell")


def _check(found: dict[str, Any], stored: int) -> None:
    """Refuse absurd sizes and storage that lies in other files."""
    for name, dataset in found.items():
        if dataset.external or dataset.is_virtual:
            raise LogReadError(
                f"dataset '{name}' keeps its numbers in another file, which is not opened",
                remedy="Export the log as one self-contained file.",
            )
        if dataset.shape is not None:
            refuse_bomb(f"dataset '{name}'", dataset.size * dataset.dtype.itemsize, stored)


def _values(dataset: Any) -> np.ndarray[Any, Any]:
    """The numbers, with the axes in the writer's order: MATLAB stores columns first."""
    array = np.asarray(dataset[()])
    return array.T if "MATLAB_class" in dataset.attrs else array


def _declared_unit(name: str, dataset: Any) -> dict[str, str]:
    """The unit the file itself declares in the attribute ``unit`` or ``units``."""
    for key in ("unit", "units"):
        value = dataset.attrs.get(key)
        value = value.decode(errors="replace") if isinstance(value, bytes) else value
        if isinstance(value, str):
            return {name: value}
    return {}
