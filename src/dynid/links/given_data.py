"""The data that `dynid.identify` is given: experiments, recordings, paths of logs and tables in memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import ArgumentError, LogReadError
from dynid.links.log_reader import ChannelMapSource
from dynid.logs.in_memory import as_recording, is_table
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["list_data"]

USABLE = "Give a recording, an experiment, the path of a log, a data frame, a dictionary of arrays, or a list of them."
"""Remedy for data that are none of these."""


def list_data(
    data: Any, robot: Robot, channel_map: ChannelMapSource | None = None
) -> tuple[Experiment | Recording | str | Path, ...]:
    """Experiments, recordings and paths of logs from one or several of them; tables in memory become recordings.

    Args:
        data: As for `dynid.identify`.
        robot: Its joints are matched by name.
        channel_map: What the columns of a table mean.

    Raises:
        ArgumentError: There are no data, or something else.
        LogReadError: There is no such log.
    """
    if isinstance(data, Robot):
        raise ArgumentError("data is a Robot", remedy="The robot comes first, then the data: identify(robot, data).")
    single = isinstance(data, Experiment | Recording | str | Path) or is_table(data)
    if not single and (isinstance(data, np.ndarray) or not isinstance(data, Iterable)):
        raise ArgumentError(f"data is {type(data).__name__}", remedy=USABLE)
    items: list[Experiment | Recording | str | Path] = []
    for item in (data,) if single else data:
        if isinstance(item, str | Path) and not Path(item).exists():
            raise LogReadError("there is no such file", path=item, remedy=f"The current folder is {Path.cwd()}.")
        if not isinstance(item, Experiment | Recording | str | Path) and not is_table(item):
            raise ArgumentError(f"data has an item of the kind {type(item).__name__}", remedy=USABLE)
        items.append(as_recording(item, robot, channel_map=channel_map) if is_table(item) else item)
    if not items:
        raise ArgumentError("data is empty", remedy=USABLE)
    return tuple(items)
