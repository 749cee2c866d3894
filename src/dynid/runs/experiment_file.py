"""Experiments on disk, so that an interrupted run can continue."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.errors import DataError
from dynid.files import write_atomically
from dynid.files.small_files import read_small

if TYPE_CHECKING:
    from dynid.processing.experiment import Experiment

__all__ = ["load_experiment", "save_experiment"]

ARRAYS = ("time", "q", "dq", "ddq", "effort", "valid", "segment", "wrench")
"""Fields of an `Experiment` that stand in the file as binary arrays; ``wrench`` may be missing."""


LARGEST = 2**33
"""Size of the largest cached experiment [bytes] (convention)."""


def save_experiment(run: Experiment, path: Path) -> None:
    """Write an experiment.

    Raises:
        ExportError: The file cannot be written, or the experiment holds more than a file keeps (a control loop).
    """
    import numpy as np

    from dynid.plain_data import to_plain

    arrays = {name: getattr(run, name) for name in ARRAYS if getattr(run, name) is not None}
    facts = {field.name: getattr(run, field.name) for field in fields(run) if field.name not in ARRAYS}
    facts["recipe"] = facts.pop("processing_steps")  # the format's own name
    text = json.dumps(to_plain(facts, _types()), allow_nan=False)
    stream = io.BytesIO()
    np.savez(stream, facts=np.array(text), **arrays)
    write_atomically(path, stream.getvalue(), force=True)


def load_experiment(path: Path) -> Experiment:
    """Read an experiment.

    Raises:
        DataError: The file is missing or damaged.
    """
    import numpy as np

    from dynid.plain_data import build_dataclass, from_plain
    from dynid.processing.experiment import Experiment

    try:
        with zipfile.ZipFile(io.BytesIO(read_small(path, most=LARGEST))) as archive:
            if sum(member.file_size for member in archive.infolist()) > LARGEST:
                raise ValueError("it is too large")
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files if name != "facts"}
            facts = from_plain(json.loads(str(content["facts"])), _types())
        facts["processing_steps"] = facts.pop("recipe")
        run = build_dataclass(Experiment, {**facts, **arrays})
        _check_shapes(run)
        return run
    except Exception as error:  # a cache only saves time: whatever is wrong with it, the experiment is made again
        raise DataError(f"no experiment can be read: {type(error).__name__} {error}", path=path) from error


def _check_shapes(run: Experiment) -> None:
    """Check the arrays that `Experiment` takes as they are."""
    shapes = {"time": (run.samples,), "segment": (run.samples,), "wrench": (run.samples, 6)}
    for name, wanted in shapes.items():
        array = getattr(run, name)
        if array is not None and array.shape != wanted:
            raise DataError(f"{name} has the shape {array.shape}, {wanted} is expected")
    if not 0.0 < run.rate_hz < float("inf") or len(run.joint_names) not in (0, run.q.shape[1]):
        raise DataError("the rate or the names of the joints do not fit")


def _types() -> list[type[Any]]:
    """List the dataclasses that describe how the motion of an experiment was derived."""
    from dynid.plain_data import subclasses
    from dynid.processing.differentiation import Derivation, Differentiation
    from dynid.processing.filters import LowPass, Smoothing

    return [Derivation, Smoothing, *subclasses(Differentiation), *subclasses(LowPass)]
