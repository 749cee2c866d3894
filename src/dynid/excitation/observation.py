"""Friction wants speed: every joint in both directions over its speed range.

What the measurements of a motion say about the parameters: information and its gradient.

A measured quantity depends on few parameters: the torque of joint i only on the bodies it carries. The samples of each
quantity are therefore kept apart, each with its own columns: a third of the memory and arithmetic of the whole
observation matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.regressor import torque_regressor
from dynid.errors import ArgumentError
from dynid.excitation.base import Constraint
from dynid.excitation.trajectories.trajectory import Motion
from dynid.information.cross_products import CrossProducts
from dynid.robot.model import Robot
from dynid.tape import Program, compile_tape, record
from dynid.terms.joint_models import Coulomb

__all__ = [
    "Observation",
    "SmoothCoulomb",
    "SpeedCoverage",
    "TorqueObservation",
    "speed_coverage",
    "with_smooth_friction",
]

Floats = NDArray[np.float64]
_ORDER = 12.0


@dataclass(frozen=True)
class SpeedCoverage(Constraint):
    """Each joint's peak speed in either direction reaches a target; the peak is a norm of high order over time."""

    @classmethod
    def of(cls, joint_names: tuple[str, ...], targets: Floats) -> SpeedCoverage:
        """Targets (n,) [rad/s or m/s], positive."""
        where = tuple(f"joint '{name}' {way}" for way in ("forwards", "backwards") for name in joint_names)
        return cls("speed coverage", where, np.tile(targets, 2), ("rad/s or m/s",) * len(where))

    def _peaks(self, motion: Motion) -> tuple[Floats, Floats]:
        relative = np.maximum(np.hstack([motion.dq, -motion.dq]) / self.scale, 0.0)
        return relative, np.asarray(np.mean(relative**_ORDER, axis=0) ** (1 / _ORDER))

    def excess(self, motion: Motion) -> Floats:
        """(1, 2 n): how far each peak stays below its target."""
        return 1.0 - self._peaks(motion)[1][None, :]

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        """Gradient with respect to the motion."""
        relative, peaks = self._peaks(motion)
        share = np.divide(relative, peaks, out=np.zeros_like(relative), where=peaks > 0.0) ** (_ORDER - 1)
        rate = -cotangent * share / (len(relative) * self.scale)
        n = motion.dq.shape[1]
        zero = np.zeros_like(motion.q)
        return Motion(zero, rate[:, :n] - rate[:, n:], zero, zero)


def speed_coverage(motion: Motion, velocity: Floats) -> Floats:
    """Peak speeds (n, 2) forwards and backwards as shares of the limits (n,), or of the larger peak without one."""
    peaks = np.stack([motion.dq.max(axis=0), -motion.dq.min(axis=0)], axis=1)
    limit = np.where(np.isfinite(velocity), velocity, peaks.max(axis=1))
    shares: Floats = np.divide(peaks, limit[:, None], out=np.zeros_like(peaks), where=limit[:, None] > 0.0)
    return shares


class SmoothCoulomb(Coulomb):
    """Dry friction with its jump at rest smoothed over some hundredths of a radian per second.

    The sign of the velocity has no gradient; while a motion is being designed this stands in for it.
    """

    def columns(self, q: Any, dq: Any, ddq: Any) -> tuple[Any, ...]:
        """``tanh(dq / 0.02)``."""
        return (np.tanh(dq * 50.0),)


def with_smooth_friction(robot: Robot) -> Robot:
    """The same robot with every `Coulomb` replaced by `SmoothCoulomb`."""
    joints = [
        replace(joint, models=tuple(SmoothCoulomb(m.level) if isinstance(m, Coulomb) else m for m in joint.models))
        for joint in robot.joints
    ]
    return replace(robot, joints=tuple(joints))


class Observation(ABC):
    """Measured quantities that are linear in b parameters, each weighted by its noise, over the samples of a motion."""

    def __init__(self, robot: Robot, noise: Floats) -> None:
        """Record and compile.

        Args:
            robot: Geometry and kinds of joint models.
            noise: (m,) standard deviation of each measured quantity.
        """
        if not np.all(np.isfinite(noise) & (noise > 0.0)):
            raise ArgumentError("noise must be given as positive standard deviations", remedy="In N m or N.")
        self.robot = robot
        self.noise = noise
        states = {state: (robot.dof,) for state in ("q", "dq", "ddq")}
        used = record(self.rows, **states).sparsity("output")
        self._quantities, self.size = len(used), used.shape[1]
        self._blocks = _blocks(used)
        self._places = np.concatenate([(b.kept[:, None] * self.size + b.kept).ravel() for b in self._blocks])
        self._weights = np.concatenate([np.full(len(b.kept) ** 2, noise[b.row] ** -2) for b in self._blocks])
        self._tape = record(self._compact, **states)
        self._products = CrossProducts(self._tape)

    @abstractmethod
    def rows(self, q: Any, dq: Any, ddq: Any) -> Any:
        """Quantities per unit of each parameter (m, b), for one state of the robot; scalar-agnostic."""

    def _compact(self, q: Any, dq: Any, ddq: Any) -> dict[str, Any]:
        rows = self.rows(q, dq, ddq)
        return {block.name: rows[block.row, block.kept] for block in self._blocks}

    @cached_property
    def _program(self) -> Program:
        return compile_tape(self._tape)

    def information(self, q: Floats, dq: Floats, ddq: Floats) -> Floats:
        """Information (b, b) of a motion given at N samples, each (N, n)."""
        packed = np.concatenate([product.ravel() for product in self._products(q, dq, ddq)])
        A = np.bincount(self._places, packed * self._weights, self.size**2)
        return np.asarray(A, dtype=float).reshape(self.size, self.size)

    def pullback(self, G: Floats, q: Floats, dq: Floats, ddq: Floats) -> tuple[Floats, Floats, Floats]:
        """Gradients of ``sum(G * information)`` with respect to q, dq, ddq, each (N, n), for a cotangent G (b, b)."""
        packed = self._weights * G.take(self._places)
        weights = [packed[block.square].reshape(len(block.kept), -1) for block in self._blocks]
        gradient = self._products.pullback(weights, q, dq, ddq)
        return gradient["q"], gradient["dq"], gradient["ddq"]

    def matrix(self, q: Floats, dq: Floats, ddq: Floats) -> Floats:
        """Weighted observation matrix W (N m, b), sample after sample; the information is ``W.T @ W``."""
        W = np.zeros((len(q), self._quantities, self.size))
        parts = self._program(q, dq, ddq)
        for block in self._blocks:
            W[:, block.row, block.kept] = parts[block.name] / self.noise[block.row]
        return W.reshape(-1, self.size)


class TorqueObservation(Observation):
    """The torques of the joints, over some columns of the robot's regressor."""

    def __init__(self, robot: Robot, columns: Sequence[int], noise: ArrayLike | None = None) -> None:
        """Record and compile.

        Args:
            robot: Geometry and kinds of joint models.
            columns: (b,) columns of the regressor, a base set say.
            noise: Standard deviation of each joint's torque (n,) or one for all [N m or N]; 1 by default.
        """
        self.columns = tuple(int(column) for column in columns)
        given = np.asarray(1.0 if noise is None else noise, dtype=float)
        super().__init__(robot, np.broadcast_to(given, (robot.dof,)))

    def rows(self, q: Any, dq: Any, ddq: Any) -> Any:
        """Torques per unit of each parameter (n, b)."""
        return torque_regressor(self.robot, q, dq, ddq)[:, list(self.columns)]


class _Block(NamedTuple):
    """The part of the observation matrix that one measured quantity fills."""

    name: str
    row: int
    """Number of the quantity."""
    kept: NDArray[np.int64]
    """Its non-zero columns among the b."""
    square: slice
    """Where its part of the information stands among those of all quantities, packed one after the other."""


def _blocks(used: NDArray[np.bool_]) -> list[_Block]:
    blocks: list[_Block] = []
    start = 0
    for row, columns in enumerate(used):
        kept = np.flatnonzero(columns)
        if len(kept):
            blocks.append(_Block(f"row{row}", row, kept, slice(start, start + len(kept) ** 2)))
            start += len(kept) ** 2
    return blocks
