"""Make a `CommandedMotion`, the input of the identification of servos, from a log that was read from a file.

The log is a `Recording` with `Commands`. The motion has one command per encoder reading, but commands may have been
logged at other times. If drives keep each command until the next one, the command of a reading is the mean of those in
force from this reading to the next; otherwise it is interpolated linearly. So a delay that is fitted later counts from
the time of the command. `lost_samples` reports gaps and missing readings to the user.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.array_types import Floats
from dynid.errors import DataError
from dynid.findings import Finding
from dynid.logs.joint_order import column_order, count_mismatch
from dynid.logs.recording import Recording
from dynid.robot.model import Robot
from dynid.servos.motion import CommandedMotion, longest_hole
from dynid.spatial import SIX_DIGITS

LONGEST_HOLD_S = 0.1
"""Longest time without commands over which the last command counts as held [s] (convention: that of a few lost packets
of usual robots)."""
MOST_PLACES = 4
"""Largest number of gaps whose times a finding states (convention)."""


def commanded_motion(recording: Recording, robot: Robot, name: str | None = None) -> CommandedMotion:
    """Make the motion of a recording, in the order of the robot's joints.

    A missing reading does not count in the fit; the commands of its row stay. A missing command is replaced by the one
    before it, or interpolated if straight lines join the commands. Where commands are missing for more than
    `LONGEST_HOLD_S`, the rows are left out; `CommandedMotion.stretches` cuts the motion there.

    Args:
        recording: A log with commands.
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
    # for each joint of the robot its column in the log; None if the order is the same
    found = column_order(recording.joint_names, robot)
    order = np.arange(recording.q.shape[1]) if found is None else found
    if order.size != robot.dof:
        raise count_mismatch(
            "positions", order.size, recording.joint_names, robot, "Hold the joints that are not logged."
        )
    sent = commands.columns(order)
    q = recording.q[:, order]
    dq = recording.dq
    # (N,) index of the last command that was sent before each reading, or with it
    last = np.clip(np.searchsorted(sent.time, recording.time, side="right") - 1, 0, None)
    has_command = np.isfinite(sent.position[last])  # (N, n)
    # (N,) rows from the first command of every joint on, where time rises
    usable = np.isfinite(recording.time) & (np.cumsum(has_command, axis=0) > 0).all(axis=1)
    usable &= np.concatenate([[True], np.diff(recording.time) > 0.0])
    # without rows between two complete ones that are too far apart
    complete = np.flatnonzero(usable & has_command.all(axis=1))
    for k in np.flatnonzero((np.diff(complete) > 1) & (np.diff(recording.time[complete]) > LONGEST_HOLD_S)):
        usable[complete[k] + 1 : complete[k + 1]] = False
    usable &= np.cumsum(usable & np.isfinite(q).all(axis=1)) > 0  # the motion starts from a reading of every joint
    rows = last[usable]
    time = recording.time[usable]
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


def _column_at(sent_time: Floats, column: Floats, time: Floats, held: bool) -> Floats:
    """Compute the commands (N,) of one joint at the times of readings; missing commands (NaN) are left out.

    Args:
        sent_time: (M,) times of the commands [s].
        column: (M,) commands [rad or m].
        time: (N,) times of the readings [s].
        held: Whether each command is held until the next one, which gives means from each reading to the next;
            otherwise straight lines join the commands.
    """
    known = np.isfinite(column) & np.isfinite(sent_time)
    sent_time = sent_time[known]
    position = column[known]
    if not sent_time.size:
        return np.full(time.shape, np.nan)
    if not held:
        return np.interp(time, sent_time, position)
    here = np.clip(np.searchsorted(sent_time, time, side="right") - 1, 0, None)  # command in force at each reading
    # integral of the command to each command, and to each reading: its differences give the means
    total = np.concatenate([[0.0], np.cumsum(np.diff(sent_time) * position[:-1])])
    integral = total[here] + (time - sent_time[here]) * position[here]
    # where one command was in force until the next reading it is taken itself, without the rounding of a mean; that is
    # so if the next reading has the same command, or the following one and this was sent at the very time of that
    # reading
    same = here[1:] - here[:-1] == (time[1:] == sent_time[here[1:]])
    means = np.diff(integral) / np.diff(time)
    return np.concatenate([np.where(same, position[here[:-1]], means), position[here[-1:]]])


def lost_samples(motion: CommandedMotion) -> Iterator[Finding]:
    """Make findings about gaps and missing readings of a motion, with their number and times."""
    time = motion.time
    steps = np.diff(time)
    gaps = np.flatnonzero(steps > longest_hole(motion.period_s))
    if gaps.size:
        shown = ", ".join(f"{time[k]:.4g} to {time[k + 1]:.4g} s" for k in gaps[:MOST_PLACES])
        if gaps.size > MOST_PLACES:
            shown += f" and {gaps.size - MOST_PLACES} more"
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
    """Reduce the gains of all rows to one per joint (n,); None without gains.

    Raises:
        DataError: A gain changes during the motion.
    """
    if gains is None or not np.isfinite(gains).any():
        return None
    low = np.nanmin(gains, axis=0)
    high = np.nanmax(gains, axis=0)
    if (high - low > SIX_DIGITS * np.maximum(np.abs(high), 1e-300)).any():
        raise DataError(
            f"{name} changes during '{recording.source}'",
            remedy="Cut the log there, into a file for each.",
        )
    return np.asarray(high)
