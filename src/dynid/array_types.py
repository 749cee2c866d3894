"""Names of array types, and a base of dataclasses whose arrays are read-only.

Shapes, units and frames of arrays stand in the docstring of each field and argument.
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
        """Tell ``copy`` and ``pickle`` to make a copy from the fields."""
        return _restore, (type(self), {one.name: getattr(self, one.name) for one in fields(self)})  # type: ignore[arg-type]


def _restore(kind: type, values: dict[str, Any]) -> object:
    """Make an instance from the values of its fields, without its checks, and with read-only arrays."""
    made: object = object.__new__(kind)
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(made, name, value)
    return made
