"""Logs to experiments, for the verbs: through the gate, with progress, from the cache of an interrupted run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from dynid import errors
from dynid.cli.progress import Advance, progress, size_of
from dynid.cli.run_folder import RunFolder, sha256

if TYPE_CHECKING:
    from dynid.data.recording import Experiment, Recording
    from dynid.robot.model import Robot

__all__ = ["LogSource", "Seconds", "read_experiments", "undelayed"]

Seconds = float | Literal["auto"]


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

    def key(self, path: str) -> list[str]:
        """Everything that an experiment depends on."""
        mapped = "" if self.channel_map is None else sha256(Path(self.channel_map))
        words = (path, mapped, self.profile, self.cutoff, self.gate, self.delay, self.robot.fingerprint)
        return [sha256(Path(path)), *(str(word) for word in words)]

    def read(self, path: str, done: float, size: float, advance: Advance) -> Experiment:
        """Read, check and process one log."""
        from dynid.data.processing import process
        from dynid.data.reading import read_recording

        try:
            advance(done, f"reading {Path(path).name}")
            recording = read_recording(path, self.robot, channel_map=self.channel_map, profile=self.profile)
            if self.torques and recording.effort is None:
                remedy = "Name their columns under [effort] in the channel map, or those of currents under [current]."
                raise errors.DataError("no joint torques are mapped", remedy=remedy)
            if self.gate:
                advance(done + 0.3 * size, f"checking {Path(path).name}")
                self._check(path, undelayed(recording, self.delay))
            advance(done + 0.7 * size, f"processing {Path(path).name}")
            cutoff: float | Literal["auto"] = self.cutoff if self.cutoff is not None else "auto"
            run = process(recording, cutoff_hz=cutoff, effort_delay_s=self.delay)
        except errors.DataError as error:
            folder = "Give the log itself, or name the run's files under [files] in the map."
            raise type(error)(
                error.reason,
                path=error.path or path,
                place=error.place,
                remedy=error.remedy or (folder if Path(path).is_dir() else None),
            ) from error
        if self.torques and not run.valid.any():
            dropped = ", ".join(f"{count} {reason}" for reason, count in run.dropped.items()) or "no torque is a number"
            remedy = "Record the robot while all joints move; see dynid excite."
            raise errors.IdentifiabilityError(f"no sample can be used ({dropped})", path=path, remedy=remedy)
        return run

    def _check(self, path: str, recording: Recording) -> None:
        """Refuse what the gate forbids; show what it warns of."""
        from dynid.data.quality import check_recording

        findings = check_recording(recording, self.robot).findings
        wrong = [finding for finding in findings if finding.severity == "error"]
        if wrong:
            first, more = wrong[0], f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            where = first.channel if first.joint is None else f"{first.channel} of {first.joint}"
            remedy = f"{first.remedy} dynid check lists everything; --no-check uses the log all the same."
            raise errors.DataError(f"{first.message}{more}", path=path, place=where, remedy=remedy)
        for finding in findings:
            if finding.severity == "warning":
                click.echo(f"{path}: {finding}", err=True)


def undelayed(recording: Recording, delay: Seconds) -> Recording:
    """The recording with its torques moved back in time, as processing will do it: for the gate."""
    from dynid.data.processing import Processing, resolve_delay

    if delay == 0.0 or recording.effort is None or recording.isolated:
        return recording
    known = resolve_delay(recording, Processing(effort_delay_s=delay))[0].delay_s
    stamps = recording.time if recording.effort_time is None else recording.effort_time
    return replace(recording, effort_time=stamps - known)


def read_experiments(paths: Sequence[str], source: LogSource, run: RunFolder | None = None) -> list[Experiment]:
    """Read and process logs; those that an interrupted run has done already come from its folder."""
    sizes = [size_of(path) for path in paths]
    result: list[Experiment] = []
    done = 0.0
    with progress("logs", sum(sizes), "MB") as advance:
        for path, size in zip(paths, sizes, strict=True):
            make = partial(source.read, path, done, size, advance)
            result.append(make() if run is None else run.experiment(source.key(path), make))
            done += size
            advance(done, Path(path).name)
    return result
