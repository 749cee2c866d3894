"""What the joint torques of a motion say about the parameters: information and its gradient.

The torque of joint i depends only on the bodies it carries, so its rows of the observation matrix have few non-zero
columns. The rows are therefore kept joint by joint, each with its own columns: a third of the memory and arithmetic of
the whole matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.regressor import torque_regressor
from dynid.errors import ArgumentError
from dynid.excitation.differentiable import Differentiable
from dynid.robot.joint_models import Coulomb
from dynid.robot.model import Robot
from dynid.tape import record

__all__ = ["SmoothCoulomb", "TorqueObservation", "with_smooth_friction"]

Floats = NDArray[np.float64]
Pullback = Callable[[Floats], tuple[Floats, Floats, Floats]]


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


class TorqueObservation:
    """The torque regressor of a robot over some columns, weighted by the noise of each joint."""

    def __init__(self, robot: Robot, columns: Sequence[int], noise: ArrayLike | None = None) -> None:
        """Record and compile.

        Args:
            robot: Geometry and kinds of joint models.
            columns: (b,) columns of the regressor, a base set say.
            noise: Standard deviation of each joint's torque (n,) or one for all [N m or N]; 1 by default.
        """
        self.robot = robot
        self.columns = tuple(int(column) for column in columns)
        self.noise = _noise(robot, noise)
        states = ("q", "dq", "ddq")
        used = record(self._rows, **{state: (robot.dof,) for state in states}).sparsity("output")
        self._blocks = _blocks(used)
        self._function = Differentiable(
            lambda **x: np.concatenate([self._rows(**x)[block.joint, block.kept] for block in self._blocks]),
            robot.dof,
            *states,
        )
        self._cotangent = np.empty((0, 0))

    def _rows(self, q: Any, dq: Any, ddq: Any) -> Any:
        return torque_regressor(self.robot, q, dq, ddq)[:, list(self.columns)]

    @property
    def size(self) -> int:
        """Number of parameters b."""
        return len(self.columns)

    def information(self, q: Floats, dq: Floats, ddq: Floats) -> Floats:
        """Information (b, b) of a motion given at N samples, each (N, n)."""
        return self._gram(self._function(q, dq, ddq))

    def _gram(self, rows: Floats) -> Floats:
        A = np.zeros(self.size**2)
        for block in self._blocks:
            Y = rows[:, block.place]
            A[block.square] += (Y.T @ Y) / self.noise[block.joint] ** 2
        return A.reshape(self.size, self.size)

    def information_and_pullback(self, q: Floats, dq: Floats, ddq: Floats) -> tuple[Floats, Pullback]:
        """Information (b, b), and the function from a symmetric cotangent (b, b) to the gradients of q, dq, ddq."""
        rows = self._function(q, dq, ddq)

        def pullback(G: Floats) -> tuple[Floats, Floats, Floats]:
            if self._cotangent.shape != rows.shape:
                self._cotangent = np.empty_like(rows)
            for block in self._blocks:
                weighted = 2.0 / self.noise[block.joint] ** 2 * G.take(block.square)
                np.matmul(rows[:, block.place], weighted, out=self._cotangent[:, block.place])
            gradient = self._function.pullback(self._cotangent, q, dq, ddq)
            return gradient["q"], gradient["dq"], gradient["ddq"]

        return self._gram(rows), pullback

    def matrix(self, q: Floats, dq: Floats, ddq: Floats) -> Floats:
        """Weighted observation matrix W (N n, b), sample after sample; the information is ``W.T @ W``."""
        W = np.zeros((len(q), self.robot.dof, self.size))
        rows = self._function(q, dq, ddq)
        for block in self._blocks:
            W[:, block.joint, block.kept] = rows[:, block.place] / self.noise[block.joint]
        return W.reshape(-1, self.size)


class _Block(NamedTuple):
    """The part of the observation matrix that one joint fills."""

    joint: int
    kept: NDArray[np.int64]
    """Its non-zero columns among the b."""
    place: slice
    """Where they stand among the computed values."""
    square: NDArray[np.int64]
    """Where its part of the information stands in the flattened matrix; one flat index is faster than a pair."""


def _blocks(used: NDArray[np.bool_]) -> list[_Block]:
    blocks: list[_Block] = []
    start = 0
    for joint, row in enumerate(used):
        kept = np.flatnonzero(row)
        blocks.append(_Block(joint, kept, slice(start, start + len(kept)), kept[:, None] * used.shape[1] + kept))
        start += len(kept)
    return [block for block in blocks if len(block.kept)]


def _noise(robot: Robot, noise: ArrayLike | None) -> Floats:
    values = np.broadcast_to(np.asarray(1.0 if noise is None else noise, dtype=float), (robot.dof,))
    if not np.all(np.isfinite(values) & (values > 0.0)):
        raise ArgumentError("the noise of every joint must be a positive standard deviation", remedy="In N m or N.")
    return values
