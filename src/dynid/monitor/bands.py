"""The band: standard deviation of the torque from outside while nothing pushes, for every joint and instant.

The torque from outside (external torque) is what the momentum observer sees. While nothing pushes, it is an error of
the model, a residual. `dynid.monitor.calibration` fits a `Band` to residuals of clean logs by `fit_band`. The standard
deviation is ``sqrt(Y S Y^T + noise)``, where the covariance S of the identified parameters gives the first part. The
variance of the noise is a sum of features, with factors that are fitted to residuals:

- a constant
- parts that grow with the speed, with the torque, and with the jerk of the arm
- two parts near rest and shortly after
- the squared second difference of the expected torque. Friction of the joint, or of a drive that moves several joints,
  makes such a break when its sign changes; the true friction changes a little earlier, later or more slowly.

Where the offsets of runs differ, that of a new run is unknown when its watch begins. It is a constant of the run, and
`RunOffsets` learns it while the joint moves, so that the band shrinks to its width within a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d
from scipy.optimize import nnls
from scipy.special import chdtri, fdtrc

from dynid.array_types import Floats
from dynid.monitor.jumps import MEMORY_S, SLOW_S, WINDOW_S
from dynid.monitor.watched_signals import WatchedStretch
from dynid.spatial import TINY

REST_SPEED_SHARES = (0.01, 0.1)
"""Widths of the two ranges of speeds near rest, as shares of a joint's high speed (convention). A joint that stays in
the first one for `SLOW_S`, longer than a reversal takes, stands still until it leaves the second one: friction may be
anything up to the dry one."""
HIGH_QUANTILE = 0.95
"""Quantile of the speed, torque or friction of a joint that counts as high (convention)."""
ROUNDS = 6
"""Times that the weights of the fit are renewed (convention: they hardly change then)."""
LEAST_CONSTANT_SHARE = 1e-4
"""Smallest share of a joint's mean square residual that the constant part has (convention: no band is zero)."""
PARTS = 4
"""Parts of a run whose mean residuals show how well its offset is known (convention)."""
LARGEST_RESIDUAL = 3.0
"""Standard deviations at which a residual is clipped before it changes the offset of a run (convention)."""
OFFSETS_P_VALUE, WIDTH_P_VALUE = 1e-3, 1e-2
"""Probability that runs which agree count as runs whose offsets differ, and that the variance of the offsets is larger
than the bound that is used for it (levels). A variance that is too large prolongs the learning, and no more."""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The noise of the torque from outside: factors of the features of each joint, and the motion that scales them."""

    variances: Floats
    """(features, n) factor of each feature of `_features` in the variance of each joint [(N m)^2 or N^2]."""
    high_speed: Floats
    """(n,) high speed of a joint [rad/s or m/s]."""
    high_torque: Floats
    """(n,) high torque of a joint [N m or N]."""
    high_jerk: Floats
    """(n,) high second difference of the velocity of a joint [rad/s or m/s]."""
    dry_friction: Floats
    """(n,) size of the model's friction at low speed [N m or N]."""

    def noise(self, stretch: WatchedStretch) -> Floats:
        """Compute the variance (N, n) of the noise [(N m)^2 or N^2].

        The uncertainty of the model's parameters, and friction of joints that stand still, are not in it.
        """
        features = _features(stretch, self.high_speed, self.high_torque, self.high_jerk)
        return np.asarray(np.einsum("fj,fkj->kj", self.variances, features))

    def stands_still(self, stretch: WatchedStretch) -> NDArray[np.bool_]:
        """Find out whether each joint rests (N, n): it was near rest for `SLOW_S`, and has not left the wider range.

        Its dry friction may have any value between its ends then: it breaks loose within this range.
        """
        speed = np.abs(stretch.dq) / self.high_speed
        window = max(1, round(SLOW_S * stretch.rate_hz))
        rests = minimum_filter1d(
            speed < REST_SPEED_SHARES[0], window, axis=0, origin=(window - 1) // 2, mode="constant"
        )
        # rows at which it becomes known whether a joint rests: it does, or it is too fast
        rows = np.where(rests | (speed > REST_SPEED_SHARES[1]), np.arange(len(speed))[:, None], 0)
        return np.take_along_axis(rests, np.maximum.accumulate(rows, axis=0), axis=0)

    @property
    def largest_friction_step(self) -> Floats:
        """(n,) largest sudden change of the friction of a joint that stands still [N m or N]: from end to end."""
        return 2.0 * self.dry_friction

    def std(self, stretch: WatchedStretch) -> Floats:
        """Compute the standard deviation (N, n) of the torque from outside while nothing pushes [N m or N]."""
        open_friction = np.where(self.stands_still(stretch), self.dry_friction, 0.0)
        return np.sqrt(stretch.spread + self.noise(stretch) + np.square(open_friction))


class Learnt(NamedTuple):
    """The offset of a run, as it is learnt along the run."""

    offset: Floats
    """(N, n) estimate so far [N m or N]."""
    seconds: Floats
    """(N, n) time for which each joint moved so far [s]."""


@dataclass(frozen=True, slots=True, eq=False)
class RunOffsets:
    """Normal prior of the offset of a run, which is a constant, and the way in which it is learnt."""

    variance: Floats
    """(n,) variance of the offset of a run against the model's [(N m)^2 or N^2]; zero where runs agree."""
    noise: Floats
    """(n,) variance of the mean residual over one second of motion, without offset [(N m)^2 s or N^2 s]."""

    @property
    def differ(self) -> NDArray[np.bool_]:
        """(n,) whether runs have offsets of their own."""
        return np.asarray(self.variance > 0.0)

    def doubt(self, seconds: Floats) -> Floats:
        """Compute the posterior variance (..., n) of the offset after each joint moved for some seconds (..., n).

        Prior and mean residual of so many seconds are combined by their precisions: ``1 / (1 / variance + seconds /
        noise)``.
        """
        return np.asarray(self.variance * self.noise / (self.noise + self.variance * seconds))

    def learn(self, offset: Floats, raw: Floats, std: Floats, seconds: Floats, period_s: Floats) -> Floats:
        """Update the offset (n,) by one period: the posterior mean of all residuals so far.

        Residuals beyond `LARGEST_RESIDUAL` are clipped there: a push is no offset.

        Args:
            offset: (n,) the offset so far [N m or N].
            raw: (n,) residual of the period [N m or N].
            std: (n,) its standard deviation, with the doubt about the offset [N m or N].
            seconds: (n,) time for which each joint moved, this period included [s].
            period_s: (n,) length of the period; zero for a joint that stands still [s].
        """
        # the gain of a Kalman filter for a constant
        share = self.variance * period_s / (self.noise + self.variance * seconds)
        most = LARGEST_RESIDUAL * std
        return np.asarray(offset + share * np.clip(raw - offset, -most, most))

    def learn_along(self, stretch: WatchedStretch, band: Band, before: Learnt | None = None) -> Learnt:
        """Learn the offset along a stretch.

        Args:
            stretch: The stretch.
            band: The band without the uncertainty of the offset.
            before: The offset in the first rows, where it was learnt there already.
        """
        first = 0 if before is None else len(before.offset)
        offset, seconds = np.zeros((2, *stretch.raw.shape))
        if not self.differ.any():
            return Learnt(offset, seconds)
        if before is not None:
            offset[:first], seconds[:first] = before
        present = offset[first - 1].copy() if first else np.zeros(len(self.variance))
        moved_s = seconds[first - 1].copy() if first else np.zeros(len(self.variance))
        period = np.where(band.stands_still(stretch), 0.0, 1.0 / stretch.rate_hz)
        variance = np.square(band.std(self.without_offsets(stretch)))
        for k in range(first, len(offset)):
            std = np.sqrt(variance[k] + self.doubt(moved_s))
            moved_s = moved_s + period[k]
            present = self.learn(present, stretch.raw[k], std, moved_s, period[k])
            offset[k] = present
            seconds[k] = moved_s
        return Learnt(offset, seconds)

    def without_offsets(self, stretch: WatchedStretch) -> WatchedStretch:
        """Make a stretch whose spread, the variance by the model's uncertainty, leaves out offsets that differ."""
        return replace(stretch, spread=np.where(self.differ, stretch.spread_without_offsets, stretch.spread))

    def settling_s(self, std: Floats) -> Floats:
        """Compute the time of motion (n,) until the posterior standard deviation of the offset is std (n,) [s].

        It is zero if the prior is as narrow, and otherwise it is `doubt` solved for the seconds.
        """
        known = np.where(self.differ, self.noise / np.square(std) - self.noise / np.maximum(self.variance, TINY), 0.0)
        return np.maximum(known, 0.0)


def _features(stretch: WatchedStretch, high_speed: Floats, high_torque: Floats, high_jerk: Floats) -> Floats:
    """Compute the features (features, N, n) whose sum with fitted factors is the variance of the noise.

    All but the break of the expected torque are without unit, in the scale of high speed, torque and jerk (n,).
    """
    dq = stretch.dq
    speed = np.abs(dq) / high_speed
    # slowest speed of the last periods, zero at a reversal: errors of friction last a while
    speed_or_turn = np.abs(dq)
    speed_or_turn[1:][dq[1:] * dq[:-1] < 0.0] = 0.0  # at rest between two samples
    window = 1 + max(1, round((MEMORY_S + WINDOW_S) * stretch.rate_hz))
    slowest = minimum_filter1d(speed_or_turn, window, axis=0, origin=(window - 1) // 2, mode="nearest") / high_speed
    # a break is seen in second differences over three samples, and the raw torque is a mean over two
    breaks = maximum_filter1d(np.square(_second_difference(stretch.expected)), 3, axis=0, origin=1, mode="nearest")
    jerk = np.square(_second_difference(dq) / high_jerk).mean(axis=1, keepdims=True)  # of all joints
    load = np.square(stretch.torque / high_torque)
    near_rest = (np.exp(-np.square(slowest / width)) for width in REST_SPEED_SHARES)
    constant, jerk_of_arm = np.ones_like(dq), np.broadcast_to(jerk, dq.shape)
    return np.stack([constant, np.square(speed), load, *near_rest, breaks, jerk_of_arm])


def _second_difference(x: Floats) -> Floats:
    """Compute second differences (N, n) of x (N, n); zero for the first two samples."""
    difference = np.zeros_like(x)
    difference[2:] = np.diff(x, n=2, axis=0)
    return difference


def fit_band(stretches: Sequence[WatchedStretch], least: Floats | None = None) -> Band:
    """Fit the noise to stretches in which nothing pushes, and which the model has not seen.

    The likelihood of independent normal residuals is maximised by weighted least squares on their squares. Periods in
    which samples were lost do not count.

    Args:
        stretches: Residuals and motion.
        least: (n,) smallest constant part of the variance.
    """
    n = stretches[0].raw.shape[1]
    speed = _high_values([s.dq for s in stretches])
    torque = _high_values([s.torque for s in stretches])
    jerk = _high_values([_second_difference(s.dq) for s in stretches])
    # rows of each stretch without samples that the log repeats or interpolates
    fresh = [~s.stale if not s.stale.all() else s.stale for s in stretches]  # all count where all were lost
    pairs = list(zip(stretches, fresh, strict=True))
    # over all stretches: (N, n, features), then (N, n)
    features = np.concatenate([np.moveaxis(_features(s, speed, torque, jerk), 0, 2)[rows] for s, rows in pairs])
    square = np.concatenate([np.square(s.raw)[rows] for s, rows in pairs])
    spread = np.concatenate([s.spread[rows] for s, rows in pairs])
    columns = []
    for j in range(n):
        floor = max(LEAST_CONSTANT_SHARE * float(square[:, j].mean()), 0.0 if least is None else float(least[j]))
        columns.append(_fit_variances(features[:, j], square[:, j], spread[:, j], floor))
    return Band(np.column_stack(columns), speed, torque, jerk, _dry_friction(stretches, speed))


def _high_values(parts: Sequence[Floats]) -> Floats:
    """Find the `HIGH_QUANTILE` (n,) of the sizes of a signal, given as parts (N, n); at least a tiny number."""
    return np.asarray(np.maximum(np.quantile(np.abs(np.concatenate(parts)), HIGH_QUANTILE, axis=0), 1e-9))


def fit_offsets(stretches: Sequence[WatchedStretch], band: Band, *, of_fit: bool) -> tuple[RunOffsets, Floats]:
    """Find the joints whose offsets surely differ from run to run, by an analysis of variance of mean residuals.

    Args:
        stretches: Residuals and motion.
        band: A band of these stretches, which says where joints stand still.
        of_fit: Whether the model's offset is the mean of these runs; otherwise they are runs that it has not seen.

    Returns:
        The offsets, and the mean residuals (runs, n) of those joints whose offsets differ; zero for the others.
    """
    n = stretches[0].raw.shape[1]
    count = max(stretch.run for stretch in stretches) + 1  # of runs
    freedom = count - 1 if of_fit else count
    moves = [~band.stands_still(stretch) for stretch in stretches]
    variance = np.zeros(n)
    noise = np.ones(n)
    means = np.zeros((count, n))
    for j in range(n if freedom else 0):
        moved: list[list[Floats]] = [[] for _ in range(count)]
        for stretch, rows in zip(stretches, moves, strict=True):
            moved[stretch.run].append(stretch.raw[rows[:, j], j])
        residuals = [np.concatenate(parts) if parts else np.zeros(0) for parts in moved]
        if min(residual.size for residual in residuals) < PARTS:
            continue  # a joint that hardly moves in a run shows no offset: friction may have any value
        parts = np.array([[part.mean() for part in np.array_split(residual, PARTS)] for residual in residuals])
        # variances of the mean of a part, (runs, PARTS): from the spread between runs, and within them
        mean = parts.mean(axis=1)
        between = PARTS * float(np.square(mean).sum()) / freedom
        within = max(float(np.square(parts - mean[:, None]).sum()) / (count * (PARTS - 1)), TINY)
        if fdtrc(freedom, count * (PARTS - 1), between / within) < OFFSETS_P_VALUE:  # F-test
            widest = freedom / float(chdtri(freedom, 1.0 - WIDTH_P_VALUE))  # upper bound of a variance, chi-squared
            # a new run differs from the mean of these runs by its own offset and by the error of the mean
            variance[j] = between / PARTS * widest * (1.0 + 1.0 / count if of_fit else 1.0)
            noise[j] = within * float(np.mean([residual.size for residual in residuals])) / PARTS / stretches[0].rate_hz
            means[:, j] = mean
    return RunOffsets(variance, noise), means


def _dry_friction(stretches: Sequence[WatchedStretch], speed: Floats) -> Floats:
    """Estimate the size (n,) of the model's friction at low speed [N m or N]: below 0.3 of the high speed (n,)."""
    friction = np.abs(np.concatenate([s.friction for s in stretches]))
    slow = np.abs(np.concatenate([s.dq for s in stretches])) < 0.3 * speed
    columns = [friction[slow[:, j], j] for j in range(speed.size)]
    return np.array([np.quantile(column, HIGH_QUANTILE) if column.size else 0.0 for column in columns])


def _fit_variances(features: Floats, square: Floats, spread: Floats, least: float) -> Floats:
    """Fit the factors (features,) of the features of one joint, none negative, the constant not below ``least``.

    The residual of a sample has the variance ``features @ factors + spread``. Its square has this as mean and a
    standard deviation proportional to it, so that the weights follow from the factors; both are found in turn.

    Args:
        features: (N, features) of `_features`.
        square: (N,) squared residuals.
        spread: (N,) variance by the uncertainty of the model.
        least: Smallest constant.
    """
    found = np.zeros(features.shape[1])
    found[0] = float(square.mean())
    for _ in range(ROUNDS):
        weight = 1.0 / np.maximum(features @ found + spread, least)
        found = nnls(features * weight[:, None], (square - spread) * weight)[0]
        found[0] = max(found[0], least)
    return np.asarray(found)
