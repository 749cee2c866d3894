"""A load as files that controllers read: a URScript program, and ROS 2 parameters of two gravity compensations.

URScript
    ``set_target_payload(m, cog, inertia)``: see `dynid.export.controller_dialogs`.
Filter GravityCompensation of ``control_filters`` (package ``control_toolbox``)
    ``CoG.pos`` (3,) [m] in ``sensor_frame``; ``CoG.force`` (3,) [N], mass times gravity along the axes of
    ``world_frame``, which is subtracted from a wrench.
``admittance_controller`` of ``ros2_controllers``
    ``gravity_compensation.CoG.pos`` (3,) [m] in ``gravity_compensation.frame.id``; ``CoG.force``, the weight as one
    number [N]; gravity must point along -z of its world frame.

What a format has no place for is a `Finding` with the code ``not-in-format``, and a remark in the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError, ExportError
from dynid.export.controller_dialogs import require_body, ur_set_target_payload
from dynid.files import write_atomically
from dynid.findings import Finding
from dynid.load.load import Load

GRAVITY = (0.0, 0.0, -9.81)
"""Gravity along the axes of the world frame [m/s^2]; convention of ROS 2: z points up."""
UR_LARGEST_MOMENT = 133.0
"""Largest entry of a payload's inertia that URScript accepts [kg m^2] (script manual of ``set_target_payload``)."""
DOWN = 1e-6
"""Share of gravity that may lie across -z where a controller has no place for its direction; convention."""
Target = Literal["filter", "admittance_controller"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFile:
    """A file for a controller."""

    text: str
    ending: str
    """Usual ending of the file's name."""
    findings: tuple[Finding, ...] = ()
    """What the format has no place for."""

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the file whole or not at all.

        Raises:
            ExportError: The file exists, or it cannot be written.
        """
        return write_atomically(path, self.text, force=force)


def ur_payload_script(load: Load, *, T_flange_frame: ArrayLike | None = None) -> ControllerFile:
    """Write a URScript program that sets a load as the payload of a Universal Robots arm.

    Args:
        load: The load; its mass must be positive, and its mass and centre of mass determined.
        T_flange_frame: (4, 4) pose of the load's frame in the flange frame; the same frame by default.

    Raises:
        ExportError: The mass or the centre of mass is not determined, no physical body has these parameters, or the
            controller accepts no moments of inertia as large.

    Example:
        >>> print(dynid.export.ur_payload_script(load).text.splitlines()[-2][2:57])
        set_target_payload(2.0000, [0.00000, 0.00000, 0.10000],
    """
    held = load if T_flange_frame is None else load.in_frame(T_flange_frame, "flange")
    _, _, tensor = require_body(held)
    if tensor is not None and np.abs(tensor).max() > UR_LARGEST_MOMENT:
        raise ExportError(
            f"a moment of inertia is {np.abs(tensor).max():.4g} kg m^2, and URScript accepts "
            f"{UR_LARGEST_MOMENT:g} kg m^2 at most",
            remedy="Check the units of the load's logs.",
        )
    call = ur_set_target_payload(held)
    findings: tuple[Finding, ...] = ()
    if tensor is None:
        what = f"{', '.join(held.known_moments)} are known, and are not written: " if held.known_moments else ""
        message = f"{what}URScript takes all moments of inertia or none, and not all are certain"
        findings = (_not_held(message, "Identify the load with rotations about all axes of its frame."),)
    remarks = [f"load of frame {held.frame}, which must be the tool flange", *_spread(held), *call.notes]
    lines = [*(f"# {_line(remark)}" for remark in remarks), "def set_dynid_payload():", f"  {call.text}", "end"]
    return ControllerFile(text="\n".join(lines) + "\n", ending=".script", findings=findings)


def ros2_gravity_compensation(
    load: Load,
    target: Target = "filter",
    *,
    frame: str | None = None,
    world_frame: str = "world",
    gravity: ArrayLike = GRAVITY,
) -> ControllerFile:
    """Write ROS 2 parameters with which a wrist sensor's readings lose the weight of a load.

    The filter subtracts ``CoG.force`` from the reading, so the sensor must report the weight that hangs on it, pointing
    down; a sensor with the opposite sign needs its wrench turned before.

    Args:
        load: The load that the sensor carries; its mass and centre of mass must be determined.
        target: ``filter`` for GravityCompensation of ``control_filters`` (package ``control_toolbox``, whose documented
            parameters are these), or ``admittance_controller`` of ``ros2_controllers``.
        frame: Name of the sensor's frame in the robot description; the load's frame by default. The load must be in it.
        world_frame: Name of a frame that does not move, in whose axes gravity is given (filter only).
        gravity: (3,) gravity in the axes of that frame [m/s^2].

    Raises:
        ExportError: The mass or the centre of mass is not determined; or gravity does not point along -z, and the
            controller has no place for another direction.

    Example:
        >>> dynid.export.ros2_gravity_compensation(load, frame="tool0").text.splitlines()[-1].strip()
        'force: [0.0, 0.0, -19.62]'
    """
    mass, com, _ = require_body(load)
    g = np.array(gravity, dtype=float).reshape(-1)
    if g.shape != (3,) or not np.isfinite(g).all() or not g.any():
        raise ArgumentError(f"gravity is {gravity!r}", remedy="Give three numbers in m/s^2.")
    place = json.dumps(frame or load.frame)
    if target == "filter":
        node, world = "gravity_compensation", f"the axes of {world_frame}"
        own = [f"world_frame: {json.dumps(world_frame)}", f"sensor_frame: {place}", "CoG:"]
        own += [f"  pos: {_row(com)}", f"  force: {_row(mass * g)}"]
    elif target == "admittance_controller":
        _check_down(g)
        node, world = "admittance_controller", "the controller's world frame"
        own = ["gravity_compensation:", f"  frame: {{id: {place}}}", "  CoG:", f"    pos: {_row(com)}"]
        own += [f"    force: {_number(mass * -g[2])}"]
    else:
        raise ArgumentError(f"there is no target {target!r}", remedy="Choose 'filter' or 'admittance_controller'.")
    remarks = [f"load of frame {load.frame}", *_spread(load), "the inertia has no place here: right at rest only"]
    remarks.append(f"weight under gravity ({', '.join(f'{value:.6g}' for value in g)}) m/s^2 in {world}")
    lines = [*(f"# {_line(remark)}" for remark in remarks), f"{node}:", "  ros__parameters:"]
    lines += [f"    {line}" for line in own]
    message = "the gravity compensation of ROS 2 has no place for the load's inertia, so it is right at rest only"
    return ControllerFile(text="\n".join(lines) + "\n", ending=".yaml", findings=(_not_held(message),))


def _not_held(message: str, remedy: str = "") -> Finding:
    return Finding(code="not-in-format", severity="note", where="load", message=message, remedy=remedy)


def _check_down(g: Floats) -> None:
    if g[2] >= 0.0 or np.hypot(g[0], g[1]) > DOWN * -g[2]:
        raise ExportError(
            "the admittance controller knows gravity along -z only",
            place="gravity",
            remedy="Use the filter, or give gravity in a frame whose z axis points up.",
        )


def _spread(load: Load) -> list[str]:
    """What is known of the accuracy, in words."""
    if not load.mass_stderr > 0.0:
        return []
    com = ", ".join(f"{1e3 * value:.2g}" for value in load.com_stderr)
    return [f"standard deviations: mass {load.mass_stderr:.2g} kg, centre of mass {com} mm"]


def _number(value: float) -> str:
    """A number in YAML 1.1, which takes ``1e-05`` for text."""
    text = repr(round(float(value), 9) + 0.0)
    return text if "." in text else text.replace("e", ".0e")


def _row(values: Sequence[float] | Floats) -> str:
    return f"[{', '.join(map(_number, values))}]"


def _line(text: str) -> str:
    """A remark in one line, whatever a name from a file holds."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
