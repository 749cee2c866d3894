"""Joints are matched by name: columns whose names are the robot's, in another order, are put into the robot's order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile

import numpy as np

from dynid.arrays import Ints
from dynid.errors import DataError
from dynid.findings import Finding
from dynid.logs.column_names import JointNames, read_name, words_of
from dynid.logs.columns import Picked
from dynid.logs.recording import Recording, taken
from dynid.robot.model import Robot


def column_order(
    names: Sequence[str], robot: Robot | None, *, whose: str = "the log", place: str | None = None
) -> Ints | None:
    """For each of the robot's joints the place of its column; None where the names do not tell, or agree already.

    Names tell nothing where none of them is a joint of the robot, or where they only count (``q_0``, ``q_1``, ...).

    Args:
        names: Names of the columns, or of the log's joints; a name may hold more than the joint's, as ``elbow_pos``.
        robot: The robot.
        whose: What has the names, for the error.
        place: Where the names stand, for the error.

    Raises:
        DataError: Some names are joints of the robot, but not every joint has one name.
    """
    if robot is None or len(names) != robot.dof or tuple(names) == robot.joint_names:
        return None
    joints = named_joints(names, robot)
    told = [joint for joint in joints if joint is not None]
    if sorted(told) == list(range(robot.dof)):
        return None if told == list(range(robot.dof)) else np.argsort(told)
    if told and not _only_count(names):
        raise _partly_known(names, joints, robot, whose, place)
    return None


def named_joints(names: Sequence[str], robot: Robot) -> list[int | None]:
    """For each name the index of the robot's joint that it names; None where it names none."""
    return [_named(name, robot.joint_names) for name in names]


@lru_cache(maxsize=1024)
def _named(name: str, joint_names: tuple[str, ...]) -> int | None:
    """The joint that a name names, found once: every piece of a stream asks for the same names."""
    found = JointNames(joint_names).find(words_of(name))
    return None if found is None else found[0]


def other_joints(names: Sequence[str], robot: Robot) -> str:
    """What a log lacks and has beside the robot's joints, as text; names may be those of columns."""
    known = JointNames(robot.joint_names)
    found = [read_name(name, known) for name in names]
    numbers = known.numbers() if len({reading.context for reading in found}) == 1 else {}
    places = [reading.joint if reading.joint is not None else numbers.get(reading.number or -1) for reading in found]
    missing = [name for j, name in enumerate(robot.joint_names) if j not in places]
    extra = [name for name, place in zip(names, places, strict=True) if place is None]
    parts = [f"the log lacks {shortened(missing)}"] if missing else []
    parts += [f"the robot has no joint for {shortened(extra)}"] if extra else []
    return "; ".join(parts)


def shortened(names: Sequence[str]) -> str:
    """A list of names, at most eight of them."""
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def count_mismatch(quantity: str, count: int, names: Sequence[str], robot: Robot, hint: str) -> DataError:
    """The error for a log with another number of joints than the robot.

    Args:
        quantity: Whose columns were counted.
        count: Their number.
        names: Names of the columns, or of their joints; empty where one array holds them all.
        robot: The robot.
        hint: A further remedy.
    """
    which = (other_joints(names, robot) if names else "") or f"its joints are {shortened(robot.joint_names)}"
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
    frames = {tuple("#" if word.isdigit() else word for word in spelled) for spelled in words}
    numbers = [[int(word) for word in spelled if word.isdigit()] for spelled in words]
    if len(frames) > 1 or any(len(own) != 1 for own in numbers):
        return False
    return [own[0] - numbers[0][0] for own in numbers] == list(range(len(names))) and numbers[0][0] in (0, 1)


def _partly_known(
    names: Sequence[str], joints: Sequence[int | None], robot: Robot, whose: str, place: str | None
) -> DataError:
    """The error for names of which some are joints of the robot, but not one for each joint."""
    from difflib import get_close_matches  # few maps are wrong

    missing = [name for j, name in enumerate(robot.joint_names) if j not in joints]
    unknown = [name for name, joint in zip(names, joints, strict=True) if joint is None]
    twice = [j for j, count in Counter(joint for joint in joints if joint is not None).items() if count > 1]
    reasons = []
    for name in unknown:
        near = get_close_matches(name, missing, n=1) or get_close_matches(name.lower(), missing, n=1)
        reasons.append(f"no joint of robot '{robot.name}' is named '{name}'" + (f" (near: {near[0]})" if near else ""))
    for joint in twice:
        given = dict.fromkeys(f"'{name}'" for name, own in zip(names, joints, strict=True) if own == joint)
        same = f"name the same joint {robot.joint_names[joint]}" if len(given) > 1 else "is given twice"
        reasons.append(f"{' and '.join(given)} {same}")
    return DataError(
        f"{whose} names only some joints of the robot: {'; '.join(reasons)}; missing: {', '.join(missing)}",
        place=place,
        remedy=f"Name each of the robot's joints once, in the order of the columns (joints = [...] in a channel map): "
        f"{', '.join(robot.joint_names)}.",
    )


def order_finding(names: Sequence[str], robot: Robot, *, declared: bool) -> Finding:
    """The finding that a log, or a channel map that declares it as the robot's order, has the joints in another one."""
    who = "the channel map lists the joints" if declared else "the log has the joints"
    return Finding(
        code="joint-order",
        severity="warning" if declared else "note",
        where="joints",
        message=f"{who} in another order ({shortened(names)}) than the robot; they are matched by name",
        remedy="List the joints in the robot's order." if declared else "Nothing to do, if the names are right.",
    )


def paired_by_order(names: Sequence[str], robot: Robot | None) -> list[Finding]:
    """The finding that a log's joints are taken in their order, where it names as many and none of the robot's."""
    if robot is None or len(names) != robot.dof or any(joint is not None for joint in named_joints(names, robot)):
        return []
    pairs = ", ".join(f"{own} = {joint}" for own, joint in zip(names, robot.joint_names, strict=True))
    return [Finding(
        code="joint-order", severity="warning", where="joints", message=f"paired with the robot by order: {pairs}",
        remedy="Check them: no name of the log is one of the robot's.",
    )]  # fmt: skip


def refuse_unnamed(named: str, others: Mapping[str, Sequence[str]], robot: Robot) -> None:
    """Refuse columns that do not say their joints beside others that do, in another order than the robot's.

    Args:
        named: The quantity whose columns name the joints.
        others: Other quantity -> names of its columns.
        robot: The robot.

    Raises:
        DataError: None of the names of such a quantity is a joint's.
    """
    for quantity in _unnamed(others, robot):
        raise DataError(
            f"the columns of {named} name the joints in another order than the robot has them, and those of {quantity} "
            f"({shortened(others[quantity])}) do not say their joints",
            place=f"[{quantity}] columns",
            remedy=f"List the columns of both in the robot's order: {', '.join(robot.joint_names)}. "
            "Where all have the same order, name it: joints = [...].",
        )


def refuse_contradiction(quantity: str, declared: Sequence[str], columns: Sequence[str], robot: Robot) -> None:
    """Refuse a map whose `joints` are other joints of the robot than those that the names of the columns say.

    Raises:
        DataError: Both name all joints, in different orders.
    """
    named, said = named_joints(declared, robot), named_joints(columns, robot)
    if None not in named + said and named != said:
        raise DataError(
            f"joints are {shortened(declared)}, but the columns of {quantity} are named {shortened(columns)}",
            place="joints",
            remedy="List the joints in the order of the columns, or take the line out: the columns name them.",
        )


def _unnamed(columns: Mapping[str, Sequence[str]], robot: Robot) -> list[str]:
    """The quantities with a column for each joint, of which none names a joint."""
    return [
        quantity
        for quantity, names in columns.items()
        if quantity != "wrench" and len(names) == robot.dof and set(named_joints(names, robot)) == {None}
    ]


def names_in_columns(names: Sequence[str]) -> tuple[str, ...]:
    """What distinguishes the names of columns: their words without those at either end that all have in common."""
    words = [re.split(r"[._]", name) for name in names]
    if len(words) < 2 or _only_count(names):
        return ()
    for _ in range(2):  # the common end, then the common beginning
        words = [own[::-1] for own in words]
        alike = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
        shared = min(len(list(alike)), *(len(own) - 1 for own in words))
        words = [own[shared:] for own in words]
    found = tuple("_".join(own) for own in words)
    return found if len(set(found)) == len(found) and all(found) else ()


def joint_findings(
    picked: Mapping[str, Picked],
    declared: Sequence[str],
    robot: Robot | None,
    orders: Mapping[str, Ints],
) -> list[Finding]:
    """What the names of columns say about the joints that they are taken for.

    Args:
        picked: Quantity -> its columns.
        declared: The map's names of the joints; empty without.
        robot: The robot.
        orders: Quantity -> the places of the robot's joints among its columns, where its names have another order.
    """
    if robot is None:
        return []
    position = picked["position"]
    in_log = [name for name in position.table.names if name in position.names]
    own = named_joints(position.names, robot)
    found = paired_by_order(declared or position.joints or names_in_columns(position.names), robot)
    if orders:
        words = position.joints or (declared if len(declared) == len(position.names) else position.names)
        found.append(order_finding(words, robot, declared=True))
    elif position.joints:
        listed = [position.joints[position.names.index(name)] for name in in_log]
        told = [joint for joint in named_joints(listed, robot) if joint is not None]
        if told != sorted(told) and len(set(told)) == robot.dof:
            found.append(order_finding(listed, robot, declared=False))
    if not declared and in_log != list(position.names) and set(own) == set(range(robot.dof)):
        columns = {quantity: item.names for quantity, item in picked.items()}
        for quantity in _unnamed(columns, robot):
            found.append(Finding(
                code="joint-order", severity="warning", where=f"[{quantity}] columns",
                message=f"the log has its positions in another order than the robot, and the columns of {quantity} "
                f"({shortened(columns[quantity])}) do not say their joints: they are taken in the map's order",
                remedy=f"Make sure that the map lists the columns of {quantity} in the robot's order.",
            ))  # fmt: skip
    return found


def match_joints(recording: Recording, robot: Robot | None) -> Recording:
    """The recording with its columns in the robot's order, where its joint names are the robot's in another order.

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
