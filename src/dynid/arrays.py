"""Names of array types, whose shapes, units and frames stand beside each field and argument; read-only arrays."""

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
    """A frozen dataclass whose arrays stay read-only in its copies.

    NumPy makes the arrays of deep copies and pickles writeable. A change there would show in the robot, and not in its
    torques: their functions are found by the robot they were made for.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., object], tuple[type, dict[str, Any]]]:
        """How to make a copy: from the fields as they are."""
        return _restore, (type(self), {one.name: getattr(self, one.name) for one in fields(self)})  # type: ignore[arg-type]


def _restore(kind: type, values: dict[str, Any]) -> object:
    made: object = object.__new__(kind)
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(made, name, value)
    return made
