"""Which columns of an unknown log hold which quantity, in which unit: guessed from their names and their values.

`dynid inspect` (inspect.py) uses it to propose a channel map, the file that states the meaning of a log's columns.
Input are the `ColumnTable`s of one run, one per file: name of a column -> its numbers (N,), or (N, k) for an array.
`Survey.find` gives for each quantity, such as position or effort (torque), a `Found`: its columns in the robot's order
of joints, their units, and the reasons. It works in three steps:

1. `read_name` (column_names.py) interprets the name of each column. Its `Reading` has the quantity, the unit, and the
   joint (by name) or its number, as far as the name states them; `rest`, all words with # in the place of the joint;
   `context`, the words left without joint, quantity and unit; `said`, whether a word states the quantity (not only a
   unit); and `other`, whether a word marks a signal that belongs to no joint.
2. `_candidates` forms sets of columns that may be one quantity of all joints. Three ways to form a set are tried: names
   that differ in the joint alone (`_key_by_other_words`); names that differ only behind or before the word for the
   quantity, for joints that the robot does not have (`_key_by_quantity_word`); and names that have only the quantity in
   common, as torques of revolute and forces of prismatic joints (`_key_of_any_joint`).
3. `_score` ranks the candidates of a quantity; `_units` guesses the units of the best one.
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
from dynid.logs.readers.base import ColumnTable
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
"""Last words in the names of the columns of a wrench: forces, then moments."""
_JOINT_WORDS = frozenset({"#", "joint", "joints", "axis", "j", "a", "actuator", "motor", "array"})
"""Words that say only that a column belongs to some joint; ``#`` stands for the joint's name or number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The columns of one quantity, in the robot's order of joints."""

    file: str
    """Key of the table."""
    columns: tuple[str, ...]
    """Names of the columns; a single one may be an array with a column per joint."""
    why: str
    """Reason for the choice of these columns, for the user."""
    units: tuple[str, ...] = ()
    """One unit for all columns, or one for each; empty for quantities without a unit."""
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
    """Whether the columns name joints that the robot does not have; they are then in the log's order of joints."""
    fraction: str | None = None
    """Time only: name of a second column with the nanoseconds, where `columns` holds whole seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A set of columns that may be one quantity of all joints."""

    file: str
    """Key of the table."""
    quantity: str
    readings: tuple[Reading, ...]
    """The interpreted name of each column, in the robot's order of joints."""
    by_name: bool
    """As in `Found`."""
    reordered: bool
    """As in `Found`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(reading.column for reading in self.readings)


class Survey:
    """The tables of one run and their interpretation; `find` chooses the columns of every quantity."""

    def __init__(self, tables: Mapping[str, ColumnTable], robot: Robot | None) -> None:
        """Find the time column, and give every table one row per sample.

        Args:
            tables: Name of a file of the run -> its table.
            robot: Its joint names are looked for in the names of columns; None if it is not known.
        """
        self.robot = robot
        self.joints = JointNames(robot.joint_names if robot else ())
        self.tables = dict(tables)
        self.time = self._find_time()
        # only now, because `_fold` compares the lengths of columns with that of the time column
        self.tables = {file: self._fold(file, table) for file, table in tables.items()}
        self.folded = [file for file in tables if self.tables[file] is not tables[file]]
        """Keys of tables that had one number per line, with the joints of a sample one below the other."""

    def find(self) -> dict[str, Found]:
        """Choose the columns of each quantity.

        Returns:
            Quantity -> its columns. Besides `QUANTITIES` the keys may be reference (commanded positions), temperature,
            the quantities of drives (enabled, kp, kd, supply) and wrench.
        """
        candidates = [one for file in self.tables for one in self._candidates(file)]
        measured = [one for one in candidates if not one.readings[0].commanded]
        # number of columns that a quantity must have: one per joint, without a robot as many as the positions
        width = self.robot.dof if self.robot else None
        found: dict[str, Found] = {}
        for name in QUANTITIES:  # positions come first
            if best := self._best(name, measured, width):
                found[name] = best
                width = self.values(best).shape[1] if name == "position" else width
        if "effort" in found and has_no_sign(self.values(found["effort"])):
            del found["effort"]  # amounts of torques are of no use
        if "position" not in found:
            return found | self._wrench()
        # velocities without a unit have that of the positions per second
        rates = [_VELOCITY_UNITS.get(known_unit(unit), "") for unit in found["position"].units]
        if "velocity" in found and not found["velocity"].stated and all(rates):
            reason = "the positions have these units"
            found["velocity"] = replace(found["velocity"], units=tuple(rates), reason=reason)
        found |= self._reference(candidates, found)
        width = self.values(found["position"]).shape[1]
        # a temperature per joint, or the only one in the log
        if warm := self._best("temperature", measured, width) or self._best("temperature", measured, 1, alone=True):
            found["temperature"] = warm
        return found | (self._drives() if "reference" in found else {}) | self._wrench()

    def values(self, found: Found) -> Floats:
        """Put the values of the chosen columns side by side, (N, k)."""
        return np.column_stack([_rows_of_samples(self.tables[found.file].columns[name]) for name in found.columns])

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
        """Find the column of time, whose name states time and whose numbers rise (in 99 % of the rows).

        If there are several, the stamp in a message's header is preferred, then a column named by a word for time, then
        one that only has a unit of time.
        """
        found: list[tuple[int, Found]] = []  # rank of a column, smaller is better, and its facts
        for file, table in self.tables.items():
            readings = self._readings(table)
            # a file of one column says by its own name that it holds times
            is_time_file = len(table.names) == 1 and quantity_in(words_of(PurePath(file).stem)) == "time"
            for reading in readings:
                if (reading.quantity != "time" and not is_time_file) or reading.other:
                    continue
                nanos = _find_nanoseconds(reading, readings, table)  # a second column, with nanoseconds
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
        """Compute time stamps (N,) in the unit of the time column, with the nanoseconds of a second column added."""
        columns = self.tables[time.file].columns
        whole = columns[time.columns[0]]
        return whole if time.fraction is None else whole + 1e-9 * columns[time.fraction]

    # --- columns ---------------------------------------------------------------------------------------------------

    def _fold(self, file: str, table: ColumnTable) -> ColumnTable:
        """Give a table of one number per line a row per sample, if it has (time stamps) x (joints) numbers.

        Any other table is returned as it is.
        """
        if self.robot is None or self.robot.dof < 2 or self.time is None or len(table.columns) != 1:
            return table
        ((name, column),) = table.columns.items()
        shape = (len(self.stamps(self.time)), self.robot.dof)
        if file == self.time.file or column.shape != (shape[0] * shape[1],):
            return table
        return replace(table, columns={name: column.reshape(shape)})

    def _readings(self, table: ColumnTable) -> list[Reading]:
        """Interpret the name of each column of a table."""
        return [read_name(name, self.joints, table.units.get(name)) for name in table.names]

    def _candidates(self, file: str) -> Iterator[_Candidate]:
        """Form the sets of columns of one table that may be a quantity of all joints.

        Args:
            file: Key of the table; words in the name of the file count for its columns, too.
        """
        table = self.tables[file]
        stem = words_of(PurePath(file).stem)
        several = len(self.tables) > 1
        by_file = quantity_in(stem) if quantity_in(stem) in QUANTITIES else None
        readings = []
        for reading in self._readings(table):
            if reading.quantity is None and not reading.says_a_quantity:
                reading = replace(reading, quantity=_guess_unsaid(reading, by_file, several))
            if several and {*WORDS["commanded"], "control"} & set(stem):
                reading = replace(reading, commanded=True)
            if reading.quantity in (*QUANTITIES, "force", "temperature") and not reading.other:
                readings.append(reading)
        slides = self.robot is not None and all(joint.kind == "prismatic" for joint in self.robot.moving_joints)
        # each of the three ways gives columns of one set the same key; None for a column that it leaves out
        for way in (_key_by_other_words, _key_by_quantity_word, _key_of_any_joint):
            groups: dict[Any, list[Reading]] = {}
            for reading in readings:
                kind = "effort" if reading.quantity == "force" else reading.quantity
                is_array = table.columns[reading.column].ndim > 1
                key = way(reading)
                if key is not None and not (way is _key_by_quantity_word and is_array):
                    groups.setdefault((kind, reading.commanded, reading.measured, key), []).append(reading)
            for (kind, *_), group in groups.items():
                if not slides and all(reading.quantity == "force" for reading in group):
                    continue  # forces alone, and the robot has joints that turn
                if len({len(_rows_of_samples(table.columns[one.column])) for one in group}) > 1:
                    continue  # columns of different lengths
                if way is _key_by_quantity_word:
                    # the names are no joints of the robot: the columns stay in the log's order. Several groups of names
                    # that differ in the number alone are sets of their own, as of two arms
                    sets = sum(count > 1 for count in Counter(reading.rest for reading in group).values())
                    if len(group) > 1 and sets < 2:
                        yield _Candidate(file, kind, tuple(group), by_name=False, reordered=False)
                else:
                    ordered = self._order_by_joint(group, is_complete=way is _key_of_any_joint)
                    if ordered is not None:
                        yield _Candidate(file, kind, *ordered)

    def _order_by_joint(
        self, group: list[Reading], *, is_complete: bool
    ) -> tuple[tuple[Reading, ...], bool, bool] | None:
        """Sort the columns of a set into the robot's order of joints.

        Args:
            group: The columns.
            is_complete: Whether there must be one column for every joint.

        Returns:
            The columns; whether their names say which joint each belongs to; whether the log had another order. None
            if the columns are not one set: joints are named twice or missing.
        """
        by_joint = group[0].joint is not None
        keys = [reading.joint if by_joint else reading.number for reading in group]
        known = [key for key in keys if key is not None]
        if len(group) > 1 and len(set(known)) < len(keys):
            return None
        # indices of joints count from 0; numbers in names from 0 or 1
        start = 0 if by_joint else min(*known, 1) if known else 0
        if is_complete and sorted(known) != list(range(start, start + (len(self.joints.names) or len(group)))):
            return None
        joint_of = self.joints.numbers()  # number in the name of each of the robot's joints -> index of the joint
        by_name = by_joint or (bool(joint_of) and set(joint_of) == set(known))
        if by_name and not by_joint:
            known = [joint_of[number] for number in known]
        ordered = [group[k] for k in np.argsort(known)] if known else group  # a single column may have no number
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
        return self._make_found(max(fitting, key=lambda pair: pair[0])[1]) if fitting else None

    def _score(self, one: _Candidate, wanted: int | None) -> tuple[int, ...] | None:
        """Score a candidate; the larger score is better, and of two scores the first number that differs decides.

        What counts, in this order: names of the robot's joints, a word for the quantity (not only a unit), several
        columns, a word for measured, a unit in the name, no other words; then more columns, then fewer words.

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
        # with other words the number may count parts of one joint (wrist_1, wrist_2), not joints
        bare = not any(reading.context for reading in one.readings)
        facts = (one.by_name, first.said, width > 1, first.measured, first.unit is not None, bare)
        return (*map(int, facts), width, -len(first.rest))

    def _make_found(self, one: _Candidate) -> Found:
        """Make the result of a candidate, with its units and the reasons for the user."""
        units, reason, certain = self._units(one)
        why = "the joints' names" if one.by_name else f"the name {one.columns[0]!r}"
        if one.reordered:
            why += "; the log has the joints in another order than the robot"
        stated = any(reading.unit for reading in one.readings)
        # the words that differ are then names of joints, but not of the robot's
        foreign = self.robot is not None and len({reading.context for reading in one.readings}) > 1
        units = units[:1] if len(set(units)) == 1 else units
        return Found(file=one.file, columns=one.columns, why=why, units=tuple(units), reason=reason, certain=certain,
                     stated=stated, by_name=one.by_name, reordered=one.reordered,
                     foreign=foreign)  # fmt: skip

    # --- units and values ------------------------------------------------------------------------------------------

    def _units(self, one: _Candidate) -> tuple[list[str], str, bool]:
        """Guess the unit of each column: as declared, else as its name ends, else the default or one by its values.

        Returns:
            The units, one per column of numbers; the reason; whether the log declares all of them.
        """
        table = self.tables[one.file]
        declared = [table.units.get(name, "") for name in one.columns]
        # for each column the declared unit, or the one in its name; empty without
        said = [unit or reading.unit or "" for unit, reading in zip(declared, one.readings, strict=True)]
        if all(declared):
            return declared, "the log declares it", True
        if all(said):
            return said, "the names end in " + " and ".join(f"'{unit}'" for unit in dict.fromkeys(said)), False
        values = np.column_stack([_rows_of_samples(table.columns[name]) for name in one.columns])
        slides = [False] * values.shape[1]
        if self.robot is not None and self.robot.dof == len(slides):
            slides = [joint.kind == "prismatic" for joint in self.robot.moving_joints]
        # some or all units are not known: the default ones, or others where the values are too large for these
        units = [_DEFAULT_UNITS[one.quantity][1 if slide else 0] for slide in slides]
        for unit in set(units):
            largest, other = _LARGEST_IN_UNIT.get((one.quantity, unit), (np.inf, unit))
            if _largest(values[:, [column_unit == unit for column_unit in units]]) > largest:
                units = [other if column_unit == unit else column_unit for column_unit in units]
        if len(said) == len(units):  # not a single array: what a name states has priority over the guess
            force = ["N" if reading.quantity == "force" else "" for reading in one.readings]
            choices = zip(said, force, units, strict=True)
            units = [stated or of_force or guessed for stated, of_force, guessed in choices]
        reach = f"values reach {_largest(values):.4g}"
        if "deg" in units and "deg" not in said:
            return units, f"{reach}: degrees, or radians of a motor (then add its gear)", False
        return units, f"no unit in {'some of ' if any(said) else ''}the names; {reach}", False

    def _reference(self, candidates: Sequence[_Candidate], found: Mapping[str, Found]) -> dict[str, Found]:
        """Find the commanded positions: columns whose names say commanded and whose values follow the measured ones.

        Weak servos stay far behind their commands. So in a log without torques, which must be one of servos, it
        suffices that the names are alike.

        Args:
            candidates: Candidates of all quantities.
            found: The measured quantities found so far.

        Returns:
            {"reference": the columns}, or nothing.
        """
        measured = found["position"]
        actual = self.values(measured)
        for one in candidates:
            if one.quantity != "position" or not one.readings[0].commanded:
                continue
            signal = self._make_found(one)
            wanted = self.values(signal)
            if wanted.shape != actual.shape:
                continue
            is_near = np.nanstd(wanted - actual) < LARGEST_TRACKING_RATIO * np.nanstd(actual)
            are_alike = _words_of_source(signal.columns[0]) == _words_of_source(measured.columns[0])
            if is_near or ("effort" not in found and are_alike):
                return {"reference": signal}
        return {}

    def _drives(self) -> dict[str, Found]:
        """Find the columns of the drives' quantities (enabled, gains, supply voltage), else constants of the file."""
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
            # name of a column -> its last word that is no number; a unit in brackets is left out
            words = {name: filter(str.isalpha, reversed(words_of(declared_unit(name)[0]))) for name in table.names}
            last = {name: next(reversed_words, "") for name, reversed_words in words.items()}
            names = [name for axis in _WRENCH_AXES for name in table.names if last[name] == axis]
            wide = [name for name, x in table.columns.items() if x.ndim == 2 and x.shape[1] == 6]
            wide = [name for name in wide if last[name] in ("f", "ft", "w", "wrench")]
            if chosen := names if len(names) == 6 else wide[:1]:
                why = f"the name {chosen[0]!r}"
                return {"wrench": Found(file=file, columns=tuple(chosen), why=why, units=units, reason=reason)}
        return {}


def _key_by_other_words(reading: Reading) -> Any:
    """Key of a column's set: all words but the joint, and whether the joint is named or numbered.

    A column that names no joint is a set of its own, such as an array with a column for every joint.
    """
    return ("name" if reading.joint is not None else "number", reading.rest) if reading.is_named else reading.column


def _key_by_quantity_word(reading: Reading) -> Any:
    """Key of a column's set: the words up to the one for the quantity, or from it on; None without such a word.

    ``pos_left_hip`` and ``pos_left_knee`` give (pos,); ``left_hip_pos`` and ``left_knee_pos`` give (*, pos).
    """
    telling = words_for(reading.quantity)
    places = [k for k, word in enumerate(reading.rest) if word in telling]
    if not places:
        return None
    return reading.rest[: places[-1] + 1] if places[0] == 0 else ("*", *reading.rest[places[-1] :])


def _key_of_any_joint(reading: Reading) -> Any:
    """Key of a column's set: the same for all columns that name a joint of the robot; None for others."""
    return None if reading.joint is None else "any words"


def _guess_unsaid(reading: Reading, by_file: str | None, several: bool) -> str | None:
    """Guess the quantity of a column whose name says none: that of its file, or a position; None if neither fits.

    Args:
        reading: The interpreted name of the column.
        by_file: The quantity in the name of its file; None without.
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


def _words_of_source(column: str) -> list[str]:
    """List the words of a name without those that say commanded, measured or a position; the rest names the source."""
    said = WORDS["commanded"] | WORDS["measured"] | WORDS["position"] | {"observation", "state"}
    return [word for word in words_of(column) if word not in said]


def _find_nanoseconds(reading: Reading, readings: Sequence[Reading], table: ColumnTable) -> str | None:
    """Find the name of the column of nanoseconds that belongs to a column of whole seconds; None if there is none.

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


def _time_unit(reading: Reading, stamps: Floats, table: ColumnTable, nanos: str | None) -> tuple[str, str, bool]:
    """Find the unit of a time column.

    Args:
        reading: The interpreted name of the column.
        stamps: (N,) its numbers.
        table: The table with the column.
        nanos: Name of the column of nanoseconds; None without.

    Returns:
        The unit, the reason for it, and whether the log declares it.
    """
    if declared := table.units.get(reading.column):
        return declared, "the log declares it", True
    if nanos is not None:
        return "s", "whole seconds, with nanoseconds beside them", False
    if reading.unit and "sec" not in reading.rest:
        return reading.unit, f"the name ends in '{reading.unit}'", False
    step = float(np.median(np.diff(stamps)))
    unit = next((unit for unit, largest in _LARGEST_STEPS if step < largest), "ns")
    return unit, f"rows are {step:.4g} apart, which fits {unit}", False


def _rows_of_samples(values: Floats) -> Floats:
    """Turn an array so that it has a row per sample, (N,) or (N, k): samples run along its longer side."""
    return values.T if values.ndim == 2 and values.shape[0] < values.shape[1] else values


def _largest(values: Floats) -> float:
    """Find the largest absolute value among the finite ones; 0 without any."""
    finite = values[np.isfinite(values)]
    return float(np.abs(finite).max()) if finite.size else 0.0


def has_no_sign(torques: Floats) -> bool:
    """Test whether torques are amounts without a sign: never negative, sometimes zero, and not one constant number."""
    known = torques[np.isfinite(torques)]
    return bool(known.size > 1 and known.min() >= 0.0 and known.max() > known.min() and (known == 0.0).any())
