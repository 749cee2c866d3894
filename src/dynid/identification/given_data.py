"""The data that `dynid.identify` gets, as a list of experiments, recordings and paths, and the search for copies.

`list_data` makes the list. The rest finds logs that are given twice: a copied training log would make intervals smaller
than they are, and a copied validation log proves nothing. `check_copies` compares whole files, `SeenSamples` parts of
logs, `shares_samples` experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError, DataError, LogReadError
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.in_memory import as_recording, is_table
from dynid.logs.reading import log_digest
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

ACCEPTED_DATA = (
    "Give a recording, an experiment, the path of a log, a data frame, a dictionary of arrays, or a list of them."
)
"""Remedy for data of another kind."""


def list_data(
    data: Any, robot: Robot, channel_map: ChannelMapSource | None = None
) -> tuple[Experiment | Recording | str | Path, ...]:
    """Make a list of one or several experiments, recordings and paths of logs; tables in memory become recordings.

    Args:
        data: As for `dynid.identify`.
        robot: Its joints are matched by name.
        channel_map: What the columns of a table mean.

    Raises:
        ArgumentError: There are no data, data of another kind, or the same data twice.
        LogReadError: A path does not exist.
    """
    if isinstance(data, Robot):
        raise ArgumentError("data is a Robot", remedy="The robot comes first, then the data: identify(robot, data).")
    kinds = Experiment | Recording | str | Path
    single = isinstance(data, kinds) or is_table(data)
    if not single and (isinstance(data, np.ndarray) or not isinstance(data, Iterable)):
        raise ArgumentError(f"data is {type(data).__name__}", remedy=ACCEPTED_DATA)
    items: list[Experiment | Recording | str | Path] = []
    given = (data,) if single else tuple(data)
    for item in given:
        if not isinstance(item, kinds) and not is_table(item):
            raise ArgumentError(f"data has an item of the kind {type(item).__name__}", remedy=ACCEPTED_DATA)
        if isinstance(item, str | Path) and not Path(item).exists():
            raise LogReadError("there is no such file", path=item, remedy=f"The current folder is {Path.cwd()}.")
        items.append(item if isinstance(item, kinds) else as_recording(item, robot, channel_map=channel_map))
    if not items:
        raise ArgumentError("data is empty", remedy=ACCEPTED_DATA)
    check_copies([item for item in items if not isinstance(item, Experiment)])
    for (i, one), (k, other) in combinations(enumerate(given, start=1), 2):
        are_experiments = isinstance(one, Experiment) and isinstance(other, Experiment)
        if one is other or (are_experiments and shares_samples(one, other)):
            raise ArgumentError(
                f"items {i} and {k} of data are the same", remedy="Give each log once: a copy adds no knowledge."
            )
    return tuple(items)


def shares_samples(run: Experiment, other: Experiment) -> bool:
    """Whether two experiments have the same positions, and the same torques where samples count in both."""
    if run is other:
        return True
    if run.q.shape != other.q.shape or not np.array_equal(run.q, other.q):
        return False
    both = run.valid & other.valid
    return bool(both.any() and np.array_equal(run.effort[both], other.effort[both]))


COPIED_SHARE = 0.01
"""Share of a log's stretches that also stand in another log, above which one contains a copy of the other's samples
(convention: measured torques and positions of two motions never agree to the last digit over a whole stretch of
samples, so a smaller share comes from cuts that overlap a little)."""


def check_copies(
    logs: Sequence[str | Path | Recording],
    others: Sequence[str | Path | Recording] = (),
    *,
    why: str = "",
    remedy: str = "",
) -> None:
    """Refuse a log that is given twice: a copy adds no knowledge, but would make intervals smaller than they are.

    `Recording` objects are not compared here, and neither are parts of logs: see `SeenSamples`.

    Args:
        logs: Logs that must differ from each other.
        others: Logs that must differ from those in `logs`, but not from each other.
        why: What `logs` are for: the end of the message "{other} has the same content as {log}, {why}".
        remedy: The remedy of that message.

    Raises:
        ArgumentError: Two logs have the same content.
    """
    seen: dict[str, str | Path] = {}  # digest of the content -> the log
    for place, log in enumerate((*logs, *others)):
        if isinstance(log, Recording):
            continue
        digest = log_digest(log)
        twin = seen.get(digest)
        if place < len(logs):
            if twin is not None:
                what = "is given twice" if str(twin) == str(log) else f"has the same content as {twin}"
                raise ArgumentError(f"{log} {what}", remedy="Give each log once: a copy adds no knowledge.")
            seen[digest] = log
        elif twin is not None:
            what = "is a log" if str(twin) == str(log) else f"has the same content as {twin},"
            raise ArgumentError(f"{log} {what} {why}", remedy=remedy)


class SeenSamples:
    """Keys of the samples of all logs that were read, to find samples that stand in two logs.

    A key is a number that is made from the positions and torques of a short stretch of samples.
    """

    def __init__(
        self,
        fitted: Sequence[tuple[str, Sequence[float]]] = (),
        tell: Callable[[str | Path | Recording, str], None] | None = None,
    ) -> None:
        """Start without logs.

        Args:
            fitted: Names of logs that a result was identified from, each with the keys of some of its stretches.
            tell: Called with a log that contains a part of one of them, and with a message; None refuses such a log.
        """
        self._fitted, self._tell = tuple(fitted), tell
        self._seen: list[tuple[str | Recording, Floats]] = []

    def add(self, log: str | Path | Recording, recording: Recording) -> None:
        """Add a log that was read; reading the same log again is allowed.

        Args:
            log: The log as it was given.
            recording: Its content.

        Raises:
            DataError: It contains a part of another log, or another log contains a part of it.
        """
        identity = log if isinstance(log, Recording) else str(log)
        if recording.effort is None or any(identity is other or str(identity) == other for other, _ in self._seen):
            return
        keys = recording.stretch_keys()[0]
        self._judge_fitted(log, keys)
        for other, known in self._seen:
            common = np.intersect1d(keys, known)
            # either log may be the part
            share = max(float(np.isin(some, common).mean()) if some.size else 0.0 for some in (keys, known))
            if share > COPIED_SHARE:
                other_name = f"'{other.source}'" if isinstance(other, Recording) else Path(other).name
                part = f"{100.0 * float(np.isin(keys, common).mean()):.0f} % of its samples"
                raise DataError(
                    f"{part} are those of {other_name}, to the last digit",
                    remedy="Give each sample once, and hold out other samples than those that are fitted (another run, "
                    "or --hold-out for a part of one): a copy adds no knowledge, and what was fitted proves nothing.",
                )
        self._seen.append((identity, keys))

    def _judge_fitted(self, log: str | Path | Recording, keys: Floats) -> None:
        """Refuse or report a log with keys (M,) that contains a part of a log that a result was identified from."""
        for name, fitted_keys in self._fitted:
            share = float(np.isin(fitted_keys, keys).mean()) if fitted_keys else 0.0
            if share <= COPIED_SHARE:
                continue
            message = (
                f"it holds about {100.0 * share:.0f} % of the samples of {Path(name).name}, to the last digit, and the "
                "result was identified from that log"
            )
            if self._tell is None:
                raise DataError(message, remedy="Give a log that it has not seen: what was fitted proves nothing.")
            self._tell(log, message)
