"""What a design did not look at, in words: limits that were not given, and torques that nothing can be said about."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.collision.capsules import collision_pairs, distant_pairs
from dynid.excitation.collision.cell import beyond_by_build
from dynid.excitation.collision.hulls import hull_pairs
from dynid.excitation.limits import MotionLimits
from dynid.robot.model import Robot

__all__ = ["unchecked", "weighed"]


def weighed(robot: Robot) -> NDArray[np.bool_]:
    """Whether each joint (n,) carries anything with mass or inertia in the model: otherwise its torque says nothing."""
    heavy = np.array([bool(np.any(body.inertia.vector)) for body in robot.bodies], dtype=bool)
    for index in reversed(range(robot.dof)):
        if heavy[index] and robot.bodies[index].parent >= 0:
            heavy[robot.bodies[index].parent] = True
    return heavy


def unchecked(robot: Robot, limits: MotionLimits) -> tuple[str, ...]:
    """Phrases that name what no limit was given for."""
    kinds = {
        "velocity": limits.velocity,
        "acceleration": limits.acceleration,
        "jerk": limits.jerk,
        "torque": limits.torque,
    }
    told = [_of(kind, np.isinf(bound), limits.joint_names) for kind, bound in kinds.items()]
    told += _weightless(robot, limits)
    if limits.cell is None and not any(space.half_spaces for space in limits.workspaces):
        told.append("floor and walls")
    elif limits.cell is not None and not limits.cell.hulls:
        told.append("floor and walls for the bodies around the joint origins")
    elif limits.cell is None:
        told.append("floor and walls for anything but the tool")
    if limits.cell is not None:
        told += [f"{where} (it stands beyond by build)" for where in beyond_by_build(robot, limits.cell)]
    if not any(np.isfinite(space.speed) for space in limits.workspaces):
        told.append("tool speed")
    if not (limits.capsules or limits.hulls):
        told.append("self-collision")
    told += _near_by_build(robot, limits)
    return tuple(phrase for phrase in told if phrase)


def _near_by_build(robot: Robot, limits: MotionLimits) -> list[str]:
    """Pairs of links that keep less than the clearance wherever the joints are: they are not held to it."""
    told: dict[str, None] = {}
    kinds = (
        ([hull.link for hull in limits.hulls], hull_pairs(robot, limits.hulls, limits.clearance)),
        ([c.link for c in limits.capsules], collision_pairs(robot, limits.capsules, limits.clearance)),
    )
    for links, kept in kinds:
        for a, b in sorted(set(distant_pairs(robot, links)) - set(kept)):
            told[f"self-collision of {links[a]} and {links[b]} (nearer than the clearance by build)"] = None
    return list(told)


def _weightless(robot: Robot, limits: MotionLimits) -> list[str]:
    limited, carried = np.isfinite(limits.torque), weighed(robot)
    told = []
    if np.any(limited & ~carried):
        phrase = _of("torque", limited & ~carried, limits.joint_names)
        told.append(f"{phrase} (torques cannot be judged, masses are zero)")
    empty = [body.joint.child for body in robot.bodies if not np.any(body.inertia.vector)]
    if empty and np.any(limited & carried):
        told.append(f"torque for {', '.join(empty)} (masses are zero: torques are judged without them)")
    return told


def _of(kind: str, missing: NDArray[np.bool_], names: tuple[str, ...]) -> str:
    if missing.all():
        return kind
    return f"{kind} of {', '.join(names[j] for j in np.flatnonzero(missing))}" if missing.any() else ""
