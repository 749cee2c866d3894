"""`ServoModel`: which parameters of a robot's servos are known, which are to be found, and which joints share them.

Users make it directly, or by `read_servo_model` from a file; simulation and identification of servos read it. n is the
number of joints. Three words:

- a *kind* is a physical quantity of a servo, such as ``viscous`` friction, with unit, first guess and bounds
  (catalogue in dynid.servos.kinds);
- a *parameter* is a kind in a model, with values, bounds and sharing as the user states them (`ServoParameter`);
- an *entry* is one unknown number of a fit: the value of a kind in one joint, or in several that share it (`Entry`).

`ServoModel.entries` lists the P unknowns, and `ServoModel.table` turns P numbers into the values of all kinds, (n,)
each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.servos.drive_laws import DriveLaw
from dynid.servos.kinds import DELAY, KINDS, LINKS, ParameterKind, kind_of

EVERYWHERE = ("armature", "viscous", "coulomb", "breakaway", "stribeck_speed", "load_drive", "load_external", "zero",
              "offset", DELAY, *LINKS)  # fmt: skip
"""Names of the kinds that every law allows."""


@dataclass(frozen=True, slots=True, eq=False)
class ServoParameter:
    """One kind of parameter in a model: with one value for each joint, for groups of joints, or for all joints."""

    kind: str
    """Name of the kind, see `dynid.servos.kinds.KINDS`."""
    start: ArrayLike | None = None
    """Value, or first guess if free: one number or (n,); that of the kind by default."""
    free: bool = True
    """Whether it is to be found; otherwise it stays at `start`."""
    share: Literal["all"] | tuple[tuple[str, ...], ...] = ()
    """Which joints have a common value: "all", or groups of joint names; joints in no group have their own."""
    lower: float | None = None
    """Smallest value; that of the kind by default."""
    upper: float | None = None
    """Largest value; that of the kind by default."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One unknown number of a fit: the common value of a kind in some joints."""

    kind: str
    """Name of the kind."""
    joints: tuple[int, ...]
    """Indices of the joints."""
    name: str
    """Name for tables, such as ``armature FL_calf_joint``, or ``delay`` for all joints."""
    unit: str
    """Unit of the value."""
    start: float
    """First guess."""
    lower: float
    """Smallest value."""
    upper: float
    """Largest value."""
    scale: float
    """Change of the value that counts as one unit when the fit judges how well the entry is known."""


@dataclass(frozen=True, eq=False)
class ServoModel:
    """A robot on a fixed base, the law of its drives, and the parameters of its servos."""

    robot: Robot
    """Geometry and links; its own terms are not used."""
    law: DriveLaw
    """Law of every joint's drive."""
    parameters: Sequence[ServoParameter | str] = ("armature", "viscous", "coulomb")
    """The kinds that the servos have; the name of a kind alone stands for one free value in each joint."""
    step_s: float = 0.0025
    """Longest time step of the simulation [s]; tests/servos/test_servo_accuracy.py compares with half of it."""
    _declared: dict[str, ServoParameter] = field(init=False, repr=False)
    """Name of a kind -> its parameter, for those given and for those that have to be added (`_needed`)."""

    def __post_init__(self) -> None:
        """Refuse parameters that the law does not have, that come twice, or have wrong values; add those needed."""
        table: dict[str, ServoParameter] = {}
        for given in self.parameters:
            parameter = ServoParameter(given) if isinstance(given, str) else given
            kind_of(parameter.kind)
            if parameter.kind in table:
                raise ArgumentError(f"the parameter '{parameter.kind}' comes twice", remedy="Give it once.")
            if parameter.kind not in (*EVERYWHERE, *self.law.kinds):
                raise ArgumentError(
                    f"{type(self.law).__name__} has no parameter '{parameter.kind}'",
                    remedy=f"Choose among {', '.join((*EVERYWHERE, *self.law.kinds))}.",
                )
            table[parameter.kind] = parameter
        for missing in self._missing_kinds(table):
            table[missing] = ServoParameter(missing, free=False)
        object.__setattr__(self, "_declared", table)
        as_number("step_s", self.step_s, above=0.0)
        for parameter in table.values():
            self._check_numbers(parameter)
        _ = self.entries  # computed here because it refuses values that joints cannot share

    def _check_numbers(self, parameter: ServoParameter) -> None:
        """Refuse starts outside bounds, and bounds that cross."""
        for j, start in enumerate(self.starts(parameter.kind)):
            lower, upper = self._range(parameter, j)
            if not lower <= upper:
                raise ArgumentError(
                    f"the bounds of '{parameter.kind}' are {lower:g} and {upper:g}",
                    remedy="Give the smaller one as lower.",
                )
            if parameter.free and parameter.start is not None and not lower <= start <= upper:
                raise ArgumentError(
                    f"the start of '{parameter.kind}' is {parameter.start!r}, outside its bounds {lower:g} and "
                    f"{upper:g}",
                    remedy="Start within the bounds, or give other bounds (lower, upper).",
                )

    def _missing_kinds(self, table: dict[str, ServoParameter]) -> list[str]:
        """List the kinds that are missing though others of the model, or its law, have no meaning without them."""
        pairs = {"breakaway": "stribeck_speed", "stall_torque": "no_load_speed"}
        wanted = [needed for given, needed in pairs.items() if given in table]
        wanted += [kind for kind in ("kt", "resistance") if kind in self.law.kinds]
        return [kind for kind in wanted if kind not in table]

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return self.robot.dof

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds in the equations of motion, in the order of the catalogue."""
        return tuple(name for name in KINDS if name in self._declared and name != DELAY)

    def starts(self, kind: str) -> Floats:
        """Return the values (n,) of a kind, or its first guesses if it is free.

        A kind that the model does not have gets its neutral value, at which it has no effect.
        """
        parameter = self._declared.get(kind)
        kinds = [self._kind(kind, j) for j in range(self.dof)]
        if parameter is None:
            return np.array([one.neutral for one in kinds])
        # a parameter without a start: first guess if it is free, else neutral; no stribeck_speed is neutral
        is_guess = parameter.free or kind == "stribeck_speed"
        default = [one.start if is_guess else one.neutral for one in kinds]
        if is_guess and kind == "effort_limit":  # the limits in the robot's file are better guesses
            limits = [joint.limits.effort for joint in self.robot.moving_joints]
            default = [limit if 0.0 < limit < np.inf else usual for limit, usual in zip(limits, default, strict=True)]
        array = np.asarray(default if parameter.start is None else parameter.start, dtype=float)
        if array.ndim > 1 or array.size not in (1, self.dof) or not np.isfinite(array).all():
            remedy = f"Give one number, or {self.dof}."
            raise ArgumentError(f"the start of '{kind}' is {parameter.start!r}", remedy=remedy)
        return np.array(np.broadcast_to(array, (self.dof,)))

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The P unknown numbers of a fit, kind after kind."""
        return tuple(
            entry for name in KINDS if name in self._declared for entry in self._entries_of(self._declared[name])
        )

    def _entries_of(self, parameter: ServoParameter) -> list[Entry]:
        """Make the entries of one parameter, one per group of joints that share a value; none if it is known."""
        if not parameter.free:
            return []
        names = self.robot.joint_names
        starts = self.starts(parameter.kind)
        entries = []
        for group in self._groups(parameter):
            kind = self._kind(parameter.kind, group[0])
            lower, upper = self._range(parameter, group[0])
            if any(self._kind(parameter.kind, j).unit != kind.unit for j in group):
                raise ArgumentError(
                    f"'{kind.name}' is shared by turning and sliding joints: {', '.join(names[j] for j in group)}",
                    remedy="Share it among joints of one kind, or name it under free.",
                )
            # the name of an entry shows its joints, unless it is common to all
            shown = "" if len(group) == self.dof > 1 else " " + "+".join(names[j] for j in group)
            start = float(np.clip(starts[list(group)].mean(), lower, upper))
            entries.append(Entry(kind.name, group, kind.name + shown, kind.unit, start, lower, upper, kind.scale))
        return entries

    @property
    def unit(self) -> str:
        """Unit of positions: rad, m, or both."""
        return " or ".join(sorted(set(self.robot.position_units), reverse=True))

    @cached_property
    def _slides(self) -> tuple[bool, ...]:
        """(n,) whether each joint is prismatic."""
        return tuple(unit == "m" for unit in self.robot.position_units)

    def _kind(self, name: str, joint: int) -> ParameterKind:
        """Look up a kind with the unit, first guess and bounds for a joint."""
        return kind_of(name, slides=self._slides[joint])

    def _range(self, parameter: ServoParameter, joint: int) -> tuple[float, float]:
        """Return the smallest and the largest value of a parameter in a joint."""
        kind = self._kind(parameter.kind, joint)
        lower = kind.lower if parameter.lower is None else parameter.lower
        return lower, kind.upper if parameter.upper is None else parameter.upper

    def _groups(self, parameter: ServoParameter) -> list[tuple[int, ...]]:
        """List the indices of the joints of each group that has one value; most groups are a single joint."""
        if parameter.share == "all":
            return [tuple(range(self.dof))]
        names = list(self.robot.joint_names)
        named = [name for group in parameter.share for name in group]
        for name in named:
            if name not in names or named.count(name) > 1:
                reason = f"{name} comes twice" if name in names else f"no joint is called {name}"
                remedy = f"Give each joint once, of {', '.join(names)}."
                raise ArgumentError(f"joints that share '{parameter.kind}': {reason}", remedy=remedy)
        groups = [tuple(names.index(name) for name in group) for group in parameter.share]
        grouped = {j for group in groups for j in group}
        return groups + [(j,) for j in range(self.dof) if j not in grouped]

    @property
    def start(self) -> Floats:
        """(P,) first guess of the entries."""
        return np.array([entry.start for entry in self.entries])

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """(P,) smallest and largest values of the entries."""
        return np.array([entry.lower for entry in self.entries]), np.array([entry.upper for entry in self.entries])

    def table(self, values: ArrayLike) -> dict[str, Floats]:
        """Return kind -> its values (n,) for values of the entries (P,).

        Kinds are those in the equations of motion, and the delay.
        """
        numbers = np.asarray(values, dtype=float)
        if numbers.shape != (len(self.entries),) or not np.isfinite(numbers).all():
            names = ", ".join(entry.name for entry in self.entries)
            raise ArgumentError(
                f"the values are {numbers.tolist()}", remedy=f"Give {len(self.entries)} finite numbers: {names}."
            )
        found = {kind: self.starts(kind) for kind in (*self.kinds, DELAY)}
        for entry, value in zip(self.entries, numbers, strict=True):
            found[entry.kind][list(entry.joints)] = value
        return found

    def with_values(self, values: ArrayLike) -> ServoModel:
        """Make the same model with other first guesses (P,) of its entries."""
        table = self.table(values)
        parameters = [replace(known, start=table[kind]) for kind, known in self._declared.items()]
        return replace(self, parameters=tuple(parameters))
