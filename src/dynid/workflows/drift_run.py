"""Compare a stored identification with later logs and results: the work of ``dynid compare-runs``.

A later log is diagnosed and identified again with the model of the stored result: the same terms, the same base
parameters, weighted least squares. A parameter has moved where the difference is significant by both uncertainties, at
a level for all parameters together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import ArgumentError, DataError, DynidError
from dynid.estimators.equations import build_equations
from dynid.estimators.linear.least_squares import WLS
from dynid.export.result_file import is_result, read_result
from dynid.fleet.history import EARLIEST_S
from dynid.identification.identify import Identification, identify_equations
from dynid.identification.log_reader import LogReader
from dynid.identification.recipe import Recipe
from dynid.identification.rich.joint_friction import JointFriction, joint_friction
from dynid.identification.validation import Validation, validate
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.reading import log_digest
from dynid.plain_data import pick
from dynid.processing.cutoff import ALIKE
from dynid.processing.experiment import Experiment
from dynid.report.page import Chapter, Page
from dynid.report.sections.drift_section import drift_page
from dynid.workflows.moved_parameters import Moved, MovedLoad, find_load, find_moved
from dynid.workflows.protocol import RunContext, Task, refuse_used
from dynid.workflows.validation_run import SavedRun, is_run, logs_of, saved_cutoff
from dynid.workflows.watch_checks import NOTHING_EXPLAINED, unexplained_share

WITHOUT_GATE = "--no-check, or gate=False in Python"
"""How a person compares a log that the diagnosis refuses."""


@dataclass(frozen=True, slots=True, eq=False)
class Occasion:
    """The identified parameters of a robot at one time."""

    name: str
    """Name of the log or the folder."""
    time_s: float
    """First stamp of the log where it is a Unix time, else the time of the file [s, Unix time]."""
    fit: Identification
    """The identification."""
    friction: tuple[JointFriction, ...] = ()
    """Friction of every joint; empty for a stored result whose logs are not read."""
    moved: tuple[Moved, ...] = ()
    """The parameters that moved since the stored result, by joint."""
    load: MovedLoad | None = None
    """The load that explains how the parameters of the links moved since; None where none does."""

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
class RunComparison:
    """Two results, validated on the same samples."""

    names: tuple[str, str]
    """Names of the runs."""
    checks: tuple[Validation, Validation] | None
    """Validation of each; None where there are no samples on which both can be judged."""
    reason: str = ""
    """Why there are none."""

    @property
    def sentence(self) -> str:
        """Which result predicts better."""
        if self.checks is None:
            return f"{self.names[0]} and {self.names[1]} are not judged on the same samples: {self.reason}"
        errors = [check.relative_error for check in self.checks]
        low = min(errors)
        high = max(errors)
        better = f"{self.names[errors.index(low)]} predicts better"
        verdict = "both predict equally well" if high <= ALIKE * low else better
        return f"{verdict} on the same held-out samples: {low:.2f} % against {high:.2f} %"


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """A stored identification, and what changed on later occasions."""

    stored: Occasion
    """The stored identification."""
    later: tuple[Occasion, ...]
    """Later logs and results."""
    comparisons: tuple[RunComparison, ...] = ()
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
        """Which joints moved, or which load explains it, as one sentence."""
        joints = {parameter.joint for later in self.later for parameter in later.moved}
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
            "same_samples": [comparison.sentence for comparison in self.comparisons],
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
            if not is_result(path):
                refuse_used(path, log_digest(path), used)

    def compute(self, context: RunContext) -> Drift:
        saved = read_result(self.stored)
        fit = saved.identification()
        cutoff = saved_cutoff(saved)
        reader = LogReader(robot=fit.robot, recipe=Recipe.bare(gate=self.gate), channel_map=self.channel_map,
                           notice=context.notify, without_gate=WITHOUT_GATE)  # fmt: skip
        found = [_occasion(fit, Path(path), reader, cutoff) for path in self.later]
        occasions = tuple(replace(one, moved=find_moved(fit, one.fit), load=find_load(fit, one.fit)) for one in found)
        runs = [run for one in occasions for run in one.fit.equations.excerpts if run.samples]
        place = Path(self.stored)
        # a stored result holds no samples: its friction is shown in the states of the later logs
        first = Occasion(place.name, _file_time(place), fit, joint_friction(fit, runs) if runs else ())
        folders = [Path(path) for path in self.later if is_run(path)] if is_run(self.stored) else []
        return Drift(first, occasions, tuple(compare_runs(place, folder) for folder in folders))

    def page(self, result: Drift, settings: Sequence[Chapter]) -> Page:
        return drift_page(result, settings)


def compare_runs(first: Path, second: Path) -> RunComparison:
    """Validate the results of two run folders on the samples on which either was validated, processed once.

    The errors that the runs state cannot be compared where one leaves out samples that the other predicts, such as
    those within a dead band.
    """
    sides = SavedRun.read(first), SavedRun.read(second)
    names = (first.name, second.name) if first.name != second.name else (str(first), str(second))
    fits = [side.saved.identification() for side in sides]
    recipe = _common_recipe(*sides)
    held_out: list[Experiment] = []
    read: set[str] = set()
    try:
        for side, other in (sides, sides[::-1]):
            logs = [log for log in side.fair_logs(other) if log not in read]
            read.update(logs)
            own_recipe = replace(recipe, hold_out=side.recipe.hold_out)
            reader = side.reader(fits[0].robot, own_recipe, logs)
            if logs and own_recipe.hold_out is not None:
                held_out += reader.training_and_proof(logs)[1]
            elif logs:
                held_out += reader.experiments(logs, for_validation=True)
    except DynidError as error:
        return RunComparison(names, None, str(error))
    if not held_out:
        return RunComparison(names, None, "neither was judged on a log that the other has not seen")
    one, two = (validate(fit, held_out, band_hz=recipe.band_hz) for fit in fits)
    return RunComparison(names, (one, two))


def _common_recipe(first: SavedRun, second: SavedRun) -> Recipe:
    """Choose settings that leave out no sample on which either run was validated.

    The dead band is the narrower one. None as a dead band leaves out standstill alone, which is more than a width of
    zero does and less than any other width.
    """
    a = first.recipe
    b = second.recipe
    cutoffs = [facts["cutoff_hz"] for side in (first, second) for facts in side.saved.content["data"]]
    known_cutoffs = [cutoff for cutoff in cutoffs if cutoff is not None]
    widths = [width for width in (a.dead_band, b.dead_band) if width is not None]
    standstill_alone = len(widths) < 2 and 0.0 not in widths
    return replace(
        a,
        gate=False,
        cutoff_hz=max(known_cutoffs, default="auto"),
        band_hz=None if a.band_hz is None or b.band_hz is None else max(a.band_hz, b.band_hz),
        dead_band=None if standstill_alone else min(widths),
    )


def _occasion(stored: Identification, path: Path, reader: LogReader, cutoff: float | None) -> Occasion:
    """Read a later result, or identify a later log with the model of the stored result.

    Args:
        stored: The stored identification.
        path: The result or the log.
        reader: Reads and diagnoses the log.
        cutoff: Cutoff of the low-pass filter of the stored result [Hz]; None to choose one.

    Raises:
        ArgumentError: The result is that of another robot.
        DataError: The stored model explains nothing of the log.
    """
    if is_result(path):
        fit = read_result(path).identification()
        if fit.robot.joint_names != stored.robot.joint_names:
            raise ArgumentError("the result is that of a robot with other joints", path=path,
                                remedy="Compare results of one robot.")  # fmt: skip
        return Occasion(path.name, _file_time(path), fit)
    run = reader.experiments([path], for_validation=False, cutoff_hz=cutoff)[0]
    if reader.recipe.gate:
        error = unexplained_share(stored, run)
        if error > NOTHING_EXPLAINED:  # no wear does that
            raise DataError(
                f"the stored model explains nothing of the torques (error {100.0 * error:.3g} %), which wear does not "
                "do",
                path=path,
                place="effort",
                remedy="Compare units, signs and the order of the joints with those of the logs that were identified "
                f"from. The log is used all the same with {WITHOUT_GATE}.",
            )
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
