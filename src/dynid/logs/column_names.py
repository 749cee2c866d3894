"""What the name of a column says: quantity, unit, joint, and whether it is measured or commanded.

`read_name` does all of this for one column; `words_of` and `quantity_in` do parts of it for names of files.
A name is cut into words at blanks, punctuation, digits and changes of case: ``J1_angle_deg`` has the words j, 1, angle,
deg. `WORDS` says which words stand for a quantity, `_ENDINGS` which last words are a unit. The joint is one of the
robot's joint names (`JointNames`), or a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dynid.logs.units import ACCEPTED, declared_unit, known_unit

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
WORDS: Mapping[str, frozenset[str]] = {role: frozenset(words.split()) for role, words in {
    "time": "t time times timestamp timestamps stamp clock ipoc elapsed zeit sec secs seconds nanosec nanosecs "
    "nanoseconds nsec nsecs ns",
    "position": "q pos position positions qpos theta angle angles ang jointpos jointpositions travel stroke extension "
    "displacement winkel gelenkwinkel",
    "velocity": "dq qd qdot v vel velocity velocities speed speeds qvel omega jointvel geschwindigkeit "
    "winkelgeschwindigkeit drehzahl",
    "effort": "tau torque torques effort efforts eff moment moments trq qfrc jointtorque drehmoment drehmomente",
    "current": "i cur curr current currents amps strom motorstrom",
    "force": "f force forces frc kraft",
    "temperature": "temp temps temperature temperatures temperatur temperaturen",
    "enabled": "enable enabled",
    "kp": "kp",
    "kd": "kd",
    "supply": "volts voltage vin supply",
    "commanded": "target cmd command commanded desired des ref reference setpoint set goal wanted action nominal soll "
    "sollwert",
    "measured": "actual act meas measured msr feedback fb present ist istwert",
    "other": "ext external tcp cartesian ee flange tool voltage error err status limit limits min max std acc "
    "acceleration accelerations accel ddq qdd qacc rate gripper covariance seq index hat bias constraint passive "
    "enable enabled",
    "joint": "joint joints jnt axis axes ax j a actuator actuators motor m achse gelenk",
}.items()}  # fmt: skip
"""Meaning -> the words for it in the headers of robot loggers. A meaning is a quantity (force: the effort of a
prismatic joint); commanded or measured; other (a signal that belongs to no single joint, or that no channel map knows);
or joint (a word beside the number of a joint)."""
QUANTITIES = ("position", "velocity", "effort", "current")
"""The signals of joints, in the order in which ROS lists them."""
_QUANTITIES_IN_NAMES = ("time", *QUANTITIES, "force", "temperature")
_QUANTITY_WITH_UNIT: Mapping[str, str] = {"load": "effort", "rotation": "position"}
"""Word -> the quantity that it says only if the column has a unit of that quantity: a load alone may also be the output
side of a gear, a share or a payload."""
_ENDINGS: Mapping[str, str] = {
    "deg_per_s": "deg/s", "deg_per_sec": "deg/s", "deg_s": "deg/s", "degs": "deg/s", "dps": "deg/s", "grad_s": "deg/s",
    "rad_per_s": "rad/s", "rad_s": "rad/s", "rads": "rad/s", "rpm": "rpm", "mm_per_s": "mm/s", "mm_s": "mm/s",
    "m_per_s": "m/s", "m_s": "m/s", "deg": "deg", "degrees": "deg", "grad": "deg", "rad": "rad", "radians": "rad",
    "mm": "mm", "m": "m", "mnm": "mN m", "nm": "N m", "n_m": "N m", "kn": "kN", "n": "N", "percent": "%", "ma": "mA",
    "a": "A", "ms": "ms", "us": "us", "ns": "ns", "s": "s", "degc": "degC", "celsius": "degC", "c": "degC",
    "kelvin": "K", "k": "K", "degf": "degF", "fahrenheit": "degF", "f": "degF",
}  # fmt: skip
"""Last words of a name, joined by underscores -> the unit that they spell, if it is a unit of the quantity."""
_QUANTITY_OF = {
    "time": "time", "angle": "position", "length": "position", "angular velocity": "velocity", "velocity": "velocity",
    "torque": "effort", "force": "force", "current": "current", "temperature": "temperature",
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

    def find(self, words: tuple[str, ...]) -> tuple[int, int, int] | None:
        """Find the joint that is named in a list of words.

        Returns:
            Index of the joint, place of the first word of its name, number of words of its name; None if no joint is
            named. Of several the longest name counts.
        """
        for spelling in _spellings(self.names):
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


@lru_cache(maxsize=8)
def _spellings(names: tuple[str, ...]) -> list[dict[tuple[str, ...], int]]:
    """Ways to spell all names, the fullest first: words of the name -> index of the joint.

    For arm_joint_hip and arm_joint_knee these are (arm, joint, hip), (joint, hip) and (hip): the full name, the name
    with the last of the words that all share, without any of them, and without words such as joint. A way that makes
    two names equal, or leaves only numbers, is left out.
    """
    full = [words_of(name) for name in names]
    shared = 0
    while len(full) > 1 and len({words[shared : shared + 1] for words in full}) == 1 and full[0][shared:]:
        shared += 1
    short = [words[shared:] for words in full]
    bare = [tuple(word for word in words if word not in WORDS["joint"]) for words in short]
    ways = [full, [words[max(shared - 1, 0) :] for words in full], short, bare]
    return [
        {words: j for j, words in enumerate(way)}
        for way in ways
        if len(set(way)) == len(way) and all(any(not word.isdigit() for word in words) for words in way)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the name of one column says."""

    column: str
    """The name."""
    quantity: str | None
    """Key of `WORDS` for the quantity; None if the name says none."""
    unit: str | None
    """The unit; None if there is none."""
    declared: bool
    """Whether the unit stands in brackets, and not only at the end of the name."""
    joint: int | None
    """Index of the robot's joint whose name is in the column's name."""
    number: int | None
    """Number of the joint, where it is named by a number."""
    commanded: bool
    """Whether a word says commanded."""
    measured: bool
    """Whether a word says measured."""
    other: bool
    """Whether one of the words for other signals is in the name (see `WORDS`)."""
    said: bool
    """Whether a word says the quantity, and not only the unit."""
    rest: tuple[str, ...]
    """All words, with ``#`` in the place of the joint's name or number."""
    context: frozenset[str]
    """The words that are left without joint, quantity and unit."""

    @property
    def is_named(self) -> bool:
        """Whether the name names a joint, or its number."""
        return self.joint is not None or self.number is not None

    @property
    def says_a_quantity(self) -> bool:
        """Whether the name says what the column holds, even if no channel map knows it."""
        return self.quantity is not None or self.declared or bool(_QUANTITY_WITH_UNIT.keys() & set(self.rest))


def words_for(quantity: str | None) -> frozenset[str]:
    """The words that say a quantity, by themselves or together with its unit; none for no quantity."""
    return WORDS.get(quantity or "", frozenset()) | {
        word for word, said in _QUANTITY_WITH_UNIT.items() if said == quantity
    }


def quantity_in(words: Iterable[str]) -> str | None:
    """The quantity that some words say, or None.

    The last word for a quantity counts, but a word for temperature wins over all others. The words d, q and q, dot are
    a velocity.
    """
    listed = list(words)
    if WORDS["temperature"] & set(listed):
        return "temperature"
    found = None
    for k, word in enumerate(listed):
        role = next((role for role in _QUANTITIES_IN_NAMES if word in WORDS[role]), None)
        if role == "position" and (listed[k + 1 : k + 2] == ["dot"] or (k and listed[k - 1] == "d")):
            role = "velocity"
        found = role or found
    return found


def read_name(column: str, joints: JointNames, unit: str | None = None) -> Reading:
    """Read the name of a column.

    Args:
        column: The name.
        joints: The robot's joint names.
        unit: The unit that the log declares in another place, as in a line of units; None without.
    """
    base, bracketed = declared_unit(column)
    words = tuple(part for word in words_of(base) for part in _german(word))
    joint: int | None = None
    number: int | None = None
    # the joint's name, or else its number, gives way to #
    if (place := joints.find(words)) is not None:
        joint, first, length = place
        words = (*words[:first], "#", *words[first + length :])
    elif (k := _number_place(words)) is not None:
        number = int(words[k])
        words = (*words[:k], "#", *words[k + 1 :])
    core = [word for word in words if word != "#" and word not in WORDS["joint"]]
    word = "position" if core in (["observation", "state"], ["action"]) else quantity_in(core)  # LeRobot's names
    unit = bracketed or unit or None
    declared = unit is not None
    ending = "" if declared else _unit_at_end(words)
    quantity, unit = _decide(word, core, unit, ending, joint is not None or number is not None)
    desired = "d" in core and core.index("d") > 0  # libfranka: q_d is the desired position, dq the velocity
    return Reading(
        column=column,
        quantity=quantity,
        unit=unit,
        declared=declared,
        joint=joint,
        number=number,
        commanded=desired or bool(WORDS["commanded"] & set(core)),
        measured=bool(WORDS["measured"] & set(core)),
        other=bool(WORDS["other"] & set(core)),
        said=quantity is not None and (word == quantity or bool(words_for(quantity) & set(core))),
        rest=words,
        context=frozenset(core) - words_for(quantity) - (set(ending.split("_")) if unit else set()),
    )


def _german(word: str) -> list[str]:
    """Split a German word that begins with measured (ist) or commanded (soll), as Istwinkel; keep any other word."""
    parts = re.fullmatch(r"(ist|soll)(.+)", word)
    return list(parts.groups()) if parts and quantity_in([parts[2]]) else [word]


def _decide(
    word: str | None, core: Sequence[str], unit: str | None, ending: str, named: bool
) -> tuple[str | None, str | None]:
    """The quantity of a column, and its unit.

    A declared unit decides; words only where it fits several quantities. A unit at the end of the name decides where
    words say nothing, where one letter says it, or where a position has the unit of a velocity (``theta_rad_s``).

    Args:
        word: The quantity that the words say.
        core: The words without the joint and without words such as joint or axis.
        unit: The declared unit.
        ending: The last words, if they spell a unit; empty if they do not, or if a unit is declared.
        named: Whether the name names a joint, or its number.
    """
    known = known_unit(unit or _ENDINGS.get(ending))
    if known is None:
        return word, unit
    unit = unit or _ENDINGS[ending]
    # the quantity by the words, also by words that count only together with a unit (a load in per cent says nothing)
    with_unit = None if known.dimension == "share" else next(
        (_QUANTITY_WITH_UNIT[x] for x in core if x in _QUANTITY_WITH_UNIT), None
    )  # fmt: skip
    by_words = word or with_unit
    if by_words is not None and known.dimension in ACCEPTED["effort" if by_words == "force" else by_words]:
        return "effort" if known.dimension == "torque" else by_words, unit
    # words and unit disagree, or there are no words
    by_unit = _QUANTITY_OF.get(known.dimension)
    if not ending:
        return by_unit if named or word is not None or by_unit == "time" else None, unit
    is_one_letter = word is not None and not any(len(said) > 1 for said in core if said in WORDS[word])
    # a unit of one letter at the end (s, m, n, a) may be a word of its own, and currents are not judged by it
    is_clear = by_unit in ("position", "velocity", "effort") and len(ending) > 1
    if is_clear and ((word is None and named) or is_one_letter or (word, by_unit) == ("position", "velocity")):
        return by_unit, unit
    return word, None


def _number_place(words: tuple[str, ...]) -> int | None:
    """Index of the word that is the joint's number: the last one behind a word for joints, else the last number."""
    numbers = [k for k, word in enumerate(words) if word.isdigit()]
    behind_joint = [k for k in numbers if k and words[k - 1] in WORDS["joint"]]
    candidates = behind_joint or numbers
    return candidates[-1] if candidates else None


def _unit_at_end(words: tuple[str, ...]) -> str:
    """The longest last words that spell a unit, joined by underscores; empty where none do."""
    plain = [word for word in words if word != "#"]
    # units have three words at most, and the first word of a name is no unit
    tails = ("_".join(plain[k:]) for k in range(max(1, len(plain) - 3), len(plain)))
    return next((tail for tail in tails if tail in _ENDINGS), "")
