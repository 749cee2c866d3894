"""A robot as a TOML table of Denavit-Hartenberg rows, as papers print it.

::

    convention = "modified"       # "standard"; or "khalil": modified, with Khalil's letters d and r for a and d
    angles = "degrees"            # or "radians"

    [[joint]]
    name = "shoulder"
    alpha = -90
    a = 0.4
    theta = 0                     # of a revolute joint: added to its position
    d = 0.1                       # of a prismatic joint: added to its position

Every number that a row leaves out is zero. See `JointRow` for what else a row may state.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
import numpy as np

from dynid.checks import LARGEST
from dynid.errors import DescriptionError
from dynid.robot.formats.dh import DH, StandardDH, from_dh
from dynid.robot.inertia import Inertia, inertia_about_com
from dynid.robot.model import STANDARD_GRAVITY, Robot
from dynid.robot.parts import JointLimits, check_held
from dynid.safe_files.records import as_record
from dynid.safe_files.small_files import read_toml
from dynid.terms.base import StateTerm
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

Convention = Literal["standard", "modified", "khalil"]
AngleUnit = Literal["degrees", "radians"]
JointType = Literal["revolute", "prismatic"]
Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
"""A finite number whose cube does not overflow."""
REMEDY = "docs/my-robot.md shows a whole table."


class JointRow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One ``[[joint]]``: its geometry, and what is known of its limits, its link and its drive.

    Lengths are in metres, angles in the unit that the table names in `angles`.
    """

    name: str = ""
    """Name of the joint; ``joint1``, ``joint2``, ... by default."""
    type: JointType = "revolute"
    a: Number = 0.0
    """Distance of the z axes along x [m]."""
    alpha: Number = 0.0
    """Angle of the z axes about x."""
    d: Number = 0.0
    """Distance of the x axes along z [m]; with Khalil's letters that of the z axes, which others call a."""
    theta: Number = 0.0
    """Angle of the x axes about z."""
    r: Number = 0.0
    """Khalil's letter for the distance of the x axes along z [m], which others call d."""
    lower: Number | None = None
    """Smallest position [m or `angles`]."""
    upper: Number | None = None
    """Largest position [m or `angles`]."""
    velocity: Number | None = None
    """Largest speed [m/s or `angles` per second]."""
    acceleration: Number | None = None
    """Largest acceleration [m/s^2 or `angles` per second squared]."""
    effort: Number | None = None
    """Largest torque or force [N m or N]."""
    mass: Number = 0.0
    """Mass of the link that this joint moves [kg]."""
    com: tuple[Number, Number, Number] = (0.0, 0.0, 0.0)
    """Centre of mass of that link [m] in the frame of this row."""
    inertia: tuple[Number, Number, Number, Number, Number, Number] = (0.0,) * 6
    """XX, XY, XZ, YY, YZ, ZZ about the centre of mass, in the axes of this row's frame [kg m^2]."""
    parameters: Annotated[list[Number], msgspec.Meta(min_length=10, max_length=10)] | None = None
    """Alternative to mass, com and inertia, used in papers: XX, XY, XZ, YY, YZ, ZZ [kg m^2], MX, MY, MZ [kg m], M [kg]
    about the origin of this row's frame."""
    rotor_inertia: Number | None = None
    """Inertia of the rotor at the joint side [kg m^2 or kg]."""
    viscous: Number | None = None
    """Viscous friction [N m s/rad or N s/m]."""
    coulomb: Number | None = None
    """Dry friction [N m or N]."""
    offset: Number | None = None
    """Offset of the measured torque [N m or N]."""

    def geometry(self, convention: str) -> DH | StandardDH:
        """Make the DH row of the geometry, with angles in the table's unit."""
        sigma = 1 if self.type == "prismatic" else 0
        if convention == "standard":
            return StandardDH(a=self.a, alpha=self.alpha, d=self.d, theta=self.theta, sigma=sigma)
        d, r = (self.d, self.r) if convention == "khalil" else (self.a, self.d)
        return DH(d=d, alpha=self.alpha, r=r, theta=self.theta, sigma=sigma)

    def limits(self, unit: float) -> JointLimits:
        """Convert the limits to SI units; ``unit`` is the table's unit of angles [rad]."""
        unit = 1.0 if self.type == "prismatic" else unit
        found = {name: getattr(self, name) for name in ("lower", "upper", "velocity", "acceleration")}
        scaled = {name: unit * value for name, value in found.items() if value is not None}
        return JointLimits(**scaled, **({} if self.effort is None else {"effort": self.effort}))

    def link(self) -> Inertia:
        """Make the mass properties of the link, in the frame of the row."""
        if self.parameters is not None:
            return Inertia.from_vector(self.parameters)
        xx, xy, xz, yy, yz, zz = self.inertia
        return inertia_about_com(self.mass, self.com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def terms(self) -> list[StateTerm]:
        """Make the terms (friction, rotor inertia, offset) for which the row has a value."""
        kinds: dict[str, type[StateTerm]]
        kinds = {"rotor_inertia": RotorInertia, "viscous": Viscous, "coulomb": Coulomb, "offset": Offset}
        return [kind(value) for name, kind in kinds.items() if (value := getattr(self, name)) is not None]


# the keys and their values, for error messages
_KEYS = (
    f"convention is {' or '.join(get_args(Convention))}; angles are {' or '.join(get_args(AngleUnit))}. "
    f"A joint has {', '.join(JointRow.__struct_fields__)}."
)


class DHTable(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The content of the file."""

    convention: Convention
    """Which lengths and angles a row states; see the top of this module."""
    angles: AngleUnit
    """Unit of all angles."""
    joint: Annotated[list[JointRow], msgspec.Meta(min_length=1, max_length=100)]
    """One row per joint, from the base outwards."""
    name: str = ""
    """Name of the robot; that of the file by default."""
    gravity: tuple[Number, Number, Number] = STANDARD_GRAVITY
    """Acceleration of free fall in frame 0 [m/s^2]."""


def read_dh(path: str | os.PathLike[str], *, hold: Mapping[str, float] | None = None) -> Robot:
    """Read a robot from a TOML table of DH rows.

    Args:
        path: The file.
        hold: Joint name -> position [rad or m] at which the joint is fixed.

    Raises:
        DescriptionError: The file cannot be read, or the table is wrong; the error names the joint.
    """
    content = read_toml(path, error=DescriptionError, remedy=REMEDY)
    try:
        table = as_record(content, DHTable, error=DescriptionError, remedy=f"{_KEYS} {REMEDY}")
        robot = _build(table, table.name or Path(path).stem)
    except DescriptionError as error:
        raise DescriptionError(error.reason, path=path, place=error.place, remedy=error.remedy or REMEDY) from None
    held = hold or {}
    check_held(held, robot.joint_names)
    return replace(robot, joints=tuple(j.held_at(held[j.name]) if j.name in held else j for j in robot.joints))


def _build(table: DHTable, name: str) -> Robot:
    """Build the robot of a table; a letter that the convention does not have is refused."""
    degrees = table.angles == "degrees"
    limits = list[JointLimits]()
    foreign_letter = {"khalil": "a", "modified": "r", "standard": "r"}[table.convention]
    for number, row in enumerate(table.joint, start=1):
        if getattr(row, foreign_letter):
            raise DescriptionError(
                f"the convention '{table.convention}' has no '{foreign_letter}'",
                place=f"joint {number}",
                remedy='Write a, alpha, d, theta; Khalil\'s alpha, d, theta, r need convention = "khalil".',
            )
        try:
            limits.append(row.limits(np.pi / 180.0 if degrees else 1.0))
        except DescriptionError as error:
            raise DescriptionError(error.reason, place=f"joint {number}", remedy=error.remedy) from None
    return from_dh(
        [row.geometry(table.convention) for row in table.joint],  # type: ignore[arg-type]
        degrees=degrees,
        gravity=table.gravity,
        name=name,
        names=[row.name or f"joint{number}" for number, row in enumerate(table.joint, start=1)],
        inertias=[row.link() for row in table.joint],
        limits=limits,
        terms=[row.terms() for row in table.joint],
    )
