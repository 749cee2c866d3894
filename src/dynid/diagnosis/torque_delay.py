"""The delay of the torques against the motion: Gauss-Newton over the suspect whose column is the rate of the torque.

At each step the torques are moved back by what was found, and the rest is found anew. All joints and all runs together
have one delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.diagnosis.evidence import gather
from dynid.diagnosis.suspects import Model
from dynid.diagnosis.verdicts import Fit, test_columns
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.process import Processing, process
from dynid.robot.model import Robot

MOST_STEPS = 5
"""Most steps of Gauss-Newton (convention: delays of 20 ms settle in two)."""
SETTLED = 0.05
"""Step, over half the interval, that ends the search (convention)."""
LONGEST_S = 0.2
"""Largest delay that is looked for [s] (effect)."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A delay of the torques behind the motion with its 95 % interval."""

    seconds: float
    """[s]; negative where the torques are early."""
    half_width_s: float
    """Half of the 95 % interval [s]; infinite where the runs do not show the delay."""

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes zero."""
        return abs(self.seconds) > self.half_width_s


def find_delay(robot: Robot, runs: Sequence[Experiment]) -> Delay:
    """Estimate the delay of the torques of runs, processed without a delay.

    Args:
        robot: The robot.
        runs: The runs.

    Example:
        >>> abs(dynid.diagnosis.find_delay(robot, [run]).seconds) < 0.005
        True
    """
    seconds, half_width = 0.0, np.inf
    for _ in range(MOST_STEPS):
        model = Model.of(robot, runs, seconds)
        late = [[dict(enumerate(-excerpt.slope.T))] for excerpt in model.excerpts]
        evidence = gather(model.robot, model.base, model.excerpts, late)
        amount = test_columns(Fit.of(evidence), [evidence.suspects])[0]
        step, half_width = float(amount.value[0]), float(amount.half_width[0])
        if not np.isfinite(half_width):
            return Delay(0.0, np.inf)
        seconds = float(np.clip(seconds + step, -LONGEST_S, LONGEST_S))
        if abs(step) < SETTLED * half_width:
            break
    return Delay(seconds, half_width)


def resolve_delay(recording: Recording, options: Processing, robot: Robot | None = None) -> tuple[Processing, str]:
    """Replace an unknown delay of the torques by its estimate; return the options and a note for the experiment.

    Torques are moved only where the interval of the delay excludes zero.

    Args:
        recording: The log.
        options: Processing options; only ``effort_delay_s="auto"`` is replaced.
        robot: The robot, by whose equations the delay is found; without it nothing is moved.
    """
    if options.effort_delay_s != "auto":
        return options, ""
    unmoved = replace(options, effort_delay_s=0.0, filter_effort=False, rate_hz=None)
    if robot is None or recording.isolated or recording.effort is None:
        return replace(options, effort_delay_s=0.0), ""
    delay = find_delay(robot, [process(recording, unmoved)])
    text = f"torques are {1e3 * delay.seconds:+.3g} +- {1e3 * delay.half_width_s:.2g} ms late by the robot's equations"
    if not delay.is_sure:
        return replace(options, effort_delay_s=0.0), f"{text}: not moved"
    return replace(options, effort_delay_s=delay.seconds), f"{text}: moved back"
