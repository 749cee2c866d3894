"""Terms of the torque that need more than one joint's present state: memory, nonlinear shapes, the rest of the robot.

A *feature* is one more column of the equations, and so one more parameter. In contrast to a joint model it is not
recorded on the tape: it is computed over a whole gap-free stretch of motion, causally, so that a controller could run
it sample after sample. Features that need a model of the links are in `dynid.estimation.load_features`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.processing.filters import follow
from dynid.robot.model import Robot

__all__ = [
    "AngleFriction",
    "AngleHarmonic",
    "AsymmetricViscous",
    "Feature",
    "Hysteresis",
    "JointFeature",
    "LaggedSign",
    "Motion",
    "MotorFriction",
    "PresentFeature",
    "SaturatingViscous",
    "ScaledFeature",
    "SmoothSign",
    "Stribeck",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Motion:
    """A gap-free, uniformly sampled stretch of motion."""

    q: Floats
    """(N, n) [rad or m]"""
    dq: Floats
    """(N, n)"""
    ddq: Floats
    """(N, n)"""
    rate_hz: float
    """Sampling rate [Hz]."""


class Feature(ABC):
    """One parameter and the torque per unit of it. Concrete features are frozen dataclasses."""

    @property
    def has_memory(self) -> bool:
        """Whether the column depends on the motion before; such features are meaningless for isolated samples."""
        return False

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the parameter."""

    @property
    @abstractmethod
    def unit(self) -> str:
        """Unit of the parameter."""

    @abstractmethod
    def column(self, robot: Robot, motion: Motion) -> dict[int, Floats]:
        """Torque per unit of the parameter, joint index -> (N,); joints it does not act on are left out."""


@dataclass(frozen=True)
class JointFeature(Feature, ABC):
    """A feature that acts on one joint and depends on that joint's motion only."""

    joint: int
    """Index of the joint, from 0."""
    symbol: ClassVar[str]
    base_unit: ClassVar[str] = "N m"

    @property
    def name(self) -> str:
        return f"{self.symbol}{self.joint + 1}"

    @property
    def unit(self) -> str:
        return self.base_unit

    def column(self, robot: Robot, motion: Motion) -> dict[int, Floats]:
        j = self.joint
        return {j: self.shape(motion.q[:, j], motion.dq[:, j], motion.rate_hz)}

    @abstractmethod
    def shape(self, q: Floats, dq: Floats, rate_hz: float) -> Floats:
        """The column (N,)."""


@dataclass(frozen=True)
class PresentFeature(JointFeature, ABC):
    """A feature of one joint's present state: no memory, so that `JointTerm` can make a joint model of it."""

    @property
    def prefix(self) -> str:
        """Of the joint model's parameter, before the joint's number; letters, digits and underscores only."""
        return self.symbol

    @abstractmethod
    def formula(self, q: Any, dq: Any) -> Any:
        """Torque per unit of the parameter; arrays or recorded scalars alike."""

    def shape(self, q: Floats, dq: Floats, rate_hz: float) -> Floats:
        return np.asarray(self.formula(q, dq), dtype=np.float64)


@dataclass(frozen=True)
class ScaledFeature(JointFeature, ABC):
    """A feature with one number that sets its scale."""

    scale: float
    """Velocity [rad/s or m/s], travel [rad or m] or time [s]; positive."""

    def __post_init__(self) -> None:
        """Refuse scales that make no shape."""
        if not (np.isfinite(self.scale) and self.scale > 0.0):
            raise ArgumentError(f"{type(self).__name__} needs a positive scale, not {self.scale}")

    @property
    def name(self) -> str:
        return f"{self.symbol}{self.joint + 1}({self.scale:.3g})"


@dataclass(frozen=True)
class _ScaledPresent(PresentFeature, ScaledFeature, ABC):
    """Both."""

    @property
    def prefix(self) -> str:
        return f"{self.symbol}_{self.scale:.6f}_".replace(".", "p")


@dataclass(frozen=True)
class SmoothSign(_ScaledPresent):
    """Dry friction that grows smoothly through zero velocity: ``tanh(dq / scale)``."""

    symbol: ClassVar[str] = "FT"

    def formula(self, q: Any, dq: Any) -> Any:
        return np.tanh(dq / self.scale)


@dataclass(frozen=True)
class Stribeck(_ScaledPresent):
    """Dry friction that is larger at creep speed: ``tanh(10 dq / scale) exp(-(dq / scale)^2)``."""

    symbol: ClassVar[str] = "FS"

    def formula(self, q: Any, dq: Any) -> Any:
        return np.tanh(10.0 * dq / self.scale) * np.exp(-((dq / self.scale) ** 2))


@dataclass(frozen=True)
class SaturatingViscous(PresentFeature):
    """Friction that grows ever less with speed: ``sign(dq) sqrt(|dq|)``."""

    symbol: ClassVar[str] = "FR"
    base_unit: ClassVar[str] = "N m (s/rad)^0.5"

    def formula(self, q: Any, dq: Any) -> Any:
        return np.sign(dq) * np.sqrt(np.abs(dq))


@dataclass(frozen=True)
class AsymmetricViscous(PresentFeature):
    """Viscous friction that differs between the two directions: ``|dq|``."""

    symbol: ClassVar[str] = "FVA"
    base_unit: ClassVar[str] = "N m s/rad"

    def formula(self, q: Any, dq: Any) -> Any:
        return np.abs(dq)


@dataclass(frozen=True)
class AngleHarmonic(PresentFeature):
    """Torque that repeats with the joint angle, as of an eccentric gear or a spring: cosine or sine of ``order q``."""

    order: int = 1
    sine: bool = False

    @property
    def name(self) -> str:
        return f"H{'S' if self.sine else 'C'}{self.order}_{self.joint + 1}"

    @property
    def prefix(self) -> str:
        return f"H{'S' if self.sine else 'C'}{self.order}_"

    def formula(self, q: Any, dq: Any) -> Any:
        return (np.sin if self.sine else np.cos)(self.order * q)


@dataclass(frozen=True)
class AngleFriction(_ScaledPresent):
    """Dry friction that changes once a turn, as where an eccentric gear or a cable bundle is tight: its cosine or sine.

    The shape is ``tanh(dq / scale)`` times the cosine or sine of q.
    """

    sine: bool = False

    @property
    def name(self) -> str:
        return f"FA{'S' if self.sine else 'C'}{self.joint + 1}({self.scale:.3g})"

    @property
    def prefix(self) -> str:
        return f"FA{'S' if self.sine else 'C'}_{self.scale:.6f}_".replace(".", "p")

    def formula(self, q: Any, dq: Any) -> Any:
        return np.tanh(dq / self.scale) * (np.sin if self.sine else np.cos)(q)


@dataclass(frozen=True)
class Hysteresis(ScaledFeature):
    """Dry friction with presliding: a spring of travel ``scale`` that slips at its two ends (Prandtl's stop operator).

    Between two turning points of q the state moves with q and stops at -1 and 1, so that only turning points need a
    recursion, and the sampling rate does not matter.
    """

    symbol: ClassVar[str] = "FH"

    @property
    def has_memory(self) -> bool:
        return True

    def shape(self, q: Floats, dq: Floats, rate_hz: float) -> Floats:
        q = np.ascontiguousarray(q)
        turns = _turning_points(q)
        places: list[float] = q[turns].tolist()
        states = [0.0]
        for start, end in pairwise(places):
            states.append(min(max(states[-1] + (end - start) / self.scale, -1.0), 1.0))
        # every sample moves on from the turning point before it
        lengths = np.diff(turns, append=q.size)
        travel = (q - np.repeat(q[turns], lengths)) / self.scale
        return np.asarray(np.clip(np.repeat(states, lengths) + travel, -1.0, 1.0))


def _turning_points(q: Floats) -> NDArray[np.int64]:
    """Indices of both ends and of every sample where q turns back."""
    up = q[1:] > q[:-1]
    moving = np.flatnonzero(q[1:] != q[:-1])
    turning = moving[1:][up[moving[1:]] != up[moving[:-1]]]
    return np.unique(np.concatenate([[0], turning, [q.size - 1]])).astype(np.int64)


@dataclass(frozen=True)
class LaggedSign(ScaledFeature):
    """Dry friction that follows a change of direction with a delay: ``sign(dq)`` through a first-order lag [s]."""

    symbol: ClassVar[str] = "FL"

    @property
    def has_memory(self) -> bool:
        return True

    def shape(self, q: Floats, dq: Floats, rate_hz: float) -> Floats:
        return follow(np.sign(dq), self.scale, rate_hz)


@dataclass(frozen=True)
class MotorFriction(Feature):
    """Friction of a motor that turns with several joints, as a function of the motor's own motion."""

    ratios: tuple[tuple[int, float], ...]
    """Joint index and motor speed per joint speed, see `dynid.terms.joint_models.Coupling`."""
    friction: JointFeature
    """Its shape; the joint in it does not matter."""

    @property
    def name(self) -> str:
        joints = "_".join(str(joint + 1) for joint, _ in self.ratios)
        return f"{self.friction.name}@{joints}"

    @property
    def unit(self) -> str:
        return self.friction.unit

    @property
    def has_memory(self) -> bool:
        return self.friction.has_memory

    def column(self, robot: Robot, motion: Motion) -> dict[int, Floats]:
        q = sum(ratio * motion.q[:, joint] for joint, ratio in self.ratios)
        dq = sum(ratio * motion.dq[:, joint] for joint, ratio in self.ratios)
        torque = self.friction.shape(np.asarray(q), np.asarray(dq), motion.rate_hz)
        return {joint: ratio * torque for joint, ratio in self.ratios}
