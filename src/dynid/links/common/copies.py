"""Logs that are given twice, as a whole or in part: a copy adds no knowledge, and what was fitted proves nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError, DataError
from dynid.logs.reading import log_digest
from dynid.logs.recording import Recording

SHARED = 0.01
"""Share of a log's stretches in another log above which one is a copy of a part of the other. Convention: measured
torques and positions never agree to the last digit over `STRETCH` samples; below, cuts merely touch."""


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
        others: Logs that must differ from those in `logs`.
        why: What `logs` are for: the end of the message "{other} has the same content as {log}, {why}".
        remedy: The remedy of that message.

    Raises:
        ArgumentError: Two logs have the same content.
    """
    files, further = ([log for log in some if not isinstance(log, Recording)] for some in (logs, others))
    sizes = Counter(map(_size, (*files, *further)))
    sizes[None] = 2  # folders and missing files are always looked into
    seen: dict[str, str | Path] = {}
    for log in (log for log in files if sizes[_size(log)] > 1):
        digest = log_digest(log)
        if (twin := seen.get(digest)) is not None:
            what = "is given twice" if str(twin) == str(log) else f"has the same content as {twin}"
            raise ArgumentError(f"{log} {what}", remedy="Give each log once: a copy adds no knowledge.")
        seen[digest] = log
    for log in (log for log in further if sizes[_size(log)] > 1):
        if (twin := seen.get(log_digest(log))) is not None:
            what = "is a log" if str(twin) == str(log) else f"has the same content as {twin},"
            raise ArgumentError(f"{log} {what} {why}", remedy=remedy)


def _size(log: str | Path) -> int | None:
    """Size of a file [bytes]: only logs of the same size have the same content. None for anything else."""
    return Path(log).stat().st_size if Path(log).is_file() else None


class SeenSamples:
    """The samples of all logs that were read, to find those that stand in two of them."""

    def __init__(
        self,
        fitted: Sequence[tuple[str, Sequence[float]]] = (),
        tell: Callable[[str | Path | Recording, str], None] | None = None,
    ) -> None:
        """Start without logs.

        Args:
            fitted: Names of logs that a result was identified from, with keys of stretches that are spread over them.
            tell: Called with a log that holds a part of them, and with what it holds; it is refused if None.
        """
        self._fitted, self._tell = tuple(fitted), tell
        self._seen: list[tuple[str | Path | Recording, Floats]] = []

    def add(self, log: str | Path | Recording, recording: Recording) -> None:
        """Take in a log that was read.

        Raises:
            DataError: It holds a part of another log, or another log holds a part of it. The same log may be read
                again.
        """
        if recording.effort is None or any(log is other or _same(log, other) for other, _ in self._seen):
            return
        keys = recording.stretch_keys()[0]
        self._judge_fitted(log, keys)
        for other, known in self._seen:
            common = np.intersect1d(keys, known)
            share = max(float(np.isin(some, common).mean()) if some.size else 0.0 for some in (keys, known))
            if share > SHARED:
                part = f"{100.0 * float(np.isin(keys, common).mean()):.0f} % of its samples"
                raise DataError(
                    f"{part} are those of {_called(other)}, to the last digit",
                    remedy="Give each sample once, and hold out other samples than those that are fitted (another run, "
                    "or --hold-out for a part of one): a copy adds no knowledge, and what was fitted proves nothing.",
                )
        self._seen.append((log, keys))

    def _judge_fitted(self, log: str | Path | Recording, keys: Floats) -> None:
        """Refuse or tell a log with keys (M,) that holds a part of one that a result was identified from."""
        for name, kept in self._fitted:
            share = float(np.isin(kept, keys).mean()) if kept else 0.0
            if share <= SHARED:
                continue
            what = (
                f"it holds about {100.0 * share:.0f} % of the samples of {Path(name).name}, to the last digit, and the "
                "result was identified from that log"
            )
            if self._tell is None:
                raise DataError(what, remedy="Give a log that it has not seen: what was fitted proves nothing.")
            self._tell(log, what)


def _same(log: str | Path | Recording, other: str | Path | Recording) -> bool:
    """Whether two logs are one file."""
    return not isinstance(log, Recording) and not isinstance(other, Recording) and str(log) == str(other)


def _called(log: str | Path | Recording) -> str:
    return f"'{log.source}'" if isinstance(log, Recording) else Path(log).name
