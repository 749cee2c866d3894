"""Make a `Recording` of a log that is in memory already: a data frame, or a dictionary of arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from dynid.array_types import Floats
from dynid.errors import DataError
from dynid.logs.channel_map import ChannelMapSource, read_channel_map
from dynid.logs.conversion import convert
from dynid.logs.joint_order import match_joints
from dynid.logs.readers.base import ColumnTable
from dynid.logs.recording import Recording
from dynid.logs.units import declared_unit
from dynid.robot.model import Robot

FIELDS = ("time", "q", "dq", "effort", "current", "wrench", "effort_time", "wrench_time", "joint_names")
"""Fields of `Recording` that columns in SI units may be named after."""
OF_JOINTS = ("q", "dq", "effort", "current")
"""Those of the fields that have one column per joint."""
SOURCE = "data in memory"
"""Name of such a log in messages, where others have a file."""


def is_table(data: object) -> bool:
    """Whether an object is a dictionary of columns or a data frame."""
    return isinstance(data, Mapping) or (hasattr(data, "columns") and hasattr(data, "__getitem__"))


def as_recording(data: Any, robot: Robot | None = None, *, channel_map: ChannelMapSource | None = None) -> Recording:
    """Make a recording of a dictionary or a data frame (pandas, polars, or anything with columns and `to_numpy`).

    Args:
        data: Columns by name. With the names of `Recording`'s fields (time, q, dq, effort, ...) they are in SI units:
            time (N,) or instants (datetime64), the others (N, n), or a column for each joint: q1, q_1, q_elbow,
            elbow.q, or ("q", "elbow") in a frame with two levels of names. Otherwise a channel map is needed.
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
        columns, labels = _one_per_quantity(columns)
        if not {"time", "q"} <= set(columns) or set(columns) - set(FIELDS):
            listed = ", ".join(list(columns)[:12])
            raise DataError(
                f"the columns ({listed}) do not say what they are and in which units",
                remedy=(
                    "Name them as Recording does, in SI units: time, then q, dq, effort, each with one column per "
                    "joint, or q1, q2, ... or q_JOINT; or pass channel_map=..., as dynid inspect proposes it for the "
                    "same columns in a file."
                ),
            )
        names = tuple(str(name) for name in columns.pop("joint_names", ())) or labels
        numbers: dict[str, Any] = {name: _numbers(name, values) for name, values in columns.items()}
        if not names and robot is not None and numbers["q"].shape[1:] == (robot.dof,):
            names = robot.joint_names
        return match_joints(Recording(**numbers, joint_names=names, source=SOURCE), robot)
    table = ColumnTable(
        columns={name: _numbers(name, values) for name, values in columns.items() if _is_numeric(values)},
        units={name: unit for name in columns if (unit := declared_unit(name)[1]) is not None},
    )
    fields = convert(read_channel_map(channel_map), {SOURCE: table}, robot)
    return Recording(**fields, source=SOURCE)


def _columns(data: Any) -> dict[str, Any]:
    """The columns of a dictionary or data frame by name."""
    if isinstance(data, Mapping):
        return {str(name): values for name, values in data.items()}
    if not is_table(data):
        raise DataError(
            f"{type(data).__name__} is no log",
            remedy="Give a file, a Recording, a data frame or a dictionary of arrays.",
        )
    return {_column_name(name): _array(data[name]) for name in data.columns}


def _column_name(label: Any) -> str:
    """The name of a data frame's column; the levels of a label with several are joined by dots."""
    return ".".join(str(part) for part in label if str(part)) if isinstance(label, tuple) else str(label)


def _one_per_quantity(columns: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Put columns of single joints (q1, q_elbow, elbow.q) side by side, in the order of q.

    Returns:
        The columns by field, and the names of the joints; no names where the joints are numbered, and the columns as
        they are where they cannot all be read so.

    Raises:
        DataError: Two quantities have columns of different joints.
    """
    found: dict[str, dict[str, str]] = {}  # field -> joint -> column
    for name in columns:
        match = _COLUMN.fullmatch(name)
        if match is not None and name not in FIELDS:
            field = match["first"] or match["last"]
            found.setdefault(field, {})[match["number"] or match["behind"] or match["before"]] = name
    of_joints = {name for by_joint in found.values() for name in by_joint.values()}
    if "q" not in found or set(found) & set(columns) or set(columns) - of_joints - set(FIELDS):
        return columns, ()
    joints = list(found["q"])
    are_numbered = all(joint.isdecimal() for joint in joints)
    joints = sorted(joints, key=int) if are_numbered else joints
    for field, by_joint in found.items():
        if set(by_joint) != set(joints):
            other = ", ".join(sorted(set(by_joint) ^ set(joints))[:6])
            raise DataError(
                f"{field} and q have columns of different joints ({other})",
                remedy="Give each quantity one column per joint, with the same numbers or names.",
            )
    stacked: dict[str, Any] = {name: values for name, values in columns.items() if name not in of_joints}
    for field, by_joint in found.items():
        names = [by_joint[joint] for joint in joints]
        stacked[field] = np.column_stack([_numbers(name, columns[name]) for name in names])
    return stacked, () if are_numbered else tuple(joints)


_COLUMN = re.compile(
    rf"(?P<first>{'|'.join(OF_JOINTS)})(?:[._/ -]?(?P<number>\d+)|[._/ -](?P<behind>.+))"
    rf"|(?P<before>.+)[._/ -](?P<last>{'|'.join(OF_JOINTS)})"
)
"""Name of a column of one joint: the field first (q1, q_1, q_elbow), or last (elbow.q)."""


def _array(column: Any) -> Any:
    """A column of any library as a NumPy array."""
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


def _is_numeric(values: Any) -> bool:
    """Whether a column holds numbers, booleans or instants."""
    return np.asarray(_array(values)).dtype.kind in "fiubmM"


def _numbers(name: str, values: Any) -> Floats:
    """A column as doubles (N,) or (N, k); instants become seconds from the first."""
    array = np.asarray(_array(values))
    if array.dtype.kind in "mM" and array.size:
        array = (array - array[0]) / np.timedelta64(1, "ns") * 1e-9
    try:
        # cells of an object array are converted one by one; elsewhere a conversion that loses something is refused
        casting: Literal["unsafe", "same_kind"] = "unsafe" if array.dtype.kind == "O" else "same_kind"
        numbers = np.ascontiguousarray(array.astype(np.float64, casting=casting))
    except (TypeError, ValueError) as error:
        remedy = "Give one real number per sample and joint."
        raise DataError(f"'{name}' holds something else than numbers", remedy=remedy) from error
    if numbers.ndim not in (1, 2):
        raise DataError(f"column '{name}' has shape {numbers.shape}", remedy="Give (N,) or (N, k) numbers.")
    return numbers
