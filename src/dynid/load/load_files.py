"""Files of loads and of known objects: a tare that was identified before, and a library to recognise a load in."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from dynid.errors import ArgumentError, DataError
from dynid.files.records import Text, as_record
from dynid.files.small_files import HAND_WRITTEN, read_json, read_toml
from dynid.files.transaction import check_listed
from dynid.load.load import NAMES, Load
from dynid.load.recognition import KnownObject

_Parameter = Annotated[float, Meta(ge=-1e12, le=1e12)]
_Moment = Annotated[float, Meta(ge=-1e24, le=1e24)]
_REMEDY_LOAD = "Give the load.json that `dynid load --out folder` writes."
_REMEDY_LIBRARY = (
    'Write [[object]] tables with name = "...", mass = ... and optional principal_moments = [..., ..., ...].'
)


class _LoadFile(Struct):
    """What a file holds that ``dynid load`` wrote; other keys are for people."""

    parameters: dict[str, _Parameter | None]
    frame: Text
    covariance: Annotated[
        list[Annotated[list[_Moment | None], Meta(min_length=10, max_length=10)]], Meta(min_length=10, max_length=10)
    ]
    method: Text
    logs: dict[str, Text] = {}


class _Library(Struct, forbid_unknown_fields=True):
    """Known objects."""

    object: Annotated[list[KnownObject], Meta(min_length=1, max_length=1000)]
    description: Any = None


def read_load(path: str | PathLike[str]) -> Load:
    """Read a load that `dynid load` wrote, with its covariance, to use it as the tare of another.

    Raises:
        DataError: The file cannot be read or has other content.

    Example:
        >>> tare = dynid.load.read_load(folder / "load.json")
        >>> tare.mass
        2.0
    """
    data = _read(path)
    if missing := set(NAMES) - set(data.parameters):
        reason = f"'{min(missing)}' is missing"
        raise DataError(reason, path=path, place="parameters", remedy=_REMEDY_LOAD)
    values = np.array([data.parameters[name] for name in NAMES], dtype=float)  # null becomes NaN
    is_open = np.isnan(values)
    covariance = np.where(is_open[:, None] | is_open, 0.0, np.array(data.covariance, dtype=float))
    if not (np.isfinite(covariance).all() and np.all(np.diag(covariance) >= 0.0)):
        reason = "no errors have this covariance: a number is missing, or a variance is negative"
        raise DataError(reason, path=path, place="covariance", remedy=_REMEDY_LOAD)
    vector = np.where(is_open, 0.0, values)
    return Load(frame=data.frame, vector=vector, covariance=covariance, undetermined=is_open, method=data.method)


def read_load_logs(path: str | PathLike[str]) -> dict[str, str]:
    """Digests (SHA-256) and names of the logs that a load was identified from; empty if the file has none."""
    return dict(_read(path).logs)


def _read(path: str | PathLike[str]) -> _LoadFile:
    check_listed(Path(path))
    return as_record(read_json(path, most=HAND_WRITTEN, remedy=_REMEDY_LOAD), _LoadFile, path=path, remedy=_REMEDY_LOAD)


def read_library(path: str | PathLike[str]) -> tuple[KnownObject, ...]:
    r"""Read known objects from a TOML file, each a table ``[[object]]`` with the fields of `KnownObject`.

    Raises:
        DataError: The file cannot be read or has other content.
    """
    content = read_toml(path, remedy=_REMEDY_LIBRARY)
    try:
        return tuple(as_record(content, _Library, path=path, remedy=_REMEDY_LIBRARY).object)
    except ArgumentError as error:
        raise DataError(error.reason, path=path, remedy=_REMEDY_LIBRARY) from error
