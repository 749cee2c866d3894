"""A load as robot controllers expect it: commands to copy, a URScript program, parameters of ROS 2.

The input is a `dynid.payload.Load`: mass, centre of mass and inertia tensor of a payload in one frame, with the numbers
that the data do not determine. The output is text.

Conventions of the commands (first argument, then mass, centre of mass, inertia):

=======  ==================================================================================================
UR       ``set_target_payload``: kg, m from the flange; tensor about the centre of mass, axes of the flange,
         in the order Ixx Iyy Izz Ixy Ixz Iyz; where it is left out, zeros (PolyScope X) or a ball of 1 g/cm^3
Franka   ``setLoad``: kg, m in the flange frame; tensor about the centre of mass, column by column
KUKA     ``LOAD_DATA``: kg, mm from the flange; A B C [deg] turn the flange's axes into the principal ones (about z,
         then y, then x); principal moments
ABB      ``loaddata``: kg, mm in the frame of the active tool, here tool0; quaternion of the principal axes;
         principal moments
=======  ==================================================================================================

Filter GravityCompensation of ``control_filters`` (package ``control_toolbox``)
    ``CoG.pos`` (3,) [m] in ``sensor_frame``; ``CoG.force`` (3,) [N], mass times gravity along the axes of
    ``world_frame``, which is subtracted from a wrench.
``admittance_controller`` of ``ros2_controllers``
    ``gravity_compensation.CoG.pos`` (3,) [m] in ``gravity_compensation.frame.id``; ``CoG.force``, the weight as one
    number [N]; gravity must point along -z of its world frame.

Parameters that a file has no place for become a `Finding` with the code ``not-in-format``, and a remark in the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dynid.array_types import Floats
from dynid.checks import as_row
from dynid.errors import ArgumentError, ExportError
from dynid.findings import Finding
from dynid.payload.load import NAMES, Load
from dynid.robot.model import STANDARD_GRAVITY
from dynid.safe_files import write_atomically
from dynid.safe_text import visible_text
from dynid.spatial import rpy_from_rotation


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadDialog:
    """The command that sets a load on the robots of one maker."""

    controller: str
    """The maker, a key of `_CONTROLLERS`."""
    text: str
    """The command, ready to copy."""
    notes: tuple[str, ...] = ()
    """Remarks for the user."""

    def __str__(self) -> str:
        return "\n".join([f"{self.controller}: {self.text}", *(f"  {note}" for note in self.notes)])


def payload_dialogs(load: Load, *, T_flange_frame: ArrayLike | None = None) -> tuple[PayloadDialog, ...]:
    """Write a load for UR, Franka, KUKA and ABB controllers.

    Args:
        load: The load; its mass must be positive, and its mass and centre of mass determined.
        T_flange_frame: (4, 4) pose of the load's frame in the flange frame; the same frame by default.

    Raises:
        ExportError: The mass or the centre of mass is not determined, or no physical body has these parameters.

    Example:
        >>> dynid.export.payload_dialogs(load)[0].controller
        'UR'
    """
    in_flange = load if T_flange_frame is None else load.in_frame(T_flange_frame, "flange")
    _check_body(in_flange)
    dialogs = []
    for name, maker in _CONTROLLERS.items():
        text = maker.write(in_flange)
        notes = [maker.note] if maker.note else []
        if not in_flange.inertia_is_certain:
            point = "without it the controller takes a point mass, or a ball of 1 g/cm^3"
            zeros = "the zeros stand for a point mass, they are not measured"
            notes.append(f"{_open_text(in_flange)}; {point if maker.can_leave_out_inertia else zeros}")
            some_are_open = 0 < len(in_flange.open_moments) < 6
            which = ", ".join(in_flange.open_moments) if some_are_open else "moments of inertia"
            if not maker.can_leave_out_inertia:  # in the command, to be copied with it
                text += f" {maker.comment_sign} zeros: {which} unknown"
        dialogs.append(PayloadDialog(controller=name, text=text, notes=tuple(notes)))
    return tuple(dialogs)


def _check_body(load: Load) -> None:
    """Refuse a load whose mass or centre of mass is not determined, or that no physical body has."""
    if load.undetermined[6:].any() or not load.mass > 0.0:  # from 6 on: first moments and mass
        raise ExportError(
            "the mass or the centre of mass of the load is not determined",
            remedy="Identify the load with more orientations.",
        )
    if load.inertia_is_certain and not load.inertia.is_physical:
        raise ExportError("no physical body has these parameters", remedy="Identify the load with physical=True.")


def _write_ur(load: Load) -> str:
    arguments = f"{_write_fixed(load.mass, 4)}, [{_write_fixed(load.com, 5)}]"
    if load.inertia_is_certain:  # Ixx Iyy Izz Ixy Ixz Iyz
        arguments += f", [{_write_fixed(load.inertia_about_com[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]], 8)}]"
    return f"set_target_payload({arguments})"


def _write_franka(load: Load) -> str:
    tensor = load.inertia_about_com if load.inertia_is_certain else np.zeros((3, 3))
    mass, com, inertia = _write_fixed(load.mass, 4), _write_fixed(load.com, 5), _write_fixed(tensor.ravel(order="F"), 8)
    return f"setLoad({mass}, {{{com}}}, {{{inertia}}})"


def _write_kuka(load: Load) -> str:
    moments, axes = _principal(load)
    values = [*1e3 * load.com, *np.rad2deg(rpy_from_rotation(axes))[::-1]]  # mm; A B C: yaw, pitch, roll
    place = ",".join(f"{name} {_write_fixed(value, 2)}" for name, value in zip("XYZABC", values, strict=True))
    inertia = ",".join(f"{name} {_write_fixed(value, 8)}" for name, value in zip("XYZ", moments, strict=True))
    return f"LOAD_DATA[1]={{M {_write_fixed(load.mass, 3)},CM {{{place}}},J {{{inertia}}}}}"


def _write_abb(load: Load) -> str:
    moments, axes = _principal(load)
    quaternion = np.roll(Rotation.from_matrix(axes).as_quat(canonical=True), 1)  # w first
    fields = [_write_fixed(load.mass, 3), f"[{_write_fixed(1e3 * load.com, 2)}]", f"[{_write_fixed(quaternion, 6)}]"]
    return f"PERS loaddata load1:=[{','.join([*fields, *(_write_fixed(m, 8) for m in moments)])}];"


class _Controller(NamedTuple):
    """How a load is written for the controllers of one maker."""

    write: Callable[[Load], str]
    """Writes the command for a load in the flange frame."""
    can_leave_out_inertia: bool
    """Whether the command is complete without moments of inertia; otherwise unknown ones are written as zeros."""
    comment_sign: str = ""
    """Sign before a comment, which names these zeros, in the maker's language."""
    note: str = ""
    """Remark for the user."""


_CONTROLLERS = {
    "UR": _Controller(_write_ur, True, note="setting the payload resets the force and torque sensor to zero"),
    "Franka": _Controller(_write_franka, False, "//"),
    "KUKA": _Controller(_write_kuka, False, ";"),
    "ABB": _Controller(_write_abb, False, "!", "loaddata is in the frame of the active tool: here tool0, the flange"),
}


def _principal(load: Load) -> tuple[Floats, Floats]:
    """Find the principal moments (3,) [kg m^2] and axes (3, 3), in its columns, of a load.

    For a load whose inertia is not determined, zeros and the identity: a point mass.
    """
    if not load.inertia_is_certain:
        return np.zeros(3), np.eye(3)
    return load.principal.moments, load.principal.axes


def _open_text(load: Load) -> str:
    """Say which moments of inertia are not determined, and which are known but not written.

    Controllers take all moments or none.
    """
    if not 0 < len(load.open_moments) < 6:
        return "the inertia is not determined"
    values = dict(zip(NAMES[:6], load.inertia_about_com[np.triu_indices(3)], strict=True))
    about = [f"{name} = {values[name]:.3g}" for name in load.known_moments if np.isfinite(values[name])]
    known = f"; known about the centre of mass, but not written: {', '.join(about)} kg m^2" if about else ""
    return f"{', '.join(load.open_moments)} are not determined{known}"


def _write_fixed(values: ArrayLike, digits: int) -> str:
    """Write numbers with digits behind the point, without an exponent and without a minus before zero."""
    return ", ".join(f"{value:z.{digits}f}" for value in np.atleast_1d(values).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFile:
    """A file for a controller."""

    text: str
    """Content of the file."""
    ending: str
    """Usual ending of the file's name."""
    findings: tuple[Finding, ...] = ()
    """Parameters that the format has no place for."""

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the file whole or not at all.

        Raises:
            ExportError: The file exists, or it cannot be written.
        """
        return write_atomically(path, self.text, force=force)


def ur_payload_script(load: Load) -> ControllerFile:
    """Write a URScript program that sets a load in the flange frame as the payload of a Universal Robots arm.

    Raises:
        ExportError: The mass or the centre of mass is not determined, or no physical body has these parameters.
    """
    call = next(dialog for dialog in payload_dialogs(load) if dialog.controller == "UR")
    findings = []
    if not load.inertia_is_certain:
        known = f"{', '.join(load.known_moments)} are known, and are not written: " if load.known_moments else ""
        message = f"{known}URScript takes all moments of inertia or none, and not all are certain"
        findings.append(_not_in_format(message, "Identify the load with rotations about all axes of its frame."))
    remarks = [f"load of frame {load.frame}, which must be the tool flange", *_accuracy(load), *call.notes]
    program = ["def set_dynid_payload():", f"  {call.text}", "end"]
    return _controller_file(remarks, program, ".script", findings)


def ros2_gravity_compensation(
    load: Load,
    target: Literal["filter", "admittance_controller"] = "filter",
    *,
    frame: str | None = None,
    world_frame: str = "world",
    gravity: ArrayLike = STANDARD_GRAVITY,
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
    _check_body(load)
    g = as_row("gravity", gravity, 3, each="in m/s^2")
    quoted_frame = json.dumps(frame or load.frame)  # JSON is YAML, too
    if target == "filter":
        node = "gravity_compensation"
        axes = f"the axes of {world_frame}"
        entries = [f"world_frame: {json.dumps(world_frame)}", f"sensor_frame: {quoted_frame}", "CoG:"]
        entries += [f"  pos: {_row(load.com)}", f"  force: {_row(load.mass * g)}"]
    elif target == "admittance_controller":
        if g[2] >= 0.0 or not np.allclose(g[:2], 0.0):
            raise ExportError(
                "the admittance controller knows gravity along -z only",
                place="gravity",
                remedy="Use the filter, or give gravity in a frame whose z axis points up.",
            )
        node = "admittance_controller"
        axes = "the controller's world frame"
        entries = ["gravity_compensation:", f"  frame: {{id: {quoted_frame}}}", "  CoG:", f"    pos: {_row(load.com)}"]
        entries += [f"    force: {_row([load.mass * -g[2]]).strip('[]')}"]  # one number, no list
    else:
        raise ArgumentError(f"there is no target {target!r}", remedy="Choose 'filter' or 'admittance_controller'.")
    remarks = [f"load of frame {load.frame}", *_accuracy(load), "the inertia has no place here: right at rest only"]
    remarks.append(f"weight under gravity ({', '.join(f'{value:.6g}' for value in g)}) m/s^2 in {axes}")
    message = "the gravity compensation of ROS 2 has no place for the load's inertia, so it is right at rest only"
    parameters = [f"{node}:", "  ros__parameters:", *(f"    {line}" for line in entries)]
    return _controller_file(remarks, parameters, ".yaml", [_not_in_format(message)])


def _controller_file(remarks: list[str], lines: list[str], ending: str, findings: list[Finding]) -> ControllerFile:
    """Make a file that begins with remarks as comments."""
    shown = [f"# {' '.join(visible_text(remark).split())}" for remark in remarks]  # names may hold line ends
    return ControllerFile(text="\n".join([*shown, *lines, ""]), ending=ending, findings=tuple(findings))


def _not_in_format(message: str, remedy: str = "") -> Finding:
    """Make a note about what a file has no place for."""
    return Finding(code="not-in-format", severity="note", where="load", message=message, remedy=remedy)


def _accuracy(load: Load) -> list[str]:
    """Write a remark with the standard deviations of a load; none where they are not known."""
    if not load.mass_stderr > 0.0:
        return []
    com = ", ".join(f"{1e3 * value:.2g}" for value in load.com_stderr)
    return [f"standard deviations: mass {load.mass_stderr:.2g} kg, centre of mass {com} mm"]


def _row(values: ArrayLike) -> str:
    """Write a list of numbers in YAML 1.1, without exponents: it takes ``1e-05`` for text."""
    rounded = np.round(np.asarray(values, dtype=float), 9) + 0.0  # turns -0.0 into 0.0
    return f"[{', '.join(np.format_float_positional(value, trim='0') for value in rounded)}]"
