"""Which columns of an unknown log hold which quantity, in which unit: from their names and their values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from dynid.arrays import Floats
from dynid.logs.column_names import (
    COMMANDED,
    MEASURED,
    QUANTITY_WORDS,
    Family,
    JointNames,
    Reading,
    alike,
    families,
    joined,
    quantity_in,
    read_name,
    says_a_quantity,
    words_of,
)
from dynid.logs.readers.base import Table
from dynid.logs.units import declared_unit, known_unit
from dynid.robot.model import Robot

QUANTITIES = ("position", "velocity", "effort", "current")
_DEFAULT = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "effort": ("N m", "N"), "current": ("A", "A")}
"""Quantity -> units of a turning and of a sliding joint."""
LARGEST_ANGLE = 3.0 * math.pi
"""Positions beyond this are degrees, or radians of a motor [rad] (convention: one and a half turns)."""
LARGEST_SLIDE = 10.0
"""Positions of a slide beyond this are millimetres [m] (convention: no slide of an arm is as long)."""
NEAR_REFERENCE = 0.3
"""Largest distance of commanded from measured positions, relative to their own spread (convention)."""
_STEPS = (("s", 0.25), ("ms", 100.0), ("us", 1e5))
"""Largest time between rows in each unit (convention: loggers write between 4 and 4000 rows a second)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundSignal:
    """The columns of one quantity, in the robot's order."""

    quantity: str
    file: str
    """Key of the table."""
    family: Family
    units: tuple[str, ...]
    """One for all columns, or one each."""
    reason: str
    """Why this unit."""
    certain: bool
    """Whether the log declares the unit."""
    why: str
    """Why these columns."""
    folded: bool = False
    """Whether the file has one number per line, the joints of a sample one below the other."""
    other_names: bool = False
    """Whether they have names of joints, but not of the robot's, so that their order is the log's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTime:
    """The column of time."""

    file: str
    column: str
    unit: str
    reason: str
    certain: bool
    fraction: str | None = None
    """Column with the nanoseconds beside whole seconds."""


def find_time(tables: Mapping[str, Table]) -> FoundTime | None:
    """The column of time: steadily rising numbers whose name says so; a header's stamp before a recorder's own."""
    found: list[tuple[int, FoundTime]] = []
    for file, table in tables.items():
        about = _aliases(table, JointNames(()))
        units = table.units
        readings = [read_name(about.get(name, name), JointNames(()), units.get(name)) for name in table.names]
        readings = [replace(reading, column=name) for reading, name in zip(readings, table.names, strict=True)]
        alone = len(table.names) == 1 and quantity_in(words_of(PurePath(file).stem)) == "time"
        for reading in readings:
            if (reading.quantity != "time" and not alone) or reading.other:
                continue
            values = table.columns[reading.column]
            nanos = _fraction_beside(reading, readings, table)
            rising = values if nanos is None else values + 1e-9 * table.columns[nanos]
            if not _rises(rising):
                continue
            unit, reason, certain = _time_unit(reading, rising, table, nanos)
            stamped = {"header", "stamp"} <= set(reading.rest)
            time = FoundTime(
                file=file, column=reading.column, unit=unit, reason=reason, certain=certain, fraction=nanos
            )
            found.append((0 if stamped else 1 if reading.said else 2, time))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _rises(values: Floats) -> bool:
    return bool(values.ndim == 1 and values.size > 1 and np.isfinite(values).all() and np.ptp(values) > 0) and bool(
        np.mean(np.diff(values) >= 0) > 0.99
    )


def _fraction_beside(reading: Reading, readings: Sequence[Reading], table: Table) -> str | None:
    """The column of nanoseconds that belongs to a column of whole seconds."""
    others = [other for other in readings if other is not reading and other.quantity == "time"]
    seconds, nanos = {"sec", "secs", "seconds"}, {"nanosec", "nanosecs", "nanoseconds", "nsec", "nsecs"}
    for other in others:
        same = set(reading.rest) - seconds == set(other.rest) - nanos
        if same and seconds & set(reading.rest) and nanos & set(other.rest):
            values = table.columns[other.column]
            if np.all((values >= 0) & (values < 1e9)):
                return other.column
    return None


def _time_unit(reading: Reading, values: Floats, table: Table, nanos: str | None) -> tuple[str, str, bool]:
    declared = table.units.get(reading.column)
    if declared:
        return declared, "the log declares it", True
    if nanos is not None:
        return "s", "whole seconds, with nanoseconds beside them", False
    if reading.unit and "sec" not in reading.rest:
        return reading.unit, f"the name ends in '{reading.unit}'", False
    step = float(np.median(np.diff(values)))
    unit = next((unit for unit, most in _STEPS if step < most), "ns")
    return unit, f"rows are {step:.4g} apart, which fits {unit}", False


def find_signals(tables: Mapping[str, Table], robot: Robot | None, time: FoundTime | None) -> dict[str, FoundSignal]:
    """Quantity -> its columns; also "reference" for commanded positions."""
    folded = _one_number_per_line(tables, robot, time)
    tables = {file: folded.get(file, table) for file, table in tables.items()}
    candidates = [
        (file, family, quantity)
        for file, table in tables.items()
        for family, quantity in _candidates(file, table, robot, several=len(tables) > 1)
        if time is None or (file, family.columns) != (time.file, [time.column])
    ]
    found: dict[str, FoundSignal] = {}
    for quantity in QUANTITIES:
        fitting = [
            (rank, file, family)
            for file, family, said in candidates
            if said == quantity and not family.first.commanded
            if (rank := _rank(family, tables[file], robot)) is not None
        ]
        if fitting:
            _, file, family = max(fitting, key=lambda item: item[0])
            found[quantity] = replace(_signal(quantity, file, family, tables, robot), folded=file in folded)
    if "effort" in found and has_no_sign(_stack(found["effort"], tables)):
        del found["effort"]
    if "velocity" in found and "position" in found and time is not None:
        found["velocity"] = _same_scale(found["velocity"], found["position"], tables, time)
    return {**found, **_reference(candidates, found, tables, robot)}


def _one_number_per_line(tables: Mapping[str, Table], robot: Robot | None, time: FoundTime | None) -> dict[str, Table]:
    """File -> its table with a row per sample, where it has one number per line and as many as all joints need."""
    if robot is None or robot.dof < 2 or time is None or len(tables) < 2:
        return {}
    samples = len(tables[time.file].columns[time.column])
    found = {}
    for file, table in tables.items():
        column = next(iter(table.columns.values())) if len(table.columns) == 1 else None
        if column is not None and column.shape == (samples * robot.dof,) and file != time.file:
            found[file] = replace(table, columns={table.names[0]: column.reshape(samples, robot.dof)})
    return found


def _candidates(file: str, table: Table, robot: Robot | None, *, several: bool) -> list[tuple[Family, str]]:
    """The families of a table with the quantity that their names, or the file's, say."""
    joints = JointNames(robot.joint_names if robot else ())
    about = _aliases(table, joints)
    readings = [
        replace(read_name(about.get(name, name), joints, table.units.get(name)), column=name) for name in table.names
    ]
    if several and {*COMMANDED, "control"} & set(words_of(PurePath(file).stem)):
        readings = [replace(reading, commanded=True) for reading in readings]
    by_file = quantity_in(words_of(PurePath(file).stem))
    found = []
    for family in families(readings, joints):
        kinds = {reading.quantity for reading in family.readings}
        quantity = "effort" if kinds == {"effort", "force"} else family.first.quantity
        if not says_a_quantity(family.first) and not family.first.other:
            plain = not [word for word in family.first.rest if word not in ("#", "c", *_PLAIN)]
            unnamed = plain or (family.by_name and len(family.readings) > 1)
            named = family.first.joint is not None or family.first.number is not None
            quantity = by_file if unnamed and by_file in QUANTITIES else None
            if quantity is None and unnamed and named and not several and "c" not in family.first.rest:
                quantity = "position"
            # joint1_cmd says no quantity: servos are sent positions; `_reference` asks whether the joints went there
            if quantity is None and named and not set(family.first.rest) - {"#", *_PLAIN, *COMMANDED}:
                quantity = "position"
        if quantity in (*QUANTITIES, "force") and not family.first.other:
            found.append((family, str(quantity)))
    slides = robot is not None and all(joint.kind == "prismatic" for joint in robot.moving_joints)
    whole = joined(found, joints)
    complete = {quantity for family, quantity in whole if len(family.readings) > 1 and not family.first.context}
    single = [reading for reading in readings if table.columns[reading.column].ndim == 1]
    whole += [(family, quantity) for family, quantity in alike(single) if quantity not in complete]
    return [
        (family, "effort" if quantity == "force" and slides else quantity)
        for family, quantity in whole
        if len({len(_tall(table.columns[name])) for name in family.columns}) == 1
    ]


def left_out(tables: Mapping[str, Table], robot: Robot | None, used: Set[tuple[str, str]]) -> dict[str, list[str]]:
    """What they look like -> columns that look like a joint's quantity, and that no section of the map names.

    Args:
        tables: The tables of the log.
        robot: The robot whose joints the columns may name.
        used: Table and column of all that the map names.
    """
    joints = JointNames(robot.joint_names if robot else ())
    found: dict[str, list[str]] = {}
    for file, table in tables.items():
        for name in table.names:
            reading = read_name(name, joints, table.units.get(name))
            kind = "effort" if reading.quantity == "force" else reading.quantity
            named = reading.joint is not None or reading.number is not None
            unit = known_unit(reading.unit)
            if kind is None and named and says_a_quantity(reading) and (unit is None or unit.dimension != "voltage"):
                kind = "unknown quantity"
            if (file, name) in used:
                continue
            if _TEMPERATURE_WORDS & set(reading.rest):
                found.setdefault("temperature", []).append(name)
            if reading.other or kind not in (*QUANTITIES, "unknown quantity"):
                continue
            found.setdefault(f"commanded {kind}" if reading.commanded else kind, []).append(name)
    return found


_PLAIN = ("joint", "joints", "axis", "j", "a", "actuator", "motor", "array")
"""Words that say no more than that a column belongs to a joint."""


def _aliases(table: Table, joints: JointNames) -> dict[str, str]:
    """Column -> a telling name, where cells of the log hold the joints' names.

    ``rostopic echo -p`` has columns field.name0, field.position0, ...; ``ros2 topic echo --csv`` has no header, but
    seconds, nanoseconds, a frame, the names, and one number per joint for positions, velocities and efforts.
    """
    named = {name: word for name, word in table.words.items() if joints.find(words_of(word)) is not None}
    headless = all(name == f"c{k}" for name in (*table.names, *table.words) for k in [name[1:]])
    if headless:
        return _unnamed_echo(table, named)
    numbers = {
        words_of(name)[-1]: word for name, word in named.items() if words_of(name)[-1:] and "name" in name.lower()
    }
    aliases = {}
    for name in table.names:
        words = words_of(name)
        if words and words[-1] in numbers and quantity_in(words) in QUANTITIES:
            aliases[name] = f"{'.'.join(words[:-1])}.{numbers[words[-1]]}"
    return aliases


def _unnamed_echo(table: Table, named: Mapping[str, str]) -> dict[str, str]:
    """The aliases of a text without a header that begins as a stamped message."""
    places = [int(name[1:]) for name in table.words if name[1:].isdigit()]
    count = len(named) or len([k for k in places if k > 3])
    first = min((int(name[1:]) for name in named), default=min((k for k in places if k > 3), default=0))
    numbers = [name for name in table.names if int(name[1:] or 0) >= first + count] if first else []
    if not first or not count or len(numbers) not in (count, 2 * count, 3 * count):
        return {}
    aliases = {"c1": "stamp.sec", "c2": "stamp.nanosec"} if first > 2 else {}
    listed = list(named.values()) or [str(k) for k in range(count)]
    for k, name in enumerate(numbers):
        aliases[name] = f"{QUANTITIES[k // count]}.{listed[k % count]}"
    return aliases


def _rank(family: Family, table: Table, robot: Robot | None) -> tuple[bool | int, ...] | None:
    """How well a family fits: by name, by a word for the quantity, several columns, measured, by unit.

    None if the robot has not as many joints.
    """
    width = sum(1 if (column := table.columns[name]).ndim == 1 else min(column.shape) for name in family.columns)
    if robot is not None and width != robot.dof:
        return None
    first = family.first
    whole = 0 if first.context else 1  # names such as wrist_1 count the parts of one joint's name, not all joints
    count = width if robot is None and not whole else 0
    return family.by_name, first.said, width > 1, first.measured, first.unit is not None, whole, count, -len(first.rest)


def _signal(quantity: str, file: str, family: Family, tables: Mapping[str, Table], robot: Robot | None) -> FoundSignal:
    table = tables[file]
    units, reason, certain = _units(quantity, family, table, robot)
    why = "the joints' names" if family.by_name else f"the name {family.first.column!r}"
    if family.by_name and family.reordered:
        why += "; the log has the joints in another order than the robot"
    return FoundSignal(
        quantity=quantity,
        file=file,
        family=family,
        units=units,
        reason=reason,
        certain=certain,
        why=why,
        other_names=robot is not None and len({reading.context for reading in family.readings}) > 1,
    )


def _units(quantity: str, family: Family, table: Table, robot: Robot | None) -> tuple[tuple[str, ...], str, bool]:
    """The unit of each column, the reason, and whether the log declares it."""
    declared = [table.units.get(name, "") for name in family.columns]
    if all(declared):
        return _once(declared), "the log declares it", True
    said = [reading.unit or "" for reading in family.readings]
    if all(said):
        units = _once(said)
        ends = " and ".join(f"'{unit}'" for unit in dict.fromkeys(units))
        return units, f"the names end in {ends}" if len(units) > 1 else f"the name ends in {ends}", False
    values = np.column_stack([_tall(table.columns[name]) for name in family.columns])
    known = robot is not None and robot.dof == values.shape[1]
    kinds = [joint.kind for joint in robot.moving_joints] if robot and known else [""] * values.shape[1]
    guessed = _default_units(quantity, kinds, values)
    if len(said) == len(guessed):
        stated = [a or b or "N" * (own.quantity == "force") for a, b, own in zip(declared, said, family.readings)]
        guessed = [given or own for given, own in zip(stated, guessed, strict=True)]
    missing = "no unit in some of the names" if any((*declared, *said)) else "no unit in the names"
    reach = f"values reach {_largest(values):.4g}"
    if "deg" in guessed and "deg" not in (*declared, *said):
        return _once(guessed), f"{reach}: degrees, or radians of a motor (then add its gear)", False
    return _once(guessed), f"{missing}; {reach}", False


def _once(units: Sequence[str]) -> tuple[str, ...]:
    """One unit where all are the same."""
    return tuple(units) if len(set(units)) > 1 else tuple(units[:1])


def _tall(values: Floats) -> Floats:
    """Values of a column, or of an array with the samples along its longer side."""
    return values.T if values.ndim == 2 and values.shape[0] < values.shape[1] else values


def _largest(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(np.abs(finite).max()) if finite.size else 0.0


def _default_units(quantity: str, kinds: Sequence[str], values: Floats) -> list[str]:
    """Units where no name says one: SI, but degrees and millimetres where no joint of the kind moves as far in SI."""
    turning, sliding = _DEFAULT[quantity]
    slides = np.array([kind == "prismatic" for kind in kinds])
    if quantity == "position" and _largest(values[:, ~slides]) > LARGEST_ANGLE:
        turning = "deg"
    if quantity == "position" and _largest(values[:, slides]) > LARGEST_SLIDE:
        sliding = "mm"
    return [sliding if slide else turning for slide in slides]


def _same_scale(
    velocity: FoundSignal, position: FoundSignal, tables: Mapping[str, Table], time: FoundTime
) -> FoundSignal:
    """Velocities in degrees or millimetres per second, where positions have such slopes and no name says a unit."""
    if velocity.certain or any(reading.unit for reading in velocity.family.readings):
        return velocity
    q, dq = (_stack(signal, tables) for signal in (position, velocity))
    seconds = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}.get(time.unit)
    stamps = tables[time.file].columns[time.column]
    if time.fraction is not None:
        stamps = stamps + 1e-9 * tables[time.file].columns[time.fraction]
    if seconds is None or q.shape != dq.shape or len(stamps) != len(q):
        return velocity
    wide = [list(signal.units) * (q.shape[1] if len(signal.units) == 1 else 1) for signal in (position, velocity)]
    if len(wide[0]) != q.shape[1] or len(wide[1]) != q.shape[1]:
        return velocity
    with np.errstate(all="ignore"):
        slopes = np.diff(q, axis=0) / (np.diff(stamps) * seconds)[:, None]
        for unit in {"deg", "mm"} & set(wide[0]):
            own = [k for k, given in enumerate(wide[0]) if given == unit]
            ratio = float(np.nanmedian(np.abs(dq[1:, own])) / np.nanmedian(np.abs(slopes[:, own])))
            if 0.3 < ratio < 3.0:  # radians and metres per second would be 57 and 1000 times less
                wide[1] = [f"{unit}/s" if k in own else given for k, given in enumerate(wide[1])]
    if _once(wide[1]) == velocity.units:
        return velocity
    names = {"deg/s": "degrees", "mm/s": "millimetres"}
    listed = " and ".join(names[unit] for unit in dict.fromkeys(wide[1]) if unit in names)
    return replace(velocity, units=_once(wide[1]), reason=f"they are the slopes of positions in {listed}")


def _stack(signal: FoundSignal, tables: Mapping[str, Table]) -> Floats:
    return np.column_stack([_tall(tables[signal.file].columns[name]) for name in signal.family.columns])


def _reference(
    candidates: Sequence[tuple[str, Family, str]],
    found: Mapping[str, FoundSignal],
    tables: Mapping[str, Table],
    robot: Robot | None,
) -> dict[str, FoundSignal]:
    """The commanded positions, if a family says so and its values lie near the measured ones.

    Weak servos stay far behind their commands: in a log without torques it suffices that the names are alike.
    """
    measured = found.get("position")
    for file, family, quantity in candidates:
        if measured is None or quantity != "position" or not family.first.commanded:
            continue
        signal = _signal("position", file, family, tables, robot)
        wanted, actual = _stack(signal, tables), _stack(measured, tables)
        if wanted.shape != actual.shape:
            continue
        is_near = np.nanstd(wanted - actual) < NEAR_REFERENCE * np.nanstd(actual)
        if is_near or ("effort" not in found and _without_roles(family) == _without_roles(measured.family)):
            return {"reference": replace(signal, quantity="reference")}
    return {}


def _without_roles(family: Family) -> tuple[str, ...]:
    """The words of a family's names without those that say commanded, measured or a position."""
    said = COMMANDED | MEASURED | QUANTITY_WORDS["position"] | {"observation", "state"}
    return tuple(word for word in family.first.rest if word not in said)


def has_no_sign(torques: Floats) -> bool:
    """Whether torques are amounts without a sign: never negative, and not one constant number."""
    known = torques[np.isfinite(torques)]
    return bool(known.size > 1 and known.min() >= 0.0 and known.max() > known.min() and (known == 0.0).any())


_DRIVE_WORDS = {
    "enabled": frozenset({"enable", "enabled"}),
    "kp": frozenset({"kp"}),
    "kd": frozenset({"kd"}),
    "supply": frozenset({"volts", "voltage", "vin", "supply"}),
}
"""Quantity of a drive -> words that say it."""


def find_drive_columns(tables: Mapping[str, Table]) -> dict[str, tuple[str, list[str]]]:
    """Quantity of a drive -> the table and the columns, or the constant, that name it; columns before constants."""
    found: dict[str, tuple[str, list[str]]] = {}
    for quantity, words in _DRIVE_WORDS.items():
        for file, table in tables.items():
            columns = [name for name in table.columns if words & set(words_of(name))]
            constants = [name for name in table.constants if words & set(words_of(name))]
            named = columns or constants[:1]
            if named and quantity not in found:
                found[quantity] = (file, named)
    return found


_TEMPERATURE_WORDS = frozenset({"temp", "temps", "temperature", "temperatures", "temperatur", "temperaturen"})
"""Words that say a temperature."""
_TEMPERATURE_ENDINGS = {"c": "degC", "degc": "degC", "celsius": "degC", "k": "K", "kelvin": "K", "f": "degF",
                        "degf": "degF", "fahrenheit": "degF"}  # fmt: skip
"""Last word of a name -> unit of temperature."""
COLDEST_IN_KELVIN = 200.0
"""Temperatures above this are kelvin where no name says a unit (convention: no joint is as hot in degrees Celsius)."""


def find_temperatures(tables: Mapping[str, Table], robot: Robot | None, joints: int) -> FoundSignal | None:
    """The temperatures of the joints: one column each, or the only column of a temperature; None where neither is.

    Args:
        tables: The tables of the log.
        robot: The robot whose joints the columns may name.
        joints: Number of joints of the log.
    """
    names = JointNames(robot.joint_names if robot else ())
    found: list[tuple[int, str, Family]] = []
    for file, table in tables.items():
        readings = [
            reading
            for name in table.names
            if _TEMPERATURE_WORDS & set((reading := read_name(name, names, table.units.get(name))).rest)
            and not COMMANDED & set(reading.rest)
        ]
        for family in families(readings, names):
            columns = [table.columns[name] for name in family.columns]
            width = sum(1 if column.ndim == 1 else column.shape[1] for column in columns)
            if width == joints or (width == 1 and len(readings) == 1):
                found.append((width, file, family))
    if not found:
        return None
    _, file, family = max(found, key=lambda item: item[0])
    declared = [tables[file].units.get(name) or declared_unit(name)[1] or "" for name in family.columns]
    endings = [_TEMPERATURE_ENDINGS.get(words_of(name)[-1], "") for name in family.columns]
    largest = max(_largest(tables[file].columns[name]) for name in family.columns)
    units, reason, certain = declared, "the log declares it", True
    if not all(declared):
        units, reason, certain = endings, f"the name ends in {words_of(family.columns[0])[-1]!r}", False
    if not all(units):
        units = ["K" if largest > COLDEST_IN_KELVIN else "degC"]
        reason = f"no unit in the names; values reach {largest:.4g}"
    return FoundSignal(
        quantity="temperature",
        file=file,
        family=family,
        units=_once(units),
        reason=reason,
        certain=certain,
        why="the joints' names" if family.by_name else f"the name {family.first.column!r}",
    )
