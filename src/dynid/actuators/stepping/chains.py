"""The independent chains of a robot on a fixed base: a quadruped's four legs move without knowing of each other."""

from __future__ import annotations

from functools import lru_cache

from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.spatial import transform


@lru_cache(maxsize=32)
def split_chains(robot: Robot) -> tuple[tuple[Robot, tuple[int, ...]], ...]:
    """Every branch that hangs on the base, as a robot of its own without terms, and the places of its joints in q."""
    branch: list[int] = []
    for j, body in enumerate(robot.bodies):
        branch.append(j if body.parent < 0 else branch[body.parent])
    found = []
    for first in sorted(set(branch)):
        places = tuple(j for j, of in enumerate(branch) if of == first)
        found.append((_chain(robot, places), places))
    return tuple(found)


def _chain(robot: Robot, places: tuple[int, ...]) -> Robot:
    """The bodies at some places, each one link."""
    base = "base"
    names = {j: f"body_{robot.bodies[j].joint.name}" for j in places}
    joints = []
    for j in places:
        body = robot.bodies[j]
        joints.append(
            Joint(
                name=body.joint.name,
                kind=body.joint.kind,
                parent=names.get(body.parent, base),
                child=names[j],
                T_parent_joint=transform(body.R_parent_joint, body.p_parent_joint),
                axis=body.axis,
            )
        )
    links = (Link(name=base), *(Link(name=names[j], inertia=robot.bodies[j].inertia) for j in places))
    return Robot(name=robot.name, links=links, joints=tuple(joints), gravity=robot.gravity)
