"""Pick the columns of a log that a channel map names.

A name stands for one column, or is a pattern: with a range of numbers (``q_{0..5}``), with the names of joints
(``{joint}``), or with a wildcard (``*``) that must match exactly one column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynid.array_types import Floats
from dynid.errors import DataError
from dynid.logs.channel_map import Signal
from dynid.logs.readers.base import ColumnTable

_NUMBER_RANGE = re.compile(r"\{(\d{1,3})\.\.(\d{1,3})\}")
"""A range of numbers in a pattern: its first and its last number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picked:
    """The columns of one quantity, in the order of the map's `columns`.

    The columns of a ``{joint}`` pattern are in the robot's order, or in the log's where no joints are given.
    """

    table: ColumnTable
    """The table that has them."""
    names: tuple[str, ...]
    """Name of each column."""
    arrays: tuple[Floats, ...]
    """(N,) or (N, k) each column."""
    joints: tuple[str, ...]
    """The joint names that ``{joint}`` stands for, as the log spells them; empty without such a pattern."""


def pick_columns(
    signal: Signal,
    quantity: str,
    tables: Mapping[str, ColumnTable],
    joints: tuple[str, ...],
    prefer: ColumnTable | None = None,
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
    if signal.file is not None and signal.file not in tables:
        raise DataError(f"there is no file '{signal.file}' under [files]", place=f"[{quantity}] file")
    candidates: list[Picked] = []
    errors: dict[str, DataError] = {}
    for file in [signal.file] if signal.file is not None else tables:
        try:
            candidates.append(_pick_from(tables[file], signal, quantity, joints))
        except DataError as error:
            errors[file] = error
    preferred = [candidate for candidate in candidates if candidate.table is prefer] or candidates
    if not preferred and len(errors) == 1:
        (fault,) = errors.values()
        raise DataError(fault.reason, place=f"[{quantity}] columns", remedy=fault.remedy) from fault
    if not preferred:  # any of the files may be the intended one
        reasons = "; ".join(f"{file}: {error.reason}" for file, error in errors.items())
        remedy = " ".join(f"{file}: {error.remedy}" for file, error in errors.items() if error.remedy)
        raise DataError(f"no file has the columns of {quantity} ({reasons})", place=f"[{quantity}]", remedy=remedy)
    if len(preferred) > 1:
        raise DataError(
            f"several files have the columns of {quantity}",
            place=f"[{quantity}]",
            remedy='Say which: file = "..." with a key of [files].',
        )
    return preferred[0]


def _pick_from(table: ColumnTable, signal: Signal, quantity: str, joints: tuple[str, ...]) -> Picked:
    """Find a signal's columns in one table."""
    names: list[str] = []
    joint_names: tuple[str, ...] = ()
    for pattern in signal.columns:
        if "{joint}" in pattern:
            expanded, joints_here = _by_joint(table.names, pattern, quantity, joints)
            if joint_names and joints_here != joint_names:
                raise DataError(
                    f"'{pattern}' finds the joints {', '.join(joints_here)}, but the pattern before it "
                    f"{', '.join(joint_names)}",
                    remedy="Name the log's joints in order under joints, or list the columns one by one.",
                )
            names, joint_names = names + expanded, joints_here
        else:
            # column k of a two-dimensional column, and a constant of the file, are not among the names
            names += [
                name if table.column(name) is not None else _resolve(table.names, name)
                for name in expand_numbers(pattern)
            ]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"the column '{twice[0]}' is named twice",
            remedy="Name one column per joint, each once.",
        )
    arrays = tuple(column for name in names if (column := table.column(name)) is not None)
    return Picked(table=table, names=tuple(names), arrays=arrays, joints=joint_names)


def expand_numbers(pattern: str) -> list[str]:
    """``q_{0..2}`` as q_0, q_1, q_2."""
    # the text before a range, then for every range its two numbers and the text behind it
    before, *ranges = _NUMBER_RANGE.split(pattern)
    if not ranges:
        return [pattern]
    first, last, behind, *second_range = ranges
    if second_range:
        raise DataError(
            f"'{pattern}' has two ranges of numbers",
            remedy="Give one pattern for each number of the first range, each with the second range only.",
        )
    if int(first) > int(last):
        raise DataError(
            f"'{pattern}' counts down",
            remedy="Write the smaller number first; give a list for another order.",
        )
    return [f"{before}{number}{behind}" for number in range(int(first), int(last) + 1)]


MOST_WILDCARDS = 2
"""Largest number of ``*`` in one pattern (convention: the time to match grows with this power of the length)."""
LONGEST_NAME = 300
"""Largest number of letters of a name that a pattern can match (convention)."""


def match_pattern(pattern: str, name: str) -> str | None:
    """Match a whole name with a pattern; every ``*`` takes as many letters as it can, the first one first.

    Returns:
        What stands at ``{joint}``, empty where the pattern has none; None if the name does not match.
    """
    if len(name) > LONGEST_NAME or pattern.count("*") > MOST_WILDCARDS:
        return None
    expressions = {"*": ".*", "{joint}": "(.+)"}
    parts = re.split(r"(\*|\{joint\})", pattern)
    found = re.fullmatch("".join(expressions.get(part, re.escape(part)) for part in parts), name)
    if found is None:
        return None
    return found[1] if found.re.groups else ""


def _check_wildcards(pattern: str) -> None:
    """Refuse a pattern with too many wildcards."""
    if pattern.count("*") > MOST_WILDCARDS:
        reason = f"a pattern has {pattern.count('*')} times '*', at most {MOST_WILDCARDS} are read"
        raise DataError(reason, remedy="Name the column in full.")


def _resolve(names: Sequence[str], pattern: str) -> str:
    """The one of the columns that a pattern stands for."""
    _check_wildcards(pattern)
    matches = [name for name in names if match_pattern(pattern, name) is not None] if "*" in pattern else []
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise DataError(
            f"'{pattern}' fits several columns: {', '.join(matches[:6])}",
            remedy="Name the column (or ROS topic) in full.",
        )
    from difflib import get_close_matches  # loaded here because few maps are wrong

    near = get_close_matches(pattern, names, 4, 0.5) or names[:12]
    raise DataError(
        f"the log has no column '{pattern}'",
        remedy=f"Columns like it: {', '.join(near)}." if near else "The log has no columns.",
    )


def _by_joint(
    names: Sequence[str], pattern: str, quantity: str, joints: tuple[str, ...]
) -> tuple[list[str], tuple[str, ...]]:
    """For each joint the column of a pattern with ``{joint}``, and the joints.

    They are in the order of `joints`, or of the log where none are given.
    """
    if pattern.count("{joint}") > 1 or _NUMBER_RANGE.search(pattern):
        raise DataError(
            f"'{pattern}' has {{joint}} twice, or together with a range of numbers",
            remedy="Write {joint} once in a pattern and no {0..5} beside it; give one pattern for each number.",
        )
    _check_wildcards(pattern)
    columns_of: dict[str, list[str]] = {}
    for name in names:
        joint = match_pattern(pattern, name)
        if joint is not None:
            columns_of.setdefault(joint, []).append(name)
    wanted = joints or tuple(columns_of)
    missing = [joint for joint in wanted if joint not in columns_of]
    if missing or not columns_of:
        extra = [joint for joint in columns_of if joint not in wanted]
        lacks = f"the log has no {quantity} of {', '.join(missing[:8])}{' ...' if len(missing) > 8 else ''}"
        has = f"; it has {', '.join(extra[:8])}{' ...' if len(extra) > 8 else ''}" if extra else ""
        raise DataError(
            f"{lacks}{has}" if missing else f"the log holds no {quantity}",
            remedy="Check that the log is of this robot. Where only the names differ, list the log's names in the "
            'robot\'s order: joints = ["...", "..."] in the channel map.',
        )
    for joint in wanted:
        if len(columns_of[joint]) > 1:
            raise DataError(
                f"joint '{joint}' is in several columns: {', '.join(columns_of[joint])}",
                remedy="Name the column (or ROS topic) in full instead of using '*'.",
            )
    return [columns_of[joint][0] for joint in wanted], wanted
