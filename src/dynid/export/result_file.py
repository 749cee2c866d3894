"""An identification as one JSON file: versioned, readable, no code in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.files import write_atomically
from dynid.identification.links import Identification
from dynid.identification.validation import Validation

__all__ = ["SCHEMA", "SavedResult", "read_result", "result_json", "write_result"]

SCHEMA = 1
"""Version of the file's layout."""
LARGEST = 64 * 2**20
"""Size of the largest file that is read [bytes]."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SavedResult:
    """What a result file says."""

    robot: str
    joint_names: tuple[str, ...]
    parameter_names: tuple[str, ...]
    standard: NDArray[np.float64]
    """(p,) standard parameters, in the order of `parameter_names`."""
    content: Mapping[str, Any]
    """The whole file."""


def result_json(fit: Identification, check: Validation | None = None) -> dict[str, Any]:
    """The content of a result file."""
    estimate, base = fit.estimate, fit.base
    stderr = [None if not np.isfinite(value) else value for value in estimate.stderr.tolist()]
    return {
        "schema": SCHEMA,
        "robot": fit.robot.name,
        "fingerprint": fit.robot.fingerprint,
        "joint_names": list(fit.robot.joint_names),
        "method": estimate.method,
        "condition": estimate.condition,
        "notes": list(estimate.notes),
        "held_by_constraint": list(estimate.at_bound),
        "training_error_percent": dict(zip([*fit.robot.joint_names, "all"], fit.training_error.tolist(), strict=True)),
        "base_parameters": [
            {"name": name, "value": value, "std": error, "unit": unit, "expression": expression, "determined": not free}
            for name, value, error, unit, expression, free in zip(
                estimate.names,
                estimate.values.tolist(),
                stderr,
                estimate.units,
                (*base.expressions, *(feature.name for feature in fit.features)),
                estimate.undetermined.tolist(),
                strict=True,
            )
        ],
        "standard_parameters": dict(zip(base.layout.names, fit.standard.tolist(), strict=True)),
        "prior_dominated": list(fit.prior_dominated),
        "without_effect": base.unidentifiable,
        "data": [{"source": run.source, "sha256": run.sha256, "recipe": list(run.recipe), "dropped": dict(run.dropped)}
                 for run in fit.problem.experiments],
        "validation": None if check is None else check.to_json(),
    }  # fmt: skip


def write_result(
    fit: Identification, path: str | os.PathLike[str], check: Validation | None = None, *, force: bool = False
) -> Path:
    """Write a result file with a checksum of its content."""
    content = result_json(fit, check)
    content["sha256"] = _digest(content)
    return write_atomically(path, json.dumps(content, indent=1) + "\n", force=force)


def read_result(path: str | os.PathLike[str]) -> SavedResult:
    """Read a result file.

    Raises:
        DataError: The file is missing, damaged, or of another version.
    """
    content = _checked(Path(path))
    standard = content["standard_parameters"]
    return SavedResult(
        robot=str(content["robot"]),
        joint_names=tuple(content["joint_names"]),
        parameter_names=tuple(standard),
        standard=np.array(list(standard.values()), dtype=float),
        content=content,
    )


def _checked(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST:
            raise DataError("the file is too large for a result", path=path)
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"the result cannot be read: {error}", path=path, remedy="Run dynid identify again.") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise DataError(f"not a result file of version {SCHEMA}", path=path, remedy="Run dynid identify again.")
    if content.pop("sha256", None) != _digest(content):
        raise DataError("the result was changed or damaged: its checksum differs", path=path)
    return content


def _digest(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
