"""How far the torque from outside strays without any push: a standard deviation for every joint and instant.

``sqrt(Y S Y^T + noise)``: the covariance S of the identified parameters gives the first part. The noise is a sum of
squares fitted to residuals: a constant, one that grows with the speed, one with the torque, and one near rest and
reversals, where dry friction can be anything between its two values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from dynid.monitor.watched_signals import WatchedStretch

__all__ = ["Band", "fit_band"]

Floats = NDArray[np.float64]
WIDTHS = (0.01, 0.03, 0.1, 0.3)
"""Widths of the range of speeds near rest that are tried, as parts of a joint's high speed (convention)."""
HIGH = 0.95
"""Quantile of the speed, torque or friction of a joint that counts as high (convention)."""
ROUNDS = 4
"""Times that the weights of the fit are renewed (convention: they no longer change then)."""
LEAST = 1e-6
"""Smallest part of a joint's mean square residual that the constant may have (convention: no band is zero)."""
STILL_S = 0.1
"""Time for which a joint must stay near rest to be still, where any friction up to the dry one is possible [s]
(convention: longer than a reversal)."""
SLOW = 0.3
"""Part of a joint's high speed up to which its friction counts as dry (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The noise of the torque from outside: variances per joint, and the speeds and torques that scale them."""

    variances: Floats
    """(4, n) of the constant, the speed, the torque and the rest [(N m)^2 or N^2]."""
    rest_speed: Floats
    """(n,) speed below which a joint is near rest [rad/s or m/s]."""
    high_speed: Floats
    """(n,) high speed of a joint [rad/s or m/s]."""
    high_torque: Floats
    """(n,) high torque of a joint [N m or N]."""
    dry_friction: Floats
    """(n,) size of the model's friction at low speed [N m or N]."""

    def noise(self, stretch: WatchedStretch) -> Floats:
        """(N, n) variance of the noise, without the spread of the model and without open friction."""
        variance = np.zeros_like(stretch.dq)
        for j in range(len(self.rest_speed)):
            features = _features(stretch, j, self.rest_speed[j], self.high_speed[j], self.high_torque[j])
            variance[:, j] = features @ self.variances[:, j]
        return variance

    def still(self, stretch: WatchedStretch) -> NDArray[np.bool_]:
        """(N, n) whether a joint was near rest during the whole time `STILL_S` before: its friction is open then."""
        near = np.abs(stretch.dq) < self.rest_speed
        window = max(1, round(STILL_S * stretch.rate_hz))
        count = np.vstack([np.zeros((1, len(self.rest_speed)), dtype=np.int64), np.cumsum(near, axis=0)])
        ends = np.arange(1, len(near) + 1)
        return np.asarray(count[ends] - count[np.maximum(ends - window, 0)] == window)

    def std(self, stretch: WatchedStretch) -> Floats:
        """(N, n) standard deviation of the torque from outside while nothing pushes [N m or N]."""
        open_friction = np.where(self.still(stretch), self.dry_friction, 0.0)
        return np.sqrt(stretch.spread + self.noise(stretch) + np.square(open_friction))


def _features(stretch: WatchedStretch, j: int, rest: float, speed: float, torque: float) -> Floats:
    """(N, 4) what the variances are multiplied by."""
    dq = stretch.dq[:, j]
    return np.column_stack(
        [np.ones(len(dq)), (dq / speed) ** 2, (stretch.torque[:, j] / torque) ** 2, np.exp(-((dq / rest) ** 2))]
    )


def fit_band(stretches: Sequence[WatchedStretch]) -> Band:
    """Fit the noise to stretches in which nothing pushes, and which the model has not seen.

    The likelihood of independent normal residuals is maximised by weighted least squares on their squares.
    """
    n = stretches[0].raw.shape[1]
    speed, torque = (
        np.maximum(np.quantile(np.abs(np.concatenate([getattr(s, name) for s in stretches])), HIGH, axis=0), 1e-9)
        for name in ("dq", "torque")
    )
    variances, rest = np.zeros((4, n)), np.zeros(n)
    for j in range(n):
        square = np.concatenate([s.raw[:, j] ** 2 for s in stretches])
        spread = np.concatenate([s.spread[:, j] for s in stretches])
        fits = []
        for width in WIDTHS:
            features = np.concatenate([_features(s, j, width * speed[j], speed[j], torque[j]) for s in stretches])
            fits.append((*_fit_variances(features, square, spread), width * speed[j]))
        _, found, width = min(fits, key=lambda one: one[0])
        variances[:, j], rest[j] = found, width
    return Band(variances, rest, speed, torque, _dry_friction(stretches, speed))


def _dry_friction(stretches: Sequence[WatchedStretch], speed: Floats) -> Floats:
    """(n,) size of the model's friction at low speed [N m or N]."""
    friction = np.abs(np.concatenate([s.friction for s in stretches]))
    slow = np.abs(np.concatenate([s.dq for s in stretches])) < SLOW * speed
    columns = [friction[slow[:, j], j] for j in range(speed.size)]
    return np.array([np.quantile(column, HIGH) if column.size else 0.0 for column in columns])


def _fit_variances(features: Floats, square: Floats, spread: Floats) -> tuple[float, Floats]:
    """Minus twice the log likelihood, and the variances (4,), none negative."""
    least = LEAST * float(square.mean())
    found = np.array([float(square.mean()), 0.0, 0.0, 0.0])
    for _ in range(ROUNDS):
        weight = 1.0 / np.maximum(features @ found + spread, least)
        found = nnls(features * weight[:, None], (square - spread) * weight)[0]
        found[0] = max(found[0], least)
    variance = features @ found + spread
    return float(np.sum(np.log(variance) + square / variance)), found
