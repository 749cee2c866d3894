"""The units that a log may declare, and the factor (for temperatures also the zero) that converts each to SI.

Channel maps and names of columns state units as texts. `parse_unit` gives the `Unit` of a text and refuses those that
do not belong to the quantity; `declared_unit` finds a unit in brackets in the name of a column.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dynid.errors import DataError

_BRACKETED = re.compile(r"(.*?)\s*[\[(]\s*([A-Za-z%°/·. ]{1,12})\s*[\])]\s*")
"""Name of a column that ends with a unit in brackets: the name and the unit."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of a log."""

    dimension: str
    """Physical dimension, such as ``angle``."""
    factor: float
    """Value of one such unit in SI units."""
    si: str
    """The SI unit that it is converted to; of temperatures the degree Celsius."""
    zero: float = 0.0
    """Value in the SI unit of zero in this unit; other than 0 for scales of temperature only."""


# (dimension, SI unit) -> name of a unit, without blanks and dots -> its value in the SI unit
_TABLE: dict[tuple[str, str], dict[str, float]] = {
    ("time", "s"): {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    ("angle", "rad"): {
        "rad": 1.0,
        "mrad": 1e-3,
        "deg": math.pi / 180,
        "Grad": math.pi / 180,
        "mdeg": math.pi / 180e3,
        "rev": 2 * math.pi,
    },
    ("length", "m"): {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "um": 1e-6},
    ("angular velocity", "rad/s"): {
        "rad/s": 1.0,
        "mrad/s": 1e-3,
        "deg/s": math.pi / 180,
        "Grad/s": math.pi / 180,
        "rpm": math.pi / 30,
        "U/min": math.pi / 30,
        "rev/s": 2 * math.pi,
    },
    ("velocity", "m/s"): {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2, "mm/min": 1e-3 / 60},
    ("torque", "N m"): {"Nm": 1.0, "mNm": 1e-3, "Nmm": 1e-3, "Ncm": 1e-2, "kNm": 1e3},
    ("force", "N"): {"N": 1.0, "mN": 1e-3, "kN": 1e3},
    ("current", "A"): {"A": 1.0, "mA": 1e-3},
    ("voltage", "V"): {"V": 1.0, "mV": 1e-3},
    ("number", "number"): {"number": 1.0},
    ("SI", "SI"): {"SI": 1.0},
    ("temperature", "degC"): {"degC": 1.0, "C": 1.0, "K": 1.0, "degF": 5.0 / 9.0},
    ("share", "1"): {"%": 1e-2, "permille": 1e-3, "1": 1.0},
}

_ZEROS = {"K": -273.15, "degF": -32.0 * 5.0 / 9.0}
"""Zeros of the other scales of temperature [degC]."""
UNITS: dict[str, Unit] = {
    name: Unit(dimension, factor, si, _ZEROS.get(name, 0.0))
    for (dimension, si), units in _TABLE.items()
    for name, factor in units.items()
}
"""Every unit by its name without blanks and dots: ``Nm``, ``deg/s``, ``%``."""

ACCEPTED: dict[str, tuple[str, ...]] = {
    "time": ("time",),
    "position": ("angle", "length", "SI"),
    "reference": ("angle", "length", "SI"),
    "velocity": ("angular velocity", "velocity", "SI"),
    "effort": ("torque", "force", "share", "SI"),
    "current": ("current", "share"),
    "wrench": ("force", "torque", "SI"),
    "reference_velocity": ("angular velocity", "velocity", "SI"),
    "enabled": ("number",),
    "kp": ("number",),
    "kd": ("number",),
    "supply": ("voltage",),
    "temperature": ("temperature",),
}
"""Quantity of a log -> dimensions that its unit may have. A share (per cent) needs a rated value; "SI" stands for rad
or m, N m or N, whichever the joint has, as in messages of ROS. A "number" is in a unit of the drive, as a gain."""


def declared_unit(name: str) -> tuple[str, str | None]:
    """Split a column's name from the unit behind it in brackets: ``q1 [deg]`` gives ``q1`` and ``deg``.

    Without a known unit in brackets the result is the whole name, and None.
    """
    match = _BRACKETED.fullmatch(name)
    return (match[1], match[2].strip()) if match and _plain(match[2]) in UNITS else (name, None)


def _plain(text: str) -> str:
    """Write a unit's name without blanks, dots and multiplication signs, and "deg" for the degree sign."""
    return "".join(letter for letter in text.replace("°", "deg") if letter not in " .*·_⋅")


def known_unit(text: str | None) -> Unit | None:
    """Find the unit of a name, which is the same for ``Nm`` and ``N m``; None if it is unknown."""
    return UNITS.get(_plain(text or ""))


def parse_unit(text: str, quantity: str) -> Unit:
    """Find the unit of a name; blanks, dots and multiplication signs do not matter ("N m", "N·m").

    Args:
        text: The name of the unit.
        quantity: The quantity that it should belong to, a key of `ACCEPTED`.

    Raises:
        DataError: The unit is unknown, or not one of this quantity; the remedy lists those that are.
    """
    unit = known_unit(text)
    accepted = [name for name, candidate in UNITS.items() if candidate.dimension in ACCEPTED[quantity]]
    if unit is None or unit.dimension not in ACCEPTED[quantity]:
        raise DataError(f"'{text}' is no unit of {quantity}", remedy=f"Use one of: {', '.join(accepted)}.")
    return unit
