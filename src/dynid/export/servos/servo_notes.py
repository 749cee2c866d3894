"""What files of identified servos cannot hold, as a text for people; wider joint limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.actuators.servo_identification import ActuatorEstimate

SLACK = 0.1
"""Share of the range of a motion by which a joint limit is set beyond it. Convention: a simulated motion overshoots."""
USE = {
    "servos.xml": "MuJoCo: joints and one position actuator each",
    "servos.urdf": "URDF: damping and friction of joints",
    "isaac_actuators.json": "Isaac Lab: settings of an actuator group",
    "servo_model.json": "one servo under the names of servo friction models",
}
"""File -> what it is for."""


@dataclass(frozen=True, slots=True)
class FileNotes:
    """What is to be said of one file."""

    name: str
    missing: tuple[str, ...] = ()
    """Parameters that have no place in it, as ``kind: what to do``, and other remarks."""
    refused: str = ""
    """Why it was not written, and what to do; empty where it was."""


def doubtful_values(found: ActuatorEstimate) -> dict[str, str]:
    """Entry -> why its value is no estimate, for those that stand at a bound or are open."""
    opened = {name: direction for direction in found.open_directions for name in direction.names}
    told = {
        name: f"not reached, at least {direction.at_least:.3g}" if direction.at_least is not None else "open"
        for name, direction in opened.items()
    }
    return told | {name: "at a bound of the search" for name in found.at_bound}


def widened_limits(found: ActuatorEstimate) -> dict[str, tuple[float, float]]:
    """Joint -> limits that hold its motion [rad or m], for joints that went beyond the description's.

    Readings less the zeros are positions in the description's coordinates, in which its limits stand. A joint that went
    beyond them has another zero than the estimated one, or another limit; the simulated joint would be stopped there.
    """
    wider = {}
    for joint, (low, high) in zip(found.model.robot.moving_joints, found.reach, strict=True):
        limits, slack = joint.limits, SLACK * float(high - low)
        if joint.name in found.beyond_limits:
            lower = float(low) - slack if low < limits.lower else limits.lower
            wider[joint.name] = (lower, float(high) + slack if high > limits.upper else limits.upper)
    return wider


def notes_text(files: Sequence[FileNotes], warnings: Sequence[str]) -> str:
    """The text of ``not_in_the_files.txt``.

    Args:
        files: The files, in the order of the text.
        warnings: What comes first, such as that the law does not fit.
    """
    lines = [*warnings, *([""] if warnings else [])]
    lines += ["What the files of this folder cannot hold, and what to do about it. servos.txt has all values."]
    for file in files:
        lines += ["", f"{file.name} ({USE[file.name]})" if file.name in USE else file.name]
        if file.refused:
            lines.append(f"  is not written: {file.refused}")
        elif not file.missing:
            lines.append("  holds everything.")
        lines += [f"  - {text}" for text in file.missing]
    return "\n".join(lines) + "\n"
