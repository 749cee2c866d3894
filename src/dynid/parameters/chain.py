"""What follows from the axes of a serial robot: the joints r and s, and which first moments act.

The first revolute joint r, the first revolute joint s that is not parallel to it, and the direction of gravity settle
which parameters act ([GautierKhalil1990] section III-B, [Lin1995] theorem 2). The rules are the complete ones: the
printed rules leave out oblique twists, coincident axes and other directions of gravity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.parameters.inertia_maps import transport
from dynid.parameters.row_space import TINY
from dynid.parameters.symbols import dh_rows
from dynid.robot.formats.dh import DH
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.model import Robot
from dynid.spatial import inverse_transform
from dynid.terms.base import Dependence

__all__ = ["PARALLEL", "Chain", "chain_in_dh_frames", "chain_of", "has_closed_form", "is_along_z"]

Floats = NDArray[np.float64]

PARALLEL = 1e-9
"""Sine of an angle, or distance [m], below which axes are parallel or meet; convention: far above rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A serial robot in modified DH frames, seen through its axes. Joints are numbered from 0 here; n means none."""

    rows: tuple[DH, ...]
    """The table."""
    gravity: Floats
    """(3,) in frame 0 [m/s^2]."""
    r: int
    """First revolute joint."""
    s: int
    """First revolute joint not parallel to r."""
    first_moments: tuple[bool, ...]
    """For every revolute joint r <= j < s, whether ``MX MY`` act (delta in [Lin1995])."""
    first_axis: tuple[Floats, ...]
    """(3,) axis of joint r in frame j, for r <= j < s; zeros elsewhere."""
    concurrent: tuple[float | None, ...]
    """Where on axis j, from O_j [m], all axes up to j meet at every q; None where they do not meet, or gravity acts."""

    @property
    def count(self) -> int:
        """The number of base parameters of the links."""
        total = 0
        for j, row in enumerate(self.rows):
            if row.sigma:
                oblique = self.r < j < self.s and not is_along_z(self.first_axis[j])
                total += 1 + 3 * (j > self.s) + 2 * oblique
            elif j < self.s:
                total += 1 + 2 * self.first_moments[j]
            else:
                total += 5 if self.concurrent[j] is not None else 7
        return total


def has_closed_form(robot: Robot) -> bool:
    """Whether the closed forms describe this robot: a chain with rotors, friction and offsets, but no couplings."""
    return _obstacle(robot) is None


def _obstacle(robot: Robot) -> str | None:
    if not robot.bodies or any(body.parent != j - 1 for j, body in enumerate(robot.bodies)):
        return f"needs a serial robot, '{robot.name}' is none"
    unknown = [p.term for p in robot.terms if len(p.joints) > 1 or p.term.dependence is Dependence.OTHER]
    return f"does not know the term {type(unknown[0]).__name__}" if unknown else None


def chain_in_dh_frames(robot: Robot, method: str) -> tuple[Chain, Floats | None, float]:
    """The chain of a serial robot in modified DH frames: the robot's own frames where they are modified DH frames.

    Args:
        robot: The robot.
        method: Name of the method that asks, for the error message.

    Returns:
        The chain; the map (p, p) from the robot's parameters to those in the DH frames (None where they are the robot's
        own frames); the largest distance of the DH frames from the robot's axes [1 or m].

    Raises:
        ArgumentError: The robot branches, or has couplings or terms of other kinds.
    """
    obstacle = _obstacle(robot)
    if obstacle:
        raise ArgumentError(
            f"the {method} method {obstacle}",
            remedy="Use method='numeric', or 'structural' if it knows the terms.",
        )
    rows = dh_rows(robot)
    if rows is not None:
        return chain_of(rows, robot.gravity), None, 0.0
    table = modified_dh(robot)
    to_dh = np.eye(robot.parameter_vector.size)
    for j, T_body_mdh in enumerate(table.T_body_mdh):
        T_mdh_body = inverse_transform(T_body_mdh)
        block = slice(10 * j, 10 * j + 10)
        to_dh[block, block] = transport(T_mdh_body[:3, :3], T_mdh_body[:3, 3])
    return chain_of(table.rows, table.robot.gravity), to_dh, table.deviation


def chain_of(rows: Sequence[DH], gravity: Floats) -> Chain:
    """Analyse a modified DH table under gravity (3,) in frame 0 [m/s^2]."""
    n = len(rows)
    rotations = [_rotation(row) for row in rows]
    revolute = [j for j, row in enumerate(rows) if not row.sigma]
    r = revolute[0] if revolute else n
    axes = _first_axis_in_frames(rotations, r)
    s = next((j for j in revolute if j > r and not is_along_z(axes[j])), n)
    return Chain(
        rows=tuple(rows),
        gravity=np.asarray(gravity, dtype=float),
        r=r,
        s=s,
        first_moments=tuple(r <= j < s and _first_moment_acts(rows, rotations, gravity, axes, r, j) for j in range(n)),
        first_axis=tuple(axes[j] if r <= j < s else np.zeros(3) for j in range(n)),
        concurrent=_meeting_points(rows) if not np.any(gravity) else (None,) * n,
    )


def _rotation(row: DH) -> Floats:
    """Rotation of frame j in frame j - 1 at q = 0."""
    return row.T_previous_joint[:3, :3]


def _first_axis_in_frames(rotations: Sequence[Floats], r: int) -> list[Floats]:
    """Axis of joint r in every later frame at q = 0; up to and including joint s it is the same for all q."""
    axes = [np.zeros(3)] * len(rotations)
    for j in range(r, len(rotations)):
        axes[j] = np.array([0.0, 0.0, 1.0]) if j == r else rotations[j].T @ axes[j - 1]
    return axes


def is_along_z(direction: Floats) -> bool:
    """Whether a unit vector (3,) is parallel to the z axis."""
    return bool(np.hypot(direction[0], direction[1]) <= PARALLEL)


def _first_moment_acts(
    rows: Sequence[DH], rotations: Sequence[Floats], gravity: Floats, axes: Sequence[Floats], r: int, j: int
) -> bool:
    """Whether link j, turning about one direction only, is lifted, carried along or swung (delta, [Lin1995])."""
    z = np.eye(3)
    for k in range(r + 1):
        z = z @ rotations[k]
    direction = z[:, 2]
    if np.linalg.norm(np.cross(gravity, direction)) > PARALLEL * max(float(np.linalg.norm(gravity)), TINY):
        return True
    if any(not is_along_z(axes[k]) for k in range(r, j)) or not _are_earlier_parallel(rotations, r):
        return True
    # all axes before are parallel: they coincide unless some common perpendicular has a length
    return not _are_coincident(rows, r, j)


def _are_earlier_parallel(rotations: Sequence[Floats], r: int) -> bool:
    """Whether the prismatic joints before r slide along r's axis."""
    direction = np.array([0.0, 0.0, 1.0])
    for k in range(r, 0, -1):
        direction = rotations[k] @ direction  # axis r in frame k - 1
        if not is_along_z(direction):
            return False
    return True


def _are_coincident(rows: Sequence[DH], r: int, j: int) -> bool:
    """Whether the revolute axes r, ..., j (all joints parallel) are one line, at every position."""
    place = np.zeros(2)  # of axis k across, in the axes of frame k
    for k in range(r + 1, j + 1):
        row = rows[k]
        flip = 1.0 if np.cos(row.alpha) > 0 else -1.0
        place = place - np.array([row.d, 0.0])  # axis r seen from axis k, x and y of frame k - 1
        place = np.array([place[0], flip * place[1]])
        c, s = np.cos(row.theta), np.sin(row.theta)
        place = np.array([c * place[0] + s * place[1], c * place[1] - s * place[0]])
        if not row.sigma and np.hypot(*place) > PARALLEL:
            return False
    return True


def _meeting_points(rows: Sequence[DH]) -> tuple[float | None, ...]:
    """The point on axis j, measured from O_j, where axes 1..j meet; for axes that are all one line, O_j itself."""
    points: list[float | None] = []
    place: float | None = 0.0
    line = True
    for j, row in enumerate(rows):
        if j == 0:
            place = None if row.sigma else 0.0
        elif place is not None:
            parallel = abs(np.sin(row.alpha)) <= PARALLEL
            meets = not row.sigma and abs(row.d) <= PARALLEL and (line or parallel or abs(place) <= PARALLEL)
            place = (place * np.cos(row.alpha) * (parallel and not line) - row.r) if meets else None
            line = line and parallel
        points.append(place)
    return tuple(points)
