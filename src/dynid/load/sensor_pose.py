"""The orientation of a force and torque sensor and the direction of gravity, estimated together with the load.

    wrench = turn(R^T) A(g) phi + bias        R = R_frame_sensor, g gravity in base axes

The search starts from a closed-form guess from the forces alone and goes on with Gauss-Newton steps on all channels.
Each step is the linear problem of the load with three more columns for R and two for g, so that their uncertainty comes
with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.spatial.transform import Rotation

from dynid.arrays import Floats
from dynid.decompositions import lstsq, svd
from dynid.errors import EstimationError, IdentifiabilityError
from dynid.load.load_solver import LinearSolution, solve_weighted
from dynid.load.wrench_equations import WrenchData, acceleration_columns

STEPS = 30
"""Largest number of Gauss-Newton steps; convention."""
COARSE = 1000
"""Number of samples in the first, quick search; convention."""
SETTLED = 1e-5
"""Step [rad] after which the search has settled: the next would be about its square."""
LARGEST_STEP = 0.5
"""Longest step of one Gauss-Newton iteration [rad]; convention."""
RANK_RATIO = 0.2
"""Ratio of singular values of the guess that separates a determined from an undetermined orientation; convention."""


class SensorUnknowns(Protocol):
    """Which unknowns of the sensor's zero are estimated."""

    @property
    def bias(self) -> bool:
        """Whether a constant wrench is estimated."""

    @property
    def drift(self) -> bool:
        """Whether the change of that wrench per second is estimated."""

    @property
    def bias_per_log(self) -> bool:
        """Whether the change of that wrench from log to log is estimated."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensorPose:
    """Orientation of the sensor and direction of gravity."""

    R_frame_sensor: Floats
    """(3, 3) sensor axes in the frame"""
    gravity: Floats
    """(3,) base axes [m/s^2]; zero where it is neither known nor estimated"""
    sign: float
    """1, or -1 where the sensor reports the wrench on the robot"""
    turned: bool
    """Whether the orientation is estimated"""
    tilted: bool
    """Whether the direction of gravity is estimated"""


def sensor_columns(data: WrenchData, sensing: SensorUnknowns) -> list[Floats]:
    """Columns (N, 6, 6) of a constant wrench, its change per second, and its change from the first log to others."""
    eye = np.broadcast_to(np.eye(6), (len(data.time), 6, 6))
    span = (data.time - data.time.mean())[:, None, None] * np.eye(6)
    others = () if data.log is None or not sensing.bias_per_log else np.unique(data.log)[1:]
    return [eye] * sensing.bias + [span] * sensing.drift + [(data.log == k)[:, None, None] * np.eye(6) for k in others]


def solve_with_pose(
    data: WrenchData, sensing: SensorUnknowns, *, orientation: bool, gravity: bool
) -> tuple[SensorPose, LinearSolution, tuple[Floats, Floats]]:
    """Estimate load, bias and drift together with the orientation of the sensor or the direction of gravity.

    Returns:
        The pose; the solution, whose last unknowns are the last steps [rad] of the rotation vector about the sensor's
        axes (3) and of the tilt of gravity about two axes normal to it (2); the standard deviations of the turn about
        each sensor axis (3,) [rad] and of gravity's components (3,) [m/s^2].

    Raises:
        IdentifiabilityError: The poses do not reveal the orientation or the direction.
        EstimationError: The search did not settle.
    """
    pose = _guess(data, sensing.bias, orientation, gravity)
    if len(data.time) > 2 * COARSE:
        pose, _ = _search(pose, data.thin(COARSE), sensing)
    pose, solution = _search(pose, data, sensing)
    return pose, solution, _spreads(pose, solution)


def _search(pose: SensorPose, data: WrenchData, sensing: SensorUnknowns) -> tuple[SensorPose, LinearSolution]:
    """Gauss-Newton steps from a guess until they vanish."""
    values: Floats | None = None
    sides = sensor_columns(data, sensing)
    first = 10 + 6 * len(sides)
    for _ in range(STEPS):
        seen = data.under_gravity(pose.gravity) if pose.tilted else data
        turn = np.asarray(np.kron(np.eye(2), pose.R_frame_sensor.T), dtype=float)
        W = pose.sign * (turn @ seen.matrix)
        if values is None:
            values = solve_weighted(np.concatenate([W, *sides], axis=2), data.wrench).values
        extra = _pose_columns(pose, seen, W, values[:10], turn)
        solution = solve_weighted(np.concatenate([W, *sides, *extra], axis=2), data.wrench)
        values = solution.values
        pose = _step(pose, values[first:])
        if np.linalg.norm(values[first:]) < SETTLED:
            return pose, solution
    raise EstimationError("the search for the sensor's orientation does not settle", remedy="Use more orientations.")


def _guess(data: WrenchData, bias: bool, orientation: bool, gravity: bool) -> SensorPose:
    """A start for the search, from forces alone."""
    if not gravity:
        R, sign = _guess_orientation(data, bias)
        known = np.zeros(3) if data.gravity is None else data.gravity
        return SensorPose(R_frame_sensor=R, gravity=known, sign=sign, turned=True, tilted=False)
    R_frame_base, model = data.orientation()
    if not np.any(model):
        raise IdentifiabilityError("the model has no gravity whose direction could be found", remedy="Give it gravity.")
    if not orientation:
        g = _guess_gravity(data, R_frame_base, model, bias)
        return SensorPose(R_frame_sensor=np.eye(3), gravity=g, sign=1.0, turned=False, tilted=True)
    R, g, sign = _guess_both(data, R_frame_base, model, bias)
    return SensorPose(R_frame_sensor=R, gravity=g, sign=sign, turned=True, tilted=True)


def _fitted(columns: Floats, force: Floats, bias: bool) -> Floats:
    """Coefficients (k, ...) of columns (N, k) in forces (N, ...), next to a constant if there is a bias."""
    ones = np.ones((len(force), 1)) if bias else np.zeros((len(force), 0))
    return np.asarray(lstsq(np.hstack([columns, ones]), force)[: columns.shape[1]])


def _guess_orientation(data: WrenchData, bias: bool) -> tuple[Floats, float]:
    """With known gravity ``force = m R^T a`` is linear in m R."""
    return _nearest_rotation(_fitted(data.matrix[:, :3, 9], data.wrench[:, :3], bias))


def _guess_gravity(data: WrenchData, R_frame_base: Floats, model: Floats, bias: bool) -> Floats:
    """With known orientation ``force = -R_frame_base m g`` is linear in m g; the model's gravity gives the sign."""
    centre = data.wrench[:, :3].mean(axis=0) if bias else np.zeros(3)
    columns = -(R_frame_base - (R_frame_base.mean(axis=0) if bias else 0.0))
    weight = lstsq(columns.reshape(-1, 3), (data.wrench[:, :3] - centre).ravel())
    if not np.linalg.norm(weight) > 0.0:
        return model
    weight = weight * np.sign(weight @ model)
    return np.asarray(np.linalg.norm(model) * weight / np.linalg.norm(weight))


def _guess_both(data: WrenchData, R_frame_base: Floats, model: Floats, bias: bool) -> tuple[Floats, Floats, float]:
    """With both unknown the coefficient of R_frame_base[j, k] on force a is ``m R[j, a] g[k]``, a matrix of rank one.

    If accelerations blur that, gravity starts from the model's.
    """
    fitted = _fitted(-R_frame_base.reshape(-1, 9), data.wrench[:, :3], bias)
    U, s, Vt = svd(fitted.reshape(3, 3, 3).transpose(0, 2, 1).reshape(9, 3))
    if s[1] > RANK_RATIO * s[0]:
        R, sign = _guess_orientation(data, bias)
        return R, model, sign
    R, sign = _nearest_rotation(U[:, 0].reshape(3, 3))
    up = float(np.sign(Vt[0] @ model))  # sign and gravity could both be turned: the model's gravity decides
    return R, up * float(np.linalg.norm(model)) * Vt[0], up * sign


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise IdentifiabilityError(reason, remedy="Turn the load through orientations in all directions.")


def _nearest_rotation(matrix: Floats) -> tuple[Floats, float]:
    """Rotation R and sign with ``sign * R`` nearest to a multiple of a matrix (3, 3)."""
    U, size, Vt = svd(matrix)
    _require(bool(size[-1] > RANK_RATIO * size[0]), "the poses do not reveal the orientation of the sensor")
    sign = float(np.sign(np.linalg.det(U @ Vt)))
    return sign * (U @ Vt), sign


def _tangents(g: Floats) -> Floats:
    """(3, 2) changes of a vector per radian of tilt about two axes normal to it."""
    axes = svd(g[None, :])[2][1:]
    return np.stack([np.cross(axis, g) for axis in axes], axis=1)


def _pose_columns(pose: SensorPose, data: WrenchData, W: Floats, phi: Floats, turn: Floats) -> list[Floats]:
    """Derivatives (N, 6, 3) and (N, 6, 2) of the wrench with respect to turns of the sensor and tilts of gravity."""
    columns = []
    if pose.turned:
        predicted = W @ phi
        # R <- R exp([d x]) changes R^T x by (R^T x) x d
        columns.append(
            np.concatenate([np.stack([np.cross(p, e) for e in np.eye(3)], axis=2) for p in _halves(predicted)], axis=1)
        )
    if pose.tilted:
        R_frame_base, _ = data.orientation()
        changes = [-(R_frame_base @ tangent) for tangent in _tangents(pose.gravity).T]
        wrenches = [acceleration_columns(change) @ phi for change in changes]
        columns.append(pose.sign * (turn @ np.stack(wrenches, axis=2)))
    return columns


def _halves(wrench: Floats) -> tuple[Floats, Floats]:
    return wrench[:, :3], wrench[:, 3:]


def _step(pose: SensorPose, step: Floats) -> SensorPose:
    R, g = pose.R_frame_sensor, pose.gravity
    if pose.turned:
        R = R @ Rotation.from_rotvec(_limited(step[:3])).as_matrix()
    if pose.tilted:
        moved = g + _tangents(g) @ _limited(step[-2:])
        g = moved * np.linalg.norm(g) / np.linalg.norm(moved)
    return SensorPose(R_frame_sensor=R, gravity=g, sign=pose.sign, turned=pose.turned, tilted=pose.tilted)


def _limited(step: Floats) -> Floats:
    return step * min(1.0, LARGEST_STEP / max(float(np.linalg.norm(step)), 1e-300))


def _spreads(pose: SensorPose, solution: LinearSolution) -> tuple[Floats, Floats]:
    """Standard deviation of the turn about each sensor axis (3,) [rad] and of gravity's components (3,) [m/s^2]."""
    first = len(solution.values) - 3 * pose.turned - 2 * pose.tilted
    covariance = solution.covariance[first:, first:].copy()
    open_ones = solution.undetermined[first:]
    turn = np.zeros(3)
    if pose.turned:
        turn = np.where(open_ones[:3], np.inf, np.sqrt(np.diag(covariance)[:3]))
    tilt = np.zeros(3)
    if pose.tilted:
        T = _tangents(pose.gravity)
        tilt = np.full(3, np.inf) if open_ones[-2:].any() else np.sqrt(np.diag(T @ covariance[-2:, -2:] @ T.T))
    return turn, tilt


def turn_angle(R: Floats) -> float:
    """Angle of a rotation [deg]."""
    sine = 0.5 * np.linalg.norm(_twice_sine(R))
    return float(np.rad2deg(np.arctan2(sine, (np.trace(R) - 1.0) / 2.0)))


def _twice_sine(R: Floats) -> Floats:
    """(3,) axis times twice the sine of a rotation's angle."""
    return np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
