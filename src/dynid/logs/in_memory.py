"""Logs that are in memory already: data frames, dictionaries and arrays become a `Recording`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import DataError
from dynid.logs.channel_map import ChannelMap, read_channel_map
from dynid.logs.conversion import Converter
from dynid.logs.joint_order import match_joints
from dynid.logs.readers.base import Floats, Table
from dynid.logs.recording import Recording
from dynid.logs.units import declared_unit
from dynid.public_calls import public
from dynid.robot.model import Robot

__all__ = ["as_recording", "is_table"]

FIELDS = ("time", "q", "dq", "effort", "current", "wrench", "effort_time", "wrench_time", "joint_names")
"""Keys of a dictionary in SI units, as `Recording` names its fields."""


def is_table(data: object) -> bool:
    """Whether an object is a dictionary of columns or a data frame: it has named columns that become arrays."""
    return isinstance(data, Mapping) or (hasattr(data, "columns") and hasattr(data, "__getitem__"))


@public
def as_recording(
    data: Any, robot: Robot | None = None, *, channel_map: ChannelMap | Mapping[str, Any] | str | Path | None = None
) -> Recording:
    """Make a recording of a dictionary or a data frame (pandas, polars, or anything with columns and `to_numpy`).

    Args:
        data: Columns by name. With the names of `Recording`'s fields (time, q, dq, effort, ...) they are in SI units:
            time (N,), the others (N, n). Otherwise a channel map is needed.
        robot: Joints are matched by its names and counted against it.
        channel_map: What the columns mean and in which units.

    Raises:
        DataError: The columns say nothing without a map, or do not fit it.

    Example:
        >>> import numpy as np
        >>> from dynid.logs import as_recording
        >>> as_recording({"time": np.arange(3) / 100, "q": np.zeros((3, 2)), "effort": np.ones((3, 2))}).q.shape
        (3, 2)
    """
    columns = _columns(data)
    if channel_map is None:
        if not {"time", "q"} <= set(columns) or set(columns) - set(FIELDS):
            listed = ", ".join(list(columns)[:12])
            raise DataError(
                f"the columns ({listed}) do not say what they are and in which units",
                remedy="Name them as Recording does (time, q, dq, effort: SI units, one column per joint), or pass "
                "channel_map=..., as dynid inspect proposes it for the same columns in a file.",
            )
        names = tuple(str(name) for name in columns.pop("joint_names", ()))
        numbers: dict[str, Any] = {name: np.asarray(values, dtype=float) for name, values in columns.items()}
        return match_joints(Recording(**numbers, joint_names=names, source="memory"), robot)
    table = Table(
        columns={name: _numbers(name, values) for name, values in columns.items() if _is_numeric(values)},
        units={name: unit for name in columns if (unit := declared_unit(name)[1]) is not None},
    )
    fields = Converter(read_channel_map(channel_map), {"memory": table}, robot).fields()
    return Recording(**fields, source="memory")


def _columns(data: Any) -> dict[str, Any]:
    """The columns by name."""
    if isinstance(data, Mapping):
        return {str(name): values for name, values in data.items()}
    if not is_table(data):
        raise DataError(
            f"{type(data).__name__} is no log",
            remedy="Give a file, a Recording, a data frame or a dictionary of arrays.",
        )
    return {str(name): _array(data[name]) for name in data.columns}


def _array(column: Any) -> Any:
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


def _is_numeric(values: Any) -> bool:
    return np.asarray(_array(values)).dtype.kind in "fiubmM"


def _numbers(name: str, values: Any) -> Floats:
    """Numbers as doubles; instants count seconds from the first."""
    array = np.asarray(_array(values))
    if array.dtype.kind in "mM":
        array = (array - array[0]) / np.timedelta64(1, "ns") * 1e-9
    if array.ndim not in (1, 2):
        raise DataError(f"column '{name}' has shape {array.shape}", remedy="Give (N,) or (N, k) numbers.")
    return np.ascontiguousarray(array, dtype=np.float64)
