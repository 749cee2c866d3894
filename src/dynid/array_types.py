"""Names of array types, and a base of dataclasses whose arrays are read-only.

These types say nothing of an array's shape, unit and frame: the docstring of each field and argument does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class ReadOnly:
    """Base of frozen dataclasses whose arrays stay read-only in their copies.

    NumPy makes the arrays of deep copies and pickles writeable. A changed array would not change the torques of a
    robot: their compiled functions are stored by the robot that they were made for.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., object], tuple[type, dict[str, Any]]]:
        """Tell ``copy`` and ``pickle`` to make a copy by `_restore` from the fields."""
        return _restore, (type(self), {one.name: getattr(self, one.name) for one in fields(self)})  # type: ignore[arg-type]


def _restore(kind: type, values: dict[str, Any]) -> object:
    """Make an instance from its fields (name -> value), without running ``__init__``, and with read-only arrays."""
    made: object = object.__new__(kind)
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(made, name, value)
    return made
