"""What follows from the axes of a serial robot: the joints r and s, and which first moments act.

The first revolute joint r, the first revolute joint s that is not parallel to it, and the direction of gravity settle
which parameters act ([GautierKhalil1990] section III-B, [Lin1995] theorem 2). The rules are the complete ones: the
printed rules leave out oblique twists, coincident axes and other directions of gravity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynid.arrays import Floats
from dynid.robot.formats.dh import DH
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.model import Robot
from dynid.spatial import EXACT, SAME, TINY


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


def dh_rows(robot: Robot) -> tuple[DH, ...] | None:
    """The modified DH table of a serial robot whose body frames already are modified DH frames; otherwise None."""
    rows = []
    for j, body in enumerate(robot.bodies):
        R, p = body.R_parent_joint, body.p_parent_joint
        z = R[:, 2]
        fits = body.parent == j - 1 and np.array_equal(body.axis, [0.0, 0.0, 1.0])
        if not fits or abs(z[0]) > EXACT or abs(p[1] * z[2] - p[2] * z[1]) > EXACT * max(1.0, float(np.abs(p).max())):
            return None
        alpha, theta = float(np.arctan2(-z[1], z[2])), float(np.arctan2(-R[0, 1], R[0, 0]))
        rows.append(DH(alpha=alpha, d=float(p[0]), theta=theta, r=float(p @ z), sigma=int(body.is_prismatic)))
    return tuple(rows)


class PlacedChain(NamedTuple):
    """A serial robot's chain, and where its modified DH frames lie."""

    chain: Chain
    T_body_mdh: tuple[Floats, ...] | None
    """(4, 4) each: modified DH frame j in body frame j; None where the body frames are modified DH frames."""
    deviation: float
    """Largest distance of the modified DH frames from the robot's axes [1 or m]."""


def place_chain(robot: Robot) -> PlacedChain:
    """Find the chain of a serial robot, in its own frames where they are modified DH frames.

    Raises:
        ArgumentError: The robot branches or has no moving joint.
    """
    rows = dh_rows(robot) if robot.bodies else None
    if rows is not None:
        return PlacedChain(chain_of(rows, robot.gravity), None, 0.0)
    table = modified_dh(robot)
    return PlacedChain(chain_of(table.rows, table.robot.gravity), table.T_body_mdh, table.deviation)


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
    return bool(np.hypot(direction[0], direction[1]) <= SAME)


def _first_moment_acts(
    rows: Sequence[DH], rotations: Sequence[Floats], gravity: Floats, axes: Sequence[Floats], r: int, j: int
) -> bool:
    """Whether link j, turning about one direction only, is lifted, carried along or swung (delta, [Lin1995])."""
    z = np.eye(3)
    for k in range(r + 1):
        z = z @ rotations[k]
    direction = z[:, 2]
    if np.linalg.norm(np.cross(gravity, direction)) > SAME * max(float(np.linalg.norm(gravity)), TINY):
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
        if not row.sigma and np.hypot(*place) > SAME:
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
            parallel = abs(np.sin(row.alpha)) <= SAME
            meets = not row.sigma and abs(row.d) <= SAME and (line or parallel or abs(place) <= SAME)
            place = (place * np.cos(row.alpha) * (parallel and not line) - row.r) if meets else None
            line = line and parallel
        points.append(place)
    return tuple(points)
