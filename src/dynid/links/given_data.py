"""The data that `dynid.identify` is given: experiments, recordings, paths of logs and tables in memory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import ArgumentError, LogReadError
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.in_memory import as_recording, is_table
from dynid.logs.reading import log_digest
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

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
    given = (data,) if single else tuple(data)
    for item in given:
        if isinstance(item, str | Path) and not Path(item).exists():
            raise LogReadError("there is no such file", path=item, remedy=f"The current folder is {Path.cwd()}.")
        if not isinstance(item, Experiment | Recording | str | Path) and not is_table(item):
            raise ArgumentError(f"data has an item of the kind {type(item).__name__}", remedy=USABLE)
        items.append(as_recording(item, robot, channel_map=channel_map) if is_table(item) else item)
    if not items:
        raise ArgumentError("data is empty", remedy=USABLE)
    for (i, one), (k, other) in combinations(enumerate(given, start=1), 2):
        if _is_copy(one, other):
            raise ArgumentError(
                f"items {i} and {k} of data are the same", remedy="Give each log once: a copy adds no knowledge."
            )
    return tuple(items)


def _is_copy(one: Any, other: Any) -> bool:
    """Whether two data are one object or one file, or two experiments have the same samples."""
    if one is other:
        return True
    if isinstance(one, Experiment) and isinstance(other, Experiment):
        return shares_samples(one, other)
    return isinstance(one, str | Path) and isinstance(other, str | Path) and log_digest(one) == log_digest(other)


def shares_samples(run: Experiment, other: Experiment) -> bool:
    """Whether two experiments have the same content, and a sample counts in both."""
    if run is other:
        return True
    if run.q.shape != other.q.shape or not np.array_equal(run.q, other.q):
        return False
    both = run.valid & other.valid
    return bool(both.any() and np.array_equal(run.effort[both], other.effort[both]))
