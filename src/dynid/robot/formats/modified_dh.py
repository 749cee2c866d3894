"""Any serial robot in modified Denavit-Hartenberg (DH) frames of Khalil and Kleinfinger, see `DH` for the table.

`modified_dh` converts; `dh_rows` only reads the table off a robot whose frames already are of this kind.

Frame j follows from the joint axes at q = 0. z_j lies on joint axis j and points along it, so that q is unchanged. x_j
points along the common perpendicular of axes j and j + 1, and the origin is where these two meet. Where the axes leave
a choice, table entries are made zero: frame 0 is frame 1 at q = 0, the last frame has theta = r = 0, and parallel axes
have r = 0. Of a prismatic axis only the direction matters: it is moved sideways to meet its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot
from dynid.robot.parts import ROUNDED_RAD
from dynid.spatial import EXACT, SAME, across, inverse_transform, transform

_Vector = Floats
_Line = tuple[_Vector, _Vector]
"""A point (3,) [m] and a unit direction (3,), in the root frame."""

SMALLEST_NORMAL_COSINE = 0.2
"""A prismatic axis is moved sideways to meet another axis only if the cosine of the angle between their common normal
and the directions in which it may still be moved is at least this. Else they would meet far away (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModifiedDH:
    """A serial robot re-expressed in modified DH frames; joint positions, limits and terms are unchanged."""

    rows: tuple[DH, ...]
    """One row per moving joint [rad, m]."""
    T_base_0: Floats
    """(4, 4) pose of frame 0 in the original robot's root frame."""
    T_body_mdh: tuple[Floats, ...]
    """(4, 4) each: pose of modified DH frame j in the original body frame j."""
    robot: Robot
    """The robot of `rows`: inertias mapped to the new frames, gravity to frame 0; one link per body."""
    deviation: float
    """Largest entry by which the frames of `rows` miss the original axes at q = 0 [1 or m]: rounding, unless axes were
    taken as parallel that are not quite."""


def modified_dh(robot: Robot) -> ModifiedDH:
    """Find modified DH parameters of a serial robot with any axes and frames.

    Axes within `ROUNDED_RAD` of parallel are taken as parallel: their common perpendicular would lie kilometres away.

    Args:
        robot: A chain of revolute and prismatic joints; links fixed to a body are merged into it.

    Raises:
        ArgumentError: The robot branches or has no moving joint.

    Example:
        >>> type(dynid.robot.modified_dh(robot)).__name__
        'ModifiedDH'
    """
    if not robot.bodies or any(body.parent != j - 1 for j, body in enumerate(robot.bodies)):
        raise ArgumentError(
            f"robot '{robot.name}' is not a serial chain of moving joints",
            remedy="DH tables describe chains; hold the joints of the other branches.",
        )
    poses = _poses_at_zero(robot)
    axes = [(T[:3, 3], T[:3, :3] @ body.axis) for T, body in zip(poses, robot.bodies, strict=True)]
    sigmas = [int(body.is_prismatic) for body in robot.bodies]
    frames = _place_frames(axes, sigmas)
    rows = _table_rows(frames, sigmas)
    T_body_mdh = tuple(inverse_transform(T_base_body) @ T for T_base_body, T in zip(poses, frames, strict=True))
    return ModifiedDH(
        rows=rows,
        T_base_0=frames[0],
        T_body_mdh=T_body_mdh,
        robot=_express_in_frames(robot, rows, frames[0], T_body_mdh),
        deviation=_deviation(rows, frames),
    )


def dh_rows(robot: Robot) -> tuple[DH, ...] | None:
    """The modified DH table of a serial robot whose body frames already are modified DH frames; otherwise None."""
    rows = []
    for j, body in enumerate(robot.bodies):
        R = body.R_parent_joint
        p = body.p_parent_joint
        z = R[:, 2]
        # in the frame before, z is (0, -sin alpha, cos alpha) and p is (d, r z_y, r z_z), parallel to z apart from d
        fits = body.parent == j - 1 and np.array_equal(body.axis, [0.0, 0.0, 1.0])
        if not fits or abs(z[0]) > EXACT or abs(p[1] * z[2] - p[2] * z[1]) > EXACT * max(1.0, float(np.abs(p).max())):
            return None
        alpha = float(np.arctan2(-z[1], z[2]))
        theta = float(np.arctan2(-R[0, 1], R[0, 0]))
        rows.append(DH(alpha=alpha, d=float(p[0]), theta=theta, r=float(p @ z), sigma=int(body.is_prismatic)))
    return tuple(rows) or None


def _poses_at_zero(robot: Robot) -> list[Floats]:
    """Compute the pose (4, 4) of each body in the root frame at q = 0."""
    poses: list[Floats] = []
    for body in robot.bodies:
        before = poses[-1] if poses else np.eye(4)
        poses.append(before @ transform(body.R_parent_joint, body.p_parent_joint))
    return poses


def _place_axis(j: int, lines: Sequence[_Line], sigmas: Sequence[int], foot: _Vector) -> _Line:
    """Place joint axis j as a line; that of a prismatic joint is moved sideways, which changes no motion.

    It is moved to meet, as far as its two sideways directions allow, first the axis before, then the next revolute
    axis, then a point. Each condition takes one direction away.

    Args:
        j: The joint, from 0.
        lines: The axes of all joints; those before j are final.
        sigmas: For each joint 0 (revolute) or 1 (prismatic).
        foot: (3,) the point: foot of the common perpendicular on the axis before [m].
    """
    point, u = lines[j]
    if not sigmas[j]:
        return lines[j]
    neighbours = [lines[j - 1]] if j else []
    neighbours += [line for line, sigma in zip(lines[j + 1 :], sigmas[j + 1 :], strict=True) if not sigma][:1]
    free = np.eye(3) - np.outer(u, u)  # projector on the directions in which the line may still be moved
    for other, v in neighbours:
        normal = np.cross(v, u)
        if np.linalg.norm(normal) <= ROUNDED_RAD:  # parallel: the two become one line
            return point + free @ (other - point), u
        way = free @ normal  # direction in which the line is moved until its distance along the normal is zero
        if np.linalg.norm(way) > SMALLEST_NORMAL_COSINE * np.linalg.norm(normal):
            point = point + way * (normal @ (other - point)) / (way @ way)
            free = free - np.outer(way, way) / (way @ way)
    return point + free @ (foot - point), u


def _closest_points(first: _Line, second: _Line) -> tuple[_Vector, _Vector]:
    """Find the points of two lines that are nearest to each other; if parallel, the first one's point and its foot.

    Their difference ``(p + s u) - (o + t v)`` is perpendicular to both directions: two equations for s and t.
    """
    (p, u), (o, v) = first, second
    normal, cosine = np.cross(u, v), u @ v
    if np.linalg.norm(normal) <= ROUNDED_RAD:
        return p, o + v * (v @ (p - o))
    s = (u - cosine * v) @ (o - p) / (normal @ normal)
    t = (cosine * u - v) @ (o - p) / (normal @ normal)
    return p + s * u, o + t * v


def _place_frames(axes: Sequence[_Line], sigmas: Sequence[int]) -> list[Floats]:
    """Place the modified DH frames: their poses (4, 4) in the root frame at q = 0.

    Args:
        axes: Lines of the joint axes in the root frame.
        sigmas: For each joint 0 (revolute) or 1 (prismatic).
    """
    lines = list(axes)
    lines[0] = _place_axis(0, lines, sigmas, np.zeros(3))
    p, z = lines[0]
    # where the axes leave the choice: the point of the first axis next to the root's origin, any x across z
    foot = p - z * (z @ p)
    x = across(z)
    frames = []
    for j in range(len(lines)):
        z = lines[j][1]
        origin = foot  # of the last axis; others have theirs where the perpendicular to the next axis begins
        if j + 1 < len(lines):
            lines[j + 1] = _place_axis(j + 1, lines, sigmas, foot)
            origin, foot = _closest_points((foot, z), lines[j + 1])
            x = _common_perpendicular(origin, z, foot, lines[j + 1][1], x)
        frames.append(transform(np.column_stack([x, np.cross(z, x), z]), origin))
    return frames


def _common_perpendicular(a: _Vector, z: _Vector, b: _Vector, z_next: _Vector, x_before: _Vector) -> _Vector:
    """Find the unit vector x (3,) along the common perpendicular of two axes, in the sense nearer to the x before.

    Args:
        a: (3,) foot of the perpendicular on the first axis [m].
        z: (3,) direction of the first axis.
        b: (3,) foot of the perpendicular on the next axis [m].
        z_next: (3,) direction of the next axis.
        x_before: (3,) x of the frame before.
    """
    x = np.cross(z, z_next)
    way = b - a
    if np.linalg.norm(x) <= ROUNDED_RAD:  # parallel axes: along the perpendicular; one line: as before
        x = way if np.linalg.norm(way) > SAME else x_before
    x = x - z * (z @ x)
    x = x / np.linalg.norm(x)
    side = x @ x_before
    if abs(side) <= SAME:  # both senses are at a right angle to the x before: let d be positive
        side = way @ x
    return x if side >= -SAME else -x


def _table_rows(frames: Sequence[Floats], sigmas: Sequence[int]) -> tuple[DH, ...]:
    """Read the DH table off consecutive frames (4, 4) at q = 0; zeros and right angles within rounding become exact."""
    rows = [DH(sigma=sigmas[0])]
    for T_before, T, sigma in zip(frames[:-1], frames[1:], sigmas[1:], strict=True):
        step = inverse_transform(T_before) @ T
        R = step[:3, :3]
        p = step[:3, 3]
        alpha = float(np.arctan2(-R[1, 2], R[2, 2]))
        parallel = abs(np.sin(alpha)) <= ROUNDED_RAD
        alpha = (0.0 if R[2, 2] > 0 else np.pi) if parallel else _snap_right_angle(alpha)
        theta = _snap_right_angle(float(np.arctan2(-R[0, 1], R[0, 0])))
        rows.append(
            DH(alpha=alpha, d=_snap_zero(p[0]), theta=theta, r=_snap_zero(np.float64(p @ R[:, 2])), sigma=sigma)
        )
    return tuple(rows)


def _snap_right_angle(angle: float) -> float:
    """Make an angle [rad] an exact multiple of 90 degrees if it is one within rounding."""
    nearest = round(angle / (np.pi / 2)) * (np.pi / 2)
    return nearest if abs(angle - nearest) <= SAME else angle


def _snap_zero(length: np.float64) -> float:
    """Make a length [m] exactly zero if it is zero within rounding."""
    return 0.0 if abs(length) <= SAME else float(length)


def _express_in_frames(robot: Robot, rows: Sequence[DH], T_base_0: Floats, T_body_mdh: Sequence[Floats]) -> Robot:
    """Build the robot of a DH table with the names, limits, friction and other terms and inertias of the original.

    Arguments are as in `ModifiedDH`.
    """
    bodies = robot.bodies
    inertias = [b.inertia.in_frame(inverse_transform(T)) for b, T in zip(bodies, T_body_mdh, strict=True)]
    plain = from_dh(rows, inertias=inertias, gravity=T_base_0[:3, :3].T @ robot.gravity, name=robot.name)
    # name of a link made by `from_dh` -> name in the original
    names = {f"link{j}": body.joint.child for j, body in enumerate(bodies, start=1)} | {"base": robot.root}
    joints = []
    for joint, body in zip(plain.joints, bodies, strict=True):
        joints.append(
            replace(
                body.joint,
                parent=names[joint.parent],
                child=names[joint.child],
                T_parent_joint=joint.T_parent_joint,
                axis=joint.axis,
            )
        )
    links = tuple(replace(link, name=names[link.name]) for link in plain.links)
    return replace(plain, links=links, joints=tuple(joints), couplings=robot.couplings)


def _deviation(rows: Sequence[DH], frames: Sequence[Floats]) -> float:
    """Compute the largest entry by which the frames of a table miss the frames it was made from [1 or m]."""
    T = frames[0]
    worst = 0.0
    for row, frame in zip(rows[1:], frames[1:], strict=True):
        T = T @ row.T_previous_joint
        worst = max(worst, float(np.abs(T - frame).max()))
    return worst
