"""Which columns of an unknown log hold which quantity, in which unit: guessed from their names and their values.

`Survey.find` works in three steps:

1. `read_name` (column_names.py) says what the name of each column tells: quantity, unit, joint.
2. `_candidates` forms sets of columns that may be one quantity of all joints. Three ways to form a set are tried: names
   that differ in the joint alone (`_by_rest`), names that differ behind or before the word for the quantity, for joints
   that the robot does not have (`_by_word`), and names that share the quantity alone, as torques of revolute and forces
   of prismatic joints.
3. `_score` ranks the candidates of a quantity; `_units` guesses the unit of the best one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.logs.column_names import QUANTITIES, WORDS, JointNames, Reading, quantity_in, read_name, words_for, words_of
from dynid.logs.readers.base import Table
from dynid.logs.units import declared_unit, known_unit
from dynid.robot.model import Robot

_DEFAULT_UNITS = {
    "position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "effort": ("N m", "N"), "current": ("A", "A"),
    "temperature": ("degC", "degC"),
}  # fmt: skip
"""Quantity -> unit for a revolute joint, unit for a prismatic joint, where nothing states a unit."""
_LARGEST_IN_UNIT = {("position", "rad"): (3.0 * math.pi, "deg"), ("position", "m"): (10.0, "mm"),
                    ("temperature", "degC"): (200.0, "K")}  # fmt: skip
"""Quantity and default unit -> largest value that is believed in this unit, and the unit assumed beyond it (convention:
no joint turns by more than one and a half turns, slides by more than 10 m or gets hotter than 200 degC)."""
LARGEST_TRACKING_RATIO = 0.3
"""Largest standard deviation of commanded minus measured positions, as a share of that of the measured ones, at which
columns count as the commands of these positions (convention)."""
_LARGEST_STEPS = (("s", 0.25), ("ms", 100.0), ("us", 1e5))
"""Time unit -> largest time between rows that is believed in it; larger steps are nanoseconds (convention: loggers
write between 4 and 4000 rows a second)."""
_VELOCITY_UNITS = {known_unit(unit): f"{unit}/s" for unit in ("rad", "deg", "m", "mm")}
"""Unit of the positions -> unit of the velocities in the same log, where no name states one."""
_DRIVE_QUANTITIES = ("enabled", "kp", "kd", "supply")
_NO_UNIT = "no unit in the names"
_WRENCH_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")
"""Last words of the columns of a wrench: forces, then moments."""
_JOINT_WORDS = frozenset({"#", "joint", "joints", "axis", "j", "a", "actuator", "motor", "array"})
"""Words that say only that a column belongs to some joint; ``#`` stands for the joint's name or number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The columns of one quantity, in the robot's order."""

    file: str
    """Key of the table."""
    columns: tuple[str, ...]
    why: str
    """Reason for the choice of these columns, for the user."""
    units: tuple[str, ...] = ()
    """One unit for all columns, or one for each."""
    reason: str = ""
    """Reason for the choice of the units, for the user."""
    certain: bool = False
    """Whether the log declares the unit of every column."""
    stated: bool = False
    """Whether the name of any column, or the log for it, states a unit."""
    by_name: bool = False
    """Whether the robot's joint names say which column belongs to which joint."""
    reordered: bool = False
    """Whether the log has them in another order than the robot."""
    foreign: bool = False
    """Whether the columns name joints that the robot does not have; they are then in the log's order."""
    fraction: str | None = None
    """Time only: name of a second column with the nanoseconds, where `columns` holds whole seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A set of columns that may be one quantity of all joints."""

    file: str
    """Key of the table."""
    quantity: str
    readings: tuple[Reading, ...]
    """What the name of each column says, in the robot's order of the joints."""
    by_name: bool
    """As in `Found`."""
    reordered: bool
    """As in `Found`."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(reading.column for reading in self.readings)


class Survey:
    """The tables of one run with what their names say; `find` chooses the columns of every quantity."""

    def __init__(self, tables: Mapping[str, Table], robot: Robot | None) -> None:
        self.robot = robot
        self.joints = JointNames(robot.joint_names if robot else ())
        self.tables = dict(tables)
        self.time = self._find_time()
        # only now, because `_folded` compares the lengths of columns with that of the time column
        self.tables = {file: self._folded(file, table) for file, table in tables.items()}
        self.folded = [file for file in tables if self.tables[file] is not tables[file]]
        """Keys of tables that had one number per line, the joints of a sample one below the other."""

    def find(self) -> dict[str, Found]:
        """Choose the columns of each quantity.

        Returns:
            Quantity -> its columns. Besides `QUANTITIES` the keys may be reference (commanded positions), temperature,
            the quantities of drives (enabled, kp, kd, supply) and wrench.
        """
        candidates = [one for file in self.tables for one in self._candidates(file)]
        measured = [one for one in candidates if not one.readings[0].commanded]
        width = self.robot.dof if self.robot else None  # number of joints; without a robot that of the positions
        found: dict[str, Found] = {}
        for name in QUANTITIES:
            if best := self._best(name, measured, width):
                found[name] = best
                width = self.values(best).shape[1] if name == "position" else width
        if "effort" in found and has_no_sign(self.values(found["effort"])):
            del found["effort"]
        if "position" not in found:
            return found | self._wrench()
        rates = [_VELOCITY_UNITS.get(known_unit(unit), "") for unit in found["position"].units]
        if "velocity" in found and not found["velocity"].stated and all(rates):
            reason = "the positions have these units"
            found["velocity"] = replace(found["velocity"], units=tuple(rates), reason=reason)
        found |= self._reference(candidates, found)
        width = self.values(found["position"]).shape[1]
        if warm := self._best("temperature", measured, width) or self._best("temperature", measured, 1, alone=True):
            found["temperature"] = warm
        return found | (self._drives() if "reference" in found else {}) | self._wrench()

    def values(self, found: Found) -> Floats:
        """(N, k) values of the chosen columns, side by side."""
        return np.column_stack([_tall(self.tables[found.file].columns[name]) for name in found.columns])

    def left_out(self, found: Mapping[str, Found]) -> dict[str, list[str]]:
        """Find the columns that look like a quantity of a joint and that were not chosen.

        Returns:
            Quantity that they look like ("commanded position", "unknown quantity", ...) -> names of the columns.
        """
        used = {(one.file, name) for one in (*found.values(), *self._drives().values()) for name in one.columns}
        if self.time is not None:
            used |= {(file, name) for file in self.tables for name in (*self.time.columns, self.time.fraction or "")}
        rejected: dict[str, list[str]] = {}
        for file, table in self.tables.items():
            for reading in self._readings(table):
                kind = "effort" if reading.quantity == "force" else reading.quantity
                unit = known_unit(reading.unit)
                # a name with a joint and a unit, but no quantity; a voltage of a drive is no quantity of a joint
                if kind is None and reading.is_named and reading.says_a_quantity:
                    kind = None if unit is not None and unit.dimension == "voltage" else "unknown quantity"
                is_known = kind in (*QUANTITIES, "unknown quantity", "temperature")
                if is_known and not reading.other and (file, reading.column) not in used:
                    prefix = "commanded " if reading.commanded else ""
                    rejected.setdefault(f"{prefix}{kind}", []).append(reading.column)
        return rejected

    # --- time ------------------------------------------------------------------------------------------------------

    def _find_time(self) -> Found | None:
        """Find the column of time: rising numbers whose name says time.

        Of several the stamp in a message's header comes first, then a column named by a word for time, then one that
        only has a unit of time.
        """
        found: list[tuple[int, Found]] = []
        for file, table in self.tables.items():
            readings = self._readings(table)
            # a file of one column says by its own name that it holds times
            is_time_file = len(table.names) == 1 and quantity_in(words_of(PurePath(file).stem)) == "time"
            for reading in readings:
                if (reading.quantity != "time" and not is_time_file) or reading.other:
                    continue
                nanos = _fraction_beside(reading, readings, table)
                stamps = table.columns[reading.column] + (0.0 if nanos is None else 1e-9 * table.columns[nanos])
                is_varied = stamps.ndim == 1 and stamps.size > 1 and np.isfinite(stamps).all() and np.ptp(stamps) > 0
                if not is_varied or np.mean(np.diff(stamps) >= 0) <= 0.99:
                    continue
                unit, reason, certain = _time_unit(reading, stamps, table, nanos)
                rank = 0 if {"header", "stamp"} <= set(reading.rest) else 1 if reading.said else 2
                found.append((rank, Found(file=file, columns=(reading.column,), why="its name and its rising values",
                                          units=(unit,), reason=reason, certain=certain, fraction=nanos)))  # fmt: skip
        return min(found, key=lambda pair: pair[0])[1] if found else None

    def stamps(self, time: Found) -> Floats:
        """(N,) time stamps in the unit of the time column, with the nanoseconds of a second column added."""
        columns = self.tables[time.file].columns
        whole = columns[time.columns[0]]
        return whole if time.fraction is None else whole + 1e-9 * columns[time.fraction]

    # --- columns ---------------------------------------------------------------------------------------------------

    def _folded(self, file: str, table: Table) -> Table:
        """Give a table of one number per line a row per sample, if it has (time stamps) x (joints) numbers."""
        if self.robot is None or self.robot.dof < 2 or self.time is None or len(table.columns) != 1:
            return table
        ((name, column),) = table.columns.items()
        shape = (len(self.stamps(self.time)), self.robot.dof)
        if file == self.time.file or column.shape != (shape[0] * shape[1],):
            return table
        return replace(table, columns={name: column.reshape(shape)})

    def _readings(self, table: Table) -> list[Reading]:
        """What the name of each column of a table says."""
        return [read_name(name, self.joints, table.units.get(name)) for name in table.names]

    def _candidates(self, file: str) -> Iterator[_Candidate]:
        """Form the sets of columns of one table that may be a quantity of all joints."""
        table = self.tables[file]
        stem = words_of(PurePath(file).stem)
        several = len(self.tables) > 1
        by_file = quantity_in(stem) if quantity_in(stem) in QUANTITIES else None
        readings = []
        for reading in self._readings(table):
            if reading.quantity is None and not reading.says_a_quantity:
                reading = replace(reading, quantity=_unsaid(reading, by_file, several))
            if several and {*WORDS["commanded"], "control"} & set(stem):
                reading = replace(reading, commanded=True)
            if reading.quantity in (*QUANTITIES, "force", "temperature") and not reading.other:
                readings.append(reading)
        slides = self.robot is not None and all(joint.kind == "prismatic" for joint in self.robot.moving_joints)
        # three ways to tell which columns belong together: each gives a key, or None for a column it does not judge
        for way in (_by_rest, _by_word, lambda reading: None if reading.joint is None else "any words"):
            groups: dict[Any, list[Reading]] = {}
            for reading in readings:
                kind = "effort" if reading.quantity == "force" else reading.quantity
                is_wide = table.columns[reading.column].ndim > 1
                if (key := way(reading)) is not None and not (way is _by_word and is_wide):
                    groups.setdefault((kind, reading.commanded, reading.measured, key), []).append(reading)
            for (kind, *_), group in groups.items():
                if not slides and all(reading.quantity == "force" for reading in group):
                    continue  # forces alone, and the robot has joints that turn
                if len({len(_tall(table.columns[one.column])) for one in group}) > 1:
                    continue
                ordered = self._ordered(group, is_fine=way is _by_rest, by_place=way is _by_word)
                if ordered is not None:
                    yield _Candidate(file, kind, *ordered)

    def _ordered(
        self, group: list[Reading], *, is_fine: bool, by_place: bool
    ) -> tuple[tuple[Reading, ...], bool, bool] | None:
        """Sort the columns of a set into the robot's order of joints.

        Args:
            group: The columns.
            is_fine: Whether their names differ in the joint alone; if not, there must be one column for every joint.
            by_place: Whether to keep the log's order, because the names are no joints of the robot.

        Returns:
            The columns; whether their names say which joint each belongs to; whether the log had another order. None
            if the columns are not one set: joints are named twice or missing.
        """
        if by_place:  # two whole sets of columns, as of two arms, are not put together
            sets = sum(count > 1 for count in Counter(reading.rest for reading in group).values())
            return (tuple(group), False, False) if len(group) > 1 and sets < 2 else None
        by_joint = group[0].joint is not None
        keys = [reading.joint if by_joint else reading.number for reading in group]
        known = [key for key in keys if key is not None]
        if len(group) > 1 and len(set(known)) < len(keys):
            return None
        # indices of joints count from 0; numbers in names from 0 or 1
        start = 0 if by_joint else min(*known, 1) if known else 0
        if not is_fine and sorted(known) != list(range(start, start + (len(self.joints.names) or len(group)))):
            return None
        place = self.joints.numbers()
        by_name = by_joint or (bool(place) and set(place) == set(known))
        ordered = sorted(group, key=lambda one: one.joint or 0) if by_joint else sorted(
            group, key=lambda one: (place if by_name else {}).get(one.number or 0, one.number or 0)
        )  # fmt: skip
        return tuple(ordered), by_name, by_name and ordered != group

    def _best(
        self, quantity: str, candidates: Sequence[_Candidate], width: int | None, *, alone: bool = False
    ) -> Found | None:
        """Choose the candidate of a quantity with the best score.

        Args:
            quantity: The quantity.
            candidates: Candidates of all quantities.
            width: Number of columns that are wanted; None for any.
            alone: Whether to choose nothing if more than one column could be the quantity.
        """
        of_quantity = [one for one in candidates if one.quantity == quantity]
        if alone and len({name for one in of_quantity for name in one.columns}) > 1:
            return None
        fitting = [(score, one) for one in of_quantity if (score := self._score(one, width)) is not None]
        return self._found(max(fitting, key=lambda pair: pair[0])[1]) if fitting else None

    def _score(self, one: _Candidate, wanted: int | None) -> tuple[int, ...] | None:
        """Score a candidate; scores are compared like tuples, so that the first entry that differs decides.

        Better is: names of the robot's joints, a word for the quantity (not only a unit), several columns, a word for
        measured, a unit in the name, no other words; then more columns, then fewer words.

        Args:
            one: The candidate.
            wanted: Number of columns that are wanted; None for any.

        Returns:
            The score; None if the candidate has another number of columns.
        """
        columns = [self.tables[one.file].columns[name] for name in one.columns]
        width = sum(1 if column.ndim == 1 else min(column.shape) for column in columns)
        if wanted is not None and width != wanted:
            return None
        first = one.readings[0]
        # other words may mean that the number counts parts of one joint (wrist_1, wrist_2), not joints
        bare = not any(reading.context for reading in one.readings)
        facts = (one.by_name, first.said, width > 1, first.measured, first.unit is not None, bare)
        return (*map(int, facts), width, -len(first.rest))

    def _found(self, one: _Candidate) -> Found:
        """Turn a candidate into the result, with its units and the reasons for the user."""
        units, reason, certain = self._units(one)
        why = "the joints' names" if one.by_name else f"the name {one.columns[0]!r}"
        if one.reordered:
            why += "; the log has the joints in another order than the robot"
        stated = any(reading.unit for reading in one.readings)
        foreign = self.robot is not None and len({reading.context for reading in one.readings}) > 1
        return Found(file=one.file, columns=one.columns, why=why, units=_once(units), reason=reason, certain=certain,
                     stated=stated, by_name=one.by_name, reordered=one.reordered,
                     foreign=foreign)  # fmt: skip

    # --- units and values ------------------------------------------------------------------------------------------

    def _units(self, one: _Candidate) -> tuple[list[str], str, bool]:
        """Guess the unit of each column.

        Returns:
            The units, one per column of numbers; the reason; whether the log declares all of them.
        """
        table = self.tables[one.file]
        declared = [table.units.get(name, "") for name in one.columns]
        said = [unit or reading.unit or "" for unit, reading in zip(declared, one.readings, strict=True)]
        if all(declared):
            return declared, "the log declares it", True
        if all(said):
            return said, "the names end in " + " and ".join(f"'{unit}'" for unit in dict.fromkeys(said)), False
        values = np.column_stack([_tall(table.columns[name]) for name in one.columns])
        slides = [False] * values.shape[1]
        if self.robot is not None and self.robot.dof == len(slides):
            slides = [joint.kind == "prismatic" for joint in self.robot.moving_joints]
        # no or not every unit is known: the default ones, or others where the values are too large for these
        units = [_DEFAULT_UNITS[one.quantity][1 if slide else 0] for slide in slides]
        for unit in set(units):
            largest, other = _LARGEST_IN_UNIT.get((one.quantity, unit), (np.inf, unit))
            if _largest(values[:, [column_unit == unit for column_unit in units]]) > largest:
                units = [other if column_unit == unit else column_unit for column_unit in units]
        if len(said) == len(units):
            force = ["N" if reading.quantity == "force" else "" for reading in one.readings]
            choices = zip(said, force, units, strict=True)
            units = [stated or of_force or guessed for stated, of_force, guessed in choices]
        reach = f"values reach {_largest(values):.4g}"
        if "deg" in units and "deg" not in said:
            return units, f"{reach}: degrees, or radians of a motor (then add its gear)", False
        return units, f"no unit in {'some of ' if any(said) else ''}the names; {reach}", False

    def _reference(self, candidates: Sequence[_Candidate], found: Mapping[str, Found]) -> dict[str, Found]:
        """Find the commanded positions: columns whose names say commanded and whose values follow the measured ones.

        Weak servos stay far behind their commands: in a log without torques it suffices that the names are alike.

        Returns:
            {"reference": the columns}, or nothing.
        """
        measured = found["position"]
        actual = self.values(measured)
        for one in candidates:
            if one.quantity != "position" or not one.readings[0].commanded:
                continue
            signal = self._found(one)
            wanted = self.values(signal)
            if wanted.shape != actual.shape:
                continue
            is_near = np.nanstd(wanted - actual) < LARGEST_TRACKING_RATIO * np.nanstd(actual)
            if is_near or ("effort" not in found and _bare(signal.columns[0]) == _bare(measured.columns[0])):
                return {"reference": signal}
        return {}

    def _drives(self) -> dict[str, Found]:
        """Find the columns of the drives' quantities, or a constant of the file where there is no column."""
        found: dict[str, Found] = {}
        for quantity in _DRIVE_QUANTITIES:
            for file, table in self.tables.items():
                columns = [name for name in table.columns if WORDS[quantity] & set(words_of(name))]
                columns = columns[: 1 if quantity == "supply" else None]  # one voltage for all drives
                constants = [name for name in table.constants if WORDS[quantity] & set(words_of(name))][:1]
                if (columns or constants) and quantity not in found:
                    why = f"the name {(columns or constants)[0]!r}" + ("" if columns else ", a constant of the file")
                    found[quantity] = Found(file=file, columns=tuple(columns or constants), why=why,
                                            units=("V",) if quantity == "supply" else (), reason=_NO_UNIT)  # fmt: skip
        return found

    def _wrench(self) -> dict[str, Found]:
        """Find the wrench of a force sensor: six columns of forces and moments, or one array of six numbers."""
        units = ("N",) * 3 + ("N m",) * 3
        reason = f"{_NO_UNIT}; moments may be N mm"
        for file, table in self.tables.items():
            words = {name: filter(str.isalpha, reversed(words_of(declared_unit(name)[0]))) for name in table.names}
            last = {name: next(reversed_words, "") for name, reversed_words in words.items()}
            names = [name for axis in _WRENCH_AXES for name in table.names if last[name] == axis]
            wide = [name for name, x in table.columns.items() if x.ndim == 2 and x.shape[1] == 6]
            wide = [name for name in wide if last[name] in ("f", "ft", "w", "wrench")]
            if chosen := names if len(names) == 6 else wide[:1]:
                why = f"the name {chosen[0]!r}"
                return {"wrench": Found(file=file, columns=tuple(chosen), why=why, units=units, reason=reason)}
        return {}


def _by_rest(reading: Reading) -> Any:
    """Key of the set of a column: all words but the joint, and whether the joint is named or numbered."""
    return ("name" if reading.joint is not None else "number", reading.rest) if reading.is_named else reading.column


def _by_word(reading: Reading) -> Any:
    """Key of the set of a column: the words up to the one for the quantity, or from it on; None without such a word.

    ``pos_left_hip`` and ``pos_left_knee`` give (pos,); ``left_hip_pos`` and ``left_knee_pos`` give (*, pos).
    """
    telling = words_for(reading.quantity)
    places = [k for k, word in enumerate(reading.rest) if word in telling]
    if not places:
        return None
    return reading.rest[: places[-1] + 1] if places[0] == 0 else ("*", *reading.rest[places[-1] :])


def _unsaid(reading: Reading, by_file: str | None, several: bool) -> str | None:
    """Guess the quantity of a column whose name says none: that of its file, or a position.

    Args:
        reading: What the name of the column says.
        by_file: The quantity in the name of its file.
        several: Whether the run has several files.
    """
    words = set(reading.rest)
    # "c" is the name of a column without a header (c1, c2, ...), which says nothing
    is_plain = not words - _JOINT_WORDS - {"c"} or reading.joint is not None
    if is_plain and by_file is not None:
        return by_file
    if is_plain and reading.is_named and not several and "c" not in words:
        return "position"
    # joint1_cmd says no quantity: servos are sent positions; `_reference` asks whether the joints went there
    return "position" if reading.is_named and not words - _JOINT_WORDS - WORDS["commanded"] else None


def _bare(column: str) -> list[str]:
    """The words of a name without those that say commanded, measured or a position."""
    said = WORDS["commanded"] | WORDS["measured"] | WORDS["position"] | {"observation", "state"}
    return [word for word in words_of(column) if word not in said]


def _fraction_beside(reading: Reading, readings: Sequence[Reading], table: Table) -> str | None:
    """The name of the column of nanoseconds that belongs to a column of whole seconds; None if there is none.

    Both names agree in all other words, as ``header.stamp.sec`` and ``header.stamp.nanosec``.
    """
    seconds = {"sec", "secs", "seconds"}
    nanos = {"nanosec", "nanosecs", "nanoseconds", "nsec", "nsecs"}
    words = set(reading.rest)
    for other in readings:
        other_words = set(other.rest)
        if words & seconds and other_words & nanos and words - seconds == other_words - nanos:
            values = table.columns[other.column]
            return other.column if np.all((values >= 0) & (values < 1e9)) else None
    return None


def _time_unit(reading: Reading, stamps: Floats, table: Table, nanos: str | None) -> tuple[str, str, bool]:
    """The unit of a time column, the reason for it, and whether the log declares it."""
    if declared := table.units.get(reading.column):
        return declared, "the log declares it", True
    if nanos is not None:
        return "s", "whole seconds, with nanoseconds beside them", False
    if reading.unit and "sec" not in reading.rest:
        return reading.unit, f"the name ends in '{reading.unit}'", False
    step = float(np.median(np.diff(stamps)))
    unit = next((unit for unit, largest in _LARGEST_STEPS if step < largest), "ns")
    return unit, f"rows are {step:.4g} apart, which fits {unit}", False


def _once(units: Sequence[str]) -> tuple[str, ...]:
    """One unit where all are the same."""
    return tuple(units) if len(set(units)) > 1 else tuple(units[:1])


def _tall(values: Floats) -> Floats:
    """(N,) or (N, k) values with a row per sample: the samples run along the longer side of an array."""
    return values.T if values.ndim == 2 and values.shape[0] < values.shape[1] else values


def _largest(values: Floats) -> float:
    """Largest absolute value among the finite ones; 0 without any."""
    finite = values[np.isfinite(values)]
    return float(np.abs(finite).max()) if finite.size else 0.0


def has_no_sign(torques: Floats) -> bool:
    """Whether torques are amounts without a sign: never negative, and not one constant number."""
    known = torques[np.isfinite(torques)]
    return bool(known.size > 1 and known.min() >= 0.0 and known.max() > known.min() and (known == 0.0).any())
