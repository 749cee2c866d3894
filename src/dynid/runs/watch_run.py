"""Watch logs with a saved result: what ``dynid watch`` does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynid.errors import ArgumentError
from dynid.export.result_file import read_result
from dynid.files import file_digest
from dynid.findings import Finding
from dynid.links.common.copies import check_copies
from dynid.links.identify import Identification
from dynid.links.log_reader import ChannelMapSource, Log, LogReader, Notice, Progress, log_finding
from dynid.links.recipe import Recipe
from dynid.monitor.alarms import Watch, watch_experiment
from dynid.monitor.calibration import Calibration, Sight, calibrate
from dynid.monitor.planted_pushes import PushCurve, plant_pushes
from dynid.monitor.watched_signals import watched_stretches
from dynid.processing.experiment import Experiment
from dynid.report.sections.watch_sections import watch_page
from dynid.runs.identification_run import gather_too
from dynid.runs.run_folder import Origin, RunRequest, open_run, read_run
from dynid.runs.validation_run import common_cutoff
from dynid.runs.watch_checks import check_log, refuse_watched, tell_fitted, watched_samples

PUSHES = 40
"""Pushes per size that the report plants into the watched logs (convention: shares to some per cent)."""


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
    curve: PushCurve | None = None
    """Planted pushes that are found in the watched logs; None where they are too short."""

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


def watch(
    result: Identification | str | Path,
    logs: Log | Experiment | Sequence[Log | Experiment],
    *,
    clean: Sequence[Log | Experiment] = (),
    per_hour: float = 1.0,
    channel_map: ChannelMapSource | None = None,
    out: RunRequest | str | Path | None = None,
    progress: Progress | None = None,
    notice: Notice = log_finding,
) -> WatchRun:
    """Watch logs with an identified model: what pushed against the arm, when, and against which joint.

    Args:
        result: An identification, or the folder that `run_identification` wrote.
        logs: Log files, recordings or experiments to watch.
        clean: Logs in which nothing touched the robot, and which the identification has not seen; by default the data
            of the identification, of which parts are left out in turn.
        per_hour: Rate of false alarms of the whole arm [1/h]: the only number to choose.
        channel_map: Channel map of log files.
        out: Folder for the alarms and a report; None writes nothing.
        progress: Called with the finished share (0 to 1) and a short description of the current step.
        notice: Called with every finding that a person should see at once.

    Raises:
        ArgumentError: There is nothing to calibrate from.
        DataError: A log cannot be used.

    Example:
        >>> dynid.watch(fit, run, clean=[other]).alarms
        0
    """
    given = [logs] if isinstance(logs, str | Path) or not isinstance(logs, Sequence) else list(logs)
    if not isinstance(result, Identification | str | Path):
        raise ArgumentError(f"result is a {type(result).__name__}", remedy="Give an identification, or its folder.")
    if not given:
        raise ArgumentError("there is no log to watch", remedy="Give log files, recordings or experiments.")
    check_copies([log for log in given if not isinstance(log, Experiment)])
    check_copies(
        [log for log in clean if not isinstance(log, Experiment)],
        [log for log in given if not isinstance(log, Experiment)],
        why="in which nothing touched the robot (clean)",
        remedy="Calibrate with other logs than those that are watched: a push in the log would set its own threshold.",
    )
    saved = None if isinstance(result, Identification) else read_result(result)
    fit = result if isinstance(result, Identification) else saved.identification()  # type: ignore[union-attr]
    gathered: list[Finding] = []
    tell = gather_too(gathered, notice)
    reader = LogReader(
        robot=fit.robot, recipe=_recipe(result), channel_map=channel_map, progress=progress, notice=tell,
        seen=watched_samples(fit, clean, tell),
    )  # fmt: skip
    cutoff = None if saved is None else common_cutoff(saved.content["data"])
    runs = _experiments(reader, given, cutoff)
    tell_fitted(fit, runs, tell)
    if clean:
        quiet = _experiments(reader, clean, cutoff)
        refuse_watched(quiet, runs)
        tell_fitted(fit, quiet, tell, is_clean=True)
        known = calibrate(fit, quiet)
    elif isinstance(result, Identification):
        known = calibrate(fit)
    else:
        known = calibrate_result(Path(result), fit)
    sight = known.sight(per_hour)
    for finding in (*sight.findings, *(doubt for one in runs for doubt in check_log(fit, one, known))):
        tell(finding)
    words = {"per_hour": per_hour}
    paths = [item for item in (result, *given, *clean, channel_map) if isinstance(item, str | Path)]
    origin = Origin.of_call("watch", words, paths)
    with nullcontext() if out is None else open_run(RunRequest.of(out), origin, ["watch.json"]) as run:
        found = WatchRun(
            watches=tuple(watch_experiment(fit, one, known, per_hour=per_hour) for one in runs),
            calibration=known,
            sight=sight,
            findings=tuple(gathered),
            curve=_curve(fit, known, runs, per_hour),
        )
        if run is not None:
            run.write("watch.json", json.dumps(found.to_json(), indent=1) + "\n")
            run.write_page(watch_page(found.watches, sight, found.curve, found.findings, [run.settings()]))
            run.finish("watch.json", 0, gathered)
    return found


def _recipe(result: Identification | str | Path) -> Recipe:
    """How watched logs are processed: gaps and delays as in those of the result; a robot at rest is watched, too."""
    plain = replace(Recipe(), gate=False, judge_rest=True, selection=None)
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


def _curve(fit: Identification, known: Calibration, runs: Sequence[Experiment], per_hour: float) -> PushCurve | None:
    parts = (watched_stretches(fit, run, known.rate_hz, log_hz=known.log_hz) for run in runs)
    statistics = [known.statistics(part) for some in parts for part in some]
    longest = max((len(one.std) / one.stretch.rate_hz for one in statistics), default=0.0)
    if longest < 1.0:  # [s] too short for the time before a push
        return None
    return plant_pushes(known, statistics, rates=(60.0 * per_hour, per_hour), pushes=PUSHES)


def calibrate_result(folder: Path, fit: Identification | None = None) -> Calibration:
    """Calibrate a watch from the logs of a run folder, read again; parts of them are left out in turn.

    They are read with the channel map of the run: that of other logs says nothing about them.

    Args:
        folder: A folder that ``dynid identify`` wrote.
        fit: Its identification, where it was read before.

    Raises:
        ArgumentError: The folder does not say which logs it was made from, or they or their map are gone or changed.
    """
    model = read_result(folder).identification() if fit is None else fit
    reader, logs = open_training(folder, model)
    return calibrate(model, training=reader.training_and_proof(logs)[0])


def open_training(folder: Path, fit: Identification) -> tuple[LogReader, list[Path]]:
    """The logs of a run folder, and what reads them as they were fitted; see `calibrate_result`."""
    remedy = "Give clean logs for the calibration (clean=, --clean)."
    if not folder.is_dir() or not (folder / "run.json").exists():
        raise ArgumentError("the result does not say where its logs are", path=folder, remedy=remedy)
    facts = read_run(folder)
    options = facts["options"]
    logs = [Path(log) for log in options.get("logs", ())]
    if not logs or not all(log.exists() for log in logs):
        raise ArgumentError("the logs of the result are not there", path=folder, remedy=remedy)
    recipe = replace(Recipe.read(folder / "recipe.toml"), gate=False)
    used = options.get("channel_map")
    _refuse_changed(facts["inputs"], [*logs, used], remedy)
    cutoff = common_cutoff(read_result(folder).content["data"])
    exact = recipe if cutoff is None else replace(recipe, cutoff_hz=cutoff)
    return LogReader(robot=fit.robot, recipe=exact, channel_map=None if used in (None, "none") else used), logs


def _refuse_changed(inputs: Sequence[Mapping[str, str]], used: Sequence[object], remedy: str) -> None:
    """Refuse files of a run that are no longer as the run has read them."""
    wanted = {str(name) for name in used}
    for entry in inputs:
        path = Path(entry["path"])
        if entry["path"] in wanted and (not path.exists() or file_digest(path) != entry["sha256"]):
            what = "has changed since" if path.exists() else "is gone"
            raise ArgumentError(f"{path.name}, which the result was identified with, {what}", path=path, remedy=remedy)
