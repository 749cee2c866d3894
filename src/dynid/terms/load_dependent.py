"""Terms that depend on the links' torques: load-dependent friction, base tilt, faults of drives and torque sensors.

They are linear in their own parameter only, so the torques in them are those of a `Reference`: the prior robot or an
earlier fit. No tape records them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dynid.arrays import Floats
from dynid.terms.base import (
    JointTerm,
    LinkTorques,
    Motion,
    PresentMotion,
    Reference,
    SteadyMotion,
    Surface,
    Term,
    TermSizes,
)
from dynid.terms.friction import SPEEDS, SmoothSign


@dataclass(frozen=True, kw_only=True)
class LoadFriction(Term):
    """Dry friction that grows with the load: ``|torque|`` times the friction's own column.

    Selection takes the torque of the links for the load: what presses the teeth of a gear on one another is what they
    pass on, without the friction of the motor's side and what its rotor takes.
    """

    friction: JointTerm
    """How the friction depends on the joint's motion."""
    reference: Reference
    """Parameters that give the load; those of the robot's own terms are zero where the links alone press."""
    symbol: ClassVar[str] = "*T"
    base_unit: ClassVar[str] = "1"

    @property
    def has_memory(self) -> bool:
        return self.friction.has_memory

    @property
    def name(self) -> str:
        return f"{self.friction.name}*T"

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        return self.friction.acts_on(joint_names)

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        torque = links.torque(self.reference, motion)
        return {j: np.abs(torque[:, j]) * column for j, column in self.friction.column(links, motion).items()}

    def surface(self, joint_names: Sequence[str]) -> Surface | None:
        return self.friction.surface(joint_names)

    def steady_torque(self, steady: SteadyMotion) -> Floats:
        return steady.load * self.friction.steady_torque(steady)

    @property
    def memory_size(self) -> int:
        return self.friction.memory_size

    def begin(self, state: PresentMotion) -> list[Any]:
        return self.friction.begin(state)

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        columns, remembered = self.friction.advance(state, memory)
        torque = state.torque(self.reference)
        return {j: np.abs(torque[j]) * column for j, column in columns.items()}, remembered

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        load = sizes.reference.of_links(len(sizes.joints))
        return {
            f"load friction {part:g}": tuple(
                cls(friction=SmoothSign(joint=j, scale=float(part * sizes.speed[j])), reference=load)
                for j in sizes.joints
            )
            for part in SPEEDS
        }


@dataclass(frozen=True, kw_only=True)
class BaseTilt(Term):
    """A base that does not stand upright: gravity turned by a small angle about one of two horizontal axes."""

    axis: Literal[0, 1]
    """Index of the horizontal axis, see `horizontal_axes`."""
    reference: Reference
    symbol: ClassVar[str] = "TILT"
    candidate: ClassVar[str] = "base tilt"
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

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        if not np.any(sizes.gravity):
            return {}
        return {cls.candidate: (cls(axis=0, reference=sizes.reference), cls(axis=1, reference=sizes.reference))}


def horizontal_axes(gravity: Floats) -> Floats:
    """(2, 3) two unit vectors across gravity and each other, root link's frame."""
    down = gravity / np.linalg.norm(gravity)
    first = np.cross(down, np.eye(3)[np.argmin(np.abs(down))])
    first /= np.linalg.norm(first)
    return np.array([first, np.cross(down, first)])


@dataclass(frozen=True, kw_only=True)
class CrossTalk(Term):
    """A torque sensor that also feels another joint's torque."""

    joint: int
    """Index of the sensor's joint, from 0."""
    source: int
    """Index of the joint that it feels."""
    reference: Reference
    symbol: ClassVar[str] = "XT"
    base_unit: ClassVar[str] = "1"

    @property
    def name(self) -> str:
        return f"XT{self.joint + 1}_{self.source + 1}"

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        return (self.joint,)

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        return {self.joint: links.torque(self.reference, motion)[:, self.source]}

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        return {self.joint: state.torque(self.reference)[self.source]}, []

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        pairs = [(j, k) for j in sizes.joints for k in (j - 1, j + 1) if k in sizes.joints]
        return {"cross-talk": tuple(cls(joint=j, source=k, reference=sizes.reference) for j, k in pairs)}


@dataclass(frozen=True, kw_only=True)
class DriveGain(Term):
    """A relative error of the gain of a drive or torque sensor: proportional to the torque of one joint.

    All gains together are not separable from the masses, so one drive sets the scale: selection leaves out that of
    the most loaded joint.
    """

    joint: int
    """Index of the drive's joint, from 0."""
    reference: Reference
    symbol: ClassVar[str] = "KG"
    base_unit: ClassVar[str] = "1"

    @property
    def name(self) -> str:
        return f"KG{self.joint + 1}"

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        return (self.joint,)

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        return {self.joint: links.torque(self.reference, motion)[:, self.joint]}

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        return {self.joint: state.torque(self.reference)[self.joint]}, []

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        joints = [j for j in sizes.joints if j != sizes.most_loaded]
        return {"drive gain": tuple(cls(joint=j, reference=sizes.reference) for j in joints)}


@dataclass(frozen=True, kw_only=True)
class SensorCurvature(Term):
    """A torque sensor or drive whose gain changes with the torque: ``torque |torque|`` of one joint."""

    joint: int
    """Index of the sensor's joint, from 0."""
    reference: Reference
    symbol: ClassVar[str] = "NL"
    base_unit: ClassVar[str] = "1/(N m)"

    @property
    def name(self) -> str:
        return f"NL{self.joint + 1}"

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        return (self.joint,)

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        torque = links.torque(self.reference, motion)[:, self.joint]
        return {self.joint: torque * np.abs(torque)}

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        torque = state.torque(self.reference)[self.joint]
        return {self.joint: torque * np.abs(torque)}, []

    @classmethod
    def candidates(cls, sizes: TermSizes) -> Mapping[str, Sequence[Term]]:
        return {"drive curvature": tuple(cls(joint=j, reference=sizes.reference) for j in sizes.joints)}
