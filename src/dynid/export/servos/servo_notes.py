"""What files of identified servos cannot hold and what that costs, as a text for people; wider joint limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.actuators.kinds import KINDS, milli
from dynid.actuators.motion import CommandedMotion, compared
from dynid.actuators.servo_identification import ActuatorEstimate
from dynid.actuators.servo_model import ServoParameter
from dynid.actuators.servo_simulator import simulate_servos
from dynid.errors import EstimationError

SLACK = 0.1
"""Share of the range of a motion by which a joint limit is set beyond it. Convention: a simulated motion overshoots."""
SAME = 0.02
"""Relative change of the error that counts as none. Convention."""
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


def error_without(found: ActuatorEstimate, kind: str, motions: Sequence[CommandedMotion]) -> float:
    """Error of the simulated motions without one kind of parameter, rms [rad or m]; infinite where they run away.

    Args:
        found: Identified servos.
        kind: The kind; an empty string leaves none out.
        motions: Motions to simulate.
    """
    parameters = [p for p in found.model.parameters if isinstance(p, ServoParameter) and p.kind != kind]
    model = replace(found.model, parameters=tuple(parameters), alike=(), candidates=())
    values = [value for entry, value in zip(found.model.entries, found.values, strict=True) if entry.kind != kind]
    squares, count = 0.0, 0
    for motion in motions:
        try:
            error = compared(motion.position - simulate_servos(model, np.array(values), motion), motion.counted)
        except EstimationError:
            return float("inf")
        squares, count = squares + float(np.sum(error**2)), count + int(motion.counts.sum())
    return float(np.sqrt(squares / max(1, count)))


def notes_text(
    found: ActuatorEstimate, files: Sequence[FileNotes], motions: Sequence[CommandedMotion], warnings: Sequence[str]
) -> str:
    """The text of ``not_in_the_files.txt``.

    Args:
        found: Identified servos.
        files: The files, in the order of the text.
        motions: Motions on which the cost of what is missing is measured.
        warnings: What comes first, such as that the law does not fit.
    """
    kinds = dict.fromkeys(text.partition(":")[0] for file in files for text in file.missing)
    errors = {kind: error_without(found, kind, motions) for kind in ("", *kinds) if kind in ("", *KINDS)}
    lines = [*warnings, *([""] if warnings else [])]
    lines += ["What the files of this folder cannot hold, and what to do about it. servos.txt has all values."]
    if len(errors) > 1:
        names = ", ".join(motion.name for motion in motions)
        lines += [f"Errors are those of the simulated motion of {names}, rms; with all values it is off by "
                  f"{_shown(found, errors[''])}."]  # fmt: skip
    for file in files:
        use = USE.get(file.name, "")
        lines += ["", f"{file.name} ({use})" if use else file.name]
        if file.refused:
            lines.append(f"  is not written: {file.refused}")
        elif not file.missing:
            lines.append("  holds everything.")
        lines += [f"  - {text}{_cost(found, text.partition(':')[0], errors)}" for text in file.missing]
    return "\n".join(lines) + "\n"


def _cost(found: ActuatorEstimate, kind: str, errors: Mapping[str, float]) -> str:
    """What a file without a kind costs, as a half sentence."""
    if not kind or kind not in errors:
        return ""
    if abs(errors[kind] - errors[""]) <= SAME * errors[""]:
        return ". Makes no difference on these motions"
    return f". Error without it: {_shown(found, errors[kind])}"


def _shown(found: ActuatorEstimate, error: float) -> str:
    """An error with its unit."""
    return f"{1e3 * error:.3g} {milli(found.model.unit)}" if np.isfinite(error) else "the motion cannot be simulated"
