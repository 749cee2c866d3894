"""What the measurements of a motion say about the parameters: information and its gradient.

With W (N m, b) the observation matrix of N samples of m measured quantities, each row divided by the standard deviation
of its noise, the information is ``A = W^T W`` (b, b): the inverse of the covariance of the least-squares estimate.

A measured quantity depends on few parameters: the torque of joint i only on the bodies it carries. The samples of each
quantity are therefore kept apart, each with its own columns: a third of the memory and arithmetic of the whole
observation matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dynid.arrays import Bools, Floats, Ints
from dynid.information.cross_products import CrossProducts
from dynid.lazy import cached_property
from dynid.robot.model import Robot
from dynid.tape import Program, compile_tape, record

STEP_WIDTH = 0.02
"""Velocity over which dry friction is smoothed while a motion is designed [rad/s or m/s] (convention)."""


def with_smooth_friction(robot: Robot) -> Robot:
    """The same robot with smoothed terms: the sign of a velocity has no gradient, so designs use a smooth step."""
    joints = [replace(joint, terms=tuple(t.smoothed(STEP_WIDTH) for t in joint.terms)) for joint in robot.joints]
    return replace(robot, joints=tuple(joints))


class Observation:
    """Measured quantities that are linear in b parameters, each weighted by its noise, over the samples of a motion."""

    def __init__(self, dof: int, rows: Callable[..., Any], noise: Floats) -> None:
        """Record and compile.

        Args:
            dof: Number of joints n.
            rows: Quantities per unit of each parameter (m, b), as a function of q, dq and ddq (n,); scalar-agnostic.
            noise: (m,) standard deviation of each measured quantity, positive, in its SI unit.
        """
        self.rows, self.noise = rows, noise
        states = {state: (dof,) for state in ("q", "dq", "ddq")}
        used = record(rows, **states).sparsity("output")
        self._quantities, self.size = len(used), used.shape[1]
        self._blocks = _blocks(used)
        self._places = np.concatenate([(b.kept[:, None] * self.size + b.kept).ravel() for b in self._blocks])
        self._weights = np.concatenate([np.full(len(b.kept) ** 2, noise[b.row] ** -2) for b in self._blocks])
        self._tape = record(self._compact, **states)
        self._products = CrossProducts(self._tape)

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


class _Block(NamedTuple):
    """The part of the observation matrix that one measured quantity fills."""

    name: str
    row: int
    """Number of the quantity."""
    kept: Ints
    """Its non-zero columns among the b."""
    square: slice
    """Where its part of the information stands among those of all quantities, packed one after the other."""


def _blocks(used: Bools) -> list[_Block]:
    blocks: list[_Block] = []
    start = 0
    for row, columns in enumerate(used):
        kept = np.flatnonzero(columns)
        if len(kept):
            blocks.append(_Block(f"row{row}", row, kept, slice(start, start + len(kept) ** 2)))
            start += len(kept) ** 2
    return blocks
