"""Which inertial parameters of each link of a serial robot can act on a torque, read from the joint axes alone.

`find_chain` makes a `Chain`, from which `dynid.dynamics.minimal_constants` lists the minimal linear combinations of
parameters. Two joints divide a serial robot into three stretches ([GautierKhalil1990] section III-B, [Lin1995] theorem
2): r, the first revolute joint, and s, the first revolute joint whose axis is not parallel to that of r.

    links before r            only slide: of each, only the mass acts
    links from r to before s  turn about one fixed direction, the axis of r: the moment of inertia about it acts, and
                              the first moments across it, unless the link only turns about a fixed line along gravity
    links from s on           turn freely: every parameter acts, except those of a part of the mass that is symmetric
                              about the link's joint axis, which can be counted to the link before

Prismatic joints occur in any stretch and turn nothing. The conditions below are complete; the rules printed in the
papers leave out oblique twists, coincident axes and other directions of gravity.

Frame j is the modified DH frame of link j: z on the axis of joint j, x along the common perpendicular to the next axis
(`dynid.robot.formats.dh`); sigma of a DH row is 1 for a prismatic joint. Joints, links and frames are numbered from 0
here, and frame 0 follows the base frame. How axes lie to each other is computed at position zero, because up to joint s
it is the same at every position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.array_types import Floats
from dynid.robot.formats.dh import DH
from dynid.robot.formats.modified_dh import dh_rows, modified_dh
from dynid.robot.model import Robot
from dynid.spatial import SAME, TINY


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A serial robot of n joints in modified DH frames, and what its axes say about each link."""

    rows: tuple[DH, ...]
    """The DH table: row j leads from frame j - 1 (from the base frame where j is 0) to frame j."""
    gravity: Floats
    """(3,) in the base frame [m/s^2]."""
    r: int
    """First revolute joint; n where there is none."""
    s: int
    """First revolute joint whose axis is not parallel to that of r; n where there is none."""
    axis_of_r: tuple[Floats, ...]
    """(3,) the axis of joint r in frame j, for r <= j < s; zeros elsewhere."""
    first_moments_act: tuple[bool, ...]
    """(n,) for r <= j < s, whether ``MX MY`` of a revolute joint's link act (delta in [Lin1995]); else False."""
    meeting_points: tuple[float | None, ...]
    """(n,) of joint j the coordinate on axis j, from the origin of frame j [m], of the point in which all axes up to j
    meet; None where they do not meet at every position, or where gravity acts. Only those for j >= s matter."""
    T_body_frame: tuple[Floats, ...] | None = None
    """For each j the pose (4, 4) of frame j in the robot's body frame j; None where these are the same."""
    deviation: float = 0.0
    """Largest difference between the joint axes of the table and those of the robot, in direction [1] or place [m]."""


def find_chain(robot: Robot) -> Chain:
    """Find the chain of a serial robot.

    Where the robot's body frames are modified DH frames, they are the frames of the chain; otherwise new frames are
    found, and `Chain.T_body_frame` says where they are.

    Raises:
        ArgumentError: The robot branches or has no moving joint.
    """
    rows = dh_rows(robot)
    if rows is not None:
        return read_chain(rows, robot.gravity)
    table = modified_dh(robot)
    return read_chain(table.rows, table.robot.gravity, table.T_body_mdh, table.deviation)


def read_chain(
    rows: Sequence[DH], gravity: Floats, T_body_frame: tuple[Floats, ...] | None = None, deviation: float = 0.0
) -> Chain:
    """Make the chain of a modified DH table under gravity (3,) in the base frame [m/s^2].

    The other arguments are fields of `Chain`.
    """
    n = len(rows)
    revolute = [j for j, row in enumerate(rows) if not row.sigma]
    r = revolute[0] if revolute else n
    axes = [_axis_in_frame(rows, r, j) for j in range(n)] if revolute else []
    s = next((j for j in revolute if not is_along_z(axes[j])), n)
    return Chain(
        rows=tuple(rows),
        gravity=np.asarray(gravity, dtype=float),
        r=r,
        s=s,
        axis_of_r=tuple(axes[j] if r <= j < s else np.zeros(3) for j in range(n)),
        first_moments_act=tuple(r <= j < s and _first_moments_act(rows, gravity, axes, r, j) for j in range(n)),
        meeting_points=(None,) * n if np.any(gravity) else _meeting_points(rows),
        T_body_frame=T_body_frame,
        deviation=deviation,
    )


def is_along_z(direction: Floats) -> bool:
    """Whether a unit vector (3,) is parallel to the z axis."""
    return bool(np.hypot(direction[0], direction[1]) <= SAME)


def _pose(rows: Sequence[DH]) -> Floats:
    """Pose (4, 4) of the last row's frame, in the frame before that of the first row, at position zero."""
    T = np.eye(4)
    for row in rows:
        T = T @ row.T_previous_joint
    return T


def _axis_in_frame(rows: Sequence[DH], r: int, j: int) -> Floats:
    """Axis (3,) of joint r in frame j at position zero, for j before or after r."""
    # z of frame r: the third row of a rotation from frame j to frame r, or the third column of one from r to j
    return _pose(rows[r + 1 : j + 1])[2, :3] if r <= j else _pose(rows[j + 1 : r + 1])[:3, 2]


def _first_moments_act(rows: Sequence[DH], gravity: Floats, axes: Sequence[Floats], r: int, j: int) -> bool:
    """Whether the first moments of link j, which turns about the axis of r only, act on a torque.

    They do where gravity is not along that axis (the link is lifted), where a prismatic joint moves that axis sideways
    (it is carried), or where another parallel axis moves the link's axis on a circle (it is swung).

    Args:
        rows: The table.
        gravity: (3,) in the base frame [m/s^2].
        axes: (3,) axis of r in every frame.
        r: The first revolute joint.
        j: Number of the link.
    """
    axis_in_base = _pose(rows[: r + 1])[:3, 2]
    is_lifted = np.linalg.norm(np.cross(gravity, axis_in_base)) > SAME * max(float(np.linalg.norm(gravity)), TINY)
    is_carried = not all(is_along_z(axis) for axis in axes[:j])  # a joint k < j whose z is not along the axis slides
    revolute = [k for k in range(r + 1, j + 1) if not rows[k].sigma]
    is_swung = any(np.hypot(*_pose(rows[r + 1 : k + 1])[:2, 3]) > SAME for k in revolute)  # axis k is off axis r
    return bool(is_lifted or is_carried or is_swung)


def _meeting_points(rows: Sequence[DH]) -> tuple[float | None, ...]:
    """Where on axis j, from the origin of frame j [m], axes 0 to j meet at every position; None where they do not."""
    points: list[float | None] = []
    place = 0.0  # of the meeting point on axis j, from the origin of frame j [m]
    is_one_line = True  # whether axes 0 to j - 1 coincide, so that all of their points are common
    for j, row in enumerate(rows):
        is_parallel = abs(np.sin(row.alpha)) <= SAME  # axis j to axis j - 1
        # two axes that are not parallel, and not apart, cross at the origin of frame j - 1
        meets = abs(row.d) <= SAME and (is_one_line or is_parallel or abs(place) <= SAME)
        if row.sigma or (j > 0 and not meets):  # a slide moves all that follows away from the point
            break
        if j > 0:
            place = (place * np.cos(row.alpha) if is_parallel else 0.0) - row.r
            is_one_line = is_one_line and is_parallel
        points.append(place)
    return (*points, *[None] * (len(rows) - len(points)))
