"""Picking the columns a channel map names.

A name stands for one column, or is a pattern: by number (``q_{0..5}``), by joint (``{joint}``), or with a wildcard
(``*``) that fits exactly one column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from dynid.errors import DataError
from dynid.logs.channel_map import Signal
from dynid.logs.readers.base import Floats, Table

__all__ = ["Picked", "pick"]

_NUMBER_RANGE = re.compile(r"\{(\d{1,3})\.\.(\d{1,3})\}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picked:
    """The columns of one quantity: in the robot's order, or in the log's where `pick` was given no joints."""

    table: Table
    names: tuple[str, ...]
    arrays: tuple[Floats, ...]
    joints: tuple[str, ...]
    """The joint names found in the columns' names; empty where they hold none."""


def pick(
    signal: Signal, quantity: str, tables: Mapping[str, Table], joints: tuple[str, ...], prefer: Table | None = None
) -> Picked:
    """Find a signal's columns.

    Args:
        signal: The signal whose columns are wanted.
        quantity: Name of the quantity, for messages.
        tables: The run's tables by file key.
        joints: Joint names as the log spells them, in the robot's order; empty: all joints found, in the log's order.
        prefer: The table to take if several have the columns and the signal names no file.

    Raises:
        DataError: If a column is missing, ambiguous, or found in several files.
    """
    if signal.file is not None:
        if signal.file not in tables:
            raise DataError(f"there is no file '{signal.file}' under [files]", place=f"[{quantity}] file")
        return _pick_from(tables[signal.file], signal, quantity, joints)
    errors, found = [], []
    for table in tables.values():
        try:
            found.append(_pick_from(table, signal, quantity, joints))
        except DataError as error:
            errors.append(error)
    preferred = [item for item in found if item.table is prefer] or found
    if not preferred:
        raise errors[0]
    if len(preferred) > 1:
        raise DataError(
            f"several files have the columns of {quantity}",
            place=f"[{quantity}]",
            remedy='Say which: file = "..." with a key of [files].',
        )
    return preferred[0]


def _pick_from(table: Table, signal: Signal, quantity: str, joints: tuple[str, ...]) -> Picked:
    """Find a signal's columns in one table."""
    names: list[str] = []
    found: tuple[str, ...] = ()
    for pattern in signal.columns:
        if "{joint}" in pattern:
            expanded, found = _by_joint(table, pattern, quantity, joints)  # several patterns: the last one's joints
            names += expanded
        else:
            names += [_resolve(table, name, quantity) for name in _expand_numbers(pattern)]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise DataError(
            f"the column '{twice[0]}' is named twice",
            place=f"[{quantity}] columns",
            remedy="Name one column per joint, each once.",
        )
    arrays = tuple(column for name in names if (column := table.column(name)) is not None)
    return Picked(table=table, names=tuple(names), arrays=arrays, joints=found)


def _expand_numbers(pattern: str) -> list[str]:
    """``q_{0..2}`` as q_0, q_1, q_2."""
    match = _NUMBER_RANGE.search(pattern)
    if match is None:
        return [pattern]
    if int(match[1]) > int(match[2]):
        raise DataError(
            f"'{pattern}' counts down", remedy="Write the smaller number first; give a list for another order."
        )
    numbers = range(int(match[1]), int(match[2]) + 1)
    return [f"{pattern[: match.start()]}{number}{pattern[match.end() :]}" for number in numbers]


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern with ``*`` and ``{joint}`` as a regular expression."""
    parts = re.split(r"(\*|\{joint\})", pattern)
    known = {"*": "(?:.*)", "{joint}": "(?P<joint>.+)"}
    return re.compile("".join(known.get(part, re.escape(part)) for part in parts))


def _resolve(table: Table, pattern: str, quantity: str) -> str:
    """The one column a name or pattern stands for."""
    if table.column(pattern) is not None:
        return pattern
    matches = [name for name in table.names if _compile_pattern(pattern).fullmatch(name)] if "*" in pattern else []
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise DataError(
            f"'{pattern}' fits several columns: {', '.join(matches[:6])}",
            place=f"[{quantity}] columns",
            remedy="Name the column (or ROS topic) in full.",
        )
    near = get_close_matches(pattern, table.names, 4, 0.5) or list(table.names[:12])
    raise DataError(
        f"the log has no column '{pattern}'",
        place=f"[{quantity}] columns",
        remedy=f"Columns like it: {', '.join(near)}." if near else "The log has no columns.",
    )


def _by_joint(table: Table, pattern: str, quantity: str, joints: tuple[str, ...]) -> tuple[list[str], tuple[str, ...]]:
    """The columns of a pattern for each joint, in the order of `joints`, or of the log where none are given."""
    if pattern.count("{joint}") > 1 or _NUMBER_RANGE.search(pattern):
        raise DataError(
            f"'{pattern}' has {{joint}} twice, or together with a range of numbers",
            place=f"[{quantity}] columns",
            remedy="Write {joint} once in a pattern and no {0..5} beside it; give one pattern for each number.",
        )
    expression = _compile_pattern(pattern)
    found: dict[str, list[str]] = {}
    for name in table.names:
        match = expression.fullmatch(name)
        if match:
            found.setdefault(match["joint"], []).append(name)
    wanted = joints or tuple(found)
    missing = [joint for joint in wanted if joint not in found]
    if missing or not found:
        raise DataError(
            f"no {quantity} of joint '{missing[0]}'" if missing else f"the log holds no {quantity}",
            place=f"[{quantity}] columns",
            remedy=f"List the log's names in the robot's order under joints; it has: {', '.join(found) or 'none'}.",
        )
    for joint in wanted:
        if len(found[joint]) > 1:
            raise DataError(
                f"joint '{joint}' is in several columns: {', '.join(found[joint])}",
                place=f"[{quantity}] columns",
                remedy="Name the column (or ROS topic) in full instead of using '*'.",
            )
    return [found[joint][0] for joint in wanted], wanted
