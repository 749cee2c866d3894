"""Gains and cross-talk of a force and torque sensor, from loads that are known ([Atkeson1986] section 4.1.1).

    measured = K true + bias

Known loads in several orientations give the true wrench by [Atkeson1986] eq. (8). One load at rest shows only three of
the six columns of K, since its moments follow from its forces (eq. 21); loads with other centres of mass, or motion,
show the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError, IdentifiabilityError
from dynid.load.load_solver import inflate_covariance, solve_minimum_norm, spectral_gram
from dynid.load.wrench_equations import WrenchData
from dynid.robot.inertia import Inertia

__all__ = ["SensorCalibration", "calibrate_sensor"]

Floats = NDArray[np.float64]
RESOLUTION = 1e-6
"""Smallest relative singular value of the scaled equations that counts as determined; convention."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensorCalibration:
    """Gains, cross-talk and bias of a sensor: ``measured = gain @ true + bias``."""

    gain: Floats
    """(6, 6) measured channel per true channel; units [N, N m] per [N, N m]"""
    stderr: Floats
    """(6, 6) standard deviations; infinite where the data leave a gain open, which is then that of a perfect sensor"""
    bias: Floats
    """(6,) constant wrench [N, N m], sensor axes"""
    residual_std: Floats
    """(6,) standard deviation of the residual of each channel [N, N m]"""

    @property
    def inverse(self) -> Floats:
        """(6, 6) maps measured wrenches, without bias, to true wrenches."""
        return np.asarray(np.linalg.inv(self.gain))


def calibrate_sensor(runs: Sequence[tuple[WrenchData, Inertia]]) -> SensorCalibration:
    """Estimate gains, cross-talk and bias from known loads.

    Args:
        runs: Equations of each run (see `wrench_data`) with the load that was held in it, gripper included.

    Raises:
        IdentifiabilityError: The runs determine no gain.
    """
    if not runs:
        raise DataError("no run was given")
    true = np.concatenate([data.matrix @ body.vector for data, body in runs])  # [Atkeson1986] eq. (8)
    measured = np.concatenate([data.wrench for data, _ in runs])
    W = np.column_stack([true, np.ones(len(true))])
    if len(W) <= W.shape[1]:
        raise IdentifiabilityError(
            f"{len(W)} samples are too few for {W.shape[1]} unknowns per channel and the noise",
            remedy="Hold several known loads in many orientations.",
        )
    gain, stderr, bias, std = np.eye(6), np.full((6, 6), np.inf), np.zeros(6), np.zeros(6)
    for channel in range(6):
        # the unknowns are departures from a perfect sensor, so that what the runs leave open stays perfect
        target = measured[:, channel] - true[:, channel]
        values, covariance, undetermined = solve_minimum_norm(W, target, RESOLUTION)
        residual = target - W @ values
        std[channel] = np.sqrt((residual**2).sum() / max(1, len(target) - 7))
        noise = residual[:, None] / std[channel] if std[channel] > 0.0 else residual[:, None]
        grown, _ = inflate_covariance(covariance, spectral_gram(W[:, None], noise, covariance))
        spread = std[channel] * np.sqrt(np.diag(grown))
        gain[channel] += np.where(undetermined[:6], 0.0, values[:6])
        stderr[channel] = np.where(undetermined[:6], np.inf, spread[:6])
        bias[channel] = values[6]
    if not np.isfinite(np.diag(stderr)).any():
        raise IdentifiabilityError(
            "the runs show no gain of the sensor", remedy="Hold several known loads in many orientations."
        )
    return SensorCalibration(gain=gain, stderr=stderr, bias=bias, residual_std=std)
