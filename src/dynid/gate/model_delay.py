"""The delay of the torques, estimated with a robot's own equations; processing/delay.py does it without a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dynid.gate.free_equations import IndependentColumns, with_friction, with_smooth_sign
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

EXPLAINED_ALIKE = 1.1
"""Ratio of the residual with reversals to that without them up to which the equations explain both alike; between the
ratios of motions with known friction (0.98 to 1.03, and panda_gaz) and of PD loops whose friction biases the delay
(1.25 to 2.1, tests/campaigns/loop_delays.py)."""

ROWS_PER_COLUMN = 4
"""Smallest number of rows of a joint, over the number of its columns, with which the reversals can be left out: fits
of fewer rows take much of the residual, and their scatter says too little (convention)."""


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

    Dry friction that follows a reversal slowly looks like a delayed torque, and a joint that sticks while its
    controller raises the torque looks like an early one. So the reversals count only where the equations explain them
    nearly as well as the rest of the motion.

    Returns:
        The delay with the kind of dry friction that explains the torque better (without a lag, or with the best of
        `LAGS_S`), and the delay with the other kind. Without a robot, both are that of `estimate_delay`.
    """
    if robot is None:
        return (estimate_delay(experiment, max_delay_s=max_delay_s),) * 2
    whole = DelayTrials.of(timed_samples(experiment.matched(robot)), max_delay_s)
    part, rows = whole.part, whole.rows
    motion = (np.ascontiguousarray(getattr(part, name)[rows]) for name in ("q", "dq", "ddq"))
    sign = np.sign(part.dq)
    model = with_friction(robot)
    known = IndependentColumns.of(model)
    columns = known.columns if known.hold_friction else np.arange(model.parameter_vector.size)
    Y = with_smooth_sign(regressor(model, *motion, columns=columns.tolist()), part.smooth(sign)[rows], columns)

    @cache
    def late(lag_s: float) -> Floats:
        return part.smooth(part.by_segment(lambda x: lag_signal(x, lag_s, part.rate_hz), sign))[rows]

    with_reversals, unexplained, bases = _best_friction(whole, {j: Y[:, j] for j in whole.joints}, late, LAGS_S)
    inner = whole.without_reversals(ROWS_PER_COLUMN * known.widest)
    if inner is None or with_reversals[0].stderr_s > max_delay_s:  # fewer rows cannot tell what all of them leave open
        return with_reversals
    # a basis spans what the columns span, in fewer rows too, and is narrower
    without, left, _ = _best_friction(inner, bases, late, LAGS_S[1:2])
    return with_reversals if unexplained < EXPLAINED_ALIKE * left else without


def _best_friction(
    trials: DelayTrials, columns: Mapping[int, Floats], late: Callable[[float], Floats], lags_s: tuple[float, ...]
) -> tuple[tuple[Delay, Delay], float, dict[int, Floats]]:
    """The delay with the better kind of dry friction, sharp or lagging, and that with the other kind.

    Also the residual of the better kind, enlarged by what a fit takes away from few rows, and for each joint a basis.

    Args:
        trials: The trial shifts.
        columns: For each joint (M, p) columns that should explain its torque, at the rows of the trials.
        late: Gives the sign of the velocities (M, n) that follows with a lag [s].
        lags_s: Lags that are tried [s].
    """
    valid, joints = trials.valid, trials.joints
    bases = {j: orthonormal(columns[j] * valid[:, [j]]) for j in joints}
    explained = trials.explain(list(bases.values()))
    sharp = explained.best_shift()

    def with_lag(lag_s: float) -> Delay:
        column = late(lag_s) * valid
        return explained.best_shift([_new_direction(Q, column[:, j]) for j, Q in bases.items()])

    lagging = min(map(with_lag, lags_s), key=lambda delay: delay.residual_after)
    pair = (lagging, sharp) if lagging.explains_better_than(sharp) else (sharp, lagging)
    left_out = 1.0 - sum(Q.shape[1] for Q in bases.values()) / int(valid[:, joints].sum())
    return pair, pair[0].residual_after / float(np.sqrt(max(left_out, 1e-12))), bases


def _new_direction(Q: Floats, column: Floats) -> Floats | None:
    """The part of a column that orthonormal columns do not span, as a unit vector; None if they span it."""
    new, size = unexplained_part(unexplained_part(column, Q), Q), float(np.linalg.norm(column))
    length = float(np.linalg.norm(new))
    return new / length if length > 1e-9 * size else None
