"""From a `Recording` with commands to a `CommandedMotion`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.motion import CommandedMotion
from dynid.errors import DataError
from dynid.logs.joint_order import column_order, count_mismatch
from dynid.logs.recording import Commands, Recording
from dynid.public_calls import public
from dynid.robot.model import Robot

__all__ = ["commanded_motion"]

Floats = NDArray[np.float64]
LONGEST_S = 0.1
"""Longest time without commands inside a motion, over which the last command counts as held [s]. Convention: a few lost
packets of usual robots."""
CHANGE = 1e-6
"""Relative change of a gain during a motion that is rounding. Convention."""


@public
def commanded_motion(recording: Recording, robot: Robot, name: str | None = None) -> CommandedMotion:
    """The commands and readings of a recording, in the order of the robot's joints.

    Rows with missing samples are left out. Commands on a clock of their own are averaged over the time until the next
    reading, or interpolated where straight lines join them, so that a delay counts from the time of the command.

    Args:
        recording: A log that says where the joints were sent.
        robot: The robot; joints are matched by name.
        name: A name for reports; the recording's source by default.

    Raises:
        DataError: The recording has no commands, misses them for long, or its gains change during the motion.

    Example:
        >>> commands = dynid.logs.Commands(time=ticks, position=sent)
        >>> recording = dynid.Recording(time=ticks, q=sensed.position, commands=commands)
        >>> dynid.actuators.commanded_motion(recording, pendulum).command.shape
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
    sent, q, dq = commands.columns(order), recording.q[:, order], recording.dq
    held = np.clip(np.searchsorted(sent.time, recording.time, side="right") - 1, 0, None)
    table = np.concatenate([q, sent.position[held]], axis=1)
    kept = np.isfinite(table).all(axis=1) & np.isfinite(recording.time)
    kept &= np.concatenate([[True], np.diff(recording.time) > 0.0])
    _check_gaps(recording, np.isfinite(table[:, robot.dof :]).all(axis=1))
    velocity = None if dq is None else dq[:, order][kept]
    if velocity is not None and not np.isfinite(velocity).all():
        velocity = None
    supply = None if sent.supply is None else float(np.nanmedian(sent.supply))
    return CommandedMotion(
        joint_names=robot.joint_names,
        time=recording.time[kept],
        command=_at_readings(sent, recording.time[kept]),
        position=q[kept],
        command_velocity=None if sent.velocity is None else np.nan_to_num(sent.velocity[held][kept]),
        velocity=velocity,
        enabled=None if sent.enabled is None else sent.enabled[held][kept],
        kp=_constant(sent.kp, "kp", recording),
        kd=_constant(sent.kd, "kd", recording),
        voltage=supply,
        held=sent.held,
        name=recording.source if name is None else name,
    )


def _check_gaps(recording: Recording, told: NDArray[np.bool_]) -> None:
    """Refuse a recording whose commands are missing for long between others: what the drives did then is not known."""
    times = recording.time[told & np.isfinite(recording.time)]
    silent = np.searchsorted(recording.time[~told], times)  # rows without a command before each row with one
    lost = (np.diff(times) > LONGEST_S) & (np.diff(silent) > 0)
    if lost.any():
        at = int(np.argmax(lost))
        raise DataError(
            f"commands are missing from {times[at]:.4g} to {times[at + 1]:.4g} s of '{recording.source}'",
            remedy="Cut the log there, into two files: a simulated motion cannot go on without commands.",
        )


def _at_readings(sent: Commands, time: Floats) -> Floats:
    """(N, n) commands at the times of readings (N,): means until the next reading, or points of straight lines."""
    known = np.isfinite(sent.position).all(axis=1)
    own, position = sent.time[known], sent.position[known]
    if not sent.held:
        return np.stack([np.interp(time, own, column) for column in position.T], axis=1)
    here = np.clip(np.searchsorted(own, time, side="right") - 1, 0, None)
    total = np.concatenate([np.zeros((1, position.shape[1])), np.cumsum(np.diff(own)[:, None] * position[:-1], axis=0)])
    integral = total[here] + (time - own[here])[:, None] * position[here]
    same = here[1:] - here[:-1] == (time[1:] == own[here[1:]])  # one command all the time: its very number
    means = np.diff(integral, axis=0) / np.diff(time)[:, None]
    return np.concatenate([np.where(same[:, None], position[here[:-1]], means), position[here[-1:]]])


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
