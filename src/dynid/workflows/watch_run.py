"""Watch logs with a saved result: what ``dynid watch`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.errors import ArgumentError
from dynid.export.result_file import read_result
from dynid.findings import Finding
from dynid.identification.given_data import SeenSamples, check_copies
from dynid.identification.identify import Identification
from dynid.identification.log_reader import Log, Notice, log_finding
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.recording import Recording
from dynid.monitor.alarms import Watch, watch_experiment
from dynid.monitor.calibration import Sight
from dynid.report.page import Chapter, Page
from dynid.report.sections.watch_sections import watch_page
from dynid.workflows.live_calibration import calibrate_live, open_reader, recorded_runs
from dynid.workflows.protocol import RunContext, Task, run
from dynid.workflows.run_folder import RunRequest
from dynid.workflows.validation_run import saved_cutoff
from dynid.workflows.watch_checks import check_log

_FITTED_TEXTS = {
    True: ("that its residuals are too small, and false alarms come more often than is stated",
           "Omit it: parts of the logs of the result are left out in turn."),
    False: ("that what pushed in it is partly in the model, and no alarm in it proves little", "Watch another log."),
}  # fmt: skip
"""Whether a log that the result was identified from calibrates the watch (or is watched) -> consequence, remedy."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WatchRun:
    """Alarms of a watch over logs."""

    watches: tuple[Watch, ...]
    """Torques from outside and alarms of each log."""
    sight: Sight
    """The smallest pushes that the watch detects."""
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

    def to_json(self) -> dict[str, Any]:
        """The result as values that JSON can hold."""
        return {"watches": [found.to_json() for found in self.watches], "sees": self.sight.to_json(),
                "findings": [finding.to_dict() for finding in self.findings]}  # fmt: skip

    def __str__(self) -> str:
        """Verdict and alarms of every log, and the smallest pushes that are detected."""
        return "\n\n".join([*(f"{found.source}: {found.summary()}" for found in self.watches), self.sight.sentence])


@dataclass(frozen=True, slots=True, eq=False)
class WatchLogs(Task[WatchRun]):
    """Watch logs with an identified model; see `watch` for the fields."""

    verb = "watch"
    files = ("watch.json",)
    reads = ("result", "logs", "clean", "channel_map")

    result: str | Path
    logs: Sequence[Log]
    clean: Sequence[Log] = ()
    per_hour: float = 1.0
    channel_map: ChannelMapSource | None = None

    def check(self) -> None:
        if not isinstance(self.result, str | Path):
            remedy = "Give a folder; dynid.monitor.watch_experiment watches with a model in memory."
            raise ArgumentError(f"result is a {type(self.result).__name__}", remedy=remedy)
        if not self.logs:
            raise ArgumentError("there is no log to watch", remedy="Give log files or recordings.")
        remedy = "Calibrate with other logs than those that are watched: a push in the log would set its own threshold."
        check_copies(self.logs)
        check_copies(self.clean, self.logs, why="in which nothing touched the robot (clean)", remedy=remedy)

    def compute(self, context: RunContext) -> WatchRun:
        folder = Path(self.result)
        saved = read_result(self.result)
        fit = saved.identification()
        reader = open_reader(folder, fit, self.channel_map, progress=context.progress, notice=context.notify,
                             seen=self._tell_fitted(fit, context.notify))  # fmt: skip
        # The logs in two forms: low-pass filtered, and with the noisier velocities and torques that the robot sent.
        # Levels of alarms hold only for the form they were calibrated with. Logs without velocities have the filtered
        # form alone (recorded is None); clean logs without velocities calibrate with that form (known.is_smooth).
        filtered = reader.experiments(self.logs, for_validation=True, cutoff_hz=saved_cutoff(saved))
        recorded = recorded_runs(reader, self.logs)
        reader.recordings(self.clean)  # warns of clean logs that the result was fitted to
        known = calibrate_live(folder, fit, self.clean, self.channel_map, context.notify, smooth=recorded is None)
        sight = known.sight(self.per_hour)
        for finding in (*sight.findings, *(doubt for log in filtered for doubt in check_log(fit, log))):
            context.notify(finding)
        watched = filtered if recorded is None or known.is_smooth else recorded
        return WatchRun(
            watches=tuple(watch_experiment(fit, log, known, per_hour=self.per_hour) for log in watched),
            sight=sight,
            findings=tuple(context.findings),
        )

    def _tell_fitted(self, fit: Identification, notice: Notice) -> SeenSamples:
        """Make the check that warns of logs with samples that the result was identified from."""
        clean = {id(log) for log in self.clean}

        def warn(log: Log, what: str) -> None:
            effect, remedy = _FITTED_TEXTS[id(log) in clean]
            where = log.source if isinstance(log, Recording) else Path(log).name
            message = f"{what}, so {effect}"
            notice(Finding(code="watch-seen", severity="warning", where=where, message=message, remedy=remedy))

        return SeenSamples([(run.source, run.stretch_keys) for run in fit.equations.excerpts], warn)

    def page(self, result: WatchRun, settings: Sequence[Chapter]) -> Page:
        return watch_page(result.watches, result.sight, result.findings, settings)


def watch(
    result: str | Path,
    logs: Log | Sequence[Log],
    *,
    clean: Sequence[Log] = (),
    per_hour: float = 1.0,
    channel_map: ChannelMapSource | None = None,
    out: RunRequest | str | Path | None = None,
    notice: Notice = log_finding,
) -> WatchRun:
    """Watch logs with an identified model: what pushed against the arm, when, and against which joint.

    Args:
        result: The folder that `dynid.workflows.Identify` wrote.
        logs: Log files or recordings to watch; `dynid.monitor.watch_experiment` watches experiments.
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
        >>> task = dynid.workflows.Identify(robot, log, dynid.Recipe(friction="plain", estimator="wls"))
        >>> _ = dynid.workflows.run(task, folder / "watched")
        >>> dynid.watch(folder / "watched", log2, clean=[log3]).alarms
        0
    """
    given = [logs] if isinstance(logs, Log) else list(logs)
    return run(WatchLogs(result, given, clean, per_hour, channel_map), out, notice=notice)
