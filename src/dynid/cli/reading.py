"""Logs to experiments, for the verbs: through the gate, with progress, from the cache of an interrupted run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from dynid import errors
from dynid.cli.progress import Advance, progress, size_of
from dynid.cli.run_folder import RunFolder, sha256

if TYPE_CHECKING:
    from dynid.findings import Finding
    from dynid.links.hold_out import HoldOut
    from dynid.links.preparation import Preparation
    from dynid.logs.recording import Recording
    from dynid.processing.experiment import Experiment
    from dynid.robot.model import Robot

__all__ = ["LogSource", "LogStream", "Seconds", "digest_of", "is_large", "read_experiments", "read_parts", "undelayed"]

Seconds = float | Literal["auto"]
LARGE_MB = 2000.0
"""Size of a log from which on it is read piece by piece."""
OVERLAP_S = 5.0
"""Time that is filtered twice at the borders of pieces [s]: none of the filters remembers so long."""


@dataclass(frozen=True, slots=True)
class LogSource:
    """How logs are read."""

    robot: Robot
    channel_map: str | None
    profile: str | None
    cutoff: float | None = None
    """Low-pass [Hz]; None for the best one."""
    gate: bool = False
    """Whether logs with errors are refused."""
    torques: bool = True
    """Whether joint torques are needed."""
    delay: Seconds = 0.0
    """How late torques are stamped [s]."""
    band: float | None = None
    """Upper end of the band in which torques count [Hz]."""
    dead_band: float = 0.0
    """Slower rows of a joint do not count [rad/s or m/s]."""
    max_gap: float | None = None
    """Longest step that is no gap [s]."""
    judge_rest: bool = False
    """Whether standstill counts in held-out data."""

    def key(self, path: str) -> list[str]:
        """Everything that an experiment depends on."""
        mapped = "" if self.channel_map is None else sha256(Path(self.channel_map))
        words = (path, mapped, self.profile, self.gate, self.preparation, self.judge_rest, self.robot.fingerprint)
        return [sha256(Path(path)), *(str(word) for word in words)]

    @property
    def preparation(self) -> Preparation:
        """What is done to every recording."""
        from dynid.links.preparation import Preparation

        return Preparation(
            cutoff_hz=self.cutoff if self.cutoff is not None else "auto",
            band_hz=self.band,
            dead_band=self.dead_band,
            delay_s=self.delay,
            robot=self.robot,
            max_gap_s=self.max_gap,
        )

    def read(self, path: str, judged: bool, done: float, size: float, advance: Advance) -> Experiment:
        """Read, check and process one log, which is to be judged by or to be fitted."""
        chosen = self.preparation
        with self.located(path):
            recording = self._recording(path, done, size, advance)
            run = (chosen.to_judge(self.judge_rest) if judged else chosen).experiment(recording)
        self._refuse_empty(path, run)
        return run

    def read_parts(
        self, path: str, rule: HoldOut, done: float, size: float, advance: Advance
    ) -> tuple[Experiment, Experiment]:
        """Read, check and process one log, a part of it kept aside."""
        with self.located(path):
            recording = self._recording(path, done, size, advance)
            pair = self.preparation.parts(recording, rule, judge_rest=self.judge_rest)
        for part in pair:
            self._refuse_empty(path, part)
        return pair

    def _recording(self, path: str, done: float, size: float, advance: Advance) -> Recording:
        """Read and check one log."""
        from dynid.logs.reading import read_recording

        recording = read_recording(
            path, self.robot, channel_map=self.channel_map, profile=self.profile,
            progress=lambda share, note: advance(done + 0.3 * size * share, f"reading {Path(path).name}"),
        )  # fmt: skip
        if self.torques and recording.effort is None:
            remedy = "Name their columns under [effort] in the channel map, or those of currents under [current]."
            raise errors.DataError("no joint torques are mapped", remedy=remedy)
        if self.gate:
            advance(done + 0.3 * size, f"checking {Path(path).name}")
            self._check(path, undelayed(recording, self.delay, self.robot))
        advance(done + 0.7 * size, f"processing {Path(path).name}")
        return recording

    @contextmanager
    def located(self, path: str) -> Iterator[None]:
        """Errors name the log."""
        try:
            yield
        except errors.DataError as error:
            folder = "Give the log itself, or name the run's files under [files] in the map."
            raise type(error)(
                error.reason,
                path=error.path or path,
                place=error.place,
                remedy=error.remedy or (folder if Path(path).is_dir() else None),
            ) from error

    def _refuse_empty(self, path: str, run: Experiment) -> None:
        if self.torques and not run.valid.any():
            dropped = ", ".join(f"{count} {reason}" for reason, count in run.dropped.items()) or "no torque is a number"
            remedy = "Record the robot while all joints move; see dynid excite."
            raise errors.IdentifiabilityError(f"no sample can be used ({dropped})", path=path, remedy=remedy)

    def _check(self, path: str, recording: Recording) -> None:
        """Refuse what the gate forbids; show what it warns of."""
        from dynid.gate.quality import check_recording

        _judge(path, check_recording(recording, self.robot).findings)


def _judge(path: str, findings: Sequence[Finding]) -> None:
    """Refuse a log for errors among the findings; show the warnings."""
    wrong = [finding for finding in findings if finding.severity == "error"]
    if wrong:
        first, more = wrong[0], f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        where = first.where if first.joint is None else f"{first.where} of {first.joint}"
        remedy = f"{first.remedy} dynid check lists everything; --no-check uses the log all the same."
        raise errors.DataError(f"{first.message}{more}", path=path, place=where, remedy=remedy)
    for finding in findings:
        if finding.severity == "warning":
            click.echo(f"{path}: {finding}", err=True)


class LogStream:
    """A log that is read piece by piece, as often as needed; the gate looks at it the first time."""

    def __init__(self, path: str, source: LogSource) -> None:
        """The log at a path, read as the source says."""
        self._path, self._source, self._checked = path, source, not source.gate

    def __call__(self) -> Iterator[Experiment]:
        """Start its stream of processed pieces."""
        from dynid.gate.stream_check import StreamCheck
        from dynid.logs.reading import read_stream
        from dynid.processing.streaming import process_stream

        source = self._source
        check = None if self._checked else StreamCheck(source.robot)
        with progress(f"reading {Path(self._path).name} in pieces", 1.0) as advance, source.located(self._path):
            pieces = read_stream(
                self._path, source.robot, channel_map=source.channel_map, profile=source.profile, progress=advance
            )
            yield from process_stream(pieces, source.preparation.options(), overlap_s=OVERLAP_S, check=check)
            if check is not None:
                _judge(self._path, check.report().findings)
                self._checked = True


def digest_of(log: str) -> str:
    """The digest that a recording of the log carries; of a folder whose files a map names, that of the folder."""
    from dynid.logs.reading import parts_of

    try:
        parts = [sha256(part) for part in parts_of(Path(log))]
    except errors.LogReadError:
        return sha256(Path(log))
    return parts[0] if len(parts) == 1 else hashlib.sha256("".join(parts).encode()).hexdigest()


def is_large(path: str) -> bool:
    """Whether a log is to be read piece by piece."""
    return size_of(path) > LARGE_MB


def undelayed(recording: Recording, delay: Seconds, robot: Robot | None) -> Recording:
    """The recording with its torques moved back in time, as processing will do it: for the gate."""
    from dynid.gate.model_delay import resolve_delay
    from dynid.processing.process import Processing

    if delay == 0.0 or recording.effort is None or recording.isolated:
        return recording
    known = resolve_delay(recording, Processing(effort_delay_s=delay), robot)[0].delay_s
    stamps = recording.time if recording.effort_time is None else recording.effort_time
    return replace(recording, effort_time=stamps - known)


def read_experiments(
    paths: Sequence[str], source: LogSource, run: RunFolder | None = None, *, fitted: int | None = None
) -> list[Experiment]:
    """Read and process logs; those that an interrupted run has done already come from its folder.

    Args:
        paths: The logs.
        source: How they are read.
        run: The run's folder.
        fitted: So many of them are identified from, the others judge; all by default.
    """
    result: list[Experiment] = []
    for number, (path, done, size, advance) in enumerate(_one_by_one(paths)):
        judged = fitted is not None and number >= fitted
        make = partial(source.read, path, judged, done, size, advance)
        result.append(make() if run is None else run.experiment([*source.key(path), str(judged)], make))
    return result


def read_parts(
    paths: Sequence[str], rule: HoldOut, source: LogSource, run: RunFolder
) -> list[tuple[Experiment, Experiment]]:
    """Read and process logs, a part of each kept aside: what is identified from, and what is judged."""
    result: list[tuple[Experiment, Experiment]] = []
    for path, done, size, advance in _one_by_one(paths):
        both = _Both(partial(source.read_parts, path, rule, done, size, advance))
        key = [*source.key(path), str(rule)]
        used = run.experiment([*key, "used"], both.first)
        result.append((used, run.experiment([*key, "kept aside"], both.second)))
    return result


@dataclass(frozen=True)
class _Both:
    """Two experiments that are made together, once one of them is needed."""

    make: Callable[[], tuple[Experiment, Experiment]]

    @cached_property
    def _made(self) -> tuple[Experiment, Experiment]:
        return self.make()

    def first(self) -> Experiment:
        return self._made[0]

    def second(self) -> Experiment:
        return self._made[1]


def _one_by_one(paths: Sequence[str]) -> Iterator[tuple[str, float, float, Advance]]:
    """Each log with its place in the progress of all."""
    sizes = [size_of(path) for path in paths]
    done = 0.0
    with progress("logs", sum(sizes), "MB") as advance:
        for path, size in zip(paths, sizes, strict=True):
            yield path, done, size, advance
            done += size
            advance(done, Path(path).name)
