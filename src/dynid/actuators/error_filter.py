"""How the errors of a simulated motion last, and the filter that takes this out before squares are summed.

No model of friction is perfect. What it misses acts as a torque, and the feedback of the drive undoes what a torque has
moved: not at once, but after the lag T = D / K of its loop on average, with the damping D of drive and friction [N m
s/rad] and the stiffness K of the drive [N m/rad]; inertia does not change this mean. The law states D and K. So a
position error of one sample is ``r = exp(-step / T)`` of the one before and something new:

    e[k] = r e[k-1] + new.

Least squares then sums the squares of ``e[k] - r e[k-1]``. Where the errors are mostly white noise of the encoders,
they are summed as they are: for each joint, the likelier of the two.

The correlation r is not estimated from the errors. What a model misses is no noise: it follows the motion, and stays
alike for seconds, so that the correlation from sample to sample is nearly one (0.99 on the go2 log). A filter with that
correlation predicts one sample ahead best, but forgets slow errors, and its model simulates whole motions worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.drive_laws import Seen
from dynid.actuators.motion import CommandedMotion, compared
from dynid.actuators.servo_model import ServoModel
from dynid.actuators.servo_simulator import given_gains
from dynid.actuators.stepping.servo_step import GIVEN
from dynid.arrays import Floats

SHORTEST_S, LONGEST_S = 1e-6, 1.0
"""Least and largest lag [s]; the largest also where a drive has no stiffness. Convention: a filter beyond it would
forget the level of a motion."""
SMALL = 1e-6
"""Position error at which the stiffness of a drive is taken [rad or m]: far below any limit of a law. Convention."""


@dataclass(frozen=True, slots=True, eq=False)
class ErrorFilter:
    """The filter of the errors of every motion: one correlation for all, or that of the loop."""

    correlation: float = 0.0
    """Correlation from sample to sample, where no loop is given."""
    loop: tuple[ServoModel, Floats] | None = None
    """Model and values (P,) of the loop; None for one correlation for all."""
    white: tuple[bool, ...] = ()
    """(n,) whether the errors of a joint are mostly white noise, and not filtered."""

    def correlations(self, motion: CommandedMotion) -> Floats:
        """(n,) correlation of the errors from one sample to the next; zero where nothing is filtered."""
        return np.asarray(_correlations(self, motion)[0])

    def apply(self, values: Floats, motion: CommandedMotion, joints: Sequence[int] | None = None) -> Floats:
        """Filtered samples (N, n, ...) of all joints or of some; what does not change keeps its size.

        Readings that do not count give zero.
        """
        counted = motion.counted if motion.counted is None or joints is None else motion.counted[:, list(joints)]
        values = compared(values, counted)
        usual, r = _correlations(self, motion)
        if joints is not None:
            usual, r = usual[list(joints)], r[:, list(joints)]
        if not usual.any():
            return values
        ahead = (*usual.shape, *[1] * (values.ndim - 2))
        first = np.sqrt((1.0 + usual) / (1.0 - usual))  # a first error is as large as any: it has had time to build up
        scale = first / np.sqrt(1.0 - r**2)
        result = np.empty_like(values)
        np.multiply(values[:-1], (-scale * r).reshape(-1, *ahead), out=result[1:])
        result[1:] += values[1:] * scale.reshape(-1, *ahead)
        result[0] = values[0] * first.reshape(ahead)
        if counted is not None:
            _bridge(result, values, (counted, motion.time / motion.period_s), usual)
        return result


def _bridge(result: Floats, values: Floats, seen: tuple[NDArray[np.bool_], Floats], usual: Floats) -> None:
    """Filter joints with missing readings anew: each reading with the one before it that counts.

    Args:
        result: (N, n, ...) what is mended.
        values: (N, n, ...) what is filtered.
        seen: (N, n) which readings count, and (N,) their times in periods.
        usual: (n,) correlations from sample to sample.
    """
    counted, time = seen
    for j in np.flatnonzero(~counted.all(axis=0) & (usual > 0.0)):
        rows, first = np.flatnonzero(counted[:, j]), np.sqrt((1.0 + usual[j]) / (1.0 - usual[j]))
        result[:, j] = 0.0
        if not rows.size:
            continue
        r = (usual[j] ** np.diff(time[rows])).reshape(-1, *[1] * (values.ndim - 2))
        result[rows[0], j] = values[rows[0], j] * first
        result[rows[1:], j] = (values[rows[1:], j] - r * values[rows[:-1], j]) * (first / np.sqrt(1.0 - r**2))


@lru_cache(maxsize=256)
def _correlations(errors: ErrorFilter, motion: CommandedMotion) -> tuple[Floats, Floats]:
    """(n,) usual correlations, and (N-1, n) those from each sample to the next, smaller where samples are lost."""
    steps = np.diff(motion.time)[:, None] / motion.period_s
    if errors.loop is None:
        usual = np.full(motion.dof, errors.correlation)
    else:
        usual = np.where(errors.white, 0.0, np.exp(-motion.period_s / loop_lags(*errors.loop, motion)))
    return usual, usual**steps


def loop_lags(model: ServoModel, values: Floats, motion: CommandedMotion) -> Floats:
    """(n,) lag of every joint's loop under a motion's gains [s]: damping over stiffness.

    Args:
        model: The robot and its servos.
        values: (P,) values of the model's entries.
        motion: Gains and voltage.
    """
    table, n = model.table(values), model.dof
    gains = given_gains(model, motion)
    K, D = np.empty(n), np.array(table.get("viscous", np.zeros(n)), dtype=float)
    for j in range(n):
        own = {kind: rows[j] for kind, rows in table.items()}
        known = dict(zip(GIVEN, gains[:, j], strict=True))
        torque, slope = model.law.torque(own, Seen(SMALL, 0.0, 0.0, 0.0, **known))
        other, _ = model.law.torque(own, Seen(-SMALL, 0.0, 0.0, 0.0, **known))
        K[j], D[j] = (torque - other) / (2.0 * SMALL), D[j] - slope
    with np.errstate(divide="ignore", invalid="ignore"):
        lag = D / K
    return np.clip(np.where(np.isfinite(lag) & (lag > 0.0), lag, LONGEST_S), SHORTEST_S, LONGEST_S)


def loop_filter(
    model: ServoModel, values: Floats, motions: Sequence[CommandedMotion], errors: Sequence[Floats]
) -> ErrorFilter:
    """The filter by the lags of the loops, for the joints whose errors it makes smaller.

    Args:
        model: The robot and its servos.
        values: (P,) values of the model's entries.
        motions: The motions.
        errors: (N, n) measured minus simulated positions of each motion [rad or m].
    """
    whole = ErrorFilter(loop=(model, np.array(values)), white=(False,) * model.dof)
    plain = sum(np.sum(e**2, axis=0) for e in errors)
    left = np.zeros(model.dof)
    for e, motion in zip(errors, motions, strict=True):
        left += (1.0 - whole.correlations(motion)) ** 2 * np.sum(whole.apply(e, motion) ** 2, axis=0)
    return replace(whole, white=tuple((left >= plain).tolist()))
