"""The delay of the torques, estimated with a robot's own equations; processing/delay.py does it without a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.gate.quick_fit import with_friction, with_smooth_sign
from dynid.kernels import regressor
from dynid.logs.recording import Recording
from dynid.processing.delay import Delay, DelayTrials, estimate_delay, orthonormal, timed_samples, unexplained_part
from dynid.processing.experiment import Experiment
from dynid.processing.process import Processing, apply_delay, process
from dynid.robot.model import Robot
from dynid.terms.memory import lag_signal

__all__ = ["model_delay", "resolve_delay"]

Floats = NDArray[np.float64]

LAGS_S = (0.02, 0.05, 0.1)
"""Times in which dry friction may follow a change of direction [s] (convention)."""


def resolve_delay(recording: Recording, options: Processing, robot: Robot | None = None) -> tuple[Processing, str]:
    """Replace an unknown delay of the torques by its estimate; return the options and a note for the experiment.

    Call this before `process`, which knows no robot.

    Args:
        recording: The log.
        options: Processing options; only ``effort_delay_s="auto"`` is replaced.
        robot: Robot whose equations are used; without it, general functions of the motion are used.
    """
    if options.effort_delay_s != "auto" or recording.isolated:
        return options, ""
    unmoved = replace(options, effort_delay_s=0.0, filter_effort=False, rate_hz=None)
    delay, _ = model_delay(robot, process(recording, unmoved))
    return apply_delay(options, delay)


def model_delay(robot: Robot | None, experiment: Experiment, *, max_delay_s: float = 0.1) -> tuple[Delay, Delay]:
    """Estimate the delay of the torques with a robot's own equations and friction.

    Dry friction that follows a reversal slowly looks like a delayed torque.

    Returns:
        The delay with the kind of dry friction that explains the torque better (without a lag, or with the best of
        `LAGS_S`), and the delay with the other kind. Without a robot, both are that of `estimate_delay`.
    """
    if robot is None:
        return (estimate_delay(experiment, max_delay_s=max_delay_s),) * 2
    trials = DelayTrials.of(timed_samples(experiment), max_delay_s)
    part, rows, valid, joints = trials.part, trials.rows, trials.valid, trials.joints
    motion = (np.ascontiguousarray(getattr(part, name)[rows]) for name in ("q", "dq", "ddq"))
    sign = np.sign(part.dq)
    Y = with_smooth_sign(regressor(with_friction(robot), *motion), part.smooth(sign)[rows])
    bases = [orthonormal(Y[:, j] * valid[:, [j]]) for j in joints]
    sharp = trials.best_shift(bases)

    def with_lag(lag_s: float) -> Delay:
        late = part.smooth(part.by_segment(lambda x: lag_signal(x, lag_s, part.rate_hz), sign))[rows] * valid
        return trials.best_shift([_extend_basis(Q, late[:, j]) for Q, j in zip(bases, joints, strict=True)])

    lagging = min(map(with_lag, LAGS_S), key=lambda delay: delay.residual_after)
    return (lagging, sharp) if lagging.explains_better_than(sharp) else (sharp, lagging)


def _extend_basis(Q: Floats, column: Floats) -> Floats:
    """Add one column to orthonormal columns, and keep them orthonormal."""
    new, size = unexplained_part(unexplained_part(column, Q), Q), float(np.linalg.norm(column))
    length = float(np.linalg.norm(new))
    return np.column_stack([Q, new / length]) if length > 1e-9 * size else Q
