"""The catalogue of parameters that a simulated servo can have, with units, first guesses and bounds.

A *kind* of parameter, such as ``viscous`` friction, stands for one number per joint. `KINDS` has those of revolute
joints, `SLIDES` those of prismatic ones, with other units and therefore other numbers. servo_step.py has the equations
of motion that contain the kinds, except ``delay``, which shifts the command in time. drive_laws.py has the formulas for
the torque of the drive, with gains, limits and motor constants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dynid.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class ParameterKind:
    """One kind of parameter: its meaning, and the values that it may have."""

    name: str
    """Name in models, tables and files."""
    unit: str
    """Unit of the value: that of revolute joints in `KINDS`, of prismatic ones in `SLIDES`."""
    meaning: str
    """Description, as a phrase."""
    neutral: float
    """Value at which it has no effect; for ``stribeck_speed``, ``kt`` and ``resistance``, which have none, a usual
    one."""
    start: float
    """First guess of a fit."""
    lower: float
    """Smallest value that is physically possible or plausible."""
    upper: float
    """Largest value that is plausible."""
    scale: float
    """Change that counts as one unit in a fit and in judging which parameters the data can distinguish."""


_TABLE = (
    # name, unit, meaning, neutral, start, lower, upper, scale
    ("armature", "kg m^2", "inertia of rotor and gears at the joint", 0.0, 0.01, 0.0, 10.0, 0.01),
    ("viscous", "N m s/rad", "viscous friction", 0.0, 0.1, 0.0, 100.0, 0.1),
    ("coulomb", "N m", "dry friction while sliding", 0.0, 0.1, 0.0, 100.0, 0.1),
    ("breakaway", "N m", "dry friction at rest, above that while sliding", 0.0, 0.02, 0.0, 100.0, 0.1),
    ("stribeck_speed", "rad/s", "speed over which breakaway friction fades", 0.1, 0.1, 1e-3, 10.0, 0.1),
    ("load_drive", "", "dry friction per drive torque", 0.0, 0.02, 0.0, 1.0, 0.1),
    ("load_external", "", "dry friction per gravity torque", 0.0, 0.02, 0.0, 1.0, 0.1),
    ("zero", "rad", "reading of the encoder at the description's zero", 0.0, 0.0, -0.5, 0.5, 0.05),
    ("offset", "N m", "constant torque", 0.0, 0.0, -10.0, 10.0, 0.1),
    ("delay", "s", "time from command to its effect, by the clock of the log", 0.0, 0.005, -0.02, 0.2, 0.005),
    ("gain_scale", "", "factor of all gains", 1.0, 1.0, 0.05, 20.0, 0.1),
    ("kp_scale", "", "factor of the gain of the position error", 1.0, 1.0, 0.05, 20.0, 0.1),
    ("kd_scale", "", "factor of the gain of the velocity error", 1.0, 1.0, 0.0, 20.0, 0.1),
    ("ki_scale", "", "factor of the gain of the integral", 1.0, 1.0, 0.0, 20.0, 0.1),
    ("effort_limit", "N m", "largest drive torque", 1e6, 10.0, 1e-3, 1e6, 1.0),
    ("stall_torque", "N m", "drive torque at rest that the supply allows", 1e6, 10.0, 1e-3, 1e6, 1.0),
    ("no_load_speed", "rad/s", "speed at which the supply allows no torque", 1e6, 30.0, 1e-2, 1e6, 1.0),
    ("kt", "N m/A", "torque per current and voltage per speed, at the joint", 1.0, 0.5, 1e-3, 50.0, 0.1),
    ("resistance", "Ohm", "resistance of the windings", 1.0, 4.0, 1e-2, 100.0, 1.0),
    ("current_limit", "A", "largest current", 1e6, 2.0, 1e-2, 1e6, 1.0),
    ("link_mass", "kg", "mass of the joint's body, above the description's", 0.0, 0.0, -5.0, 5.0, 0.1),
    ("link_mx", "kg m", "first moment of the body along x, above the description's", 0.0, 0.0, -1.0, 1.0, 0.01),
    ("link_my", "kg m", "first moment of the body along y, above the description's", 0.0, 0.0, -1.0, 1.0, 0.01),
    ("link_mz", "kg m", "first moment of the body along z, above the description's", 0.0, 0.0, -1.0, 1.0, 0.01),
    ("link_xx", "kg m^2", "moment of inertia about x, above the description's", 0.0, 0.0, -1.0, 1.0, 0.001),
    ("link_yy", "kg m^2", "moment of inertia about y, above the description's", 0.0, 0.0, -1.0, 1.0, 0.001),
    ("link_zz", "kg m^2", "moment of inertia about z, above the description's", 0.0, 0.0, -1.0, 1.0, 0.001),
)
"""Every kind for revolute joints. First guesses, bounds and scales are conventions for joints of a few N m; a model may
state others."""

KINDS = {row[0]: ParameterKind(*row) for row in _TABLE}
"""Name -> kind for revolute joints."""
RADIUS_M = 0.1
"""Radius by which numbers for revolute joints become numbers for prismatic ones [m]: torques over it are forces, angles
times it are distances (convention: slides of a few kilograms and tens of newtons)."""
_SLIDING = {
    "armature": ("kg", 2), "viscous": ("N s/m", 2), "coulomb": ("N", 1), "breakaway": ("N", 1),
    "stribeck_speed": ("m/s", -1), "zero": ("m", -1), "offset": ("N", 1), "effort_limit": ("N", 1),
    "stall_torque": ("N", 1), "no_load_speed": ("m/s", -1), "kt": ("N/A", 1),
}  # fmt: skip
"""Name of a kind -> unit in prismatic joints, and the power p: their numbers are larger by ``RADIUS_M ** -p``."""


def _sliding(kind: ParameterKind) -> ParameterKind:
    """Convert a kind from revolute to prismatic joints; values that mean "no effect" or "no limit" stay as they are."""
    if kind.name not in _SLIDING:
        return kind
    unit, power = _SLIDING[kind.name]
    factor = RADIUS_M ** (-power)
    is_limit = kind.neutral == kind.upper  # its upper bound means "no limit"
    neutral = kind.neutral if is_limit or kind.neutral == 0.0 else factor * kind.neutral
    found = replace(
        kind, unit=unit, neutral=neutral, start=factor * kind.start, lower=factor * kind.lower,
        upper=kind.upper if is_limit else factor * kind.upper, scale=factor * kind.scale,
    )  # fmt: skip
    # the zero of a slide may lie far away: it is often set at one of its ends
    return replace(found, lower=kind.lower, upper=kind.upper) if kind.name == "zero" else found


SLIDES = {name: _sliding(kind) for name, kind in KINDS.items()}
"""Name -> kind for prismatic joints."""
LINKS = {
    "link_xx": 0, "link_yy": 3, "link_zz": 5, "link_mx": 6, "link_my": 7, "link_mz": 8, "link_mass": 9,
}  # fmt: skip
"""Kind that changes the body of a joint -> place among the body's ten parameters XX XY XZ YY YZ ZZ MX MY MZ M."""
DELAY = "delay"
"""Name of the kind that shifts the command and is not in the equations of motion."""


def kind_of(name: str, *, slides: bool = False) -> ParameterKind:
    """Look up a kind by its name, for revolute or (``slides``) for prismatic joints.

    Raises:
        ArgumentError: There is no kind of that name.
    """
    if name not in KINDS:
        raise ArgumentError(f"there is no parameter '{name}' of a servo", remedy=f"Choose among {', '.join(KINDS)}.")
    return SLIDES[name] if slides else KINDS[name]


def milli(unit: str) -> str:
    """Write a thousandth of a unit of positions: mrad, mm, or both."""
    return " or ".join(f"m{word}" for word in unit.split(" or "))
