"""Gains and cross-talk of a force and torque sensor ([Atkeson1986] section 4.1.1): ``measured = K true + bias``.

Known loads in several orientations give the true wrench by [Atkeson1986] eq. (8). One load at rest shows only three of
the six columns of K, since its moments follow from its forces (eq. 21); loads with other centres of mass, or motion,
show the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.errors import IdentifiabilityError
from dynid.load.load_solver import BlockEquations, solve_blocks
from dynid.load.wrench_equations import WrenchData
from dynid.robot.inertia import Inertia


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


def calibrate_sensor(runs: Sequence[tuple[WrenchData, Inertia]]) -> SensorCalibration:
    """Estimate gains, cross-talk and bias from known loads.

    Args:
        runs: Equations of each run (see `wrench_data`) with the load that was held in it, gripper included.

    Raises:
        IdentifiabilityError: The runs determine no gain.

    Example:
        >>> data = dynid.load.wrench_data(robot, wrist, "link3", dynid.load.Sensing())
        >>> calibration = dynid.load.calibrate_sensor([(data, load.inertia)])
        >>> np.allclose(np.diag(calibration.gain)[:3], 1.0, atol=0.05)
        True
    """
    true = np.concatenate([data.matrix @ body.vector for data, body in runs])  # [Atkeson1986] eq. (8)
    # the unknowns are departures from a perfect sensor, so that what the runs leave open stays perfect
    target = np.concatenate([data.wrench for data, _ in runs]) - true
    labels = np.concatenate([len(true) * place + data.blocks() for place, (data, _) in enumerate(runs)])
    W = np.column_stack([true, np.ones(len(true))])[:, None]
    fits = [solve_blocks(BlockEquations.of(W, y[:, None], labels)) for y in target.T]
    is_open = np.array([fit.undetermined[:6] for fit in fits])
    if np.diag(is_open).all():
        raise IdentifiabilityError(
            "the runs show no gain of the sensor", remedy="Hold several known loads in many orientations."
        )
    return SensorCalibration(
        gain=np.eye(6) + np.where(is_open, 0.0, [fit.values[:6] for fit in fits]),
        stderr=np.array([fit.stderr[:6] for fit in fits]),
        bias=np.array([fit.values[6] for fit in fits]),
        residual_std=np.array([fit.noise_std[0] for fit in fits]),
    )
