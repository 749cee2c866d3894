"""Compare a stored identification with later logs and results: what ``dynid compare-runs`` does.

A later log is checked by the gate and identified again with the model of the stored result: the same terms, the same
base parameters, weighted least squares. A parameter has moved where the difference exceeds what both uncertainties
allow, for all parameters together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import ArgumentError, DataError
from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import WLS
from dynid.export.result_file import read_result
from dynid.fleet.history import EARLIEST_S
from dynid.identification.identify import Identification, identify_equations
from dynid.identification.log_reader import LogReader
from dynid.identification.recipe import Recipe
from dynid.identification.rich.joint_friction import JointFriction, joint_friction
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.reading import log_digest
from dynid.plain_data import pick
from dynid.report.page import Chapter, Page
from dynid.report.sections.drift_section import drift_page
from dynid.runs.moved_parameters import Moved, MovedLoad, find_load, find_moved
from dynid.runs.protocol import Desk, Task, refuse_used
from dynid.runs.validation_run import Contest, common_cutoff, is_run, judge_alike, logs_of
from dynid.runs.watch_checks import NOTHING_EXPLAINED, unexplained_share

WITHOUT_GATE = "--no-check, or gate=False in Python"
"""How a person compares a log that is refused."""


@dataclass(frozen=True, slots=True, eq=False)
class Occasion:
    """What a robot was at one time."""

    name: str
    time_s: float
    """First stamp of the log where it is a Unix time, else the time of the file [s, Unix time]."""
    fit: Identification
    friction: tuple[JointFriction, ...] = ()
    """Of every joint; empty for a stored result whose logs are not read."""
    moved: tuple[Moved, ...] = ()
    """The parameters that moved since the stored result, by joint."""
    load: MovedLoad | None = None
    """The load that explains how the links moved since."""

    @property
    def date(self) -> str:
        """Date of the log or the file, UTC, as ISO 8601."""
        return datetime.fromtimestamp(self.time_s, tz=UTC).isoformat(timespec="seconds")

    def temperature(self, joint: str) -> float:
        """Mean temperature of a joint, or of the last of several joined by ``+`` [degC]; NaN where it is not known."""
        place = self.fit.robot.joint_names.index(joint.split("+")[-1])
        known = [run.temperature[place] for run in self.fit.equations.excerpts if run.temperature is not None]
        return float(np.mean(known)) if known else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """A stored identification beside later occasions."""

    stored: Occasion
    later: tuple[Occasion, ...]
    contests: tuple[Contest, ...] = ()
    """The stored run beside each later run that has a folder, judged on identical samples."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 where a parameter moved, otherwise 0."""
        return int(self.has_moved)

    @property
    def has_moved(self) -> bool:
        """Whether any parameter moved."""
        return any(later.moved for later in self.later)

    @property
    def verdict(self) -> str:
        """What moved, as one sentence."""
        joints = {one.joint for later in self.later for one in later.moved}
        if not joints:
            return "no parameter moved beyond its interval"
        loads = [later.load.sentence for later in self.later if later.load is not None]
        if loads:
            return "; ".join(dict.fromkeys(loads))
        names = [joint for joint in self.stored.fit.robot.joint_names if joint in joints]
        return f"parameters of {', '.join(names) or 'several joints'} moved beyond their intervals"

    def to_json(self) -> dict[str, Any]:
        """The comparison as values that JSON can hold."""
        return {
            "verdict": self.verdict,
            "same_samples": [contest.sentence for contest in self.contests],
            "stored": pick(self.stored, "name", "date"),
            "later": [
                pick(later, "name", "date") | {
                    "load_kg": None if later.load is None else later.load.mass,
                    "moved": [{"parameter": one.name} | pick(one, "joint", "unit", "before", "after", "sigmas")
                              for one in later.moved],
                }
                for later in self.later
            ],
        }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class CompareRuns(Task[Drift]):
    """Compare a stored identification with later logs or results: which parameters moved, on which joint, when."""

    verb = "compare-runs"
    files = ("drift.json",)
    reads = ("stored", "later", "channel_map")

    stored: str | Path
    """A folder that `Identify` wrote, or its ``result.json``."""
    later: Sequence[str | Path]
    """Such folders, or logs; a log is identified again with the model of the stored result."""
    channel_map: ChannelMapSource | None = None
    gate: bool = True
    """Whether logs are checked first, and refused when the check finds an error."""

    def check(self) -> None:
        if not all(isinstance(item, str | Path) for item in (self.stored, *self.later)):
            remedy = "Save each: dynid.write_result(fit, path)."
            raise ArgumentError("results are compared by their files", remedy=remedy)
        used = logs_of(read_result(self.stored))
        stored, later = Path(self.stored).resolve(), [Path(path) for path in self.later]
        places = [path.resolve() for path in later]
        for path, place in zip(later, places, strict=True):
            if place == stored or places.count(place) > 1:
                what = "the stored result" if place == stored else "given twice"
                raise ArgumentError(f"{path} is {what}", remedy="Give later logs, or results of later logs, each once.")
            if not _is_result(path):
                refuse_used(path, log_digest(path), used)

    def compute(self, desk: Desk) -> Drift:
        saved = read_result(self.stored)
        fit, cutoff = saved.identification(), common_cutoff(saved)
        reader = LogReader(robot=fit.robot, recipe=Recipe.bare(gate=self.gate), channel_map=self.channel_map,
                           notice=desk.tell, without_gate=WITHOUT_GATE)  # fmt: skip
        found = [_occasion(fit, Path(path), reader, cutoff) for path in self.later]
        occasions = tuple(replace(one, moved=find_moved(fit, one.fit), load=find_load(fit, one.fit)) for one in found)
        runs = [run for one in occasions for run in one.fit.equations.excerpts if run.samples]
        place = Path(self.stored)
        first = Occasion(place.name, _file_time(place), fit, joint_friction(fit, runs) if runs else ())
        folders = [Path(path) for path in self.later if is_run(path)] if is_run(self.stored) else []
        return Drift(first, occasions, tuple(judge_alike(place, folder) for folder in folders))

    def page(self, result: Drift, settings: Sequence[Chapter]) -> Page:
        return drift_page(result, settings)


def _is_result(path: Path) -> bool:
    return (path / "result.json").exists() or path.suffix.lower() == ".json"


def _occasion(stored: Identification, path: Path, reader: LogReader, cutoff: float | None) -> Occasion:
    if _is_result(path):
        fit = read_result(path).identification()
        if fit.robot.joint_names != stored.robot.joint_names:
            raise ArgumentError("the result is that of a robot with other joints", path=path,
                                remedy="Compare results of one robot.")  # fmt: skip
        return Occasion(path.name, _file_time(path), fit)
    run = reader.experiments([path], for_validation=False, cutoff_hz=cutoff)[0]
    if reader.recipe.gate:
        error = unexplained_share(stored, run)
        if error > NOTHING_EXPLAINED:  # no wear does that
            reason = f"the stored model explains nothing of the torques (error {100.0 * error:.3g} %), which wear does "
            remedy = "Compare units, signs and the order of the joints with those of the logs that were identified "
            remedy += f"from. The log is used all the same with {WITHOUT_GATE}."
            raise DataError(f"{reason}not do", path=path, place="effort", remedy=remedy)
    equations = build_equations(
        stored.robot, [run], base=stored.equations.base, terms=stored.terms, band_hz=stored.equations.band_hz
    )
    fit = identify_equations(equations, WLS())
    start = float(run.time[0]) if run.samples else 0.0
    return Occasion(path.name, start if start >= EARLIEST_S else _file_time(path), fit, joint_friction(fit))


def _file_time(path: Path) -> float:
    """Time of the last change of a result or log [s, Unix time]."""
    file = path / "result.json" if (path / "result.json").exists() else path
    return file.stat().st_mtime
