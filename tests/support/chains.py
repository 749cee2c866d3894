"""Serial robots by their joints and bodies."""

from __future__ import annotations

from typing import Any

from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link


def chain(name: str, *parts: tuple[Inertia, dict[str, Any]]) -> Robot:
    """A chain of bodies; with each the fields of the joint before it, which turns unless they say its kind."""
    links, joints = [Link(name="base")], []
    for body, fields in parts:
        links.append(Link(name=f"{fields['name']}_body", inertia=body))
        joints.append(Joint(**{"kind": "revolute"} | fields, parent=links[-2].name, child=links[-1].name))
    return Robot(name=name, links=tuple(links), joints=tuple(joints))
