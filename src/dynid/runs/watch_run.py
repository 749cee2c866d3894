"""Watch logs with a saved result: what ``dynid watch`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynid.errors import ArgumentError
from dynid.export.result_file import read_result
from dynid.findings import Finding
from dynid.identification.given_data import check_copies
from dynid.identification.identify import Identification
from dynid.identification.log_reader import Log, LogReader, Notice, log_finding
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource
from dynid.monitor.alarms import Watch, watch_experiment
from dynid.monitor.calibration import Calibration, Sight, calibrate
from dynid.processing.experiment import Experiment
from dynid.report.page import Chapter, Page
from dynid.report.sections.watch_sections import watch_page
from dynid.runs.live_calibration import calibrate_live, recorded_runs
from dynid.runs.protocol import Desk, Task, run
from dynid.runs.run_folder import RunRequest
from dynid.runs.validation_run import common_cutoff
from dynid.runs.watch_checks import OTHER_LOGS, check_log, refuse_watched, tell_fitted, watched_samples


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WatchRun:
    """What a watch over logs found."""

    watches: tuple[Watch, ...]
    """One per log."""
    calibration: Calibration
    sight: Sight
    """The smallest pushes that the watch sees."""
    findings: tuple[Finding, ...] = ()
    """Doubts about the logs and the calibration."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 where there is an alarm, otherwise 0."""
        return int(self.alarms > 0)

    @property
    def alarms(self) -> int:
        """Number of alarms."""
        return sum(len(found.alarms) for found in self.watches)

    def summary(self) -> str:
        """Verdict and alarms of every log, and the smallest pushes that are seen."""
        return "\n\n".join([*(f"{found.source}: {found.summary()}" for found in self.watches), self.sight.sentence])

    def to_json(self) -> dict[str, Any]:
        """The result as values that JSON can hold."""
        return {"watches": [found.to_json() for found in self.watches], "sees": self.sight.to_json(),
                "findings": [finding.to_dict() for finding in self.findings]}  # fmt: skip

    def __str__(self) -> str:
        return self.summary()


@dataclass(frozen=True, slots=True, eq=False)
class WatchLogs(Task[WatchRun]):
    """Watch logs with an identified model; see `watch` for the fields."""

    verb = "watch"
    files = ("watch.json",)
    reads = ("result", "logs", "clean", "channel_map")

    result: Identification | str | Path
    logs: Sequence[Log | Experiment]
    clean: Sequence[Log | Experiment] = ()
    per_hour: float = 1.0
    channel_map: ChannelMapSource | None = None

    def check(self) -> None:
        if not isinstance(self.result, Identification | str | Path):
            remedy = "Give an identification, or its folder."
            raise ArgumentError(f"result is a {type(self.result).__name__}", remedy=remedy)
        if not self.logs:
            raise ArgumentError("there is no log to watch", remedy="Give log files, recordings or experiments.")
        logs, clean = ([log for log in some if not isinstance(log, Experiment)] for some in (self.logs, self.clean))
        check_copies(logs)
        check_copies(clean, logs, why="in which nothing touched the robot (clean)", remedy=OTHER_LOGS)

    def compute(self, desk: Desk) -> WatchRun:
        if isinstance(self.result, Identification):
            fit, cutoff = self.result, None
        else:
            saved = read_result(self.result)
            fit, cutoff = saved.identification(), common_cutoff(saved)
        reader = LogReader(
            robot=fit.robot, recipe=_recipe(self.result), channel_map=self.channel_map, progress=desk.progress,
            notice=desk.tell, seen=watched_samples(fit, self.clean, desk.tell),
        )  # fmt: skip
        runs = _experiments(reader, self.logs, cutoff)
        tell_fitted(fit, runs, desk.tell)
        known, seen = self._calibrate(fit, runs, reader, cutoff, desk)
        sight = known.sight(self.per_hour)
        for finding in (*sight.findings, *(doubt for one in runs for doubt in check_log(fit, one))):
            desk.tell(finding)
        return WatchRun(
            watches=tuple(watch_experiment(fit, one, known, per_hour=self.per_hour) for one in seen),
            calibration=known,
            sight=sight,
            findings=tuple(desk.findings),
        )

    def _calibrate(
        self, fit: Identification, runs: Sequence[Experiment], reader: LogReader, cutoff: float | None, desk: Desk
    ) -> tuple[Calibration, Sequence[Experiment]]:
        """The calibration, and the watched logs as it sees them: as recorded where all of them hold velocities."""
        files = [log for log in self.logs if not isinstance(log, Experiment)]
        quiet = _experiments(reader, self.clean, cutoff)
        refuse_watched(quiet, runs)
        tell_fitted(fit, quiet, desk.tell, is_clean=True)
        if isinstance(self.result, Identification):
            return calibrate(fit, quiet or None), runs
        clean = [log for log in self.clean if not isinstance(log, Experiment)]
        if len(clean) < len(self.clean):
            return calibrate(fit, quiet), runs
        seen = recorded_runs(reader, files) if len(files) == len(runs) else None
        folder, given = Path(self.result), self.channel_map
        known = calibrate_live(folder, fit, clean, given, desk.tell, smooth=seen is None)
        return known, runs if seen is None or known.is_smooth else seen

    def page(self, result: WatchRun, settings: Sequence[Chapter]) -> Page:
        return watch_page(result.watches, result.sight, result.findings, settings)


def watch(
    result: Identification | str | Path,
    logs: Log | Experiment | Sequence[Log | Experiment],
    *,
    clean: Sequence[Log | Experiment] = (),
    per_hour: float = 1.0,
    channel_map: ChannelMapSource | None = None,
    out: RunRequest | str | Path | None = None,
    notice: Notice = log_finding,
) -> WatchRun:
    """Watch logs with an identified model: what pushed against the arm, when, and against which joint.

    Args:
        result: An identification, or the folder that `dynid.runs.Identify` wrote.
        logs: Log files, recordings or experiments to watch.
        clean: Logs in which nothing touched the robot, and which the identification has not seen; by default the data
            of the identification, of which parts are left out in turn.
        per_hour: Rate of false alarms of the whole arm [1/h]: the only number to choose.
        channel_map: Channel map of log files.
        out: Folder for the alarms and a report; None writes nothing.
        notice: Called with every finding that a person should see at once.

    Raises:
        ArgumentError: There is nothing to calibrate from.
        DataError: A log cannot be used.

    Example:
        >>> dynid.watch(fit, run, clean=[other]).alarms
        0
    """
    given = [logs] if isinstance(logs, str | Path) or not isinstance(logs, Sequence) else list(logs)
    return run(WatchLogs(result, given, clean, per_hour, channel_map), out, notice=notice)


def _recipe(result: Identification | str | Path) -> Recipe:
    """How watched logs are processed: gaps and delays as in those of the result; a robot at rest is watched, too."""
    plain = replace(Recipe(), gate=False, dead_band=0.0, friction="plain")
    file = None if isinstance(result, Identification) else Path(result) / "recipe.toml"
    if file is None or not file.exists():
        return plain
    own = Recipe.read(file)
    return replace(plain, max_gap_s=own.max_gap_s, delay_s=own.delay_s)


def _experiments(reader: LogReader, logs: Sequence[Log | Experiment], cutoff: float | None) -> list[Experiment]:
    return [
        log if isinstance(log, Experiment) else reader.experiments([log], for_validation=True, cutoff_hz=cutoff)[0]
        for log in logs
    ]
