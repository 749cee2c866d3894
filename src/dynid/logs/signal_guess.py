"""Which columns of an unknown log hold which quantity, in which unit: from their names and their values.

Columns of one quantity are candidates together where their names agree: in all words but the joint, in the place of
the word for the quantity (joints that the robot does not have), or in the quantity alone (torques of turning, forces of
sliding joints). `_score` chooses among the candidates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.logs.column_names import QUANTITIES, WORDS, JointNames, Reading, quantity_in, read_name, words_for, words_of
from dynid.logs.readers.base import Table
from dynid.logs.units import declared_unit, known_unit
from dynid.robot.model import Robot

_DEFAULT = {
    "position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "effort": ("N m", "N"), "current": ("A", "A"),
    "temperature": ("degC", "degC"),
}  # fmt: skip
"""Quantity -> units of a turning and of a sliding joint."""
_BEYOND = {("position", "rad"): (3.0 * math.pi, "deg"), ("position", "m"): (10.0, "mm"),
           ("temperature", "degC"): (200.0, "K")}  # fmt: skip
"""Quantity and unit -> largest value (convention: no joint turns by more than one and a half turns, slides further or
gets hotter), and the unit of larger ones."""
NEAR_REFERENCE = 0.3
"""Largest distance of commanded from measured positions, relative to their own spread (convention)."""
_STEPS = (("s", 0.25), ("ms", 100.0), ("us", 1e5))
"""Largest time between rows in each unit (convention: loggers write between 4 and 4000 rows a second)."""
_RATES = {known_unit(unit): f"{unit}/s" for unit in ("rad", "deg", "m", "mm")}
"""Unit of positions -> that of velocities beside them, where nothing states one."""
_DRIVES = ("enabled", "kp", "kd", "supply")
_NO_UNIT = "no unit in the names"
_WRENCH = ("fx", "fy", "fz", "tx", "ty", "tz")
_PLAIN = frozenset({"#", "joint", "joints", "axis", "j", "a", "actuator", "motor", "array"})
"""Words that say no more than that a column belongs to a joint."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The columns of one quantity, in the robot's order."""

    file: str
    """Key of the table."""
    columns: tuple[str, ...]
    why: str
    """Why these columns."""
    units: tuple[str, ...] = ()
    """One for all columns, or one each."""
    reason: str = ""
    """Why this unit."""
    certain: bool = False
    """Whether the log declares the unit."""
    stated: bool = False
    """Whether the log or some name states a unit."""
    by_name: bool = False
    """Whether the robot's joint names say which column belongs to which joint."""
    reordered: bool = False
    """Whether the log has them in another order than the robot."""
    foreign: bool = False
    """Whether they have names of joints, but not of the robot's, so that their order is the log's."""
    fraction: str | None = None
    """Time only: the column with the nanoseconds beside whole seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    file: str
    quantity: str
    readings: tuple[Reading, ...]
    by_name: bool
    reordered: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(reading.column for reading in self.readings)


class Survey:
    """The tables of one run with what their names say; `find` chooses the columns of every quantity."""

    def __init__(self, tables: Mapping[str, Table], robot: Robot | None) -> None:
        self.robot, self.joints = robot, JointNames(robot.joint_names if robot else ())
        self.tables = dict(tables)
        self.time = self._find_time()
        self.tables = {file: self._folded(file, table) for file, table in tables.items()}
        self.folded = [file for file in tables if self.tables[file] is not tables[file]]
        """Files with one number per line, the joints of a sample one below the other."""

    def find(self) -> dict[str, Found]:
        """Quantity -> its columns; also those of commanded positions, temperatures, drives and a wrench."""
        candidates = [one for file in self.tables for one in self._candidates(file)]
        measured = [one for one in candidates if not one.readings[0].commanded]
        width = self.robot.dof if self.robot else None
        found: dict[str, Found] = {}
        for name in QUANTITIES:
            if best := self._best(name, measured, width):
                found[name] = best
                width = self.values(best).shape[1] if name == "position" else width
        if "effort" in found and has_no_sign(self.values(found["effort"])):
            del found["effort"]
        if "position" not in found:
            return found | self._wrench()
        rates = [_RATES.get(known_unit(unit), "") for unit in found["position"].units]
        if "velocity" in found and not found["velocity"].stated and all(rates):
            reason = "the positions have these units"
            found["velocity"] = replace(found["velocity"], units=tuple(rates), reason=reason)
        found |= self._reference(candidates, found)
        width = self.values(found["position"]).shape[1]
        if warm := self._best("temperature", measured, width) or self._best("temperature", measured, 1, alone=True):
            found["temperature"] = warm
        return found | (self._drives() if "reference" in found else {}) | self._wrench()

    def values(self, found: Found) -> Floats:
        """(N, k) the columns side by side."""
        return np.column_stack([_tall(self.tables[found.file].columns[name]) for name in found.columns])

    def left_out(self, found: Mapping[str, Found]) -> dict[str, list[str]]:
        """What they look like -> columns that look like a joint's quantity, and that are not found."""
        used = {(one.file, name) for one in (*found.values(), *self._drives().values()) for name in one.columns}
        if self.time is not None:
            used |= {(file, name) for file in self.tables for name in (*self.time.columns, self.time.fraction or "")}
        left: dict[str, list[str]] = {}
        for file, table in self.tables.items():
            for reading in self._readings(table):
                kind = "effort" if reading.quantity == "force" else reading.quantity
                unit = known_unit(reading.unit)
                if kind is None and reading.is_named and reading.says_a_quantity:
                    kind = None if unit is not None and unit.dimension == "voltage" else "unknown quantity"
                is_known = kind in (*QUANTITIES, "unknown quantity", "temperature")
                if is_known and not reading.other and (file, reading.column) not in used:
                    left.setdefault("commanded " * reading.commanded + str(kind), []).append(reading.column)
        return left

    # --- time ------------------------------------------------------------------------------------------------------

    def _find_time(self) -> Found | None:
        """The column of time: rising numbers whose name says so; a header's stamp before a recorder's own."""
        found: list[tuple[int, Found]] = []
        for file, table in self.tables.items():
            readings = self._readings(table)
            alone = len(table.names) == 1 and quantity_in(words_of(PurePath(file).stem)) == "time"
            for reading in readings:
                if (reading.quantity != "time" and not alone) or reading.other:
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
        """(N,) the column of time in its unit."""
        columns = self.tables[time.file].columns
        whole = columns[time.columns[0]]
        return whole if time.fraction is None else whole + 1e-9 * columns[time.fraction]

    # --- columns ---------------------------------------------------------------------------------------------------

    def _folded(self, file: str, table: Table) -> Table:
        """The table with a row per sample, where it has one number per line and as many as all joints need."""
        if self.robot is None or self.robot.dof < 2 or self.time is None or len(table.columns) != 1:
            return table
        ((name, column),) = table.columns.items()
        shape = (len(self.stamps(self.time)), self.robot.dof)
        if file == self.time.file or column.shape != (shape[0] * shape[1],):
            return table
        return replace(table, columns={name: column.reshape(shape)})

    def _readings(self, table: Table) -> list[Reading]:
        """What the columns' names say."""
        return [read_name(name, self.joints, table.units.get(name)) for name in table.names]

    def _candidates(self, file: str) -> Iterator[_Candidate]:
        table, stem = self.tables[file], words_of(PurePath(file).stem)
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
        """Columns in the robot's order, whether names say it, and that the log has another; None for no whole set.

        Args:
            group: The columns.
            is_fine: Whether their names differ in the joint alone; others must be those of all joints.
            by_place: Whether they are taken in the log's order: their names are no joints of the robot.
        """
        if by_place:  # two whole sets of columns, as of two arms, are not put together
            sets = sum(count > 1 for count in Counter(reading.rest for reading in group).values())
            return (tuple(group), False, False) if len(group) > 1 and sets < 2 else None
        by_joint = group[0].joint is not None
        keys = [reading.joint if by_joint else reading.number for reading in group]
        known = [key for key in keys if key is not None]
        if len(group) > 1 and len(set(known)) < len(keys):
            return None
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
        """The candidate of a quantity with the best score; `alone` wants it to be the only one."""
        own = [one for one in candidates if one.quantity == quantity]
        if alone and len({name for one in own for name in one.columns}) > 1:
            return None
        fitting = [(score, one) for one in own if (score := self._score(one, width)) is not None]
        return self._found(max(fitting, key=lambda pair: pair[0])[1]) if fitting else None

    def _score(self, one: _Candidate, wanted: int | None) -> tuple[int, ...] | None:
        """How well columns fit: by name, by a word for the quantity, several, measured, by unit, without other words.

        None if they are not as many as wanted.
        """
        columns = [self.tables[one.file].columns[name] for name in one.columns]
        width = sum(1 if column.ndim == 1 else min(column.shape) for column in columns)
        if wanted is not None and width != wanted:
            return None
        first = one.readings[0]
        bare = not any(reading.context for reading in one.readings)  # wrist_1 counts the parts of one joint's name
        facts = (one.by_name, first.said, width > 1, first.measured, first.unit is not None, bare)
        return (*map(int, facts), width, -len(first.rest))

    def _found(self, one: _Candidate) -> Found:
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
        """The unit of each column, the reason, and whether the log declares it."""
        table = self.tables[one.file]
        declared = [table.units.get(name, "") for name in one.columns]
        said = [own or reading.unit or "" for own, reading in zip(declared, one.readings, strict=True)]
        if all(declared):
            return declared, "the log declares it", True
        if all(said):
            return said, "the names end in " + " and ".join(f"'{unit}'" for unit in dict.fromkeys(said)), False
        values = np.column_stack([_tall(table.columns[name]) for name in one.columns])
        slides = [False] * values.shape[1]
        if self.robot is not None and self.robot.dof == len(slides):
            slides = [joint.kind == "prismatic" for joint in self.robot.moving_joints]
        units = [_DEFAULT[one.quantity][slide] for slide in slides]
        for unit in set(units):
            largest, other = _BEYOND.get((one.quantity, unit), (np.inf, unit))
            if _largest(values[:, [own == unit for own in units]]) > largest:
                units = [other if own == unit else own for own in units]
        if len(said) == len(units):
            force = ["N" if reading.quantity == "force" else "" for reading in one.readings]
            units = [a or b or c for a, b, c in zip(said, force, units, strict=True)]
        reach = f"values reach {_largest(values):.4g}"
        if "deg" in units and "deg" not in said:
            return units, f"{reach}: degrees, or radians of a motor (then add its gear)", False
        return units, f"no unit in {'some of ' if any(said) else ''}the names; {reach}", False

    def _reference(self, candidates: Sequence[_Candidate], found: Mapping[str, Found]) -> dict[str, Found]:
        """The commanded positions, if columns say so and their values lie near the measured ones.

        Weak servos stay far behind their commands: in a log without torques it suffices that the names are alike.
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
            is_near = np.nanstd(wanted - actual) < NEAR_REFERENCE * np.nanstd(actual)
            if is_near or ("effort" not in found and _bare(signal.columns[0]) == _bare(measured.columns[0])):
                return {"reference": signal}
        return {}

    def _drives(self) -> dict[str, Found]:
        """What the log says of its drives, as columns or else as a constant of the file."""
        found: dict[str, Found] = {}
        for quantity in _DRIVES:
            for file, table in self.tables.items():
                columns = [name for name in table.columns if WORDS[quantity] & set(words_of(name))]
                columns = columns[: 1 if quantity == "supply" else None]  # one voltage for all drives
                constants = [name for name in table.constants if WORDS[quantity] & set(words_of(name))][:1]
                if (columns or constants) and quantity not in found:
                    why = f"the name {(columns or constants)[0]!r}" + ("" if columns else ", a constant of the file")
                    found[quantity] = Found(file=file, columns=tuple(columns or constants), why=why,
                                            units=("V",) * (quantity == "supply"), reason=_NO_UNIT)  # fmt: skip
        return found

    def _wrench(self) -> dict[str, Found]:
        """Six columns of forces and moments, or the one array that holds them."""
        units, reason = ("N",) * 3 + ("N m",) * 3, f"{_NO_UNIT}; moments may be N mm"
        for file, table in self.tables.items():
            words = {name: filter(str.isalpha, reversed(words_of(declared_unit(name)[0]))) for name in table.names}
            last = {name: next(own, "") for name, own in words.items()}
            names = [name for axis in _WRENCH for name in table.names if last[name] == axis]
            wide = [name for name, x in table.columns.items() if x.ndim == 2 and x.shape[1] == 6]
            wide = [name for name in wide if last[name] in ("f", "ft", "w", "wrench")]
            if chosen := names if len(names) == 6 else wide[:1]:
                why = f"the name {chosen[0]!r}"
                return {"wrench": Found(file=file, columns=tuple(chosen), why=why, units=units, reason=reason)}
        return {}


def _by_rest(reading: Reading) -> Any:
    return ("name" if reading.joint is not None else "number", reading.rest) if reading.is_named else reading.column


def _by_word(reading: Reading) -> Any:
    said = words_for(reading.quantity)
    places = [k for k, word in enumerate(reading.rest) if word in said]
    if not places:
        return None
    return reading.rest[: places[-1] + 1] if places[0] == 0 else ("*", *reading.rest[places[-1] :])


def _unsaid(reading: Reading, by_file: str | None, several: bool) -> str | None:
    """The quantity of a column whose name says none: that of its file, or a position."""
    words = set(reading.rest)
    is_plain = not words - _PLAIN - {"c"} or reading.joint is not None
    if is_plain and by_file is not None:
        return by_file
    if is_plain and reading.is_named and not several and "c" not in words:
        return "position"
    # joint1_cmd says no quantity: servos are sent positions; `_reference` asks whether the joints went there
    return "position" if reading.is_named and not words - _PLAIN - WORDS["commanded"] else None


def _bare(column: str) -> list[str]:
    """The words of a name without those that say commanded, measured or a position."""
    said = WORDS["commanded"] | WORDS["measured"] | WORDS["position"] | {"observation", "state"}
    return [word for word in words_of(column) if word not in said]


def _fraction_beside(reading: Reading, readings: Sequence[Reading], table: Table) -> str | None:
    """The column of nanoseconds that belongs to a column of whole seconds."""
    seconds, nanos = {"sec", "secs", "seconds"}, {"nanosec", "nanosecs", "nanoseconds", "nsec", "nsecs"}
    for other in readings:
        own, its = set(reading.rest), set(other.rest)
        if own & seconds and its & nanos and own - seconds == its - nanos:
            values = table.columns[other.column]
            return other.column if np.all((values >= 0) & (values < 1e9)) else None
    return None


def _time_unit(reading: Reading, stamps: Floats, table: Table, nanos: str | None) -> tuple[str, str, bool]:
    if declared := table.units.get(reading.column):
        return declared, "the log declares it", True
    if nanos is not None:
        return "s", "whole seconds, with nanoseconds beside them", False
    if reading.unit and "sec" not in reading.rest:
        return reading.unit, f"the name ends in '{reading.unit}'", False
    step = float(np.median(np.diff(stamps)))
    unit = next((unit for unit, most in _STEPS if step < most), "ns")
    return unit, f"rows are {step:.4g} apart, which fits {unit}", False


def _once(units: Sequence[str]) -> tuple[str, ...]:
    """One unit where all are the same."""
    return tuple(units) if len(set(units)) > 1 else tuple(units[:1])


def _tall(values: Floats) -> Floats:
    """Values of a column, or of an array with the samples along its longer side."""
    return values.T if values.ndim == 2 and values.shape[0] < values.shape[1] else values


def _largest(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(np.abs(finite).max()) if finite.size else 0.0


def has_no_sign(torques: Floats) -> bool:
    """Whether torques are amounts without a sign: never negative, and not one constant number."""
    known = torques[np.isfinite(torques)]
    return bool(known.size > 1 and known.min() >= 0.0 and known.max() > known.min() and (known == 0.0).any())
