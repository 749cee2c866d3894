"""Compare a stored identification with later logs and results: what ``dynid compare-runs`` does.

A later log is checked by the gate and identified again with the model of the stored result: the same terms, the same
base parameters, weighted least squares. A parameter has moved where the difference exceeds what both uncertainties
allow, for all parameters together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import ArgumentError, DataError
from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import WLS
from dynid.export.result_file import read_result
from dynid.findings import Finding
from dynid.fleet.history import DAY_S, EARLIEST_S
from dynid.fleet.trends import Trend, excess_scatter, fit_trend
from dynid.lazy import cached_property
from dynid.links.identify import Identification, identify_equations
from dynid.links.log_reader import LogReader
from dynid.links.recipe import Recipe
from dynid.links.rich.joint_friction import JointFriction, joint_friction
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.reading import log_digest
from dynid.processing.experiment import Experiment
from dynid.report.page import Chapter, Page
from dynid.report.sections.drift_section import drift_page
from dynid.runs.moved_parameters import Moved, MovedLoad, find_load, find_moved
from dynid.runs.protocol import Desk, Task
from dynid.runs.validation_run import Contest, common_cutoff, is_run, judge_alike
from dynid.runs.watch_checks import NOTHING_EXPLAINED, unexplained_share

NORMAL_95 = 1.96
"""Standard deviations of a 95 % interval of the normal distribution."""
WITHOUT_GATE = "--no-check, or gate=False in Python"
"""How a person compares a log that is refused."""


@dataclass(frozen=True, slots=True, eq=False)
class Occasion:
    """What a robot was at one time."""

    name: str
    time_s: float
    """First stamp of the log where it is a Unix time, else the time of the file [s, Unix time]."""
    fit: Identification
    friction: tuple[JointFriction, ...]
    """Of every joint; empty for a stored result whose logs are not read."""

    @property
    def date(self) -> str:
        """Date of the log or the file, UTC, as ISO 8601."""
        return datetime.fromtimestamp(self.time_s, tz=UTC).isoformat(timespec="seconds")

    def temperature(self, joint: str) -> float:
        """Mean temperature of a joint, or of the last of several joined by ``+`` [degC]; NaN where it is not known."""
        place = self.fit.robot.joint_names.index(joint.split("+")[-1])
        known = [run.temperature[place] for run in self.fit.equations.excerpts if run.temperature is not None]
        return float(np.mean(known)) if known else float("nan")


@dataclass(frozen=True, slots=True)
class FrictionTrend:
    """How one kind of friction of a joint changed with time and with temperature."""

    joint: str
    kind: str
    """``dry`` or ``viscous``."""
    unit: str
    trend: Trend
    scatter: float
    """Variance of the values about the line over that which their uncertainty states; at least one."""

    @property
    def per_kelvin(self) -> tuple[float, float]:
        """Change per kelvin, and half of its 95 % interval."""
        return self.trend.per_kelvin, NORMAL_95 * self.trend.per_kelvin_std * float(np.sqrt(self.scatter))

    @property
    def per_day(self) -> tuple[float, float]:
        """Change per day at constant temperature, and half of its 95 % interval."""
        return self.trend.slope * DAY_S, NORMAL_95 * self.trend.std * DAY_S * float(np.sqrt(self.scatter))


@dataclass(frozen=True, eq=False)
class Drift:
    """A stored identification beside later occasions."""

    stored: Occasion
    later: tuple[Occasion, ...]
    contests: tuple[Contest, ...] = ()
    """The stored run beside each later run that has a folder, judged on identical samples."""

    @cached_property
    def _moved(self) -> dict[Occasion, tuple[Moved, ...]]:
        return {later: find_moved(self.stored.fit, later.fit) for later in self.later}

    def moved(self, later: Occasion) -> tuple[Moved, ...]:
        """The parameters that moved until a later occasion, by joint."""
        return self._moved[later]

    @cached_property
    def _loads(self) -> dict[Occasion, MovedLoad | None]:
        return {later: find_load(self.stored.fit, later.fit) for later in self.later}

    def load(self, later: Occasion) -> MovedLoad | None:
        """The load that explains how the links moved until a later occasion."""
        return self._loads[later]

    @property
    def trends(self) -> tuple[FrictionTrend, ...]:
        """Lines through the friction of every joint over time and temperature; empty without enough temperatures."""
        occasions = [one for one in (self.stored, *self.later) if one.friction]
        found = []
        for joint in dict.fromkeys(friction.name for one in occasions for friction in one.friction):
            pairs = [
                (one, friction)
                for one in occasions
                for friction in one.friction
                if friction.name == joint and np.isfinite(one.temperature(joint))
            ]
            times, warmth = (
                np.array([one.time_s for one, _ in pairs]), np.array([one.temperature(joint) for one, _ in pairs])
            )  # fmt: skip
            for place, kind in enumerate(("dry", "viscous")):
                figures = [friction.line[place] for _, friction in pairs]
                values, std = np.array([f.value for f in figures]), np.array([f.stderr for f in figures])
                trend = fit_trend(times, warmth, values, std) if np.isfinite(std).all() else None
                if trend is not None and np.isfinite(trend.per_kelvin):
                    unit = pairs[0][1].unit if kind == "dry" else pairs[0][1].viscous_unit
                    found.append((joint, kind, unit, trend))
        scatter = excess_scatter([trend for *_, trend in found])
        return tuple(FrictionTrend(*one, scatter) for one in found)

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 where a parameter moved, otherwise 0."""
        return int(self.has_moved)

    @property
    def has_moved(self) -> bool:
        """Whether any parameter moved."""
        return any(self.moved(later) for later in self.later)

    @property
    def verdict(self) -> str:
        """What moved, as one sentence."""
        joints = {one.joint for later in self.later for one in self.moved(later)}
        if not joints:
            return "no parameter moved beyond its interval"
        loads = [load.sentence for later in self.later if (load := self.load(later)) is not None]
        if loads:
            return "; ".join(dict.fromkeys(loads))
        names = [joint for joint in self.stored.fit.robot.joint_names if joint in joints]
        return f"parameters of {', '.join(names) or 'several joints'} moved beyond their intervals"

    def to_json(self) -> dict[str, Any]:
        """The comparison as values that JSON can hold."""
        return {
            "verdict": self.verdict,
            "same_samples": [contest.sentence for contest in self.contests],
            "stored": {"name": self.stored.name, "date": self.stored.date},
            "later": [
                {
                    "name": later.name,
                    "date": later.date,
                    "load_kg": None if (load := self.load(later)) is None else load.mass,
                    "moved": [
                        {"parameter": one.name, "joint": one.joint, "unit": one.unit, "before": one.before,
                         "after": one.after, "sigmas": one.sigmas}
                        for one in self.moved(later)
                    ],
                }
                for later in self.later
            ],
        } | ({} if not self.trends else {"friction_and_temperature": [
            {"joint": one.joint, "kind": one.kind, "unit": one.unit, "per_kelvin": one.per_kelvin[0],
             "per_kelvin_half_width": one.per_kelvin[1], "per_day": _finite(one.per_day[0]),
             "per_day_half_width": _finite(one.per_day[1])}
            for one in self.trends
        ]})  # fmt: skip


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


@dataclass(frozen=True, slots=True, eq=False)
class CompareRuns(Task[Drift]):
    """Compare a stored identification with later logs or results: which parameters moved, on which joint, when."""

    verb = "compare-runs"
    files = ("drift.json",)

    stored: str | Path
    """A folder that `Identify` wrote, or its ``result.json``."""
    later: Sequence[str | Path]
    """Such folders, or logs; a log is identified again with the model of the stored result."""
    channel_map: ChannelMapSource | None = None
    gate: bool = True
    """Whether logs are checked first, and refused when the check finds an error."""

    def inputs(self) -> Sequence[object]:
        return [self.stored, *self.later, self.channel_map]

    def check(self) -> None:
        if not all(isinstance(item, str | Path) for item in (self.stored, *self.later)):
            remedy = "Save each: dynid.write_result(fit, path)."
            raise ArgumentError("results are compared by their files", remedy=remedy)
        used = [facts["sha256"] for facts in read_result(self.stored).content["data"]]
        _refuse_itself(Path(self.stored), [Path(path) for path in self.later], used)

    def compute(self, desk: Desk) -> Drift:
        saved = read_result(self.stored)
        fit, cutoff = saved.identification(), common_cutoff(saved.content["data"])
        reader = LogReader(robot=fit.robot, recipe=Recipe.bare(gate=self.gate), channel_map=self.channel_map,
                           notice=desk.tell, without_gate=WITHOUT_GATE)  # fmt: skip
        occasions = tuple(_occasion(fit, Path(path), reader, cutoff) for path in self.later)
        runs = [run for one in occasions for run in one.fit.equations.excerpts if run.samples]
        place = Path(self.stored)
        first = Occasion(place.name, _file_time(place), fit, joint_friction(fit, runs) if runs else ())
        folders = [Path(path) for path in self.later if is_run(path)] if is_run(self.stored) else []
        return Drift(first, occasions, tuple(judge_alike(place, folder) for folder in folders))

    def page(self, result: Drift, findings: Sequence[Finding], settings: Sequence[Chapter]) -> Page:
        return drift_page(result, settings)


def _refuse_itself(stored: Path, later: Sequence[Path], used: Sequence[str]) -> None:
    """Refuse the stored result and the logs that it was identified from among the later ones, and repeated ones."""
    seen = {stored.resolve()}
    for path in later:
        what = "the stored result" if path.resolve() == stored.resolve() else "given twice"
        if not (path / "result.json").exists() and path.suffix.lower() != ".json" and log_digest(path) in used:
            what = f"a log that {stored} was identified from"
        elif path.resolve() not in seen:
            seen.add(path.resolve())
            continue
        raise ArgumentError(f"{path} is {what}", remedy="Give later logs, or results of later logs, each once.")


def _occasion(stored: Identification, path: Path, reader: LogReader, cutoff: float | None) -> Occasion:
    if (path / "result.json").exists() or path.suffix.lower() == ".json":
        fit = read_result(path).identification()
        if fit.robot.joint_names != stored.robot.joint_names:
            raise ArgumentError("the result is that of a robot with other joints", path=path,
                                remedy="Compare results of one robot.")  # fmt: skip
        return Occasion(path.name, _file_time(path), fit, ())
    run = reader.experiments([path], for_validation=False, cutoff_hz=cutoff)[0]
    if reader.recipe.gate:
        _refuse_other_torques(stored, run, path)
    equations = build_equations(
        stored.robot, [run], base=stored.equations.base, terms=stored.terms, band_hz=stored.equations.band_hz
    )
    fit = identify_equations(equations, WLS())
    start = float(run.time[0]) if run.samples else 0.0
    return Occasion(path.name, start if start >= EARLIEST_S else _file_time(path), fit, joint_friction(fit))


def _refuse_other_torques(stored: Identification, run: Experiment, path: Path) -> None:
    """Refuse a log of whose torques the stored model explains nothing: no wear does that."""
    error = unexplained_share(stored, run)
    if error > NOTHING_EXPLAINED:
        raise DataError(
            f"the stored model explains nothing of the torques (error {100.0 * error:.3g} %), which wear does not do",
            path=path, place="effort",
            remedy="Compare units, signs and the order of the joints with those of the logs that were identified from. "
            f"The log is used all the same with {WITHOUT_GATE}.",
        )  # fmt: skip


def _file_time(path: Path) -> float:
    """Time of the last change of a result or log [s, Unix time]."""
    file = path / "result.json" if (path / "result.json").exists() else path
    return file.stat().st_mtime
