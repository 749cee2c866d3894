"""A load from a force and torque sensor on the robot ([Atkeson1986] sections 2.1 and 3.2).

    measured wrench = A(motion) phi + bias + drift * time

A is the matrix of eq. (8) in the sensor's frame. At rest only mass and first moment act (eq. 21); the inertia is then
said to be undetermined, not guessed. The sensor's orientation, where asked for, is found by a search around the same
linear problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.data.recording import Experiment
from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.identification.load import Load
from dynid.kernels import wrench_regressor
from dynid.robot.model import Robot

__all__ = ["WrenchData", "identify_load", "solve_load"]

Floats = NDArray[np.float64]
RESOLUTION = 1e-7
"""Smallest singular value of the scaled equations that counts as seen."""


@dataclass(frozen=True, slots=True, eq=False)
class WrenchData:
    """Equations of a load, sample by sample."""

    matrix: Floats
    """(N, 6, 10) wrench per unit of each parameter."""
    wrench: Floats
    """(N, 6) measured force [N] and moment [N m], sensor frame."""
    time: Floats
    """(N,) [s]"""


def identify_load(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    static: bool = False,
    bias: bool = True,
    drift: bool = False,
    sign: int = 1,
    find_orientation: bool = False,
    tare: Load | None = None,
) -> Load:
    """Identify the load beyond a force and torque sensor.

    Args:
        robot: Geometry and gravity.
        experiments: With a wrench channel.
        sensor_frame: Link in whose frame the wrench is measured.
        static: Use gravity only: velocities and accelerations are taken as zero.
        bias: Estimate a constant wrench of the sensor.
        drift: Estimate a linear change of that bias over time.
        sign: 1 where the sensor reports the wrench on the load, -1 where it reports the wrench on the robot.
        find_orientation: Estimate how the sensor is turned against ``sensor_frame``.
        tare: The gripper or tool alone, subtracted with its covariance.

    Raises:
        DataError: There is no wrench in the experiments.
        IdentifiabilityError: Not even the mass can be determined.
    """
    if sign not in (1, -1):
        raise ArgumentError(f"sign is 1 or -1, not {sign}")
    runs = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    data = _joined([_equations(robot, run, sensor_frame, static, sign) for run in runs])
    if not find_orientation:
        load = solve_load(data, frame=sensor_frame, bias=bias, drift=drift)
    else:
        load = _oriented_load(data, sensor_frame, bias, drift)
    return load if tare is None else load.minus(tare)


def _equations(robot: Robot, run: Experiment, frame: str, static: bool, sign: int) -> WrenchData:
    if run.wrench is None:
        raise DataError(
            "the experiment has no wrench", path=run.source, remedy="Map six wrench columns in the channel map."
        )
    still = np.zeros_like(run.q)
    matrix = wrench_regressor(robot, frame, run.q, still if static else run.dq, still if static else run.ddq)
    good = np.isfinite(run.wrench).all(axis=1)
    return WrenchData(matrix[good], sign * run.wrench[good], run.time[good])


def _joined(parts: Sequence[WrenchData]) -> WrenchData:
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in ("matrix", "wrench", "time")]
    return WrenchData(*columns)


def solve_load(data: WrenchData, *, frame: str, bias: bool = True, drift: bool = False, method: str = "") -> Load:
    """Weighted least squares for load, bias and drift; forces and moments weighted by their own residuals.

    Args:
        data: The equations.
        frame: Name of the frame the load is described in.
        bias: Estimate a constant wrench.
        drift: Estimate its change per second.
        method: Put into the result.
    """
    count = len(data.time)
    if count == 0:
        raise DataError("no sample with a finite wrench is left")
    span = (data.time - data.time.mean())[:, None, None] * np.eye(6)
    blocks = [data.matrix, *([np.broadcast_to(np.eye(6), (count, 6, 6))] if bias else []), *([span] if drift else [])]
    W = np.concatenate(blocks, axis=2)
    std = np.ones(6)
    for _ in range(3):  # weights from the residuals of the round before
        solution = _solve(W / std[:, None], data.wrench / std)
        residual = data.wrench - W @ solution.values
        freedom = max(1.0, count - W.shape[2] / 6)
        std = np.maximum(
            np.sqrt((residual**2).sum(axis=0) / freedom), 1e-12 * max(1.0, float(np.abs(data.wrench).max()))
        )
    if solution.undetermined[9]:
        raise IdentifiabilityError(
            "the mass cannot be told from the sensor's bias", remedy="Turn the load through several orientations."
        )
    values = np.where(solution.undetermined, 0.0, solution.values)
    return Load(
        frame=frame,
        vector=values[:10],
        covariance=solution.covariance[:10, :10] * _correlation(residual),
        undetermined=solution.undetermined[:10],
        bias=values[10:16] if bias else np.zeros(6),
        drift=values[16:22] if bias and drift else (values[10:16] if drift else np.zeros(6)),
        residual_std=std,
        method=method or "force and torque sensor, weighted least squares",
        notes=_notes(solution.undetermined[:10]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Solution:
    values: Floats
    covariance: Floats
    undetermined: NDArray[np.bool_]


def _solve(W: Floats, y: Floats) -> _Solution:
    """Least squares of stacked equations, with what the data leave open."""
    rows = W.reshape(-1, W.shape[2])
    scale = np.linalg.norm(rows, axis=0)
    seen = scale > 1e-12 * scale.max()
    scale = np.where(seen, scale, 1.0)
    U, s, Vt = np.linalg.svd(rows / scale, full_matrices=False)
    good = s > RESOLUTION * s[0]
    open_directions = Vt[~good]
    undetermined = np.any(np.abs(open_directions) > 1e-5, axis=0) | ~seen
    values = (Vt[good].T @ ((U[:, good].T @ y.ravel()) / s[good])) / scale
    covariance = (Vt[good].T / s[good] ** 2) @ Vt[good] / np.outer(scale, scale)
    return _Solution(values, covariance, undetermined)


def _correlation(residual: Floats) -> float:
    """Samples per independent sample of the residuals, from their first autocorrelation."""
    lagged = (residual[1:] * residual[:-1]).sum() / max(float((residual**2).sum()), 1e-300)
    rho = float(np.clip(lagged, 0.0, 0.99))
    return (1.0 + rho) / (1.0 - rho)


def _notes(undetermined: NDArray[np.bool_]) -> tuple[str, ...]:
    if undetermined[:6].any():
        return ("the motion does not reveal the inertia: move the load with angular acceleration about several axes",)
    return ()


def _oriented_load(data: WrenchData, frame: str, bias: bool, drift: bool) -> Load:
    """Load and sensor orientation: forces of a mass m follow ``f = m R^T a + bias``, so a linear fit gives m R^T.

    ``a`` is the acceleration of the origin minus gravity in the frame's axes, R turns sensor axes into those of the
    frame. The first moment's part of the force averages out over orientations; moments are turned by the same R.
    """
    a = data.matrix[:, :3, 9]
    ones = np.ones((len(a), 1)) if bias else np.zeros((len(a), 0))
    fitted = np.linalg.lstsq(np.hstack([a, ones]), data.wrench[:, :3], rcond=None)[0]
    U, size, Vt = np.linalg.svd(fitted[:3])  # rows: a -> force, so fitted[:3] is m R
    if size[-1] < 0.2 * size[0]:
        raise IdentifiabilityError(
            "the poses do not reveal how the sensor is turned",
            remedy="Turn the load through orientations in all directions.",
        )
    sign = float(np.sign(np.linalg.det(U @ Vt)))
    R = sign * (U @ Vt)
    both = np.kron(np.eye(2), R)
    load = solve_load(
        WrenchData(data.matrix, sign * data.wrench @ both.T, data.time), frame=frame, bias=bias, drift=drift
    )
    angle = float(np.rad2deg(np.arccos(np.clip((np.trace(R) - 1.0) / 2.0, -1.0, 1.0))))
    notes = [*load.notes, f"the sensor is turned by {angle:.1f} deg against '{frame}'"]
    if sign < 0:
        notes.append("the sensor reports the wrench on the robot: its sign was turned")
    return replace(load, extras={"R_frame_sensor": R}, notes=tuple(notes))
