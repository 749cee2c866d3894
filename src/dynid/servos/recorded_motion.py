"""From a `Recording` with commands to a `CommandedMotion`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.findings import Finding
from dynid.logs.joint_order import column_order, count_mismatch
from dynid.logs.recording import Commands, Recording
from dynid.robot.model import Robot
from dynid.servos.motion import CommandedMotion, longest_hole

LONGEST_S = 0.1
"""Longest time without commands inside a motion, over which the last command counts as held [s]. Convention: a few lost
packets of usual robots."""
CHANGE = 1e-6
"""Relative change of a gain during a motion that is rounding. Convention."""
MOST_PLACES = 4
"""Gaps of which a finding tells the times. Convention."""


def commanded_motion(recording: Recording, robot: Robot, name: str | None = None) -> CommandedMotion:
    """The commands and readings of a recording, in the order of the robot's joints.

    A missing reading counts for nothing; the commands of its row stay. A missing command is the one before it, or on
    the straight line where such lines join the commands; rows without commands for long are left out.
    `CommandedMotion.stretches` cuts the motion at long gaps.
    Commands on a clock of their own are averaged over the time until the next reading, or interpolated where straight
    lines join them, so that a delay counts from the time of the command.

    Args:
        recording: A log that says where the joints were sent.
        robot: The robot; joints are matched by name.
        name: A name for reports; the recording's source by default.

    Raises:
        DataError: The recording has no commands, or its gains change during the motion.

    Example:
        >>> from dynid.logs.recording import Commands
        >>> commands = Commands(time=ticks, position=sent)
        >>> recording = dynid.Recording(time=ticks, q=sensed.position, commands=commands)
        >>> dynid.servos.commanded_motion(recording, pendulum).command.shape
        (300, 1)
    """
    commands = recording.commands
    if commands is None:
        raise DataError(
            f"'{recording.source}' does not say where the joints were sent",
            remedy="Name the columns of the commanded positions under [reference] in the channel map.",
        )
    found = column_order(recording.joint_names, robot)
    order = np.arange(recording.q.shape[1]) if found is None else found
    if order.size != robot.dof:
        raise count_mismatch(
            "positions", order.size, recording.joint_names, robot, "Hold the joints that are not logged."
        )
    sent = commands.columns(order)
    q, dq, last = recording.q[:, order], recording.dq, _sent_rows(sent, recording.time)
    told = np.isfinite(sent.position[last])
    usable = np.isfinite(recording.time) & (np.cumsum(told, axis=0) > 0).all(axis=1)
    usable &= np.concatenate([[True], np.diff(recording.time) > 0.0])
    known = np.flatnonzero(usable & told.all(axis=1))
    for k in np.flatnonzero((np.diff(known) > 1) & (np.diff(recording.time[known]) > LONGEST_S)):
        usable[known[k] + 1 : known[k + 1]] = False
    usable &= np.cumsum(usable & np.isfinite(q).all(axis=1)) > 0  # the motion starts from a reading of every joint
    rows, time = last[usable], recording.time[usable]
    return CommandedMotion(
        joint_names=robot.joint_names,
        time=time,
        command=np.stack([_column_at(sent.time, column, time, sent.held) for column in sent.position.T], axis=1),
        position=q[usable],
        command_velocity=None if sent.velocity is None else np.nan_to_num(sent.velocity[rows]),
        velocity=None if dq is None or not np.isfinite(dq[usable]).all() else dq[usable][:, order],
        enabled=None if sent.enabled is None else sent.enabled[rows],
        kp=_constant(sent.kp, "kp", recording),
        kd=_constant(sent.kd, "kd", recording),
        voltage=None if sent.supply is None else float(np.nanmedian(sent.supply)),
        held=sent.held,
        name=recording.source if name is None else name,
    )


def _sent_rows(sent: Commands, time: Floats) -> NDArray[np.int64]:
    """(N,) the command that was the last at each time."""
    return np.clip(np.searchsorted(sent.time, time, side="right") - 1, 0, None)


def _column_at(own: Floats, column: Floats, time: Floats, held: bool) -> Floats:
    """(N,) commands of one joint at the times of readings: means until the next reading, or points of straight lines.

    A missing command is the one before it, or on the straight line.
    """
    known = np.isfinite(column) & np.isfinite(own)
    own, position = own[known], column[known]
    if not own.size:
        return np.full(time.shape, np.nan)
    if not held:
        return np.interp(time, own, position)
    here = np.clip(np.searchsorted(own, time, side="right") - 1, 0, None)
    total = np.concatenate([[0.0], np.cumsum(np.diff(own) * position[:-1])])
    integral = total[here] + (time - own[here]) * position[here]
    same = here[1:] - here[:-1] == (time[1:] == own[here[1:]])  # one command all the time: its very number
    means = np.diff(integral) / np.diff(time)
    return np.concatenate([np.where(same, position[here[:-1]], means), position[here[-1:]]])


def lost_samples(motion: CommandedMotion) -> Iterator[Finding]:
    """What the log of a motion lacks: gaps and missing readings; with number and place."""
    time, steps = motion.time, np.diff(motion.time)
    gaps = np.flatnonzero(steps > longest_hole(motion.period_s))
    if gaps.size:
        shown = ", ".join(f"{time[k]:.4g} to {time[k + 1]:.4g} s" for k in gaps[:MOST_PLACES])
        shown += f" and {gaps.size - MOST_PLACES} more" if gaps.size > MOST_PLACES else ""
        yield Finding(
            code="gap", severity="warning", where=motion.name,
            message=f"there are no rows, or no commands, from {shown}",
            remedy="Handled: the motion is cut there, and each part starts from a reading of its own.",
            evidence={"gaps": gaps.size, "time lost [s]": float(steps[gaps].sum())},
        )  # fmt: skip
    for j, name in enumerate(motion.joint_names):
        empty = np.flatnonzero(~motion.counted[:, j])
        if empty.size:
            yield Finding(
                code="missing", severity="warning", where=motion.name, joint=name,
                message=f"{empty.size} readings are missing, between {time[empty[0]]:.4g} and {time[empty[-1]]:.4g} s",
                remedy="Handled: they count for nothing; the commands and the other joints stay.",
                evidence={"readings": empty.size},
            )  # fmt: skip


def _constant(gains: Floats | None, name: str, recording: Recording) -> Floats | None:
    """(n,) gains that do not change during the motion."""
    if gains is None or not np.isfinite(gains).any():
        return None
    low, high = np.nanmin(gains, axis=0), np.nanmax(gains, axis=0)
    if (high - low > CHANGE * np.maximum(np.abs(high), 1e-300)).any():
        raise DataError(
            f"{name} changes during '{recording.source}'",
            remedy="Cut the log there, into a file for each.",
        )
    return np.asarray(high)
