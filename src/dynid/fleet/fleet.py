"""Identify a fleet from the logs of many arms of one type: a typical robot, own parameters of every arm, and outliers.

Each log is reduced to a `Leaf`, small triangular factors of its equations; pools of leaves give all estimates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.constants import day

from dynid.array_types import Floats
from dynid.checks import check_number
from dynid.data_reduction import Information
from dynid.decompositions import one_blas_thread
from dynid.errors import DataError, DynidError
from dynid.estimators.equations import Factors, merge_information, next_segment
from dynid.estimators.estimate import Estimator
from dynid.findings import Finding
from dynid.fleet.differences import FEWEST_ARMS, FEWEST_SHARED, Difference, Repair, find_differences, unusual_values
from dynid.fleet.fleet_logs import FleetLog, find_logs
from dynid.fleet.history import (
    History,
    TemperatureEffect,
    arm_history,
    changed_values,
    temperature_effects,
    window_logs,
)
from dynid.fleet.pooling import ArmEquations, OwnPart, Pool, pool_arms
from dynid.fleet.store import LeafStore, settings_digest
from dynid.identifiability.base import base_parameters
from dynid.identifiability.base_set import BaseParameters, require_kept_columns
from dynid.identification.estimators import make_estimator
from dynid.identification.identify import Identification, identify_equations, prepare_robot
from dynid.identification.leaves import CUTOFF_LOGS, Leaf, LeafTask, fix_cutoff, leaf_equations, leaf_tasks, make_leaf
from dynid.identification.log_reader import Log, LogReader, Progress, refuse_in_pieces
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.recording import Recording
from dynid.parallel.base import Engine
from dynid.parallel.engine_names import make_engine, read_engine
from dynid.plain_data import json_values, pick
from dynid.robot.model import Robot
from dynid.tables import count_words
from dynid.terms.base import Dependence

FleetData = str | Sequence[str] | Mapping[str, Sequence[Log]]
"""Patterns with ``{arm}`` in them (see `find_logs`), or for each arm its logs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arm:
    """One arm of the fleet."""

    name: str
    """Name of the arm."""
    logs: int
    """Number of its logs."""
    samples: int
    """Number of samples in them."""
    own: OwnPart
    """Its own parameters, which `Fleet.own_names` names."""
    history: History
    """Its own parameters over time."""
    differences: tuple[Difference, ...]
    """Differences from the fleet and changes over time, the most significant first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fleet:
    """A fleet of arms of one type."""

    typical: Identification
    """The robot with the shared parameters and the mean of the arms' own ones: physically possible, ready for files."""
    pool: Pool
    """Shared and own parameters of all arms."""
    arms: tuple[Arm, ...]
    """All arms with a usable log."""
    own_names: tuple[str, ...]
    """(k,) names of the parameters that every arm has for itself."""
    own_units: tuple[str, ...]
    """(k,) their units."""
    own_joints: tuple[int, ...]
    """(k,) joint in which each acts; of several the last."""
    warmth: tuple[TemperatureEffect, ...]
    """How own parameters depend on temperature; empty where the logs have none, or hardly different ones."""
    failed: tuple[FleetLog, ...]
    """Logs that could not be used, with their problems."""
    read: int
    """Number of logs that were read now, refused ones included; the others were in the store."""
    cutoff_hz: float | None
    """Cutoff with which all logs were processed [Hz]; None where there was none, or every log chose its own."""
    cutoff_origin: str
    """Origin of the cutoff, as text for people."""
    findings: tuple[Finding, ...]
    """Arms that differ, changes, logs left out."""

    @property
    def shared_names(self) -> tuple[str, ...]:
        """(s,) names of the shared parameters."""
        return tuple(self.typical.base.names[place] for place in self.pool.shared_places)

    @property
    def shared_units(self) -> tuple[str, ...]:
        """(s,) their units."""
        return tuple(self.typical.base.units[place] for place in self.pool.shared_places)

    @property
    def outliers(self) -> tuple[Arm, ...]:
        """Arms that differ from the others or changed, the most conspicuous first."""
        outliers = [arm for arm in self.arms if arm.differences]
        return tuple(sorted(outliers, key=lambda arm: arm.differences[0].chance))

    @property
    def arms_without_logs(self) -> tuple[str, ...]:
        """Arms of which no log could be used; the fleet says nothing about them."""
        known = {arm.name for arm in self.arms}
        return tuple(sorted({log.arm for log in self.failed} - known))

    @property
    def gaps(self) -> str:
        """The arms without a usable log, as one sentence; empty where there are none."""
        missing = self.arms_without_logs
        if not missing:
            return ""
        verb = "has" if len(missing) == 1 else "have"
        total = count_words(len(self.arms) + len(missing), "arm")
        return f"{len(missing)} of {total} {verb} no log that can be used: {', '.join(missing)}."

    @property
    def cutoff_words(self) -> str:
        """The cutoff in use and where it comes from."""
        return self.cutoff_origin if self.cutoff_hz is None else f"{self.cutoff_hz:.4g} Hz, {self.cutoff_origin}"

    @property
    def title(self) -> str:
        """Size and type."""
        return f"Fleet of {count_words(len(self.arms), 'arm')} of {self.typical.robot.name}"

    @property
    def verdict(self) -> str:
        """Whether arms are conspicuous, as one sentence; small fleets cannot show it."""
        arms = len(self.arms)
        if self.outliers:
            names = ", ".join(arm.name for arm in self.outliers)
            verb = "is" if len(self.outliers) == 1 else "are"
            return f"{len(self.outliers)} of {count_words(arms, 'arm')} {verb} conspicuous: {names}."
        if arms >= FEWEST_ARMS:
            return "No arm differs from the others."
        rest = "" if arms < FEWEST_SHARED else f" The links of the {arms} arms do not differ."
        few = f"friction is compared from {FEWEST_ARMS} arms on, links from {FEWEST_SHARED}"
        return f"{count_words(arms, 'arm')} cannot tell what is unusual: {few}.{rest}"

    @property
    def remarks(self) -> list[str]:
        """Sure effects of temperature, and the logs that were left out."""
        return [*(f"{effect.sentence}." for effect in self.warmth if effect.is_sure),
                *(f"Left out: {log.name} ({log.arm}): {log.problem}" for log in self.failed)]  # fmt: skip

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 where an arm is conspicuous or a log was left out, otherwise 0."""
        return int(bool(self.outliers or self.failed))

    def robot(self, name: str) -> Robot:
        """Make the robot of one arm: the typical one with the friction and offsets of the arm, as far as determined.

        Raises:
            KeyError: There is no such arm.
        """
        arm = {arm.name: arm for arm in self.arms}[name]
        typical, base = self.typical.identified, self.typical.base
        theta = typical.parameter_vector.copy()
        for place, value, std in zip(self.pool.own_places, arm.own.values, arm.own.std, strict=False):
            if np.isfinite(std):
                theta[base.columns[place]] = value
        return typical.with_parameters(theta)

    def summary(self) -> str:
        """A few lines for a terminal."""
        used = sum(arm.logs for arm in self.arms)
        lost = len(self.failed)
        logs = f"{count_words(used + lost, 'log')}, {lost} of them left out" if lost else count_words(used, "log")
        lines = [
            f"{self.title}: {logs}, {sum(arm.samples for arm in self.arms)} samples, "
            f"{count_words(self.read, 'log')} read now.",
            *([self.gaps] if self.gaps else []),
            f"Cutoff: {self.cutoff_words}.",
            f"{len(self.shared_names)} shared parameters, {len(self.own_names)} of every arm's own.",
        ]
        lines += [f"{arm.name}: {difference.sentence}" for arm in self.outliers for difference in arm.differences]
        lines += [] if self.outliers else [self.verdict]
        lines += self.remarks
        lines += [f"Not kept: {f.where}: {f.message}" for f in self.findings if f.code == "store-not-written"]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Contents of ``fleet.json``: None stands for a standard deviation that is not known."""
        own = partial(_entries, self.own_names, self.own_units)
        return {
            "schema": 1,
            "robot": self.typical.robot.name,
            "shared": _entries(self.shared_names, self.shared_units, self.pool.shared, self.pool.std),
            "arms": {
                arm.name: {
                    **pick(arm, "logs", "samples"),
                    "own": own(arm.own.values, arm.own.std),
                    "differences": [pick(one, "what", "kind", "sentence", "chance") for one in arm.differences],
                    "windows": [
                        pick(window, "time_s", "logs")
                        | ({} if window.temperature is None else {"temperature_degC": json_values(window.temperature)})
                        | pick(window.own, "values", "std")
                        for window in arm.history.windows
                    ],
                }
                for arm in self.arms
            },
            "temperature": [
                pick(e, "name", "per_kelvin", "std", "value", "arms") | {"unit": f"{e.unit}/K"} for e in self.warmth
            ],
            **pick(self, "arms_without_logs", "cutoff_hz", "cutoff_origin"),
            "left_out": [{"arm": log.arm, "path": log.name, "reason": log.problem} for log in self.failed],
            "logs_read": self.read,
        }

    def __repr__(self) -> str:
        """Size in one line."""
        return f"Fleet({self.typical.robot.name!r}, {len(self.arms)} arms, {len(self.outliers)} of them conspicuous)"


@one_blas_thread()
def identify_fleet(
    robot: Robot,
    data: FleetData,
    recipe: Recipe | None = None,
    *,
    channel_map: ChannelMapSource | None = None,
    store: str | Path | None = None,
    window_days: float = 30.0,
    progress: Progress | None = None,
    engine: str = "local",
) -> Fleet:
    """Identify a fleet of arms of one type from the logs of all of them.

    Inertial parameters are shared; friction and offsets are every arm's own. A log that cannot be used is listed and
    left out.

    Args:
        robot: The type: geometry and terms; its parameter values are the prior.
        data: Patterns such as "logs/{arm}/*.parquet", or for each arm its logs.
        recipe: All settings; the defaults of `Recipe` if None. Terms are not selected.
        channel_map: Channel map of the logs.
        store: Folder in which reduced logs are kept: the next call reads only new or changed logs.
        window_days: Length of the windows of time in which own parameters are followed [days].
        progress: Called with the finished share (0 to 1) and a short description of the current step.
        engine: Where logs are reduced: ``local`` (this process), ``processes`` or ``processes:4``, ``dask``, or the
            address of a Dask cluster.

    Raises:
        ArgumentError: Settings exclude each other.
        DataError: No file fits a pattern.
        DataError: No log can be used.

    Example:
        >>> fleet = dynid.fleet.identify_fleet(robot, {"a1": [log], "a2": [log2]}, dynid.Recipe.bare())
        >>> [arm.name for arm in fleet.arms]
        ['a1', 'a2']
    """
    check_number("window_days", window_days, "a time above zero [days]")
    chosen = replace(recipe or Recipe(), friction="plain")
    refuse_in_pieces([key for key in ("hold_out", "band_hz", "springs", "free") if getattr(chosen, key)])
    read_engine(engine)  # refused before any log is looked at
    if isinstance(data, Mapping):
        kept = {arm: [log if isinstance(log, Recording) else str(log) for log in own] for arm, own in data.items()}
        logs = [FleetLog(arm=arm, path=log) for arm, own in kept.items() for log in own]
    else:
        logs = find_logs(data, channel_map)
    model = prepare_robot(robot, chosen, channel_map)
    base = require_kept_columns(base_parameters(model))
    kept_leaves = None if store is None else LeafStore(Path(store))
    task = leaf_tasks(model, [""], chosen, channel_map, base)[0]
    hz, origin = _choose_cutoff(task, [log.path for log in logs if not log.problem], kept_leaves)
    if chosen.cutoff_hz == "auto" and hz is not None:
        task = replace(task, recipe=replace(chosen, cutoff_hz=hz))
    with make_engine(engine) as made:
        leaves, failed, read, notes = _reduce_logs(task, logs, kept_leaves, made, progress)
    if not leaves:
        first = {log.problem: log for log in reversed(failed)}  # each problem once, with the first log that has it
        reasons = "; ".join(f"{log.name}: {log.problem}" for log in reversed(first.values()))
        raise DataError(
            f"no log of the fleet can be used: {reasons}",
            remedy="Try one of them: dynid check LOG --map map.toml --robot ROBOT."
            if channel_map is not None
            else "Run dynid inspect LOG --robot ROBOT > map.toml for one of them, check the map, and give it: "
            "--map map.toml.",
        )
    fleet = _assemble(model, base, leaves, window_days * day, chosen)
    left_out = (_warning("log-left-out", log.name, log.problem) for log in failed)
    findings = (*fleet.findings, *left_out, *notes)
    return replace(fleet, failed=tuple(failed), read=read, findings=findings, cutoff_hz=hz, cutoff_origin=origin)


def _reduce_logs(
    task: LeafTask, logs: Sequence[FleetLog], store: LeafStore | None, engine: Engine, progress: Progress | None
) -> tuple[dict[str, list[Leaf]], list[FleetLog], int, list[Finding]]:
    """Read the leaves of all logs from the store, or make them.

    A store that cannot be written, as on a full disk, raises no error: the next run only takes longer.

    Args:
        task: How a log is reduced.
        logs: All logs.
        store: The store; None without one.
        engine: Where logs are reduced.
        progress: Called with the finished share and a text.

    Returns:
        The leaves of every arm in the order of its logs, the logs that failed, the number of logs that were read, and
        warnings about the store.
    """
    bad = {number: log.problem for number, log in enumerate(logs) if log.problem}  # number of a log -> its problem
    settings = settings_digest(task)
    notes: list[Finding] = []
    found: dict[int, Leaf] = {}
    kept = {number: log for number, log in enumerate(logs) if store is not None and log.identity}
    for number, log in kept.items():
        if store is not None and number not in bad and (leaf := store.get(log, settings)) is not None:
            found[number] = leaf
    missing = [number for number in range(len(logs)) if number not in found and number not in bad]
    tasks = [replace(task, log=logs[number].path) for number in missing]
    for done, outcome in enumerate(engine.run(make_leaf, tasks), start=1):
        number = missing[outcome.number]
        if outcome.error is not None:
            place, reason = outcome.error.place, outcome.error.reason
            bad[number] = f"{place}: {reason}" if place else reason
        else:
            found[number] = outcome.result()
            if store is not None and number in kept and not notes:
                try:
                    store.put(kept[number], settings, found[number])
                except DynidError as error:
                    remedy = "This run goes on without it. Make room, or choose another folder: --store FOLDER."
                    notes.append(_warning("store-not-written", str(error.path or "store"), error.reason, remedy))
        if progress is not None:
            progress(done / len(missing), f"{done} of {len(missing)} logs reduced")
    by_arm: dict[str, list[Leaf]] = {}
    first: dict[str, FleetLog] = {}
    for number, leaf in sorted(found.items()):
        log = logs[number]
        content = b"".join(matrix.tobytes() for part in leaf.information.parts for matrix in part.matrices)
        if (same := first.setdefault(hashlib.sha256(content).hexdigest(), log)) is not log:  # to the last bit
            bad[number] = f"it is the same log as {same.name} ({same.arm}); only one of them counts"
        else:
            by_arm.setdefault(log.arm, []).append(leaf if log.start_s is None else replace(leaf, start_s=log.start_s))
    return by_arm, [replace(logs[number], problem=bad[number]) for number in sorted(bad)], len(missing), notes


def _choose_cutoff(task: LeafTask, logs: Sequence[Log], store: LeafStore | None) -> tuple[float | None, str]:
    """Choose the cutoff of all logs [Hz], and say where it comes from.

    The cutoff is None where nothing is filtered, or where every log chooses its own, because none of those that were
    read could be used.
    """
    hz = task.recipe.cutoff_hz
    settings = settings_digest(task)
    if hz != "auto":
        return hz, "none" if hz is None else "as set"
    if store is not None and (kept := store.cutoff_hz(settings)) is not None:
        return kept, "chosen by the first run with this store"
    reader = LogReader(robot=task.robot, recipe=task.recipe, channel_map=task.channel_map)
    good: list[Log] = []
    for place in np.unique(np.linspace(0, len(logs) - 1, 3 * CUTOFF_LOGS).round().astype(int)):
        with suppress(DynidError):  # logs that cannot be used are reported later, when they are reduced
            if len(good) < CUTOFF_LOGS and fix_cutoff(reader, [logs[place]]):
                good.append(logs[place])
    if not good:
        return None, "chosen for every log by itself"
    hz = fix_cutoff(reader, good).recipe.cutoff_hz
    assert isinstance(hz, float)
    if store is not None:
        store.keep_cutoff(settings, hz)
    return hz, f"chosen from up to {CUTOFF_LOGS} of the logs"


def _assemble(
    robot: Robot, base: BaseParameters, leaves: Mapping[str, Sequence[Leaf]], window_s: float, recipe: Recipe
) -> Fleet:
    """Pool the arms, compare them, and identify the typical robot.

    Logs with another load or gain are corrected before friction is compared, and their arms do not enter the shared
    parameters.

    Args:
        robot: The type of all arms.
        base: Its base parameters.
        leaves: Name of each arm -> its reduced logs.
        window_s: Length of the windows of time [s].
        recipe: Settings of the estimator.
    """
    names = tuple(leaves)
    logs = list(leaves.values())
    arms = [_arm(robot, base, *pair, window_s) for pair in leaves.items()]
    own_places = _own_places(robot, base)
    pool = pool_arms(arms, own_places)
    differences = []
    repairs: dict[int, dict[int, list[Repair]]] = {}
    for difference, arm, of_logs in find_differences(robot, base, arms, pool):
        differences.append(difference)
        for log, repair in of_logs.items():
            repairs.setdefault(arm, {}).setdefault(log, []).append(repair)
    if repairs:
        for arm, mended in repairs.items():
            logs[arm] = [_repair_leaf(leaf, mended.get(log, ()), pool) for log, leaf in enumerate(logs[arm])]
            arms[arm] = _arm(robot, base, names[arm], logs[arm], window_s)
        pool = pool_arms(arms, own_places, [k for k in range(len(arms)) if k not in repairs])
    own_names, own_units = (tuple(of[place] for place in own_places) for of in (base.names, base.units))
    terms = [robot.terms[base.columns[place] - 10 * robot.dof] for place in own_places]
    joints = tuple(term.joints[-1] for term in terms)
    kinds = [type(term.term).__name__ for term in terms]
    histories = [arm_history(pool, *pair) for pair in zip(arms, logs, strict=True)]
    with_other_links = {difference.arm for difference in differences if difference.kind == "links"}
    further = [*unusual_values(own_names, own_units, kinds, names, pool),
               *changed_values(own_names, own_units, joints, histories)]  # fmt: skip
    differences += [difference for difference in further if difference.arm not in with_other_links]
    members = tuple(
        Arm(name=name, logs=len(logs[k]), samples=sum(leaf.samples for leaf in logs[k]), own=pool.own[k],
            history=histories[k],
            differences=tuple(sorted((d for d in differences if d.arm == name), key=lambda d: d.chance)))
        for k, name in enumerate(names)
    )  # fmt: skip
    equations = [leaf_equations(robot, base, some, excerpts=False) for some in logs]
    return Fleet(
        typical=_typical(base, equations, pool, make_estimator(recipe, robot, [], None)), pool=pool, arms=members,
        own_names=own_names, own_units=own_units, own_joints=joints,
        warmth=temperature_effects(own_names, own_units, joints, histories), failed=(), read=0,
        cutoff_hz=None, cutoff_origin="", findings=tuple(
            _warning("arm-changed" if one.kind == "change" else "arm-differs", one.arm, one.sentence)
            for one in differences
        ),
    )  # fmt: skip


def _own_places(robot: Robot, base: BaseParameters) -> list[int]:
    """Indices of the base parameters that every arm has for itself: terms other than inertias of motors."""
    first = 10 * robot.dof
    return [
        place
        for place, column in enumerate(base.columns)
        if column >= first and robot.terms[column - first].term.dependence is not Dependence.ACCELERATION
    ]


def _arm(robot: Robot, base: BaseParameters, name: str, leaves: Sequence[Leaf], window_s: float) -> ArmEquations:
    """Weigh the equations of an arm's logs, and group the logs into windows of time."""
    equations = [leaf_equations(robot, base, [leaf], excerpts=False) for leaf in leaves]
    return ArmEquations.of(name, equations, [Path(leaf.log).name for leaf in leaves], window_logs(leaves, window_s))


def _repair_leaf(leaf: Leaf, repairs: Sequence[Repair], pool: Pool) -> Leaf:
    """Correct a log for its other load or gain, as if it had those of the fleet."""
    information = leaf.information
    for repair in repairs:
        moved = np.zeros(len(pool.own_places) + len(pool.shared_places))
        moved[list(pool.shared_places)] = repair.shift
        information = information.with_moved_torques(moved, repair.gains)
    return replace(leaf, information=information)


def _typical(base: BaseParameters, equations: Sequence[Factors], pool: Pool, estimator: Estimator) -> Identification:
    """Identify the typical robot from all arms, after their own parameters are moved to the mean of the fleet."""
    own = np.array([part.values for part in pool.own])
    known = np.isfinite([part.std for part in pool.own])
    mean = np.where(known, own, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    parts: list[Information] = []
    for k, mine in enumerate(equations):
        moved = np.zeros(len(base.columns))
        moved[list(pool.own_places)] = np.where(known[k], own[k] - mean, 0.0)
        parts.append(mine.information.with_moved_torques(moved).renumber(next_segment(parts)))
    merged = replace(
        equations[0], information=merge_information(parts), blocks=tuple(part.segments for part in parts), excerpts=()
    )
    return identify_equations(merged, estimator)


def _warning(code: str, where: str, message: str, remedy: str = "") -> Finding:
    return Finding(code=code, severity="warning", where=where, message=message, remedy=remedy)


def _entries(names: Sequence[str], units: Sequence[str], values: Floats, std: Floats) -> list[dict[str, Any]]:
    """List parameters as JSON holds them; null for a standard deviation that is not known."""
    return [
        {"name": name, "unit": unit, "value": value, "std": json_values(deviation)}
        for name, unit, value, deviation in zip(names, units, values, std, strict=True)
    ]
