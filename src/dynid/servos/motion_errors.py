"""Judge simulated motions of servos: their errors against the encoders, compared with those of two simple predictions.

The simple predictions are "the joint is where it was commanded", and *followers*: joints that follow their commands u
scaled and late, ``a + g u(t - lag)``, with a, g and the lag fitted to each joint. A model of servos must be better than
both. After a fit, `fit_followers` is called with the fitted motions (commands and encoder readings), then
`motion_error` with every motion, fitted or held out; `MotionError` says whether the model is usable or good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from dynid.array_types import Floats
from dynid.diagnosis.commands import STEP_S, USUAL_S
from dynid.diagnosis.log_changes import HALF
from dynid.findings import Finding
from dynid.servos.motion import CommandedMotion, mask_uncounted
from dynid.servos.servo_model import ServoModel
from dynid.servos.servo_simulator import simulate_servos

USABLE = 0.5
"""Largest error of a usable simulated motion, over the error of "the joint is where it was commanded" (convention)."""
GOOD_NOISES = 10.0
"""Largest error of a good simulated motion, over the noise of its encoders; above it something is missing in the model
(convention: simulated logs reach 1; the real logs of xl330 in docs/servos.md lie above it)."""


@dataclass(frozen=True, slots=True, eq=False)
class MotionError:
    """Errors of a simulated motion, and of the two simple predictions, against the measured one."""

    name: str
    """Name of the motion."""
    joint_names: tuple[str, ...]
    """Names of the n joints."""
    squares: Floats
    """(3, n) squared errors of the simulation, of the commands, and of the followers; for each joint the sum over its
    readings, divided by the number of readings of all joints, so that sums over joints are means [rad^2 or m^2]."""
    share: Floats
    """(n,) number of readings of each joint, over that of all joints."""
    mean_absolute: float
    """Mean of the absolute error of the simulation over samples and joints [rad or m]."""
    trained: bool
    """Whether the parameters were fitted to this motion."""
    noise: float
    """Noise of the encoders, root mean square over joints; see `_noise` [rad or m]."""
    unit: str = "rad"
    """Unit of the positions: rad, m, or "rad or m" for a robot with both kinds of joints, whose numbers are summed."""

    @classmethod
    def mean(cls, errors: Sequence[MotionError]) -> MotionError:
        """Average the squared errors over several motions; other facts are those of the one with the largest error."""
        squares, share = (np.mean([getattr(e, name) for e in errors], axis=0) for name in ("squares", "share"))
        noise = float(np.sqrt(np.mean([error.noise**2 for error in errors])))
        return replace(max(errors, key=lambda error: error.rms), squares=squares, share=share, noise=noise)

    @property
    def rms(self) -> float:
        """Root of the mean squared error over samples and joints [rad or m]."""
        return float(np.sqrt(self.squares[0].sum()))

    @property
    def command_rms(self) -> float:
        """Root of the mean squared error of "the joint is where it was commanded" [rad or m]."""
        return float(np.sqrt(self.squares[1].sum()))

    @property
    def follower_rms(self) -> float:
        """Root of the mean squared error of the followers [rad or m]."""
        return float(np.sqrt(self.squares[2].sum()))

    @property
    def joint_rms(self) -> Floats:
        """(3, n) root mean squared errors of every joint: simulation, commands, followers [rad or m]."""
        return np.asarray(np.sqrt(self.squares / np.maximum(self.share, 1e-300)))

    @property
    def is_usable(self) -> bool:
        """Whether the error is at most half that of the commands, and its square at most half that of the followers.

        No joint may be worse than its follower. Errors of up to twice the noise of the encoders are always allowed.
        """
        # `HALF` (0.5) is the share of squared errors that other findings of dynid ask for, too
        simulated, _, follower = self.joint_rms
        allowed = 2.0 * self.noise
        limit = max(min(USABLE * self.command_rms, float(np.sqrt(HALF)) * self.follower_rms), allowed)
        return self.rms <= limit and bool(np.all(simulated <= np.maximum(follower, allowed)))

    @property
    def is_good(self) -> bool:
        """Whether the motion is usable, and its error of the order of the noise of the encoders."""
        return self.is_usable and (self.noise == 0.0 or self.rms <= GOOD_NOISES * self.noise)

    @property
    def finding(self) -> Finding | None:
        """Finding about a law that does not fit; None for a good motion."""
        if self.is_good:
            return None
        message = f"simulated motions are off by {self.rms:.3g} {self.unit} rms, "
        if self.is_usable:
            message += f"{self.rms / self.noise:.3g} times the noise"
        elif self.rms > USABLE * self.command_rms:
            message += f"the commands themselves by {self.command_rms:.3g} {self.unit}"
        else:
            message += f"joints that merely follow late and scaled by {self.follower_rms:.3g} {self.unit}"
        if self.is_usable:
            remedy = (
                "The law, its gains (per radian or metre) or its terms (effort_limit, where drives saturate) miss "
                "something, or two columns are exchanged; intervals may be too narrow."
            )
        else:
            remedy = (
                "Do not use the values: check the law, its gains (per radian or metre), which joint and axis each "
                "column belongs to, and that commands and positions are not exchanged."
            )
        return Finding(
            code="law-misfit",
            severity="warning" if self.is_usable else "error",
            where=self.name,
            message=f"{message}; most of all {self.joint_names[int(np.argmax(self.squares[0]))]}",
            remedy=remedy,
            evidence={"rms": self.rms, "commands' rms": self.command_rms, "noise of the encoders": self.noise},
        )


def motion_error(
    model: ServoModel, values: Floats, motion: CommandedMotion, followers: Floats, *, trained: bool
) -> MotionError:
    """Simulate a motion and compare it with the measured one.

    Args:
        model: The robot and its servos.
        values: (P,) values of the model's entries.
        motion: Commands and encoder readings.
        followers: (3, n) offset [rad or m], gain and lag [s] of each joint, from `fit_followers`.
        trained: Whether the parameters were fitted to this motion.

    Raises:
        EstimationError: The simulated motion runs away.
    """
    offset, gain, lags = followers
    predictions = (simulate_servos(model, values, motion), motion.command, offset + gain * _late_command(motion, lags))
    # (3, N, n); `mask_uncounted` sets errors of readings that do not count to zero
    errors = np.stack([mask_uncounted(motion.position - predicted, motion.counted) for predicted in predictions])
    total = max(1, int(motion.counts.sum()))
    return MotionError(
        name=motion.name,
        joint_names=motion.joint_names,
        squares=np.sum(errors**2, axis=1) / total,
        share=motion.counts / total,
        mean_absolute=float(np.abs(errors[0]).sum() / total),
        trained=trained,
        noise=float(np.sqrt(np.mean([_noise(column) ** 2 for column in motion.position.T]))),
        unit=model.unit,
    )


def fit_followers(motions: Sequence[CommandedMotion]) -> Floats:
    """Fit followers ``a + g u(t - lag)`` of the commands u to the readings of all motions together.

    Every lag from 0 to 0.5 s in steps of 0.01 s is tried; for each, a and g follow by linear regression.

    Returns:
        (3, n) offset a [rad or m], gain g and lag [s] of each joint.
    """
    q = np.concatenate([motion.position for motion in motions])
    # weights of the samples of each joint: equal for readings that count, otherwise zero; their sum is 1
    weight = np.concatenate([mask_uncounted(np.ones_like(motion.position), motion.counted) for motion in motions])
    weight /= np.maximum(weight.sum(axis=0), 1.0)
    least = np.full(q.shape[1], np.inf)  # smallest error of each joint so far
    found = np.zeros((3, q.shape[1]))
    for lag in np.arange(USUAL_S[0], USUAL_S[1], STEP_S):
        u = np.concatenate([_late_command(motion, np.full(q.shape[1], lag)) for motion in motions])
        mean_u = (weight * u).sum(axis=0)
        mean_q = (weight * q).sum(axis=0)
        covariance, variance = ((weight * (u - mean_u) * x).sum(axis=0) for x in (q, u))
        # linear regression; a gain below zero, against the command, is not allowed
        gain = np.maximum(covariance, 0.0) / np.maximum(variance, 1e-300)
        error = (weight * (q - mean_q - gain * (u - mean_u)) ** 2).sum(axis=0)
        found = np.where(error < least, [mean_q - gain * mean_u, gain, np.full_like(gain, lag)], found)
        least = np.minimum(least, error)
    return found


def _late_command(motion: CommandedMotion, lags: Floats) -> Floats:
    """Look up the commands (N, n) that were in force one lag earlier, for the lag (n,) of each joint [s]."""
    rows = [np.searchsorted(motion.time, motion.time - lag, side="right") - 1 for lag in lags]
    return np.take_along_axis(motion.command, np.maximum(np.stack(rows, axis=1), 0), axis=0)


def _noise(position: Floats) -> float:
    """Estimate the standard deviation of the noise of one encoder from its readings (N,) [rad or m].

    The motion is smooth, so third differences hardly contain it; those of white noise have 20 times its variance. Their
    standard deviation is taken from the median absolute value, which ignores short jerks. The resolution of the encoder
    adds the standard deviation of a uniform distribution, its step over the root of 12.
    """
    if position.size < 4:
        return 0.0
    third = float(np.median(np.abs(np.diff(position, 3)))) / norm.ppf(0.75) / np.sqrt(20.0)
    steps = np.diff(np.unique(position))
    return float(np.hypot(third, steps.min(initial=np.inf) / np.sqrt(12.0) if steps.size else 0.0))
