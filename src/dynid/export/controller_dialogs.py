"""A load as robot controllers expect it: values, frames, orders and units for each of them.

=======  ==================================================================================================
UR       ``set_target_payload``: kg, m from the flange; tensor about the centre of mass, axes of the flange,
         in the order Ixx Iyy Izz Ixy Ixz Iyz; where it is left out, zeros (PolyScope X) or a ball of 1 g/cm^3
Franka   ``setLoad``: kg, m in the flange frame; tensor about the centre of mass, column by column
KUKA     ``LOAD_DATA``: kg, mm from the flange; A B C [deg] turn the flange's axes into the principal ones (about z,
         then y, then x); principal moments
ABB      ``loaddata``: kg, mm in the frame of the active tool, here tool0; quaternion of the principal axes;
         principal moments
=======  ==================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dynid.arrays import Floats
from dynid.errors import ExportError
from dynid.load.load import NAMES, Load
from dynid.spatial import rpy_from_rotation


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadDialog:
    """The command for one controller."""

    controller: str
    text: str
    """The command, ready to copy."""
    notes: tuple[str, ...] = ()
    """Remark for the user of the dialog."""

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
    held = load if T_flange_frame is None else load.in_frame(T_flange_frame, "flange")
    return (ur_set_target_payload(held), franka_set_load(held), kuka_load(held), abb_loaddata(held))


def ur_set_target_payload(load: Load) -> PayloadDialog:
    """Write the load in Universal Robots' URScript; the load must be in the flange frame."""
    mass, com, tensor = require_body(load)
    arguments = [_number(mass, 4), _numbers(com, 5)]
    notes = ["setting the payload resets the force and torque sensor to zero"]
    if tensor is None:
        notes.append(f"{_open_text(load)}; without it the controller takes a point mass, or a ball of 1 g/cm^3")
    else:
        xx, xy, xz, yy, yz, zz = tensor[np.triu_indices(3)]
        arguments.append(_numbers([xx, yy, zz, xy, xz, yz], 8))
    return PayloadDialog(controller="UR", text=f"set_target_payload({', '.join(arguments)})", notes=tuple(notes))


def franka_set_load(load: Load) -> PayloadDialog:
    """Write the load for Franka Robotics' libfranka and franka_msgs/SetLoad; it must be in the flange frame."""
    mass, com, tensor = require_body(load)
    notes = () if tensor is not None else (_zeros_note(load),)
    entries = np.zeros(9) if tensor is None else tensor.ravel(order="F")
    text = f"setLoad({_number(mass, 4)}, {_braces(com, 5)}, {_braces(entries, 8)})" + _remark(load, tensor, "//")
    return PayloadDialog(controller="Franka", text=text, notes=notes)


def kuka_load(load: Load) -> PayloadDialog:
    """Write the load in KUKA's KRL; the load must be in the flange frame."""
    mass, com, tensor = require_body(load)
    moments, axes, notes = _principal(load, tensor)
    c, b, a = np.rad2deg(rpy_from_rotation(axes))
    x, y, z = (_number(1e3 * value, 2) for value in com)
    angles = ",".join(f"{name} {_number(value, 2)}" for name, value in zip("ABC", (a, b, c), strict=True))
    inertia = ",".join(f"{name} {_number(value, 8)}" for name, value in zip("XYZ", moments, strict=True))
    text = f"LOAD_DATA[1]={{M {_number(mass, 3)},CM {{X {x},Y {y},Z {z},{angles}}},J {{{inertia}}}}}"
    return PayloadDialog(controller="KUKA", text=text + _remark(load, tensor, ";"), notes=notes)


def abb_loaddata(load: Load) -> PayloadDialog:
    """Write the load in ABB's RAPID; the load must be in the frame of tool0."""
    mass, com, tensor = require_body(load)
    moments, axes, notes = _principal(load, tensor)
    quaternion = np.roll(Rotation.from_matrix(axes).as_quat(), 1)
    quaternion = quaternion if quaternion[0] >= 0.0 else -quaternion
    fields = [_number(mass, 3), _numbers(1e3 * com, 2), _numbers(quaternion, 6), *(_number(m, 8) for m in moments)]
    notes = (*notes, "loaddata is in the frame of the active tool: here tool0, the flange")
    text = f"PERS loaddata load1:=[{','.join(fields)}];" + _remark(load, tensor, "!")
    return PayloadDialog(controller="ABB", text=text, notes=notes)


def require_body(load: Load) -> tuple[float, Floats, Floats | None]:
    """Mass, centre of mass, and the tensor about it, or None if it is not determined.

    Raises:
        ExportError: The mass or the centre of mass is not determined, or no physical body has these parameters.
    """
    if load.undetermined[6:].any() or not load.mass > 0.0:
        raise ExportError(
            "the mass or the centre of mass of the load is not determined",
            remedy="Identify the load with more orientations.",
        )
    if not load.inertia_is_certain:
        return load.mass, load.com, None
    if not load.inertia.is_physical:
        raise ExportError("no physical body has these parameters", remedy="Identify the load with physical=True.")
    return load.mass, load.com, load.inertia_about_com


def _principal(load: Load, tensor: Floats | None) -> tuple[Floats, Floats, tuple[str, ...]]:
    if tensor is None:
        return np.zeros(3), np.eye(3), (_zeros_note(load),)
    principal = load.principal
    return principal.moments, principal.axes, ()


def _open_text(load: Load) -> str:
    """Say what is missing of the inertia, and what is known but not written: controllers take all of it or nothing."""
    if not 0 < len(load.open_moments) < 6:
        return "the inertia is not determined"
    values = dict(zip(NAMES[:6], load.inertia_about_com[np.triu_indices(3)], strict=True))
    about = [f"{name} = {values[name]:.3g}" for name in load.known_moments if np.isfinite(values[name])]
    known = f"; known about the centre of mass, but not written: {', '.join(about)} kg m^2" if about else ""
    return f"{', '.join(load.open_moments)} are not determined{known}"


def _zeros_note(load: Load) -> str:
    """Say that the zeros of a command are not measured."""
    return f"{_open_text(load)}; the zeros stand for a point mass, they are not measured"


def _remark(load: Load, tensor: Floats | None, sign: str) -> str:
    """Remark at the end of a command without inertia, in the controller's language, so that it is copied with it."""
    if tensor is not None:
        return ""
    which = ", ".join(load.open_moments) if 0 < len(load.open_moments) < 6 else "moments of inertia"
    return f" {sign} zeros: {which} unknown"


def _number(value: float, digits: int) -> str:
    return f"{value + 0.0:.{digits}f}".replace(f"-{0:.{digits}f}", f"{0:.{digits}f}")


def _numbers(values: ArrayLike, digits: int) -> str:
    return f"[{', '.join(_number(value, digits) for value in np.asarray(values, dtype=float))}]"


def _braces(values: ArrayLike, digits: int) -> str:
    return f"{{{_numbers(values, digits)[1:-1]}}}"
