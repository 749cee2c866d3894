"""Compare a stored identification with later logs and results: what ``dynid compare-runs`` does.

A later log is identified again with the model of the stored result: the same terms, the same base parameters, weighted
least squares. A parameter has moved where the difference exceeds what both uncertainties allow, for all parameters
together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from dynid.errors import ArgumentError
from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import WLS
from dynid.export.result_file import read_result
from dynid.links.friction_summary import JointFriction, joint_friction
from dynid.links.identify import Identification, identify_equations
from dynid.links.log_reader import ChannelMapSource, LogReader
from dynid.links.recipe import Recipe
from dynid.processing.experiment import Experiment
from dynid.public_calls import public
from dynid.report.sections.drift_section import drift_page
from dynid.runs.run_folder import Origin, RunRequest, open_run
from dynid.runs.validation_run import common_cutoff

__all__ = ["Drift", "Moved", "Occasion", "compare_runs"]

FALSE_MOVES = 0.05
"""Probability that any parameter of an unchanged robot is called moved (convention: one comparison in twenty)."""


@dataclass(frozen=True, slots=True, eq=False)
class Occasion:
    """What a robot was at one time."""

    name: str
    date: str
    """Date of the file, UTC, as ISO 8601."""
    fit: Identification
    friction: tuple[JointFriction, ...]
    """Of every joint; empty for a stored result whose logs are not read."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A parameter that moved beyond its interval."""

    name: str
    joint: str
    unit: str
    before: float
    after: float
    sigmas: float
    """Difference over its standard deviation."""


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """A stored identification beside later occasions."""

    stored: Occasion
    later: tuple[Occasion, ...]

    def moved(self, later: Occasion) -> tuple[Moved, ...]:
        """The parameters that moved until a later occasion, by joint."""
        before, after = self.stored.fit.estimate, later.fit.estimate
        common = [name for name in before.names if name in after.names]
        level = NormalDist().inv_cdf(1.0 - FALSE_MOVES / max(1, len(common)) / 2.0)
        joints = _joints(self.stored.fit)
        found = []
        for name in common:
            i, k = before.names.index(name), after.names.index(name)
            spread = float(np.hypot(before.stderr[i], after.stderr[k]))
            gap = float(after.values[k] - before.values[i])
            if np.isfinite(spread) and spread > 0.0 and abs(gap) > level * spread:
                found.append(Moved(name, joints[name], before.units[i], float(before.values[i]), float(after.values[k]),
                                   abs(gap) / spread))  # fmt: skip
        order = {joint: place for place, joint in enumerate(self.stored.fit.robot.joint_names)}
        return tuple(sorted(found, key=lambda one: (order.get(one.joint, len(order)), -one.sigmas)))

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
        names = [joint for joint in self.stored.fit.robot.joint_names if joint in joints]
        return f"parameters of {', '.join(names) or 'several joints'} moved beyond their intervals"

    def to_json(self) -> dict[str, Any]:
        """The comparison as values that JSON can hold."""
        return {
            "verdict": self.verdict,
            "stored": {"name": self.stored.name, "date": self.stored.date},
            "later": [
                {
                    "name": later.name,
                    "date": later.date,
                    "moved": [
                        {"parameter": one.name, "joint": one.joint, "unit": one.unit, "before": one.before,
                         "after": one.after, "sigmas": one.sigmas}
                        for one in self.moved(later)
                    ],
                }
                for later in self.later
            ],
        }  # fmt: skip


def _joints(fit: Identification) -> dict[str, str]:
    """Name of each parameter -> the joint it belongs to; several are joined by ``+``."""
    names, first = fit.robot.joint_names, 10 * fit.robot.dof
    found = {}
    for name, column in zip(fit.base.names, fit.base.columns, strict=True):
        placed = fit.robot.terms[column - first].joints if column >= first else (column // 10,)
        found[name] = "+".join(names[j] for j in placed)
    for term in fit.terms:
        found[term.name] = "+".join(names[j] for j in term.acts_on(names))
    return found


@public
def compare_runs(
    stored: str | Path,
    later: Sequence[str | Path],
    *,
    channel_map: ChannelMapSource | None = None,
    out: RunRequest | str | Path | None = None,
) -> Drift:
    """Compare a stored identification with later logs or results: which parameters moved, on which joint, when.

    Args:
        stored: A folder that `run_identification` wrote, or its ``result.json``.
        later: Such folders, or logs; a log is identified again with the model of the stored result.
        channel_map: Channel map of the logs.
        out: Folder for the comparison and a page; None writes nothing.

    Raises:
        ArgumentError: A later result is that of another robot.

    Example:
        >>> path = dynid.write_result(fit, folder / "stored.json")
        >>> dynid.runs.compare_runs(path, [path]).verdict
        'no parameter moved beyond its interval'
    """
    saved = read_result(stored)
    fit = saved.identification()
    cutoff = common_cutoff(saved.content["data"])
    occasions = tuple(_occasion(fit, Path(path), channel_map, cutoff) for path in later)
    runs = [run for one in occasions for run in one.fit.equations.excerpts if run.samples]
    first = Occasion(Path(stored).name, _date(Path(stored)), fit, joint_friction(fit, runs) if runs else ())
    drift = Drift(first, occasions)
    origin = Origin.of_call("compare-runs", {}, [stored, *later, channel_map])
    with nullcontext() if out is None else open_run(RunRequest.of(out), origin, ["drift.json"]) as run:
        if run is not None:
            run.write("drift.json", json.dumps(drift.to_json(), indent=1) + "\n")
            run.write_page(drift_page(drift, [run.settings()]))
            run.finish("drift.json", 0)
    return drift


def _occasion(
    stored: Identification, path: Path, channel_map: ChannelMapSource | None, cutoff: float | None
) -> Occasion:
    if (path / "result.json").exists() or path.suffix.lower() == ".json":
        fit = read_result(path).identification()
        if fit.robot.joint_names != stored.robot.joint_names:
            raise ArgumentError("the result is that of a robot with other joints", path=path,
                                remedy="Compare results of one robot.")  # fmt: skip
        return Occasion(path.name, _date(path), fit, ())
    recipe = replace(Recipe.bare(), gate=False)
    reader = LogReader(robot=stored.robot, recipe=recipe, channel_map=channel_map)
    run: Experiment = reader.experiments([path], for_validation=False, cutoff_hz=cutoff)[0]
    equations = build_equations(
        stored.robot, [run], base=stored.base, terms=stored.terms, band_hz=stored.equations.band_hz
    )
    fit = identify_equations(equations, WLS())
    return Occasion(path.name, _date(path), fit, joint_friction(fit))


def _date(path: Path) -> str:
    file = path / "result.json" if (path / "result.json").exists() else path
    return datetime.fromtimestamp(file.stat().st_mtime, tz=UTC).isoformat(timespec="seconds")
