"""Files of loads and of known objects: a tare that was identified before, and a library to recognise a load in."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError, DataError
from dynid.files.transaction import check_listed
from dynid.load.load import NAMES, Load
from dynid.load.recognition import KnownObject
from dynid.public_calls import public

__all__ = ["read_library", "read_load", "read_load_logs"]

MOST_BYTES = 1_000_000
"""Largest file that is read [bytes]; convention: a load has a few kilobytes."""
_REMEDY_LOAD = "Give the load.json that `dynid load --out folder` writes."
_REMEDY_LIBRARY = (
    'Write [[object]] tables with name = "...", mass = ... and optional principal_moments = [..., ..., ...].'
)


@public
def read_load(path: str | PathLike[str]) -> Load:
    """Read a load that `dynid load` wrote, with its covariance, to use it as the tare of another.

    Raises:
        DataError: The file cannot be read or has other content.
    """
    data = _content(path, json.loads, _REMEDY_LOAD)
    try:
        values = [data["parameters"][name] for name in NAMES]
        is_open = np.array([value is None for value in values])
        load = Load(
            frame=str(data["frame"]),
            vector=np.array([0.0 if value is None else float(value) for value in values]),
            covariance=_covariance(data["covariance"], is_open),
            undetermined=is_open,
            method=str(data["method"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"not a load: {error!r}", path=path, remedy=_REMEDY_LOAD) from error
    if not np.isfinite(load.vector).all() or not np.isfinite(load.covariance).all():
        raise DataError("the load has numbers that are not finite", path=path, remedy=_REMEDY_LOAD)
    return load


def _covariance(rows: Any, is_open: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(10, 10) covariance; zero for open parameters, for which a file holds null."""
    found = np.array(rows, dtype=float).reshape(10, 10)  # null becomes NaN
    return np.where(is_open[:, None] | is_open, 0.0, found)


def read_load_logs(path: str | PathLike[str]) -> dict[str, str]:
    """Digests (SHA-256) and names of the logs that a load was identified from; empty if the file has none."""
    logs = _content(path, json.loads, _REMEDY_LOAD).get("logs", {})
    return {str(digest): str(name) for digest, name in logs.items()} if isinstance(logs, dict) else {}


@public
def read_library(path: str | PathLike[str]) -> tuple[KnownObject, ...]:
    """Read known objects from a TOML file, each a table ``[[object]]`` with the fields of `KnownObject`.

    Raises:
        DataError: The file cannot be read or has other content.
    """
    data = _content(path, tomllib.loads, _REMEDY_LIBRARY)
    tables = data.get("object")
    if not isinstance(tables, list) or not tables:
        raise DataError("the file holds no object", path=path, remedy=_REMEDY_LIBRARY)
    found = []
    for number, table in enumerate(tables, 1):
        try:
            fields = dict(table)
            if "principal_moments" in fields:
                a, b, c = map(float, fields["principal_moments"])
                fields["principal_moments"] = (a, b, c)
            found.append(KnownObject(**fields))
        except (TypeError, ValueError, ArgumentError) as error:
            raise DataError(str(error), path=path, place=f"object {number}", remedy=_REMEDY_LIBRARY) from error
    return tuple(found)


def _content(path: str | PathLike[str], parse: Callable[[str], Any], remedy: str) -> dict[str, Any]:
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise DataError("the file is far too large", path=path, remedy=remedy)
        check_listed(Path(path))
        data = parse(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path, remedy=remedy) from error
    except (ValueError, RecursionError) as error:  # both parsers' errors and bad UTF-8 are ValueErrors
        raise DataError(f"cannot be read: {error}", path=path, remedy=remedy) from error
    if not isinstance(data, dict):
        raise DataError("not a table", path=path, remedy=remedy)
    return data
