"""Experiments on disk, for runs that go on where they were interrupted."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.errors import DataError, DynidError, ExportError
from dynid.files import write_atomically

if TYPE_CHECKING:
    from dynid.processing.experiment import Experiment

__all__ = ["load_experiment", "save_experiment"]

ARRAYS = ("time", "q", "dq", "ddq", "effort", "valid", "segment")
MODULES = ("dynid.processing.filters", "dynid.processing.differentiation")
"""Of the classes that a file may name."""
FACTS = ("rate_hz", "joint_names", "recipe", "dropped", "source", "sha256")


def save_experiment(run: Experiment, path: Path) -> None:
    """Write an experiment.

    Raises:
        ExportError: It cannot be written, or holds more than a file keeps (the low-pass of its torques, say).
    """
    import numpy as np

    known = (*ARRAYS, *FACTS, "wrench", "derivation")
    if any(getattr(run, field.name) is not None for field in fields(run) if field.name not in known):
        raise ExportError("the experiment holds more than a file keeps", path=path)
    arrays = {name: getattr(run, name) for name in ARRAYS}
    if run.wrench is not None:
        arrays["wrench"] = run.wrench
    facts = json.dumps({name: getattr(run, name) for name in FACTS} | {"derivation": _written(run.derivation, path)})
    stream = io.BytesIO()
    np.savez(stream, facts=np.array(facts), **arrays)
    write_atomically(path, stream.getvalue(), force=True)


def load_experiment(path: Path) -> Experiment:
    """Read an experiment.

    Raises:
        DataError: There is none, or it is damaged.
    """
    import numpy as np

    from dynid.processing.experiment import Experiment

    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as content:
            facts = json.loads(str(content["facts"]))
            arrays = {name: content[name] for name in content.files if name != "facts"}
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"no experiment can be read: {error}", path=path) from error
    names, recipe = tuple(facts.pop("joint_names")), tuple(facts.pop("recipe"))
    try:
        derivation = _read(facts.pop("derivation"))
    except (KeyError, TypeError, AttributeError, DynidError) as error:
        raise DataError(f"how its motion was made cannot be read: {error}", path=path) from error
    return Experiment(joint_names=names, recipe=recipe, derivation=derivation, **facts, **arrays)


def _written(value: Any, path: Path) -> Any:
    """Settings of filters and differentiation as JSON: the names of their classes, and their fields."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    kind = type(value)
    if not is_dataclass(value) or kind.__module__ not in MODULES:
        raise ExportError(f"the experiment was made by a {kind.__name__}, which no file keeps", path=path)
    return {"class": [kind.__module__, kind.__name__]} | {
        field.name: _written(getattr(value, field.name), path) for field in fields(value) if field.init
    }


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    module, name = value.pop("class")
    if module not in MODULES:
        raise KeyError(module)
    return getattr(import_module(module), name)(**{key: _read(part) for key, part in value.items()})
