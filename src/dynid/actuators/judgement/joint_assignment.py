"""Joints that are exchanged or reversed in commands and positions alike: named where the motion tells, else listed.

Where both signals of two joints are exchanged, or both of one joint have the wrong sign, every joint still follows its
command, and the checks of the log see nothing. Only the robot tells: its links load the joints otherwise. So parts of
the motions are fitted again with joints exchanged or reversed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.actuators.alike import joint_groups
from dynid.actuators.motion import CommandedMotion, stretches_of
from dynid.actuators.servo_equations import ServoEquations
from dynid.actuators.servo_identification import ActuatorEstimate
from dynid.actuators.servo_model import ServoModel
from dynid.actuators.servo_search import search_servos
from dynid.errors import EstimationError
from dynid.findings import Finding

SAMPLES = 800
"""Samples of all motions together that are fitted again. Convention: a few seconds."""
STEPS = 6
"""Steps of each of these fits. Convention."""
FEW_JOINTS = 6
"""Joints up to which every pair is tried; of more, neighbours and joints whose names differ in the first word."""
MOST_NAMED = 12
"""Cases that a sentence names. Convention."""
NEARER = 0.5
"""Share of the error below which another assignment explains the motion better. Convention."""
ALIKE = 1.1
"""Share of the error up to which another assignment explains the motion as well. Convention."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One joint reversed, or two exchanged, in commands and positions."""

    first: int
    """Place of the joint."""
    second: int | None = None
    """Place of the joint that it is exchanged with; None where it is reversed."""

    def of(self, motion: CommandedMotion) -> CommandedMotion:
        """The motion with that change."""
        order, sign = np.arange(motion.dof), np.ones(motion.dof)
        if self.second is None:
            sign[self.first] = -1.0
        else:
            order[[self.first, self.second]] = self.second, self.first
        changed: dict[str, Any] = {}
        for name in ("command", "position", "command_velocity", "velocity", "enabled", "counted"):
            given = getattr(motion, name)
            if given is not None:
                changed[name] = given[:, order] if name in ("enabled", "counted") else given[:, order] * sign
        for name in ("kp", "kd", "ki"):
            given = getattr(motion, name)
            if given is not None:
                changed[name] = given[order]
        return replace(motion, **changed)

    def words(self, names: Sequence[str]) -> str:
        """Such as "knee reversed"."""
        if self.second is None:
            return f"{names[self.first]} reversed"
        return f"{names[self.first]} and {names[self.second]} exchanged"


def possible_assignments(model: ServoModel) -> list[Assignment]:
    """Every joint reversed; pairs of joints of one kind exchanged."""
    names, units = model.robot.joint_names, model.robot.position_units
    pairs = {(j, k) for j in range(model.dof) for k in range(j + 1, model.dof)}
    if model.dof > FEW_JOINTS:
        groups = [[names.index(name) for name in group] for group in joint_groups(names)]
        alike = {(j, k) for group in groups for j in group for k in group if j < k}
        pairs = {(j, k) for j, k in pairs if k == j + 1} | alike
    return [Assignment(j) for j in range(model.dof)] + [
        Assignment(j, k) for j, k in sorted(pairs) if units[j] == units[k]
    ]


def check_assignments(found: ActuatorEstimate, motions: Sequence[CommandedMotion]) -> tuple[Finding, ...]:
    """Name a joint or a pair whose other assignment explains the motions far better; list what they cannot tell.

    Args:
        found: Identified servos.
        motions: The motions of the fit.
    """
    parts = _parts(stretches_of(motions))
    base = _error(found, parts)
    if not np.isfinite(base) or base == 0.0:
        return ()
    names = found.model.robot.joint_names
    ratios = {
        change: _error(found, [change.of(part) for part in parts]) / base
        for change in possible_assignments(found.model)
    }
    best = min(ratios, key=lambda change: ratios[change])
    if ratios[best] < NEARER:
        swapped = best.second is not None
        equal = " or with ".join(c.words(names) for c, ratio in ratios.items() if ratio <= ALIKE * ratios[best])
        return (
            Finding(
                code="swapped" if swapped else "flipped", severity="warning", where="commands and positions",
                joint=names[best.first],
                message=f"the motions fit the robot far better with {equal} in commands and positions",
                remedy="Check the order of the joints in the channel map." if swapped
                else "Set sign = -1 for positions and commands of this joint in the channel map.",
                evidence={"error over the present one": ratios[best]},
            ),
        )  # fmt: skip
    same = [change.words(names) for change, ratio in ratios.items() if ratio <= ALIKE]
    if not same:
        return ()
    more = f" and {len(same) - MOST_NAMED} more" if len(same) > MOST_NAMED else ""
    return (
        Finding(
            code="untestable", severity="note", where="commands and positions",
            message=f"these motions would look the same with both signals of {', '.join(same[:MOST_NAMED])}{more}",
            remedy="Make sure of the order and of the signs of these joints by hand.",
            evidence={"cases": len(same)},
        ),
    )  # fmt: skip


def _parts(motions: Sequence[CommandedMotion]) -> list[CommandedMotion]:
    """The starts of the motions, some samples of all together."""
    each = max(2, SAMPLES // len(motions))
    return [motion.part(slice(0, min(each, len(motion.time)))) for motion in motions[: SAMPLES // 2]]


def _error(found: ActuatorEstimate, parts: Sequence[CommandedMotion]) -> float:
    """Root of the sum of squares after some steps from the estimate; infinite where a motion runs away."""
    equations = ServoEquations(found.model, tuple(parts))
    bounds = tuple(np.array([getattr(entry, side) for entry in found.model.entries]) for side in ("lower", "upper"))
    try:
        tried = search_servos(equations.normal, equations.cost, found.values, (bounds[0], bounds[1]), iterations=STEPS)
    except EstimationError:
        return float("inf")
    return float(np.sqrt(tried.cost))
