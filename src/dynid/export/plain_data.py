"""Robots, features and estimates as JSON and back: types from a fixed list, numbers to the last bit, no code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from dynid.errors import DataError
from dynid.estimation.estimate import Estimate
from dynid.estimation.features import Feature
from dynid.estimation.load_features import Reference
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, JointLimits, Link
from dynid.terms.joint_models import Coupling, JointModel

__all__ = ["from_plain", "to_plain"]

_LEFT_OUT = {("Robot", "source")}
"""The text of the description file: large, and not needed for the equations."""


def to_plain(value: Any) -> Any:
    """A value as JSON can hold it; numbers that are not finite become text, types are named in ``type``."""
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, np.ndarray):
        return {"type": "array", "kind": value.dtype.kind, "shape": list(value.shape), "values": _list(value.ravel())}
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__
        kept = [field.name for field in fields(value) if field.init and (kind, field.name) not in _LEFT_OUT]
        return {"type": kind, **{name: to_plain(getattr(value, name)) for name in kept}}
    if isinstance(value, Mapping):
        return {"type": "mapping", "items": [[key, to_plain(item)] for key, item in value.items()]}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return {"type": "float", "value": repr(value)}
    return value


def from_plain(value: Any) -> Any:
    """What `to_plain` was given; lists become tuples.

    Raises:
        DataError: A type is named that no result can hold.
    """
    if isinstance(value, list):
        return tuple(from_plain(item) for item in value)
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind == "array":
        dtype = {"b": np.bool_, "i": np.int64}.get(value["kind"], np.float64)
        numbers = [float(item) for item in value["values"]]
        return np.array(numbers).astype(dtype).reshape(value["shape"])
    if kind == "mapping":
        return {key: from_plain(item) for key, item in value["items"]}
    if kind == "float":
        return float(value["value"])
    known = {cls.__name__: cls for cls in _types()}
    if kind not in known:
        raise DataError(
            f"the result holds a '{kind}', which is not known here",
            remedy="Import the module that defines it, then read the result in Python.",
        )
    return known[kind](**{name: from_plain(item) for name, item in value.items() if name != "type"})


def _list(values: Any) -> list[Any]:
    """Numbers as Python's own; text where they are not finite."""
    return [item if np.isfinite(item) else repr(float(item)) for item in values.tolist()]


def _types() -> Iterator[type[Any]]:
    """Every type that a result may hold; joint models and features of a user's own once they are imported."""
    yield from (Robot, Link, Joint, JointLimits, Inertia, Coupling, Reference, Estimate)
    for root in (JointModel, Feature):
        yield from _below(root)


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for below in kind.__subclasses__():
        yield below
        yield from _below(below)
