"""Terms that depend on the links' torques: load-dependent friction, base tilt, faults of drives and torque sensors.

They are linear in their own parameter only, so the torques in them are those of a `Reference`: the prior robot or an
earlier fit. No tape records them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dynid.arrays import Floats
from dynid.spatial import across
from dynid.terms.base import (
    JointTerm,
    LinkTorques,
    Motion,
    PresentMotion,
    Reference,
    SteadyMotion,
    Surface,
    Term,
)
from dynid.terms.smoothing import hold_within


@dataclass(frozen=True, kw_only=True)
class LoadFriction(Term):
    """Dry friction that grows with the load: ``|torque|`` times the friction's own column.

    The torque of the links is the load: what presses the teeth of a gear on one another is what they
    pass on, without the friction of the motor's side and what its rotor takes.
    """

    friction: JointTerm
    """How the friction depends on the joint's motion."""
    reference: Reference
    """Parameters that give the load; those of the robot's own terms are zero where the links alone press."""
    limit: float = np.inf
    """Load beyond which the friction stays as it is there [N m or N]: the largest that data have shown."""
    symbol: ClassVar[str] = "*T"
    base_unit: ClassVar[str] = "1"
    is_non_negative: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return f"{self.friction.name}*T"

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        return self.friction.acts_on(joint_names)

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        torque = links.torque(self.reference, motion)
        return {j: self._pressing(torque[:, j]) * column for j, column in self.friction.column(links, motion).items()}

    def surface(self, joint_names: Sequence[str]) -> Surface | None:
        return self.friction.surface(joint_names)

    def steady_torque(self, steady: SteadyMotion) -> Floats:
        return np.minimum(steady.load, self.limit) * self.friction.steady_torque(steady)

    @property
    def memory_size(self) -> int:
        return self.friction.memory_size

    def begin(self, state: PresentMotion) -> list[Any]:
        return self.friction.begin(state)

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        columns, remembered = self.friction.advance(state, memory)
        torque = state.torque(self.reference)
        return {j: self._pressing(torque[j]) * column for j, column in columns.items()}, remembered

    def _pressing(self, torque: Any) -> Any:
        return np.abs(hold_within(torque, self.limit))


@dataclass(frozen=True, kw_only=True)
class BaseTilt(Term):
    """A base that does not stand upright: gravity turned by a small angle about one of two horizontal axes."""

    axis: Literal[0, 1]
    """Index of the horizontal axis, see `horizontal_axes`."""
    reference: Reference
    symbol: ClassVar[str] = "TILT"
    base_unit: ClassVar[str] = "rad"

    @property
    def name(self) -> str:
        return f"TILT{'XY'[self.axis]}"

    def unit_for(self, *, prismatic: bool) -> str:
        return self.base_unit

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        return tuple(range(len(joint_names)))

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        turned = np.cross(horizontal_axes(links.gravity)[self.axis], links.gravity)
        torque = links.gravity_torque(self.reference, motion, turned)
        return {j: torque[:, j] for j in range(torque.shape[1])}

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        turned = np.cross(horizontal_axes(state.gravity)[self.axis], state.gravity)
        return dict(enumerate(state.gravity_torque(self.reference, turned))), []


def horizontal_axes(gravity: Floats) -> Floats:
    """(2, 3) two unit vectors across gravity and each other, root link's frame."""
    down = gravity / np.linalg.norm(gravity)
    first = np.cross(down, across(down))
    return np.array([first, np.cross(down, first)])


@dataclass(frozen=True, kw_only=True)
class DriveGain(Term):
    """A relative error of the gain of a drive or torque sensor: proportional to the torque of one joint.

    All gains together are not separable from the masses: leave out that of one joint, which sets the scale.
    """

    joint: int
    """Index of the drive's or sensor's joint, from 0."""
    reference: Reference
    symbol: ClassVar[str] = "KG"
    base_unit: ClassVar[str] = "1"

    @property
    def name(self) -> str:
        return f"{self.symbol}{self.joint + 1}"

    @property
    def felt(self) -> int:
        """Index of the joint whose torque is felt."""
        return self.joint

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        return (self.joint,)

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        return {self.joint: links.torque(self.reference, motion)[:, self.felt]}

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        return {self.joint: state.torque(self.reference)[self.felt]}, []


@dataclass(frozen=True, kw_only=True)
class CrossTalk(DriveGain):
    """A torque sensor that also feels another joint's torque."""

    source: int
    """Index of the joint that it feels."""
    symbol: ClassVar[str] = "XT"

    @property
    def name(self) -> str:
        return f"{super().name}_{self.source + 1}"

    @property
    def felt(self) -> int:
        return self.source
