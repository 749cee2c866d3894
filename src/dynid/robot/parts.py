"""The parts of a robot: links, joints with their limits, and terms placed on joints.

A term is a contribution to the joint torques other than the links' (friction, rotor inertia, offset, ...), with one
parameter. `dynid.robot.model.Robot` joins links and joints into a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats, ReadOnly
from dynid.errors import ArgumentError, DescriptionError
from dynid.robot.inertia import Inertia
from dynid.spatial import SAME, rotation_about, snap, transform
from dynid.terms.base import RecordableTerm, StateTerm

JointKind = Literal["revolute", "continuous", "prismatic", "fixed"]

UNBOUNDED = 1e9
"""Limits of this size or more, in SI units, mean that there is no limit, because URDF cannot state infinity
(convention)."""
ROUNDED_RAD = 1e-5
"""Largest error of an angle [rad] that was written with few digits, such as 1.5708 (convention)."""
SMALLEST_LINK_M = 0.1
"""Smallest length that checks take as the size of a link [m] (convention)."""


def is_rotation(R: Floats) -> bool:
    """Whether a matrix (3, 3) is a rotation, within the rounding of files."""
    return bool(np.allclose(R @ R.T, np.eye(3), atol=1e-6) and np.linalg.det(R) >= 0)


def freeze_array(values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Copy finite numbers of that shape into a read-only array."""
    array = np.array(values, dtype=float)
    if array.shape != shape or not np.isfinite(array).all():
        raise DescriptionError(f"expected finite numbers of shape {shape}, got {np.asarray(values).tolist()}")
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLimits:
    """How far, fast and hard a joint may move; infinite where unknown."""

    lower: float = -np.inf
    """Smallest position [rad or m]."""
    upper: float = np.inf
    """Largest position [rad or m]."""
    velocity: float = np.inf
    """Largest speed [rad/s or m/s]."""
    acceleration: float = np.inf
    """Largest acceleration [rad/s^2 or m/s^2]."""
    effort: float = np.inf
    """Largest torque or force [N m or N]."""

    def __post_init__(self) -> None:
        """Refuse limits that no motion satisfies."""
        if not self.lower <= self.upper:
            raise DescriptionError(
                f"the lower limit {self.lower:g} exceeds the upper limit {self.upper:g}",
                remedy="Exchange them, if they were swapped.",
            )
        for name in ("velocity", "acceleration", "effort"):
            if not getattr(self, name) >= 0.0:
                raise DescriptionError(
                    f"the {name} limit is {getattr(self, name):g}", remedy="Give zero or more; limits have no sign."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A rigid part of the robot with a frame fixed to it."""

    name: str
    """Name, different from those of all other links."""
    inertia: Inertia = field(default_factory=Inertia.zero)
    """Mass properties in the link frame."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joint(ReadOnly):
    """A connection of two links: at position zero the child frame is at ``T_parent_joint`` in the parent's frame."""

    name: str
    """Name, different from those of all other joints."""
    kind: JointKind
    """``continuous`` is a revolute joint without limits of position."""
    parent: str
    """Name of the parent link."""
    child: str
    """Name of the child link."""
    T_parent_joint: Floats = field(default_factory=lambda: np.eye(4))
    """(4, 4) pose of the child frame in the parent link's frame at position zero; lengths in m."""
    axis: Floats = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    """(3,) unit axis in the child frame."""
    limits: JointLimits = JointLimits()
    """Limits of its motion."""
    terms: tuple[StateTerm, ...] = ()
    """Friction, rotor inertia, offset and others, each kind at most once; see `dynid.terms`."""

    def __post_init__(self) -> None:
        """Check and freeze the geometry; entries within 1e-14 of -1, 0, 1 become exact."""
        if self.kind not in ("revolute", "continuous", "prismatic", "fixed"):
            raise DescriptionError(
                f"joint kind {self.kind!r} is not supported",
                place=f"joint '{self.name}'",
                remedy="Use revolute, continuous, prismatic or fixed.",
            )
        T = np.array(self.T_parent_joint, dtype=float)
        axis = freeze_array(self.axis, (3,))
        R = T[:3, :3] if T.shape == (4, 4) else np.zeros((3, 3))
        if not np.isfinite(T).all() or not is_rotation(R):
            raise DescriptionError("placement is not a rigid transform (4, 4)", place=f"joint '{self.name}'")
        if self.kind != "fixed" and not np.linalg.norm(axis) > SAME:
            raise DescriptionError("the axis has no direction", place=f"joint '{self.name}'")
        length = float(np.linalg.norm(axis))
        T[:3, :3] = snap(R)
        object.__setattr__(self, "T_parent_joint", freeze_array(T, (4, 4)))
        object.__setattr__(self, "axis", freeze_array(snap(axis / length) if length > SAME else axis, (3,)))

    def with_terms(self, terms: tuple[StateTerm, ...]) -> Joint:
        """A copy of the joint with other terms."""
        changed = copy(self)  # not `replace`, which would check the geometry once more
        object.__setattr__(changed, "terms", terms)
        return changed

    def held_at(self, position: float) -> Joint:
        """A copy of the joint that is fixed at a position [rad or m]; a fixed joint stays as it is.

        Raises:
            ArgumentError: The position is beyond the joint's limits; zero is accepted in any case.
        """
        if self.kind == "fixed":
            return self
        low = self.limits.lower
        high = self.limits.upper
        unit = "m" if self.kind == "prismatic" else "rad"
        if position and low < high and not low <= position <= high:
            raise ArgumentError(
                f"joint '{self.name}' cannot be held at {position:g} {unit}: its limits are "
                f"{low:g} and {high:g} {unit}",
                remedy=f"Give a position between them, in {unit}; {'mm' if unit == 'm' else 'degrees'} are not meant.",
            )
        if self.kind == "prismatic":
            motion = transform(np.eye(3), position * self.axis)
        else:
            motion = transform(rotation_about(self.axis, position), np.zeros(3))
        return replace(self, kind="fixed", T_parent_joint=self.T_parent_joint @ motion, limits=JointLimits(), terms=())

    @property
    def moves(self) -> bool:
        """Whether the joint has a position that can change."""
        return self.kind != "fixed"


@dataclass(frozen=True, slots=True)
class PlacedTerm:
    """A term of a robot, with the joints it acts on: one parameter, and so one column of the regressor."""

    term: RecordableTerm
    """The term with its value."""
    joints: tuple[int, ...]
    """Indices of the joints, from 0."""
    owner: str
    """Name of the joint; of a term of several joints, their names joined by ``+``."""

    @property
    def number(self) -> int:
        """Number of the joint, from 1, for names of parameters; of several joints, that of the last."""
        return max(self.joints) + 1

    @property
    def speeds(self) -> dict[int, float]:
        """Joint index -> ratio: speed of the friction surface or rotor per speed of that joint."""
        return dict(zip(self.joints, self.term.speeds, strict=True))


def check_held(hold: Mapping[str, float], joints: Iterable[str]) -> None:
    """Refuse a table of joints to fix (name -> position) with unknown joints, or positions that are not finite."""
    known = list(joints)
    for name, position in hold.items():
        if name not in known:
            raise ArgumentError(
                f"hold names the joint '{name}', which the description does not have",
                remedy=f"Its joints are: {', '.join(known[:40])}.",
            )
        if not np.isfinite(position):
            raise ArgumentError(f"joint '{name}' cannot be held at {position}", remedy="Give a finite position.")
