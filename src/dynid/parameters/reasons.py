"""Why a parameter never acts, in plain words."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from dynid.parameters.layout import Parameter, ParameterLayout
from dynid.parameters.structural import Attainable, attainable
from dynid.robot.model import Robot

__all__ = ["reasons_for"]

Floats = NDArray[np.float64]


def reasons_for(
    robot: Robot, layout: ParameterLayout, hidden: Collection[str], *, locked: Mapping[int, float], static: bool
) -> dict[str, str]:
    """One clause per hidden parameter.

    Args:
        robot: The robot.
        layout: Its parameters.
        hidden: Names of those without effect.
        locked: Joint number (from 0) -> position at which it is held.
        static: Whether the robot only stands still.
    """
    spans = attainable(robot, locked=locked, static=static)
    found = {}
    for parameter in layout:
        if parameter.name in hidden:
            body = parameter.number - 1
            if parameter.kind in ("joint model", "coupling"):
                found[parameter.name] = _joint_reason(parameter, body in locked, static)
            elif static:
                found[parameter.name] = _rest_reason(parameter)
            else:
                found[parameter.name] = _link_reason(parameter, spans[body], robot)
    return found


def _joint_reason(parameter: Parameter, locked: bool, static: bool) -> str:
    if locked:
        return f"joint '{parameter.owner}' is locked"
    if static:
        return "at rest it does not act"
    return "the motion does not excite it"


def _rest_reason(parameter: Parameter) -> str:
    if parameter.kind == "inertia":
        return "at rest no moment of inertia acts"
    return f"at rest only weights act, and no joint lifts this of link '{parameter.owner}'"


def _link_reason(parameter: Parameter, span: Attainable, robot: Robot) -> str:
    link, turning = f"link '{parameter.owner}'", span.turning
    if parameter.kind == "mass":
        return f"the origin of {link} stays where it is, so its mass alone never moves"
    if len(turning) == 0:
        return f"{link} never turns, so it does not matter how its mass is spread"
    if len(turning) > 1:
        return f"however {link} turns, no joint feels it: it is neither sped up nor lifted"
    axis = _axis_words(turning[0])
    if parameter.kind == "inertia":
        return f"{link} only turns about {axis}, so no other moment of inertia acts"
    if abs(turning[0]["XYZ".index(parameter.symbol[1])]) > 1.0 - 1e-9:
        return f"{link} only turns about {axis}, so mass may shift along it unnoticed"
    vertical = " parallel to gravity" if np.linalg.norm(robot.gravity) > 0.0 else ""
    return f"{link} only turns about {axis}{vertical}, so where its mass lies shows only in its moment of inertia"


def _axis_words(direction: Floats) -> str:
    k = int(np.argmax(np.abs(direction)))
    return f"its {'xyz'[k]} axis" if abs(direction[k]) > 1.0 - 1e-9 else "one oblique axis"
