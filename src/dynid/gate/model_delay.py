"""The delay of the torques, estimated with a robot's own equations, and what the gate says of it.

processing/delay.py estimates it without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.findings import Finding
from dynid.gate.free_equations import IndependentColumns, with_friction, with_smooth_sign
from dynid.kernels import regressor
from dynid.logs.recording import Recording
from dynid.processing.delay import (
    END_STDERRS,
    SURE_STDERRS,
    Delay,
    DelayTrials,
    UnexplainedSquares,
    estimate_delay,
    orthonormal,
    timed_samples,
    unexplained_part,
)
from dynid.processing.experiment import Experiment
from dynid.processing.process import Processing, apply_delay, process
from dynid.robot.model import Robot
from dynid.terms.memory import lag_signal

LAGS_S = (0.02, 0.05, 0.1)
"""Times in which dry friction may follow a change of direction [s] (convention)."""

EXPLAINED_ALIKE = 1.1
"""Ratio of a joint's rms residual with reversals to that without them up to which the equations explain both alike;
between the ratios of motions with known friction (0.96 to 1.1 in 30 s with correlated noise) and of most joints of PD
loops whose friction biases the delay (1.1 to 9, tests/campaigns/loop_delays.py) ..."""
CHANCE_STDERRS = 2.0
"""... and standard errors by which the ratio may be larger by chance (convention)."""

CLEARLY_SURER = 0.5
"""Ratio of standard errors below which the reversals of those joints serve that are explained, although others are not
(convention: in PD loops, where they bias the delay by up to a millisecond, it is seldom so small)."""

ROWS_PER_COLUMN = 4
"""Smallest number of rows of a joint, over the number of its columns, with which the reversals can be left out: fits
of fewer rows take much of the residual, and their scatter says too little (convention)."""


UNTOLD_S = 0.05
"""Standard error of a delay from which on the log does not tell it [s] (convention: half of the longest delay that is
tried)."""
SMALL_DELAY_S = 0.005
"""A delay that is surely shorter than this, or than a sampling period, calls for nothing [s] (convention)."""
DELAY_EVIDENCE = ("delay [s]", "standard error [s]", "residual before", "after")
"""Names of what a finding states of a delay."""


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
    controller raises the torque looks like an early one. So the reversals of a joint count only where the equations
    explain them nearly as well as the rest of its motion.

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
    fewest = ROWS_PER_COLUMN * known.widest
    inner = whole.without_reversals(fewest)
    if inner is None or with_reversals[0].stderr_s > max_delay_s:  # fewer rows cannot tell what all of them leave open
        return with_reversals
    # a basis spans what the columns span, in fewer rows too, and is narrower
    without, left, _ = _best_friction(inner, bases, late, LAGS_S[1:2])
    explained = [j for j in inner.joints if _explained_alike(unexplained[j], left[j])]
    if len(explained) == len(inner.joints):
        return with_reversals
    tells = SURE_STDERRS * without[0].stderr_s < SMALL_DELAY_S
    some = whole.without_reversals(fewest, explained) if explained and not tells else None
    if some is None:
        return without
    with_some, _, _ = _best_friction(some, bases, late, LAGS_S)
    return with_some if with_some[0].stderr_s < CLEARLY_SURER * without[0].stderr_s else without


def combine_delays(delays: Sequence[Delay]) -> Delay | None:
    """One delay for logs of one logger: the mean of what they tell, each weighted by its precision; None if none tells.

    Its standard error grows with the scatter of the estimates, so that logs with delays of their own have no sure one.
    """
    known = [delay for delay in delays if 0.0 < delay.stderr_s < np.inf]
    if not known:
        return None
    values, weights = (np.array(x) for x in zip(*((d.seconds, d.stderr_s**-2) for d in known), strict=True))
    mean = float(weights @ values / weights.sum())
    scatter = float(weights @ (values - mean) ** 2) / max(len(known) - 1, 1)
    before, after = (
        float(np.sqrt(np.mean([getattr(d, name) ** 2 for d in known])))
        for name in ("residual_before", "residual_after")
    )
    return Delay(
        seconds=mean,
        stderr_s=float(np.sqrt(max(scatter, 1.0) / weights.sum())),
        residual_before=before,
        residual_after=after,
        period_s=max(delay.period_s for delay in known),
    )


def _explained_alike(all_rows: UnexplainedSquares, left: UnexplainedSquares) -> bool:
    """Whether the equations explain a joint's reversals nearly as well as the rest, as far as few values tell it."""
    scatter = float(np.sqrt(2.0 / left.freedom))  # relative standard error of a mean square
    return all_rows.mean < EXPLAINED_ALIKE**2 * (1.0 + CHANCE_STDERRS * scatter) * left.mean


def _best_friction(
    trials: DelayTrials, columns: Mapping[int, Floats], late: Callable[[float], Floats], lags_s: tuple[float, ...]
) -> tuple[tuple[Delay, Delay], dict[int, UnexplainedSquares], dict[int, Floats]]:
    """The delay with the better kind of dry friction, sharp or lagging, and that with the other kind.

    Also for each joint what the better kind does not explain, and a basis.

    Args:
        trials: The trial shifts.
        columns: For each joint (M, p) columns that should explain its torque, at the rows of the trials.
        late: Gives the sign of the velocities (M, n) that follows with a lag [s].
        lags_s: Lags that are tried [s].
    """
    valid, joints = trials.valid, trials.joints
    bases = {j: orthonormal(columns[j] * valid[:, [j]]) for j in joints}
    explained = trials.explain(list(bases.values()))
    sharp, _ = explained.best_shift()

    def lagging_columns(lag_s: float) -> list[Floats | None]:
        column = late(lag_s) * valid
        return [_new_direction(Q, column[:, j]) for j, Q in bases.items()]

    alternatives = [lagging_columns(lag_s) for lag_s in lags_s]
    lagging, best = explained.best_shift(*alternatives)
    if lagging.explains_better_than(sharp):
        return (lagging, sharp), explained.unexplained_squares(lagging.seconds, alternatives[best]), bases
    return (sharp, lagging), explained.unexplained_squares(sharp.seconds), bases


def _new_direction(Q: Floats, column: Floats) -> Floats | None:
    """The part of a column that orthonormal columns do not span, as a unit vector; None if they span it."""
    new, size = unexplained_part(unexplained_part(column, Q), Q), float(np.linalg.norm(column))
    length = float(np.linalg.norm(new))
    return new / length if length > 1e-9 * size else None


def check_delay(robot: Robot, experiment: Experiment, max_delay_s: float = 0.1) -> Iterator[Finding]:
    """Report the delay of the torques, whatever it is. The experiment's torques should be unfiltered."""
    try:
        delay, other = model_delay(robot, experiment, max_delay_s=max_delay_s)
    except DataError:
        return
    likely = delay if delay.likely else other
    if not (delay.likely or (other.likely and other.matters)):
        yield measured_delay(delay)
        return
    verb = "are" if delay.sure else "seem to be"
    remedy = f"Process with effort_delay_s={likely.seconds:.6f}; in a recipe delay_s={likely.seconds:.6f}."
    if not delay.clear:
        remedy = f"Compare the held-out errors with and without --set delay_s={likely.seconds:.6f}."
    evidence = _delay_evidence(likely)
    if not delay.likely:
        evidence["with other friction [s]"] = delay.seconds
        doubt = f"Doubtful: with another model of dry friction at reversals the delay is {1e3 * delay.seconds:.4g} ms."
        remedy = f"{doubt} {remedy}"
    yield Finding(
        code="unsynchronised",
        severity="warning" if delay.clear else "note",
        where="effort",
        message=f"the torques {verb} {'delayed' if likely.seconds >= 0.0 else 'ahead of the motion'} by "
        f"{abs(1e3 * likely.seconds):.3g} ms",
        evidence=evidence,
        remedy=remedy,
    )


def measured_delay(delay: Delay) -> Finding:
    """The note that states a delay which is not surely different from zero, or that the log does not tell it."""
    error = f"{1e3 * delay.stderr_s:.2g} ms" if np.isfinite(delay.stderr_s) else "unknown"
    if not delay.stderr_s < UNTOLD_S:
        return Finding(
            code="measured-delay",
            severity="note",
            where="effort",
            message="this log does not show whether torques and motion were recorded at the same time: the standard "
            f"error of the delay is {error}",
            evidence=_delay_evidence(delay),
            remedy="Faster motions with more reversals show it; state a delay that you know in the recipe (delay_s).",
        )
    estimate = f"the estimate is that the torques are {_lateness(delay)}, with a standard error of {error}"
    hidden_s = abs(delay.seconds) + END_STDERRS * delay.stderr_s
    if hidden_s < max(SMALL_DELAY_S, delay.period_s):
        message, remedy = f"this log shows no delay between torques and motion: {estimate}", "There is nothing to do."
    else:
        message = f"this log does not rule out a delay of up to {1e3 * hidden_s:.2g} ms: {estimate}"
        remedy = (
            f"Compare the held-out errors with and without --set delay_s={delay.seconds:.3f}; faster motions with more "
            "reversals show a delay."
        )
    return Finding(
        code="measured-delay",
        severity="note",
        where="effort",
        message=message,
        evidence=_delay_evidence(delay),
        remedy=remedy,
    )


def check_common_delay(told: Sequence[Sequence[Finding]], periods_s: Sequence[float]) -> Iterator[Finding]:
    """Report a delay that several logs of one logger show together, although not each of them does.

    Args:
        told: What was found in each log by itself.
        periods_s: Sampling period of each log [s].
    """
    measured = [
        (finding, period_s)
        for findings, period_s in zip(told, periods_s, strict=True)
        for finding in findings
        if tuple(finding.evidence) == DELAY_EVIDENCE  # doubtful ones state more
    ]
    common = combine_delays([_delay_told(finding, period_s) for finding, period_s in measured])
    if common is None or not common.sure or abs(common.seconds) < common.period_s:
        return
    alone = sum(finding.severity == "warning" for finding, _ in measured)
    if alone == len(measured):
        return
    yield Finding(
        code="unsynchronised",
        severity="warning",
        where="effort",
        message=f"the torques of {len(measured)} logs are {_lateness(common)} together; {alone} of them show it alone",
        evidence=_delay_evidence(common),
        remedy=f"Take it out of all of them: --set delay_s={common.seconds:.6f}.",
    )


def _lateness(delay: Delay) -> str:
    return f"{abs(1e3 * delay.seconds):.2g} ms {'late' if delay.seconds >= 0.0 else 'early'}"


def _delay_told(finding: Finding, period_s: float) -> Delay:
    """The delay of which a finding is the evidence."""
    seconds, stderr_s, before, after = (float(finding.evidence[name]) for name in DELAY_EVIDENCE)
    return Delay(seconds=seconds, stderr_s=stderr_s, residual_before=before, residual_after=after, period_s=period_s)


def _delay_evidence(delay: Delay) -> dict[str, float]:
    values = delay.seconds, delay.stderr_s, delay.residual_before, delay.residual_after
    return dict(zip(DELAY_EVIDENCE, values, strict=True))
