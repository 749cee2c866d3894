"""Files of loads and of known objects: a tare that was identified before, and a library to recognise a load in."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, DataError
from dynid.files.schema import (
    anything,
    check_content,
    either,
    list_of,
    mapping_of,
    number,
    one_of,
    table,
    text,
)
from dynid.files.small_files import HAND_WRITTEN, read_json, read_toml
from dynid.files.transaction import check_listed
from dynid.load.load import NAMES, Load
from dynid.load.recognition import KnownObject
from dynid.plain_data import build_dataclass

ROUNDING = 1e-6
"""Part of a correlation by which rounding may spoil a covariance that was written with its digits (convention)."""
LARGEST = 1e12
"""Largest parameter of a load, in SI units (convention: its square is a number, and no load has it)."""
_PARAMETER = either(one_of(None), number(-LARGEST, LARGEST))
_LOAD = table(
    {
        "parameters": table(dict.fromkeys(NAMES, _PARAMETER)),
        "frame": text(),
        "covariance": list_of(
            list_of(either(one_of(None), number(-(LARGEST**2), LARGEST**2)), least=10, most=10), least=10, most=10
        ),
        "method": text(),
    },
    {"logs": mapping_of(text())},
    others=True,
)
"""What a file holds that ``dynid load`` wrote; other keys are for people."""
_POSITIVE = number(0.0, LARGEST)
_LIBRARY = table(
    {
        "object": list_of(
            table(
                {"name": text(most=1000), "mass": _POSITIVE},
                {
                    "principal_moments": list_of(_POSITIVE, least=3, most=3),
                    "mass_tolerance": _POSITIVE,
                    "moment_tolerance": _POSITIVE,
                },
            ),
            least=1,
            most=1000,
        )
    },
    {"description": anything},
)
"""What a library of known objects holds."""
_REMEDY_LOAD = "Give the load.json that `dynid load --out folder` writes."
_REMEDY_LIBRARY = (
    'Write [[object]] tables with name = "...", mass = ... and optional principal_moments = [..., ..., ...].'
)


def read_load(path: str | PathLike[str]) -> Load:
    """Read a load that `dynid load` wrote, with its covariance, to use it as the tare of another.

    Raises:
        DataError: The file cannot be read or has other content.

    Example:
        >>> import json
        >>> study = dynid.load.study_load(robot, wrist, sensor_frame="link3")
        >>> written = (folder / "load.json").write_text(json.dumps(study.to_dict()))
        >>> round(dynid.load.read_load(folder / "load.json").mass, 1)
        2.0
    """
    data = _load_content(path)
    values = [data["parameters"][name] for name in NAMES]
    is_open = np.array([value is None for value in values])
    load = Load(
        frame=data["frame"],
        vector=np.array([0.0 if value is None else float(value) for value in values]),
        covariance=_covariance(data["covariance"], is_open),
        undetermined=is_open,
        method=data["method"],
    )
    if not np.isfinite(load.vector).all() or not np.isfinite(load.covariance).all():
        raise DataError("the load has numbers that are not finite", path=path, remedy=_REMEDY_LOAD)
    if not _is_covariance(load.covariance):
        raise DataError(
            "no errors have this covariance: it is not symmetric, or a variance is negative", path=path,
            place="covariance", remedy=_REMEDY_LOAD,
        )  # fmt: skip
    return load


def _covariance(rows: Any, is_open: NDArray[np.bool_]) -> Floats:
    """(10, 10) covariance; zero for open parameters, for which a file holds null."""
    found = np.array(rows, dtype=float).reshape(10, 10)  # null becomes NaN
    return np.where(is_open[:, None] | is_open, 0.0, found)


def _is_covariance(matrix: Floats) -> bool:
    """Whether a matrix is symmetric and has no negative eigenvalue, but for rounding."""
    size = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    bound = np.outer(size, size)
    if np.any(np.diagonal(matrix) < 0.0) or np.any(np.abs(matrix) > (1.0 + ROUNDING) * bound):
        return False
    correlation = np.divide(matrix, bound, out=np.zeros_like(matrix), where=bound > 0.0)
    is_symmetric = bool(np.abs(correlation - correlation.T).max() <= ROUNDING)
    return is_symmetric and bool(eigvalsh(correlation).min() >= -ROUNDING)


def read_load_logs(path: str | PathLike[str]) -> dict[str, str]:
    """Digests (SHA-256) and names of the logs that a load was identified from; empty if the file has none."""
    return dict(_load_content(path).get("logs", {}))


def _load_content(path: str | PathLike[str]) -> dict[str, Any]:
    """Content of the file of a load, checked."""
    check_listed(Path(path))
    data: dict[str, Any] = read_json(path, most=HAND_WRITTEN, remedy=_REMEDY_LOAD)
    check_content(data, _LOAD, path=path, remedy=_REMEDY_LOAD)
    return data


def read_library(path: str | PathLike[str]) -> tuple[KnownObject, ...]:
    r"""Read known objects from a TOML file, each a table ``[[object]]`` with the fields of `KnownObject`.

    Raises:
        DataError: The file cannot be read or has other content.

    Example:
        >>> text = "[[object]]\nname = 'cup'\nmass = 0.35\n"
        >>> written = (folder / "objects.toml").write_text(text)
        >>> dynid.load.read_library(folder / "objects.toml")[0].name
        'cup'
    """
    data = read_toml(path, remedy=_REMEDY_LIBRARY)
    check_content(data, _LIBRARY, path=path, remedy=_REMEDY_LIBRARY)
    found = []
    for index, entry in enumerate(data["object"]):
        fields = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
        try:
            found.append(build_dataclass(KnownObject, fields))
        except ArgumentError as error:
            raise DataError(error.reason, path=path, place=f"object[{index}]", remedy=_REMEDY_LIBRARY) from error
    return tuple(found)
