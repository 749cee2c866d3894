"""Joints that are exchanged or reversed in commands and positions alike: named where the motion tells, else listed.

Where both signals of two joints are exchanged, or both of one joint have the wrong sign, every joint still follows its
command, and the checks of the log see nothing. Only the robot tells: its links load the joints otherwise. So parts of
the motions are fitted again with joints exchanged or reversed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from dynid.actuators.motion import CommandedMotion, stretches_of
from dynid.actuators.servo_equations import ServoEquations, search_servos
from dynid.actuators.servo_identification import ActuatorEstimate
from dynid.actuators.servo_model import ServoModel, joint_groups
from dynid.errors import EstimationError
from dynid.findings import Finding

SAMPLES, STEPS = 800, 6
"""Samples of all motions together that are fitted again, and steps of each fit. Convention: a few seconds."""
FEW_JOINTS = 6
"""Joints up to which every pair is tried; of more, neighbours and joints whose names differ in the first word."""
MOST_NAMED = 12
"""Cases that a sentence names. Convention."""
NEARER, ALIKE = 0.5, 1.1
"""Shares of the error below which another assignment explains the motion better, or as well. Convention."""
Change = tuple[int, int]
"""Places of two joints that are exchanged; of one joint twice where it is reversed."""


def _changed(motion: CommandedMotion, change: Change) -> CommandedMotion:
    """The motion with a joint reversed, or two exchanged, in commands and positions."""
    order, sign = list(range(motion.dof)), np.ones(motion.dof)
    first, second = change
    order[first], order[second] = second, first
    if first == second:
        sign[first] = -1.0
    turned = motion.of_joints(order)
    signed = {name: sign * values for name in ("command", "position", "command_velocity", "velocity")
              if (values := getattr(turned, name)) is not None}  # fmt: skip
    return replace(turned, joint_names=motion.joint_names, **signed)


def _possible_changes(model: ServoModel) -> list[Change]:
    """Every joint reversed; pairs of joints of one kind exchanged."""
    names, units = model.robot.joint_names, model.robot.position_units
    pairs = set(combinations(range(model.dof), 2))
    if model.dof > FEW_JOINTS:
        groups = [[names.index(name) for name in group] for group in joint_groups(names)]
        pairs = {(j, j + 1) for j in range(model.dof - 1)} | {p for g in groups for p in combinations(sorted(g), 2)}
    return [(j, j) for j in range(model.dof)] + [(j, k) for j, k in sorted(pairs) if units[j] == units[k]]


def check_assignments(found: ActuatorEstimate, motions: Sequence[CommandedMotion]) -> tuple[Finding, ...]:
    """Name a joint or a pair whose other assignment explains the motions far better; list what they cannot tell.

    Args:
        found: Identified servos.
        motions: The motions of the fit.
    """
    cut = stretches_of(motions)
    each = max(2, SAMPLES // len(cut))
    parts = [motion.part(slice(0, min(each, len(motion.time)))) for motion in cut[: SAMPLES // 2]]
    base = _refit_error(found, parts)
    if not np.isfinite(base) or base == 0.0:
        return ()
    names = found.model.robot.joint_names
    ratios = {change: _refit_error(found, [_changed(part, change) for part in parts]) / base
              for change in _possible_changes(found.model)}  # fmt: skip
    words = {(j, k): f"{names[j]} reversed" if j == k else f"{names[j]} and {names[k]} exchanged" for j, k in ratios}
    best = min(ratios, key=lambda change: ratios[change])
    if ratios[best] < NEARER:
        swapped = best[0] != best[1]
        equal = " or with ".join(words[c] for c, ratio in ratios.items() if ratio <= ALIKE * ratios[best])
        return (Finding(
            code="swapped" if swapped else "flipped", severity="warning", where="commands and positions",
            joint=names[best[0]],
            message=f"the motions fit the robot far better with {equal} in commands and positions",
            remedy="Check the order of the joints in the channel map." if swapped
            else "Set sign = -1 for positions and commands of this joint in the channel map.",
            evidence={"error over the present one": ratios[best]},
        ),)  # fmt: skip
    same = [words[change] for change, ratio in ratios.items() if ratio <= ALIKE]
    if not same:
        return ()
    more = f" and {len(same) - MOST_NAMED} more" if len(same) > MOST_NAMED else ""
    return (Finding(
        code="untestable", severity="note", where="commands and positions",
        message=f"these motions would look the same with both signals of {', '.join(same[:MOST_NAMED])}{more}",
        remedy="Make sure of the order and of the signs of these joints by hand.",
        evidence={"cases": len(same)},
    ),)  # fmt: skip


def _refit_error(found: ActuatorEstimate, parts: Sequence[CommandedMotion]) -> float:
    """Root of the sum of squares after some steps from the estimate; infinite where a motion runs away."""
    equations, entries = ServoEquations(found.model, tuple(parts)), found.model.entries
    bounds = np.array([entry.lower for entry in entries]), np.array([entry.upper for entry in entries])
    try:
        tried = search_servos(equations.normal, equations.cost, found.values, bounds, iterations=STEPS)
    except EstimationError:
        return float("inf")
    return float(np.sqrt(tried.cost))
