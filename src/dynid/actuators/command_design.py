"""Commands that reveal the parameters of servos: the best of several first motions, judged by a rough model."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from dynid.actuators.motion import CommandedMotion
from dynid.actuators.servo_equations import ServoEquations
from dynid.actuators.servo_knowledge import entry_sizes, find_open_directions
from dynid.actuators.servo_model import ServoModel
from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, EstimationError
from dynid.excitation.command_motion import CommandPlan, design_commands
from dynid.excitation.limits import MotionLimits

HIGHEST_HZ, AMPLITUDES = (1.0, 3.0, 8.0), (0.3, 0.6, 0.9)
"""Highest frequencies of the fast motion [Hz] and shares of the position ranges that are tried. Convention."""


def refine_commands(model: ServoModel, limits: MotionLimits, *, rate_hz: float = 100.0) -> CommandPlan:
    """Choose commands under which the parameters of a model can be found best.

    They need a model with rough values, such as that of a first recording; `design_commands` needs the limits of the
    robot only. The best has the largest determinant of the information at the model's first guess.

    Args:
        model: The robot and its servos, with rough values as first guess.
        limits: Limits of the motion.
        rate_hz: Rate of the commands [Hz].

    Raises:
        ArgumentError: Nothing of the model is free.
        EstimationError: No candidate can be simulated.
    """
    if not model.entries:
        raise ArgumentError("nothing of the model is free", remedy="Name the parameters that are to be found.")
    found = list[tuple[float, CommandPlan, Floats]]()
    size = entry_sizes(model.entries, model.start)
    for high, amplitude in product(HIGHEST_HZ, AMPLITUDES):
        top = min(high, 0.25 * rate_hz)
        plan = design_commands(limits, rate_hz=rate_hz, amplitude=amplitude, band_hz=(0.3 * top, top))
        resting = np.repeat(plan.position[:1], len(plan.time), axis=0)
        motion = CommandedMotion(joint_names=plan.joint_names, time=plan.time, command=plan.position, position=resting)
        try:
            information = ServoEquations(model, (motion,)).normal(model.start).information
        except EstimationError:
            continue
        values = eigvalsh(information * np.outer(size, size))
        smallest = np.finfo(float).eps * max(float(values[-1]), 1e-300)
        found.append((float(np.sum(np.log(np.maximum(values, smallest)))), plan, information))
    if not found:
        raise EstimationError("no candidate can be simulated", remedy="Give the model other first guesses.")
    _, plan, information = max(found, key=lambda one: one[0])
    told = [f"Open whatever the log: {each}." for each in find_open_directions(model.entries, model.start, information)]
    return replace(plan, notes=(*plan.notes, *(told or ["Every parameter of the law can be told."])))
