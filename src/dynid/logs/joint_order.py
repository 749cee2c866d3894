"""Matching the joints of a log to those of the robot by their names, and the errors and findings where names disagree.

`column_order` decides: columns whose names are the robot's joints, in another order, are put into the robot's order.
`match_joints` does the same for a whole recording. The other functions check names against one another or word what is
to be told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile

import numpy as np

from dynid.array_types import Ints
from dynid.errors import DataError
from dynid.findings import Finding
from dynid.logs.column_names import JointNames, read_name, words_of
from dynid.logs.columns import Picked
from dynid.logs.recording import Recording, taken
from dynid.robot.model import Robot


def column_order(
    names: Sequence[str], robot: Robot | None, *, whose: str = "the log", place: str | None = None
) -> Ints | None:
    """Find the column of each of the robot's joints by the names of the columns.

    Names say nothing if none of them is a joint of the robot, or if they only count (``q_0``, ``q_1``, ...).

    Args:
        names: Names of the columns, or of the log's joints; a name may hold other words, as ``elbow_pos``.
        robot: The robot; None if it is not known.
        whose: Owner of the names, for the error.
        place: Section and key with the names, for the error.

    Returns:
        (n,) place of the column of each joint of the robot; None if the order is the robot's already, or if the names
        do not say it.

    Raises:
        DataError: Some names are joints of the robot, but not every joint has one name.
    """
    if robot is None or len(names) != robot.dof or tuple(names) == robot.joint_names:
        return None
    joints = named_joints(names, robot)
    known = [joint for joint in joints if joint is not None]
    if sorted(known) == list(range(robot.dof)):
        return None if known == list(range(robot.dof)) else np.argsort(known)
    if known and not _only_count(names):
        raise _partly_known(names, joints, robot, whose, place)
    return None


def named_joints(names: Sequence[str], robot: Robot) -> list[int | None]:
    """For each name the index of the robot's joint that it names; None where it names none."""
    return [_find_joint(name, robot.joint_names) for name in names]


@lru_cache(maxsize=1024)
def _find_joint(name: str, joint_names: tuple[str, ...]) -> int | None:
    """Index of the joint that a name names; cached, because every piece of a stream asks for the same names."""
    found = JointNames(joint_names).find(words_of(name))
    return None if found is None else found[0]  # without the place of the joint's name in the words


def other_joints(names: Sequence[str], robot: Robot) -> str:
    """Say which of the robot's joints a log lacks, and which of its names are no joint of the robot; may be empty.

    Args:
        names: Names of the log's joints or columns.
        robot: The robot.
    """
    known = JointNames(robot.joint_names)
    found = [read_name(name, known) for name in names]
    # numbers in names stand for joints only if the names agree in all else
    numbers = known.numbers() if len({reading.context for reading in found}) == 1 else {}
    places = [
        numbers.get(-1 if one.number is None else one.number) if one.joint is None else one.joint for one in found
    ]
    missing = [name for j, name in enumerate(robot.joint_names) if j not in places]
    extra = [name for name, place in zip(names, places, strict=True) if place is None]
    parts = [f"the log lacks {shorten_names(missing)}"] if missing else []
    parts += [f"the robot has no joint for {shorten_names(extra)}"] if extra else []
    return "; ".join(parts)


def shorten_names(names: Sequence[str]) -> str:
    """The names as text: at most eight, and the number of the others."""
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def count_mismatch(quantity: str, count: int, names: Sequence[str], robot: Robot, hint: str) -> DataError:
    """The error for a log with another number of joints than the robot.

    Args:
        quantity: The quantity whose columns were counted.
        count: Number of its columns.
        names: Names of the columns, or of their joints; empty where one array holds them all.
        robot: The robot.
        hint: A further remedy.
    """
    which = (other_joints(names, robot) if names else "") or f"its joints are {shorten_names(robot.joint_names)}"
    return DataError(
        f"the log has the {quantity} of {count} joint{'s' if count != 1 else ''}, robot '{robot.name}' has {robot.dof} "
        f"joints: {which}",
        place=f"[{quantity}] columns",
        remedy="Check that the log is of this robot. Name one column per joint in the channel map, and hold the joints "
        f"that the log lacks (--hold JOINT, in Python hold={{'JOINT': 0.0}}).{hint}",
    )


def _only_count(names: Sequence[str]) -> bool:
    """Whether names differ by a number alone, which counts the columns from 0 or from 1."""
    words = [words_of(name) for name in names]
    patterns = {tuple("#" if word.isdigit() else word for word in spelled) for spelled in words}
    numbers = [[int(word) for word in spelled if word.isdigit()] for spelled in words]
    if len(patterns) > 1 or any(len(in_name) != 1 for in_name in numbers):
        return False
    counted = [number for (number,) in numbers]
    return counted[0] in (0, 1) and counted == list(range(counted[0], counted[0] + len(names)))


def _partly_known(
    names: Sequence[str], joints: Sequence[int | None], robot: Robot, whose: str, place: str | None
) -> DataError:
    """The error for names of which some are joints of the robot, but not one for each joint.

    Args:
        names: The names.
        joints: For each name the index of the joint that it names, or None.
        robot: The robot.
        whose: Owner of the names.
        place: Section and key with the names.
    """
    from difflib import get_close_matches  # imported here, because few maps are wrong

    missing = [name for j, name in enumerate(robot.joint_names) if j not in joints]
    unknown = [name for name, joint in zip(names, joints, strict=True) if joint is None]
    twice = [j for j, count in Counter(joint for joint in joints if joint is not None).items() if count > 1]
    reasons = []
    for name in unknown:
        near = get_close_matches(name, missing, n=1) or get_close_matches(name.lower(), missing, n=1)
        reasons.append(f"no joint of robot '{robot.name}' is named '{name}'" + (f" (near: {near[0]})" if near else ""))
    for joint in twice:
        given = dict.fromkeys(f"'{name}'" for name, index in zip(names, joints, strict=True) if index == joint)
        same = f"name the same joint {robot.joint_names[joint]}" if len(given) > 1 else "is given twice"
        reasons.append(f"{' and '.join(given)} {same}")
    return DataError(
        f"{whose} names only some joints of the robot: {'; '.join(reasons)}; missing: {', '.join(missing)}",
        place=place,
        remedy=f"Name each of the robot's joints once, in the order of the columns (joints = [...] in a channel map): "
        f"{', '.join(robot.joint_names)}.",
    )


def order_finding(names: Sequence[str], robot: Robot, *, declared: bool) -> Finding:
    """The finding that joints are listed in another order than the robot's, and were matched by name.

    Args:
        names: The joints in the order of the list.
        robot: The robot.
        declared: Whether the list stands in the channel map, as the robot's order; otherwise it is the log's.
    """
    who = "the channel map lists the joints" if declared else "the log has the joints"
    return Finding(
        code="joint-order",
        severity="warning" if declared else "note",
        where="joints",
        message=f"{who} in another order ({shorten_names(names)}) than the robot; they are matched by name",
        remedy="List the joints in the robot's order." if declared else "Nothing to do, if the names are right.",
    )


def paired_by_order(names: Sequence[str], robot: Robot | None) -> list[Finding]:
    """The finding that joints of a log with as many joints, but other names than the robot, are paired by order."""
    if robot is None or len(names) != robot.dof or any(joint is not None for joint in named_joints(names, robot)):
        return []
    pairs = ", ".join(f"{name} = {joint}" for name, joint in zip(names, robot.joint_names, strict=True))
    return [Finding(
        code="joint-order", severity="warning", where="joints", message=f"paired with the robot by order: {pairs}",
        remedy="Check them: no name of the log is one of the robot's.",
    )]  # fmt: skip


def refuse_unnamed(named: str, others: Mapping[str, Sequence[str]], robot: Robot) -> None:
    """Refuse columns that do not name joints in a log whose other columns do, in another order than the robot's.

    Args:
        named: The quantity whose columns name the joints.
        others: Other quantity -> names of its columns.
        robot: The robot.

    Raises:
        DataError: None of the names of such a quantity is a joint's.
    """
    for quantity in _list_unnamed(others, robot):
        raise DataError(
            f"the columns of {named} name the joints in another order than the robot has them, and those of {quantity} "
            f"({shorten_names(others[quantity])}) do not say their joints",
            place=f"[{quantity}] columns",
            remedy=f"List the columns of both in the robot's order: {', '.join(robot.joint_names)}. "
            "Where all have the same order, name it: joints = [...].",
        )


def refuse_contradiction(quantity: str, declared: Sequence[str], columns: Sequence[str], robot: Robot) -> None:
    """Refuse a channel map whose `joints` and column names both name all joints, but in different orders.

    Args:
        quantity: The quantity of the columns.
        declared: The map's `joints`.
        columns: Names of the columns.
        robot: The robot.

    Raises:
        DataError: The orders differ.
    """
    by_map = named_joints(declared, robot)
    by_columns = named_joints(columns, robot)
    if None not in by_map + by_columns and by_map != by_columns:
        raise DataError(
            f"joints are {shorten_names(declared)}, but the columns of {quantity} are named {shorten_names(columns)}",
            place="joints",
            remedy="List the joints in the order of the columns, or take the line out: the columns name them.",
        )


def _list_unnamed(columns: Mapping[str, Sequence[str]], robot: Robot) -> list[str]:
    """The quantities with as many columns as the robot has joints, none of which names a joint."""
    return [
        quantity
        for quantity, names in columns.items()
        if quantity != "wrench" and len(names) == robot.dof and set(named_joints(names, robot)) == {None}
    ]


def names_in_columns(names: Sequence[str]) -> tuple[str, ...]:
    """The parts of the names of columns that differ: without the words at both ends that all names share.

    arm_hip_pos and arm_knee_pos give hip and knee. Empty if the names only count, or if nothing distinguishes them.
    """
    words = [re.split(r"[._]", name) for name in names]
    if len(words) < 2 or _only_count(names):
        return ()
    for _ in range(2):  # the common end, then the common beginning
        words = [parts[::-1] for parts in words]
        alike = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
        shared = min(len(list(alike)), *(len(parts) - 1 for parts in words))
        words = [parts[shared:] for parts in words]
    found = tuple("_".join(parts) for parts in words)
    return found if len(set(found)) == len(found) and all(found) else ()


def joint_findings(
    picked: Mapping[str, Picked],
    declared: Sequence[str],
    robot: Robot | None,
    orders: Mapping[str, Ints],
) -> list[Finding]:
    """The findings about the joints of a log: paired by order only, listed in another order, or not named at all.

    Args:
        picked: Quantity -> its columns.
        declared: The map's `joints`; empty without.
        robot: The robot.
        orders: Quantity -> for each joint of the robot the place of its column, where its names have another order.
    """
    if robot is None:
        return []
    position = picked["position"]
    in_log = [name for name in position.table.names if name in position.names]  # in the order of the log
    joints = named_joints(position.names, robot)
    found = paired_by_order(declared or position.joints or names_in_columns(position.names), robot)
    if orders:  # the map lists the columns, or the joints, in another order than the robot's
        listed = position.joints or (declared if len(declared) == len(position.names) else position.names)
        found.append(order_finding(listed, robot, declared=True))
    elif position.joints:  # messages that name their joints: the log itself may have another order
        listed = tuple(position.joints[position.names.index(name)] for name in in_log)
        known = [joint for joint in named_joints(listed, robot) if joint is not None]
        if known != sorted(known) and len(set(known)) == robot.dof:
            found.append(order_finding(listed, robot, declared=False))
    if not declared and in_log != list(position.names) and set(joints) == set(range(robot.dof)):
        columns = {quantity: item.names for quantity, item in picked.items()}
        for quantity in _list_unnamed(columns, robot):
            found.append(Finding(
                code="joint-order", severity="warning", where=f"[{quantity}] columns",
                message=f"the log has its positions in another order than the robot, and the columns of {quantity} "
                f"({shorten_names(columns[quantity])}) do not say their joints: they are taken in the map's order",
                remedy=f"Make sure that the map lists the columns of {quantity} in the robot's order.",
            ))  # fmt: skip
    return found


def match_joints(recording: Recording, robot: Robot | None) -> Recording:
    """Put the columns of a recording into the robot's order, if it has the robot's joint names in another order.

    Raises:
        DataError: Some names are joints of the robot, but not every joint has one name.
    """
    order = column_order(recording.joint_names, robot, whose=f"the recording '{recording.source}'")
    if order is None or robot is None:
        return recording
    ordered = taken(recording, ("q", "dq", "effort", "current", "gain", "gain_std"), (..., order))
    for name in ("commands", "temperature"):
        if (part := getattr(recording, name)) is not None:
            ordered[name] = part.columns(order)
    finding = order_finding(recording.joint_names, robot, declared=False)
    return replace(recording, **ordered, joint_names=robot.joint_names, findings=(*recording.findings, finding))
