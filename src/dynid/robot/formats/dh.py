"""Build robots from Denavit-Hartenberg tables, modified and standard.

Modified (Khalil and Kleinfinger): ``T = Rx(alpha) Tx(d) Rz(theta) Tz(r)``; link frame j lies on axis j, at the near end
of the link. Standard: ``A = Rz(theta) Tz(d) Tx(a) Rx(alpha)``; link frame j lies on axis j + 1, at the far end.

The two conventions use the letter d for different lengths, so each has its own row type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.errors import ArgumentError, DescriptionError
from dynid.robot.inertia import Inertia
from dynid.robot.model import STANDARD_GRAVITY, Robot
from dynid.robot.parts import ROUNDED_RAD, Joint, JointKind, JointLimits, Link
from dynid.spatial import EXACT, rotation_about, snap, transform
from dynid.terms.base import StateTerm

_T = TypeVar("_T")
_X, _, _Z = np.eye(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row(ABC):
    """Base class of both kinds of rows."""

    alpha: float = 0.0
    """Angle from z_{j-1} to z_j [rad]."""
    theta: float = 0.0
    """Angle from x_{j-1} to x_j [rad], at q = 0."""
    sigma: int = 0
    """0 for a revolute joint, 1 for a prismatic one."""

    def __post_init__(self) -> None:
        """Refuse values that are no finite numbers, and a sigma other than 0 and 1."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float | np.integer | np.floating) or not np.isfinite(value):
                raise DescriptionError(
                    f"{field.name} is {value!r}", place=type(self).__name__, remedy="Give a finite number."
                )
        if self.sigma not in (0, 1):
            raise DescriptionError(
                f"sigma is {self.sigma}", place=type(self).__name__, remedy="Give 0 for revolute, 1 for prismatic."
            )

    @property
    @abstractmethod
    def T_previous_joint(self) -> Floats:
        """(4, 4) pose, at q = 0 in link frame j - 1, of the frame that joint j turns about its z or slides along it."""

    @property
    def kind(self) -> JointKind:
        """Kind of the joint."""
        return "prismatic" if self.sigma else "revolute"

    def in_radians(self) -> Self:
        """Convert a row whose angles are in degrees to radians."""
        return replace(self, alpha=np.deg2rad(self.alpha), theta=np.deg2rad(self.theta))


@dataclass(frozen=True, slots=True, kw_only=True)
class DH(_Row):
    """One joint in modified DH parameters; theta (or r, if prismatic) is the offset to which q is added.

    Here alpha is measured about x_{j-1} and theta about z_j.
    """

    d: float = 0.0
    """Distance from z_{j-1} to z_j along x_{j-1} [m]."""
    r: float = 0.0
    """Distance from x_{j-1} to x_j along z_j [m], at q = 0."""

    @property
    def T_previous_joint(self) -> Floats:
        # Rz(theta + q) Tz(r) = Tz(r) Rz(theta) Rz(q): the offset may stand before the motion
        return _screw(_X, self.alpha, self.d) @ _screw(_Z, self.theta, self.r)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardDH(_Row):
    """One joint in standard DH parameters; theta (or d, if prismatic) is the offset to which q is added.

    Here alpha is measured about x_j and theta about z_{j-1}.
    """

    a: float = 0.0
    """Distance from z_{j-1} to z_j along x_j [m]."""
    d: float = 0.0
    """Distance from x_{j-1} to x_j along z_{j-1} [m], at q = 0."""

    @property
    def T_previous_joint(self) -> Floats:
        return _screw(_Z, self.theta, self.d)

    @property
    def T_joint_link(self) -> Floats:
        """(4, 4) pose of link frame j in the frame that joint j moves."""
        return _screw(_X, self.alpha, self.a)


def from_dh(
    rows: Sequence[DH] | Sequence[StandardDH],
    *,
    gravity: ArrayLike = STANDARD_GRAVITY,
    name: str = "robot",
    inertias: Sequence[Inertia] | None = None,
    limits: Sequence[JointLimits] | None = None,
    terms: Sequence[Sequence[StateTerm]] | None = None,
    degrees: bool = False,
    names: Sequence[str] | None = None,
) -> Robot:
    """Build a serial robot ``base, link1, ..., linkn`` with joints ``joint1, ..., jointn`` from a DH table.

    In the modified convention body frame j is DH frame j. In the standard convention a joint does not turn about its
    link frame's origin; a massless link ``axisj`` on the joint's axis moves, and ``linkj`` is fixed to it at the
    standard frame and holds the inertia. The body's parameters are therefore reported in frame ``axisj``, which is the
    modified DH frame; ``inertia.in_frame(row.T_joint_link)`` is the exact map.

    Args:
        rows: One `DH` (modified) per joint, from the base outwards; or one `StandardDH` per joint.
        gravity: (3,) acceleration of free fall in frame 0 [m/s^2].
        name: The robot's name.
        inertias: One per link, in link frame j; no mass by default.
        limits: One per joint; none by default.
        terms: The terms of each joint (friction, rotor inertia, ...); none by default.
        degrees: Whether alpha and theta are given in degrees.
        names: Names of the joints; ``joint1``, ``joint2``, ... by default.

    Raises:
        ArgumentError: There are rows of both conventions, or not as many inertias, limits, terms or names as rows.
        DescriptionError: Without ``degrees`` an angle is above a whole turn, or with it a right angle in radians.

    Example:
        >>> dynid.from_dh([dynid.DH(d=0.5), dynid.DH(alpha=1.5708, r=0.1)])
        Robot('robot', 2 joints RR, 3 links, gravity (0, 0, -9.81) m/s^2)
    """
    n = len(rows)
    if not rows:
        raise DescriptionError("the DH table has no row", remedy="Give one row per joint.")
    kinds = sorted({type(row).__name__ for row in rows})
    if kinds not in (["DH"], ["StandardDH"]):
        raise ArgumentError(
            f"the rows are {' and '.join(kinds)}", remedy="Give DH rows alone, or StandardDH rows alone."
        )
    _check_angles(rows, degrees)
    inertias = _one_per_joint("inertias", inertias, [Inertia.zero()] * n)
    limits = _one_per_joint("limits", limits, [JointLimits()] * n)
    terms = _one_per_joint("terms", terms, [()] * n)
    names = _one_per_joint("names", names, [f"joint{j}" for j in range(1, n + 1)])
    links = [Link(name="base")]
    joints = []
    for j, row in enumerate(rows, start=1):
        row = row.in_radians() if degrees else row
        moving = f"link{j}" if isinstance(row, DH) else f"axis{j}"
        joints.append(
            Joint(
                name=names[j - 1],
                kind=row.kind,
                parent=links[-1].name,
                child=moving,
                T_parent_joint=row.T_previous_joint,
                limits=limits[j - 1],
                terms=tuple(terms[j - 1]),
            )
        )
        if isinstance(row, StandardDH):
            links.append(Link(name=moving))
            T = row.T_joint_link
            joints.append(Joint(name=f"frame{j}", kind="fixed", parent=moving, child=f"link{j}", T_parent_joint=T))
        links.append(Link(name=f"link{j}", inertia=inertias[j - 1]))
    return Robot(name=name, links=tuple(links), joints=tuple(joints), gravity=np.asarray(gravity, dtype=float))


def _check_angles(rows: Sequence[DH] | Sequence[StandardDH], degrees: bool) -> None:
    """Refuse angles that look like degrees where radians are meant, and the other way round."""
    for number, row in enumerate(rows, start=1):
        for name, angle in (("alpha", row.alpha), ("theta", row.theta)):
            quarters = round(angle / (np.pi / 2))
            if not degrees and abs(angle) > 2.0 * np.pi + EXACT:
                reason = f"{name} is {angle:g} rad, which is more than a whole turn"
                remedy = "Give radians, or degrees=True; in a file angles = 'degrees'."
                raise DescriptionError(reason, place=f"row {number}", remedy=remedy)
            is_right = quarters != 0 and abs(angle - quarters * np.pi / 2) <= ROUNDED_RAD
            if degrees and is_right and abs(angle) < 2.0 * np.pi + 1.0:
                reason = f"{name} is {angle:g} degrees, which is a right angle in radians"
                remedy = "Are they radians? Leave degrees=True out; in a file angles = 'radians'."
                raise DescriptionError(reason, place=f"row {number}", remedy=remedy)


def _one_per_joint(what: str, given: Sequence[_T] | None, default: Sequence[_T]) -> Sequence[_T]:
    """The given values, which must be as many as the joints, or the default for None; ``what`` names them."""
    if given is not None and len(given) != len(default):
        raise ArgumentError(
            f"{len(given)} {what} for {len(default)} joints",
            remedy=f"Give one of the {what} per row, or leave them out.",
        )
    return default if given is None else given


def _screw(axis: Floats, angle: float, length: float) -> Floats:
    """Compute the pose (4, 4) after a rotation about an axis through the origin and a shift along it.

    Entries of rotations by right angles are exactly -1, 0 and 1.
    """
    return transform(snap(rotation_about(axis, angle)), length * axis)
