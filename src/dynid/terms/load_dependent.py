"""Terms that depend on the links' torques: load-dependent friction, base tilt, faults of drives and torque sensors.

Each column contains torques of the robot, which depend on parameters themselves. So that the equations stay linear in
the parameters, these torques are computed from a `Reference`: the parameters of the prior robot or of an earlier fit.
`column` gives the torque per unit of the parameter along a motion of N samples; `advance` the same for one sample.
Unlike the other terms, these are no part of a robot's compiled equations (they are no `RecordableTerm`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dynid.array_types import Floats
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
    """Friction that grows with the load: ``|torque|`` times another friction term's column.

    The load is the torque of the links, without motor friction and rotor inertia: that is what the teeth of a gear pass
    on, and what presses them on one another.
    """

    friction: JointTerm
    """The other term, which says how the friction depends on the joint's motion."""
    reference: Reference
    """Parameters by which the load is computed; where only the links count as load, those of terms are zero."""
    limit: float = np.inf
    """Load above which the friction no longer grows [N m or N]: the largest load in the data."""
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
        return {j: self._load(torque[:, j]) * column for j, column in self.friction.column(links, motion).items()}

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
        return {j: self._load(torque[j]) * column for j, column in columns.items()}, remembered

    def _load(self, torque: Any) -> Any:
        """Magnitude of the links' torque at one joint, at most `limit`."""
        return np.abs(hold_within(torque, self.limit))


@dataclass(frozen=True, kw_only=True)
class BaseTilt(Term):
    """Torque of a base that does not stand upright, per angle: gravity turned about one of two horizontal axes.

    For a small angle a about an axis e, gravity g changes by ``a (e x g)``.
    """

    axis: Literal[0, 1]
    """Index of the horizontal axis, see `horizontal_axes`."""
    reference: Reference
    """Parameters by which the torque of gravity is computed."""
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
        change = np.cross(horizontal_axes(links.gravity)[self.axis], links.gravity)  # (3,) of gravity, per angle
        torque = links.gravity_torque(self.reference, motion, change)
        return {j: torque[:, j] for j in range(torque.shape[1])}

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        change = np.cross(horizontal_axes(state.gravity)[self.axis], state.gravity)
        return dict(enumerate(state.gravity_torque(self.reference, change))), []


def horizontal_axes(gravity: Floats) -> Floats:
    """Two unit vectors (2, 3) perpendicular to gravity (3,) and to each other, in the frame of the root link."""
    down = gravity / np.linalg.norm(gravity)
    first = np.cross(down, across(down))
    return np.array([first, np.cross(down, first)])


@dataclass(frozen=True, kw_only=True)
class DriveGain(Term):
    """A relative error of the gain of a drive or torque sensor; its column is the joint's own torque.

    An error common to all gains cannot be told from heavier links: leave out the term of one joint, which sets the
    scale.
    """

    joint: int
    """Index of the joint that the drive or sensor belongs to, from 0."""
    reference: Reference
    """Parameters by which the torque is computed."""
    symbol: ClassVar[str] = "KG"
    base_unit: ClassVar[str] = "1"

    @property
    def name(self) -> str:
        return f"{self.symbol}{self.joint + 1}"

    @property
    def felt(self) -> int:
        """Index of the joint whose torque enters the measurement."""
        return self.joint

    def acts_on(self, joint_names: Sequence[str]) -> tuple[int, ...]:
        return (self.joint,)

    def column(self, links: LinkTorques, motion: Motion) -> dict[int, Floats]:
        return {self.joint: links.torque(self.reference, motion)[:, self.felt]}

    def advance(self, state: PresentMotion, memory: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        return {self.joint: state.torque(self.reference)[self.felt]}, []


@dataclass(frozen=True, kw_only=True)
class CrossTalk(DriveGain):
    """A torque sensor whose measurement also contains a share of another joint's torque."""

    source: int
    """Index of that other joint, from 0."""
    symbol: ClassVar[str] = "XT"

    @property
    def name(self) -> str:
        return f"{super().name}_{self.source + 1}"

    @property
    def felt(self) -> int:
        return self.source
