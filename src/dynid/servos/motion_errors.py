"""How far simulated motions are from measured ones, beside those of joints that merely follow their commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from dynid.arrays import Floats
from dynid.diagnosis.commands import STEP_S, USUAL_S
from dynid.diagnosis.log_changes import HALF
from dynid.findings import Finding
from dynid.servos.motion import CommandedMotion, compared
from dynid.servos.servo_model import ServoModel
from dynid.servos.servo_simulator import simulate_servos

USABLE = 0.5
"""Share of the error of the commands themselves above which a simulated motion is of no use. Convention: half."""
MANY_NOISES = 10.0
"""Error of a simulated motion over the noise of its encoders from which on something is missing in the model.
Convention: planted servos reach 1; the real logs of xl330 in docs/servos.md lie above it."""


@dataclass(frozen=True, slots=True, eq=False)
class MotionError:
    """How far a simulated motion is from the measured one."""

    name: str
    joint_names: tuple[str, ...]
    squares: Floats
    """(3, n) squared errors of the simulated joints, of "the joint is where it was commanded", and of joints that
    merely follow, ``a + g u(t - lag)`` as fitted to the motions of the fit; means over all readings [rad^2 or m^2]."""
    share: Floats
    """(n,) share of each joint in the readings."""
    mean_absolute: float
    """Mean of the absolute error over samples and joints [rad or m]."""
    trained: bool
    """Whether the parameters were fitted to this motion."""
    noise: float
    """Noise of the encoders, rms over joints: from the third differences of the readings and their steps [rad or m]."""
    unit: str = "rad"
    """Unit of the positions: rad, m, or "rad or m" where joints of both kinds are summed as they are."""

    @classmethod
    def mean(cls, errors: Sequence[MotionError]) -> MotionError:
        """Root mean squares over several motions, under the name of the worst."""
        squares, share = (np.mean([getattr(e, name) for e in errors], axis=0) for name in ("squares", "share"))
        noise = float(np.sqrt(np.mean([error.noise**2 for error in errors])))
        return replace(max(errors, key=lambda error: error.rms), squares=squares, share=share, noise=noise)

    @property
    def rms(self) -> float:
        """Root of the mean squared error over samples and joints [rad or m]."""
        return float(np.sqrt(self.squares[0].sum()))

    @property
    def command_rms(self) -> float:
        """The same for "the joint is where it was commanded" [rad or m]."""
        return float(np.sqrt(self.squares[1].sum()))

    @property
    def follower_rms(self) -> float:
        """The same for joints that merely follow [rad or m]."""
        return float(np.sqrt(self.squares[2].sum()))

    @property
    def joint_rms(self) -> Floats:
        """(3, n) the three of every joint [rad or m]."""
        return np.asarray(np.sqrt(self.squares / np.maximum(self.share, 1e-300)))

    @property
    def is_usable(self) -> bool:
        """Whether it is at most half as far away as the commands, and leaves at most half of the squares of followers.

        No joint may be farther away than if it merely followed. A simulated motion that is as near to the encoders as
        their noise is usable, too.
        """
        own, _, follower = self.joint_rms
        most = min(USABLE * self.command_rms, float(np.sqrt(HALF)) * self.follower_rms)
        return self.rms <= max(most, 2.0 * self.noise) and bool(np.all(own <= np.maximum(follower, 2.0 * self.noise)))

    @property
    def is_good(self) -> bool:
        """Whether it is usable, and no more than the noise of the encoders is left."""
        return self.is_usable and (self.noise == 0.0 or self.rms <= MANY_NOISES * self.noise)

    @property
    def finding(self) -> Finding | None:
        """Why the law does not fit, if so."""
        if self.is_good:
            return None
        message = f"simulated motions are off by {self.rms:.3g} {self.unit} rms, "
        if self.is_usable:
            message += f"{self.rms / self.noise:.3g} times the noise"
        elif self.rms > USABLE * self.command_rms:
            message += f"the commands themselves by {self.command_rms:.3g} {self.unit}"
        else:
            message += f"joints that merely follow late and scaled by {self.follower_rms:.3g} {self.unit}"
        return Finding(
            code="law-misfit",
            severity="warning" if self.is_usable else "error",
            where=self.name,
            message=f"{message}; most of all {self.joint_names[int(np.argmax(self.squares[0]))]}",
            remedy="The law, its gains (per radian or metre) or its terms (effort_limit, where drives saturate) miss "
            "something, or two columns are exchanged; intervals may be too narrow."
            if self.is_usable
            else "Do not use the values: check the law, its gains (per radian or metre), which joint and axis each "
            "column belongs to, and that commands and positions are not exchanged.",
            evidence={"rms": self.rms, "commands' rms": self.command_rms, "noise of the encoders": self.noise},
        )


def motion_error(
    model: ServoModel, values: Floats, motion: CommandedMotion, followers: Floats, *, trained: bool
) -> MotionError:
    """How far the simulated motion is from the measured one.

    Args:
        model: The robot and its servos.
        values: (P,) values of the model's entries.
        motion: The motion.
        followers: (3, n) from `fit_followers`.
        trained: Whether the parameters were fitted to it.

    Raises:
        EstimationError: The simulated motion runs away.
    """
    offset, gain, lags = followers
    others = (simulate_servos(model, values, motion), motion.command, offset + gain * _late_command(motion, lags))
    errors = np.stack([compared(motion.position - other, motion.counted) for other in others])
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
    """(3, n) offset [rad or m], gain and lag [s] with which each joint follows its commands: ``a + g u(t - lag)``."""
    q = np.concatenate([motion.position for motion in motions])
    weight = np.concatenate([compared(np.ones_like(motion.position), motion.counted) for motion in motions])
    weight /= np.maximum(weight.sum(axis=0), 1.0)
    least, found = np.full(q.shape[1], np.inf), np.zeros((3, q.shape[1]))
    for lag in np.arange(USUAL_S[0], USUAL_S[1], STEP_S):
        u = np.concatenate([_late_command(motion, np.full(q.shape[1], lag)) for motion in motions])
        mean_u, mean_q = (weight * u).sum(axis=0), (weight * q).sum(axis=0)
        along, size = ((weight * (u - mean_u) * x).sum(axis=0) for x in (q, u))
        gain = np.maximum(along, 0.0) / np.maximum(size, 1e-300)
        left = (weight * (q - mean_q - gain * (u - mean_u)) ** 2).sum(axis=0)
        found = np.where(left < least, [mean_q - gain * mean_u, gain, np.full_like(gain, lag)], found)
        least = np.minimum(least, left)
    return found


def _late_command(motion: CommandedMotion, lags: Floats) -> Floats:
    """(N, n) the commands some time before, each joint's by its lag (n,)."""
    rows = [np.searchsorted(motion.time, motion.time - lag, side="right") - 1 for lag in lags]
    return np.take_along_axis(motion.command, np.maximum(np.stack(rows, axis=1), 0), axis=0)


def _noise(position: Floats) -> float:
    """Noise of one encoder: its third differences where the joint moves smoothly, and the size of its steps."""
    if position.size < 4:
        return 0.0
    third = float(np.median(np.abs(np.diff(position, 3)))) / norm.ppf(0.75) / np.sqrt(20.0)
    steps = np.diff(np.unique(position))
    return float(np.hypot(third, steps.min(initial=np.inf) / np.sqrt(12.0) if steps.size else 0.0))
