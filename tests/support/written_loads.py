"""Load files as `dynid load` writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import dynid
from dynid.payload.load import NAMES


def write_load(folder: Path, load: dynid.Load, **more: object) -> Path:
    """The file load.json of a load; what is undetermined has no value."""
    values = np.where(load.undetermined, None, load.vector).tolist()
    content = {"frame": load.frame, "method": "given", "parameters": dict(zip(NAMES, values, strict=True))}
    path = folder / "load.json"
    path.write_text(json.dumps(content | {"covariance": load.covariance.tolist()} | more))
    return path
