"""The equations of the free fit: those of a robot with the usual friction, joint by joint.

Many columns of a regressor depend on others whatever the motion. A quick fit takes the independent ones alone, half of
them for an arm: they span the same torques.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import pivoted_triangle
from dynid.kernels import regressor
from dynid.robot.model import Robot
from dynid.terms import usual_terms
from dynid.terms.base import Dependence

DEPENDENT = 1e-7
"""Share of a column that is left by others, below which it depends on them (convention: well above rounding)."""


@lru_cache(maxsize=64)
def with_friction(robot: Robot, gravity: tuple[float, ...] | None = None) -> Robot:
    """The robot, under another gravity if given, with rotor inertia, friction and an offset on every joint."""
    placed = robot if gravity is None else robot.with_gravity(gravity)
    return placed.with_terms(*usual_terms())


def with_smooth_sign(Y: Floats, sign: Floats, columns: NDArray[np.int64] | None = None) -> Floats:
    """The regressor (M, n, p) of `with_friction` with its dry friction columns replaced by smoothed signs (M, n).

    Torque is filtered, which smooths steps: at a reversal the plain column would not match it.

    Args:
        Y: The regressor, which is changed.
        sign: The smoothed signs.
        columns: (c,) the columns that a regressor (M, n, c) has, in order; all by default.
    """
    dry = _dry_columns(sign.shape[1])
    Y[:, np.arange(sign.shape[1]), dry if columns is None else np.searchsorted(columns, dry)] = sign
    return Y


def _dry_columns(joints: int) -> NDArray[np.int64]:
    """(n,) place of each joint's dry friction among the parameters of `with_friction`."""
    usual = [term.dependence for term in usual_terms()]
    return 10 * joints + len(usual) * np.arange(joints) + usual.index(Dependence.DIRECTION)


@dataclass(frozen=True, slots=True, eq=False)
class FreeEquations:
    """The equations of the free fit for one motion, joint by joint: mostly, a joint sees the links behind it only."""

    width: int
    """p, number of parameters."""
    columns: NDArray[np.int64]
    """(c,) parameters that any joint sees."""
    rows: tuple[Floats, ...]
    """For each joint (M, s) the columns that it sees, not weighted ..."""
    places: tuple[NDArray[np.int64], ...]
    """... and their places (s,) among the c columns."""
    products: Floats
    """(n, c, c) cross products of the columns."""
    combine: Floats | None = None
    """(c, p) matrix of `IndependentColumns`; None where the columns are all that any joint sees."""

    @classmethod
    def of(cls, Y: Floats) -> FreeEquations:
        """The equations of a regressor (M, n, p)."""
        sees = np.any(Y, axis=0)
        columns = np.flatnonzero(sees.any(axis=0))
        places = tuple(map(np.flatnonzero, sees[:, columns]))
        rows = tuple(Y[:, j, columns[place]] for j, place in enumerate(places))
        return cls(Y.shape[2], columns, rows, places, _products(rows, places, columns.size))

    @classmethod
    def of_independent(cls, Y: Floats, known: IndependentColumns) -> FreeEquations:
        """The equations of the independent columns (M, n, c) of a regressor."""
        rows = tuple(Y[:, j, place] for j, place in enumerate(known.places))
        products = _products(rows, known.places, known.columns.size)
        return cls(known.combine.shape[1], known.columns, rows, known.places, products, known.combine)

    def values(self, theta: Floats) -> Floats:
        """(c,) parameters of the columns that have the same torques as all parameters (p,)."""
        return theta[self.columns] if self.combine is None else self.combine @ theta

    def where(self, counts: Floats) -> FreeEquations:
        """The equations times ones and zeros (M, n)."""
        rows = tuple(part * count[:, None] for part, count in zip(self.rows, counts.T, strict=True))
        return replace(self, rows=rows, products=_products(rows, self.places, self.columns.size))

    def along(self, tau: Floats, weight: Floats, used: NDArray[np.int64]) -> Floats:
        """(c, u) products of the weighted columns and the weighted torques (M, u) of the joints in use."""
        result = np.zeros((self.columns.size, used.size))
        for k, j in enumerate(used.tolist()):
            result[self.places[j], k] = weight[j] * (tau[:, k] @ self.rows[j])
        return result

    def torques(self, theta: Floats) -> Floats:
        """(M, n) torques of parameters (c,)."""
        return np.stack([rows @ theta[place] for rows, place in zip(self.rows, self.places, strict=True)], axis=1)

    def weighted(self, share: Floats) -> Floats:
        """(c, c) sum of the joints' products, each times its share (n,)."""
        flat = self.products.reshape(len(self.products), -1)
        return np.asarray((share @ flat).reshape(self.products.shape[1:]))


def _products(rows: Sequence[Floats], places: Sequence[NDArray[np.int64]], size: int) -> Floats:
    """(n, c, c) cross products of each joint's columns (M, s) at their places (s,)."""
    products = np.zeros((len(rows), size, size))
    for product, place, part in zip(products, places, rows, strict=True):
        product[place[:, None], place] = part.T @ part
    return products


@dataclass(frozen=True, slots=True, eq=False)
class IndependentColumns:
    """Columns of a robot's regressor that span all of them, whatever the motion."""

    columns: NDArray[np.int64]
    """(c,) the columns, in order"""
    combine: Floats
    """(c, p) matrix that makes parameters of these columns of all parameters, with the same torques."""
    places: tuple[NDArray[np.int64], ...]
    """For each joint the places (s,) of the columns that it sees."""
    scale: Floats
    """(c,) rms of the columns in wide motions"""
    widest: int
    """Largest number of columns, dependent ones included, that a joint sees."""
    hold_friction: bool
    """Whether the dry friction of every joint is among them, as it always is where no motors are shared."""

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, robot: Robot) -> IndependentColumns:
        """Find the columns by wide motions."""
        Y = regressor(robot, *_wide_motion(robot))
        size = np.sqrt(np.mean(Y**2, axis=(0, 1)))
        seen = np.flatnonzero(size > 1e-9 * size.max())
        R, order = pivoted_triangle(Y[:, :, seen].reshape(-1, seen.size) / size[seen])
        rank = int(np.count_nonzero(np.abs(np.diag(R)) > DEPENDENT * abs(R[0, 0])))
        combine = np.zeros((rank, Y.shape[2]))
        combine[:, seen[order]] = np.linalg.solve(R[:rank, :rank], R[:rank])
        first = seen[order[:rank]]
        combine *= size / size[first][:, None]
        ranks = np.argsort(first)
        columns = first[ranks]
        places = tuple(map(np.flatnonzero, np.any(Y[:, :, columns], axis=0)))
        hold_friction = bool(np.isin(_dry_columns(robot.dof), columns).all())
        widest = int(np.count_nonzero(np.any(Y, axis=0), axis=1).max())
        return cls(columns, combine[ranks], places, size[columns], widest, hold_friction)


def _wide_motion(robot: Robot, rows: int = 200) -> tuple[Floats, Floats, Floats]:
    """Random states about as wide as those of a good excitation: half a turn, 1 rad/s, 3 rad/s^2 (convention)."""
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.uniform(-1.0, 1.0, size=(3, rows, robot.dof)) * np.array([np.pi / 2, 1.0, 3.0])[:, None, None]
    return q, dq, ddq
