"""What the name of a column says: quantity, unit, joint, and whether it is measured or commanded.

A name is cut into words at blanks, marks, digits and changes of case: ``J1_angle_deg`` has the words j, 1, angle, and
the unit deg. A declared unit, else the words, say the quantity; the robot's joint names, or a number, say the joint.
Columns that differ in their joint only are one `Family`. Columns of turning and of sliding joints may differ in their
unit and in the word for the quantity as well (``J1_torque_Nm`` and ``J3_force_N``): `joined` puts them together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dynid.logs.units import ACCEPTED, declared_unit, known_unit

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_NANO = frozenset({"nanosec", "nanosecs", "nanoseconds", "nsec", "nsecs", "ns"})
_SECONDS = frozenset({"sec", "secs", "seconds"})

QUANTITY_WORDS: Mapping[str, frozenset[str]] = {
    "time": frozenset(
        {"t", "time", "times", "timestamp", "timestamps", "stamp", "clock", "ipoc", "elapsed", "zeit", *_SECONDS,
         *_NANO}
    ),
    "position": frozenset(
        {"q", "pos", "position", "positions", "qpos", "theta", "angle", "angles", "ang", "jointpos", "jointpositions",
         "travel", "stroke", "extension", "displacement", "winkel", "gelenkwinkel"}
    ),
    "velocity": frozenset(
        {"dq", "qd", "qdot", "v", "vel", "velocity", "velocities", "speed", "speeds", "qvel", "omega", "jointvel",
         "geschwindigkeit", "winkelgeschwindigkeit", "drehzahl"}
    ),
    "effort": frozenset(
        {"tau", "torque", "torques", "effort", "efforts", "eff", "moment", "moments", "trq", "qfrc", "jointtorque",
         "drehmoment", "drehmomente"}
    ),
    "current": frozenset({"i", "cur", "curr", "current", "currents", "amps", "strom", "motorstrom"}),
    "force": frozenset({"f", "force", "forces", "frc", "kraft"}),
}  # fmt: skip
"""Quantity -> words that say it; gathered from the headers of robot loggers. A force is the effort of a slide."""
_BY_UNIT: Mapping[str, str] = {"load": "effort", "rotation": "position"}
"""Words that say a quantity only beside a unit of it: a load may be the side of a gear, a share or a payload."""
COMMANDED = frozenset(
    {"target", "cmd", "command", "commanded", "desired", "des", "ref", "reference", "setpoint", "set", "goal", "wanted",
     "action", "nominal", "soll", "sollwert"}
)  # fmt: skip
MEASURED = frozenset({"actual", "act", "meas", "measured", "msr", "feedback", "fb", "present", "ist", "istwert"})
_OTHERS = frozenset(
    {"ext", "external", "tcp", "cartesian", "ee", "flange", "tool", "temp", "temperature", "voltage", "error", "err",
     "status", "limit", "limits", "min", "max", "std", "acc", "acceleration", "accelerations", "accel", "ddq", "qdd",
     "qacc", "rate", "gripper", "covariance", "seq", "index", "hat", "bias", "constraint", "passive", "enable",
     "enabled"}
)  # fmt: skip
"""Words of quantities that no channel map knows, or of signals that are no joint's own."""
_JOINT_WORDS = frozenset(
    {"joint", "joints", "jnt", "axis", "axes", "ax", "j", "a", "actuator", "actuators", "motor", "m", "achse", "gelenk"}
)
"""Words before or behind the number of a joint."""
_UNITS: tuple[tuple[str, str], ...] = (
    ("deg_per_s", "deg/s"), ("deg_per_sec", "deg/s"), ("deg_s", "deg/s"), ("degs", "deg/s"), ("dps", "deg/s"),
    ("rad_per_s", "rad/s"), ("rad_s", "rad/s"), ("rads", "rad/s"), ("rpm", "rpm"), ("mm_s", "mm/s"), ("m_s", "m/s"),
    ("mnm", "mN m"), ("nm", "N m"), ("n_m", "N m"), ("percent", "%"), ("deg", "deg"), ("degrees", "deg"),
    ("rad", "rad"), ("radians", "rad"), ("mm", "mm"), ("ma", "mA"), ("ms", "ms"), ("us", "us"), ("ns", "ns"),
    ("mm_per_s", "mm/s"), ("m_per_s", "m/s"), ("kn", "kN"), ("n", "N"), ("a", "A"), ("s", "s"), ("m", "m"),
)  # fmt: skip
_DIMENSION = {
    "time": ("s", "ms", "us", "ns"),
    "position": ("deg", "rad", "mm", "m"),
    "velocity": ("deg/s", "rad/s", "rpm", "mm/s", "m/s"),
    "effort": ("mN m", "N m", "kN", "N", "%"),
    "current": ("mA", "A", "%"),
    "force": ("kN", "N", "%"),
}
"""Quantity -> units that the end of a name may state for it; loggers call the force of a slide a torque, too."""
_TELLING_ENDINGS = frozenset({"deg", "rad", "mm", "N m", "mN m", "deg/s", "rad/s", "rpm", "mm/s"})
"""Units at the end of a name that no other word ends in; single letters, ``ms`` and ``ma`` may be anything."""
_QUANTITY_OF = {
    "time": "time", "angle": "position", "length": "position", "angular velocity": "velocity", "velocity": "velocity",
    "torque": "effort", "force": "force", "current": "current",
}  # fmt: skip
"""Dimension of a unit -> the quantity of a column that declares it."""


def words_of(text: str) -> tuple[str, ...]:
    """The words of a name in small letters; numbers without leading zeros are words, too."""
    return tuple(str(int(word)) if word.isdigit() else word.lower() for word in _WORD.findall(text))


@dataclass(frozen=True, slots=True)
class JointNames:
    """The robot's joint names as a log may spell them."""

    names: tuple[str, ...]
    """In the robot's order; empty without a robot."""

    def spellings(self) -> list[dict[tuple[str, ...], int]]:
        """Ways to spell all names, the fullest first: words of the name -> index of the joint."""
        full = [words_of(name) for name in self.names]
        shared = 0
        while len(full) > 1 and len({words[shared : shared + 1] for words in full}) == 1 and full[0][shared:]:
            shared += 1
        short = [words[shared:] for words in full]
        bare = [tuple(word for word in words if word not in _JOINT_WORDS) for words in short]
        ways = [full, [words[shared - 1 :] for words in full] if shared else full, short, bare]
        return [
            {words: j for j, words in enumerate(way)}
            for way in ways
            if len(set(way)) == len(way) and all(any(not word.isdigit() for word in words) for words in way)
        ]

    def find(self, words: tuple[str, ...]) -> tuple[int, int, int] | None:
        """(joint, first word, number of words) of the joint that some words name; None if they name none."""
        for spelling in self.spellings():
            places = [
                (joint, k, len(name))
                for name, joint in spelling.items()
                for k in range(len(words) - len(name) + 1)
                if words[k : k + len(name)] == name
            ]
            if places:
                return max(places, key=lambda place: place[2])
        return None

    def numbers(self) -> dict[int, int]:
        """Number in a name -> index of the joint, where every name has one number of its own."""
        found = [[int(word) for word in words_of(name) if word.isdigit()] for name in self.names]
        flat = [numbers[0] for numbers in found if len(numbers) == 1]
        return {n: j for j, n in enumerate(flat)} if flat and len(set(flat)) == len(self.names) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one name says."""

    column: str
    quantity: str | None
    unit: str | None
    declared: bool
    """Whether the unit stands in brackets, and not only at the end of the name."""
    joint: int | None
    """Index of the robot's joint that the name names."""
    number: int | None
    """Number of the joint, where it is named by a number."""
    commanded: bool
    measured: bool
    other: bool
    """Whether a word says that it is another quantity, or not a joint's own."""
    said: bool
    """Whether a word says the quantity, and not only the unit."""
    rest: tuple[str, ...]
    """The words without the joint, which columns of one family share; ``#`` where the joint stood."""
    context: frozenset[str]
    """The words without joint, quantity and unit, which columns of turning and sliding joints share."""


def quantity_in(words: Iterable[str]) -> str | None:
    """The quantity that the last telling word says; ``q`` with a ``d`` or ``dot`` beside it is a velocity."""
    listed = list(words)
    found = None
    for k, word in enumerate(listed):
        role = next((role for role, known in QUANTITY_WORDS.items() if word in known), None)
        if role == "position" and "dot" in listed[k + 1 : k + 2]:
            role = "velocity"
        if role == "position" and listed[k - 1 : k] == ["d"] and k:
            role = "velocity"
        found = role or found
    return found


def read_name(column: str, joints: JointNames, unit: str | None = None) -> Reading:
    """Read the name of a column; `unit` is what the log declares for it elsewhere, as in a line of units."""
    base, bracketed = declared_unit(column)
    unit = bracketed or unit or None
    words = words_of(base)
    declared = unit is not None
    place = joints.find(words)
    number = None
    if place is not None:
        words = (*words[: place[1]], "#", *words[place[1] + place[2] :])
    elif (k := _number_place(words)) is not None:
        number = int(words[k])
        words = (*words[:k], "#", *words[k + 1 :])
    core = [word for word in words if word != "#" and word not in _JOINT_WORDS]
    quantity = quantity_in(core)
    if core == ["observation", "state"]:  # what LeRobot calls the measured positions
        quantity = "position"
    if core == ["action"]:
        quantity = "position"
    word, ending = quantity, ""
    named = place is not None or number is not None
    if declared:
        quantity = _declared_quantity(unit, word, core, named)
    else:
        quantity, unit, ending = _quantity_at_end(words, word, core, named)
    spelled = _words_for(quantity) | set(ending.split("_"))
    desired = "d" in core and core.index("d") > 0  # libfranka: q_d is the desired position, dq the velocity
    return Reading(
        column=column,
        quantity=quantity,
        unit=unit,
        declared=declared,
        joint=None if place is None else place[0],
        number=number,
        commanded=desired or bool(COMMANDED & set(core)),
        measured=bool(MEASURED & set(core)),
        other=bool(_OTHERS & set(core)),
        said=quantity is not None and (word == quantity or bool(_words_for(quantity) & set(core))),
        rest=words,
        context=frozenset(core) - spelled,
    )


def _words_for(quantity: str | None) -> frozenset[str]:
    """The words that say a quantity, by themselves or beside its unit."""
    return QUANTITY_WORDS.get(quantity or "", frozenset()) | {
        word for word, said in _BY_UNIT.items() if said == quantity
    }


def says_a_quantity(reading: Reading) -> bool:
    """Whether a name says what the column holds, by a word or a declared unit, even if no channel map knows it."""
    return reading.quantity is not None or reading.declared or bool(_BY_UNIT.keys() & set(reading.rest))


def _declared_quantity(unit: str | None, word: str | None, core: Sequence[str], named: bool) -> str | None:
    """The quantity of a column that declares its unit: the unit decides, words only where it fits several.

    Args:
        unit: The declared unit.
        word: The quantity that the words say.
        core: The words without the joint.
        named: Whether the name names a joint, or its number.
    """
    known = known_unit(unit)
    if known is None:
        return word
    if known.dimension != "share":  # a share may be one of anything
        word = word or next((_BY_UNIT[said] for said in core if said in _BY_UNIT), None)
    if word is not None and known.dimension in ACCEPTED["effort" if word == "force" else word]:
        return word if known.dimension != "torque" else "effort"
    own = _QUANTITY_OF.get(known.dimension)
    return own if named or word is not None or own == "time" else None


def _quantity_at_end(
    words: tuple[str, ...], word: str | None, core: Sequence[str], named: bool
) -> tuple[str | None, str | None, str]:
    """The quantity, the unit that the last words spell, and these words.

    Words say the quantity. The unit does where they say none, where one letter says it, or where a position has the
    unit of a velocity (``theta_rad_s``).
    """
    weak = word or next((_BY_UNIT[said] for said in core if said in _BY_UNIT), None)
    if weak is not None and (found := _unit_at_end(words, weak))[0] is not None and found[0] != "%":
        return weak, *found
    letter = word is not None and not any(len(said) > 1 for said in core if said in QUANTITY_WORDS[word])
    for quantity in ("velocity", "position", "effort"):
        unit, ending = _unit_at_end(words, quantity)
        if unit not in _TELLING_ENDINGS:
            continue
        if (word is None and named) or letter or (word, quantity) == ("position", "velocity"):
            return quantity, unit, ending
    return word, *(_unit_at_end(words, word) if word is not None else (None, ""))


def _number_place(words: tuple[str, ...]) -> int | None:
    """Where the number of the joint stands: beside a word for joints, else the last number."""
    numbers = [k for k, word in enumerate(words) if word.isdigit()]
    beside = [k for k in numbers if k and words[k - 1] in _JOINT_WORDS]
    return beside[-1] if beside else numbers[-1] if numbers else None


def _unit_at_end(words: tuple[str, ...], quantity: str) -> tuple[str | None, str]:
    """The unit that the last words spell, if it is one of the quantity, and these words."""
    text = "_".join(word for word in words if word != "#")
    for ending, unit in _UNITS:
        if unit in _DIMENSION[quantity] and text.endswith(f"_{ending}"):
            return unit, ending
    return None, ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Columns that differ in their joint only, in the robot's order."""

    readings: tuple[Reading, ...]
    by_name: bool
    """Whether the robot's joint names say which column belongs to which joint."""
    reordered: bool
    """Whether the log has them in another order than the robot."""

    @property
    def columns(self) -> list[str]:
        return [reading.column for reading in self.readings]

    @property
    def first(self) -> Reading:
        return self.readings[0]


def families(readings: Sequence[Reading], joints: JointNames) -> list[Family]:
    """The families among some columns, in the log's order; columns without a joint are families of one."""
    groups: dict[tuple[object, ...], list[Reading]] = {}
    for reading in readings:
        alone = reading.joint is None and reading.number is None
        kind = "name" if reading.joint is not None else "number"
        key = (reading.column,) if alone else (kind, reading.rest)
        groups.setdefault(key, []).append(reading)
    return [_family(group, joints) for whole in groups.values() for group in _by_quantity(whole)]


def _by_quantity(group: list[Reading]) -> list[list[Reading]]:
    """Columns whose names differ in their joint only, apart where their units say different quantities."""
    kinds = ["effort" if reading.quantity == "force" else reading.quantity for reading in group]
    listed = [kind for kind in dict.fromkeys(kinds) if kind is not None]
    if len(listed) < 2:
        return [group]
    return [[reading for reading, own in zip(group, kinds) if own == kind] for kind in dict.fromkeys(kinds)]


def _family(group: list[Reading], joints: JointNames) -> Family:
    """One family in the robot's order."""
    if group[0].joint is not None:
        ordered = sorted(group, key=lambda reading: reading.joint or 0)
        return Family(readings=tuple(ordered), by_name=True, reordered=ordered != group)
    place = joints.numbers()
    if set(place) != {reading.number for reading in group}:
        place = {}
    ordered = sorted(group, key=lambda reading: place.get(reading.number or 0, reading.number or 0))
    return Family(readings=tuple(ordered), by_name=bool(place), reordered=ordered != group)


def joined(found: Sequence[tuple[Family, str]], joints: JointNames) -> list[tuple[Family, str]]:
    """Families of one quantity put together where each has the columns of some joints only (turning, sliding).

    Args:
        found: The families of one file with their quantities.
        joints: The robot's joints; without names where no robot is given.

    Returns:
        The families that belong together as one, and all others as they are; forces beside torques are efforts.
    """
    groups: dict[tuple[str, tuple[object, ...]], list[tuple[Family, str]]] = {}
    for family, quantity in found:
        first = family.first
        way = "name" if first.joint is not None else "number" if first.number is not None else family.columns[0]
        kind = "effort" if quantity == "force" else quantity
        alike = (way, first.commanded, first.measured, first.context)
        groups.setdefault((kind, alike), []).append((family, quantity))
    whole = []
    for (kind, _), members in groups.items():
        merged = _together([family for family, _ in members], joints) if len(members) > 1 else None
        whole += members if merged is None else [(merged, kind)]
    return whole + _joined_by_unit(whole, joints)


def _joined_by_unit(found: Sequence[tuple[Family, str]], joints: JointNames) -> list[tuple[Family, str]]:
    """Families with different words put together by their declared units, where none of the quantity is complete."""
    more = []
    for kind in ("position", "velocity", "effort"):
        parts = [family for family, quantity in found if ("effort" if quantity == "force" else quantity) == kind]
        parts = [family for family in parts if family.first.declared and family.first.joint is not None]
        complete = any(len(family.readings) == len(joints.names) for family in parts)
        merged = _together(parts, joints) if len(parts) > 1 and not complete else None
        more += [] if merged is None else [(merged, kind)]
    return more


def _together(parts: Sequence[Family], joints: JointNames) -> Family | None:
    """The families as one in the order of the joints; None where a joint has two columns, or joints are missing."""
    readings = [reading for family in parts for reading in family.readings]
    by_joint = readings[0].joint is not None
    places = sorted((reading.joint if by_joint else reading.number) or 0 for reading in readings)
    start = 0 if by_joint else min(places[0], 1)
    if places != list(range(start, start + (len(joints.names) or len(readings)))):
        return None
    return replace(_family(readings, joints), reordered=any(part.reordered for part in parts))


def alike(readings: Sequence[Reading]) -> list[tuple[Family, str]]:
    """Columns with the same quantity and other names of joints, such as ``elbow_position`` and ``wrist_position``.

    They are families in the log's order where the robot is unknown or has other names. Two whole sets of columns, as of
    two arms, are not put together.
    """
    groups: dict[tuple[str, bool, bool, tuple[str, ...]], list[Reading]] = {}
    joints: Counter[tuple[str, tuple[str, ...], int | None]] = Counter()
    told = [(reading, _words_for(reading.quantity)) for reading in readings if reading.quantity and not reading.other]
    for reading, said in told:
        own = tuple(word for word in reading.rest if word not in said)
        joints[str(reading.quantity), own, reading.number] += 1
    for reading, said in told:
        places = [k for k, word in enumerate(reading.rest) if word in said]
        if not places:
            continue
        same = reading.rest[: places[-1] + 1] if places[0] == 0 else ("*", *reading.rest[places[-1] :])
        if max(count for (kind, _, _), count in joints.items() if kind == reading.quantity) == 1:
            same = tuple("=" if word in said else word for word in same)  # each joint has its own word: torque, moment
        groups.setdefault((str(reading.quantity), reading.commanded, reading.measured, same), []).append(reading)
    return [
        (Family(readings=tuple(group), by_name=False, reordered=False), quantity)
        for (quantity, _, _, _), group in groups.items()
        if len(group) > 1 and sum(count > 1 for count in Counter(reading.rest for reading in group).values()) < 2
    ]
