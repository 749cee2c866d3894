"""The names, units and owners of a robot's parameters, one per column of its torque regressor.

`parameter_layout` lists them in the order of `Robot.parameter_vector`: ten inertial parameters per moving body, then
one per term. A term is a further contribution to the joint torques with one parameter: friction, rotor inertia, an
offset, a spring, or a motor that is coupled to several joints. Nearly all packages use the layout to name results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dynid.errors import ArgumentError
from dynid.lazy import cached_property
from dynid.robot.model import Robot
from dynid.terms.base import Dependence, Term

INERTIAL_SYMBOLS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
"""The ten inertial parameters of a body, about the origin of its frame and in its axes ([GautierKhalil1990] eq. (1)):
inertia tensor, first moments (mass times center of mass), mass."""
XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M = range(10)  # positions of these

INERTIAL_UNITS = ("kg m^2",) * 6 + ("kg m",) * 3 + ("kg",)
"""The unit of each of them."""

ParameterKind = Literal["inertia", "first moment", "mass", "term"]
"""``term``: of friction, a motor, a spring or a coupling."""

INERTIAL_KINDS: tuple[ParameterKind, ...] = ("inertia",) * 6 + ("first moment",) * 3 + ("mass",)
"""The kind of each of the ten."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One column of the regressor."""

    name: str
    """Symbol and number of the body or joint: ``XX2``, ``FV2``."""
    unit: str
    """SI unit, which differs between revolute and prismatic joints."""
    owner: str
    """Name of the link or, for a term, of the joint; several joints are joined by ``+``."""
    kind: ParameterKind
    """What it describes."""
    number: int
    """Number of the body or joint, from 1."""
    symbol: str
    """The name without the number."""
    dependence: Dependence | None = None
    """For a term, what its torque depends on, such as the velocity; None for the parameters of links."""

    @property
    def regrouped_name(self) -> str:
        """Name of the base parameter into which others were regrouped: ``ZZR1`` for ``ZZ1``."""
        return f"{self.symbol}R{self.name[len(self.symbol) :]}"


@dataclass(frozen=True)
class ParameterLayout:
    """All parameters in the order of `Robot.parameter_vector` and of the regressor's columns."""

    parameters: tuple[Parameter, ...]
    """(p,) one per column."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name per column."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def units(self) -> tuple[str, ...]:
        """One unit per column."""
        return tuple(parameter.unit for parameter in self.parameters)

    def index(self, name: str) -> int:
        """Column of the parameter of that name."""
        if name not in self._columns:
            known = ", ".join(self.names)
            raise ArgumentError(f"there is no parameter '{name}'", remedy=f"The parameters are: {known}.")
        return self._columns[name]

    @cached_property
    def _columns(self) -> dict[str, int]:
        """Name of a parameter -> its column."""
        return {name: column for column, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    def __getitem__(self, column: int) -> Parameter:
        return self.parameters[column]


def parameter_layout(robot: Robot) -> ParameterLayout:
    """The parameters of a robot: ten per body, then one per term, see `Robot.terms`.

    Example:
        >>> dynid.parameter_layout(robot).names[:3]
        ('XX1', 'XY1', 'XZ1')
    """
    rows = [
        Parameter(f"{symbol}{number}", unit, body.joint.child, kind, number, symbol)
        for number, body in enumerate(robot.bodies, start=1)
        for symbol, unit, kind in zip(INERTIAL_SYMBOLS, INERTIAL_UNITS, INERTIAL_KINDS, strict=True)
    ]
    for placed in robot.terms:
        term, number = placed.term, placed.number
        unit, name = term_unit(robot, term, placed.joints), f"{term.prefix}{number}"
        rows.append(Parameter(name, unit, placed.owner, "term", number, term.prefix, term.dependence))
    return ParameterLayout(_require_unique_names(rows))


def term_unit(robot: Robot, term: Term, joints: Sequence[int]) -> str:
    """Unit of a term's parameter if the term acts on the joints of these indices."""
    return term.unit_for(prismatic=all(robot.bodies[j].is_prismatic for j in joints))


def _require_unique_names(rows: list[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters.

    Raises:
        ArgumentError: Two of them have one name.
    """
    names = [row.name for row in rows]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ArgumentError(
            f"several parameters have the name {', '.join(repeated)}",
            remedy="Give a joint each term once, and couplings different last joints.",
        )
    return tuple(rows)
