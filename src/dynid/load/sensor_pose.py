"""The orientation of a force and torque sensor and the direction of gravity, estimated together with the load.

    wrench = turn(R^T) A(g) phi + bias        R = R_frame_sensor, g gravity in base axes

The search starts from a closed-form guess from the forces alone and goes on with Gauss-Newton steps on all channels.
Each step is the linear problem of the load with three more columns for R and two for g, so that their uncertainty comes
with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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

    def step(self, step: Floats) -> SensorPose:
        """The pose after a rotation about the sensor's axes (3,) and a tilt of gravity (2,) [rad], where estimated."""
        R, g = self.R_frame_sensor, self.gravity
        if self.turned:
            R = R @ Rotation.from_rotvec(_limit(step[:3])).as_matrix()
        if self.tilted:
            moved = g + _tangents(g) @ _limit(step[-2:])
            g = moved * np.linalg.norm(g) / np.linalg.norm(moved)
        return replace(self, R_frame_sensor=R, gravity=g)

    def equations(self, data: WrenchData) -> Floats:
        """(N, 6, 10) the load's equations in the axes of the sensor."""
        seen = data.under_gravity(self.gravity) if self.tilted else data
        return self.sign * (self._turn @ seen.matrix)

    @property
    def _turn(self) -> Floats:
        return np.asarray(np.kron(np.eye(2), self.R_frame_sensor.T), dtype=float)

    def columns(self, data: WrenchData, W: Floats, phi: Floats) -> list[Floats]:
        """Derivatives (N, 6, 3) and (N, 6, 2) of the wrench W phi with respect to the steps."""
        columns = []
        if self.turned:
            wrench = W @ phi  # R <- R exp([d x]) changes R^T x by (R^T x) x d
            halves = (wrench[:, :3], wrench[:, 3:])
            columns.append(
                np.concatenate([np.stack([np.cross(x, e) for e in np.eye(3)], axis=2) for x in halves], axis=1)
            )
        if self.tilted:
            R_frame_base, _ = data.orientation()
            changes = [-(R_frame_base @ tangent) for tangent in _tangents(self.gravity).T]
            wrenches = [acceleration_columns(change) @ phi for change in changes]
            columns.append(self.sign * (self._turn @ np.stack(wrenches, axis=2)))
        return columns


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
    first = len(solution.values) - 3 * pose.turned - 2 * pose.tilted
    covariance, is_open = solution.covariance[first:, first:], solution.undetermined[first:]
    turn, tilt = np.zeros(3), np.zeros(3)
    if pose.turned:
        turn = np.where(is_open[:3], np.inf, np.sqrt(np.diag(covariance)[:3]))
    if pose.tilted:
        T = _tangents(pose.gravity)
        tilt = np.full(3, np.inf) if is_open[-2:].any() else np.sqrt(np.diag(T @ covariance[-2:, -2:] @ T.T))
    return pose, solution, (turn, tilt)


def _search(pose: SensorPose, data: WrenchData, sensing: SensorUnknowns) -> tuple[SensorPose, LinearSolution]:
    """Gauss-Newton steps from a guess until they vanish."""
    sides, labels = sensor_columns(data, sensing), data.blocks()
    values = solve_weighted(np.concatenate([pose.equations(data), *sides], axis=2), data.wrench).values
    first = len(values)
    for _ in range(STEPS):
        W = pose.equations(data)
        columns = [W, *sides, *pose.columns(data, W, values[:10])]
        solution = solve_weighted(np.concatenate(columns, axis=2), data.wrench, labels=labels)
        values = solution.values
        pose = pose.step(values[first:])
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
    force, size = data.wrench[:, :3], float(np.linalg.norm(model))
    if not orientation:  # force = -R_frame_base m g is linear in m g; the model's gravity gives the sign
        turns, rest = (R_frame_base.mean(axis=0), force.mean(axis=0)) if bias else (0.0, 0.0)
        weight = lstsq(-(R_frame_base - turns).reshape(-1, 3), (force - rest).ravel())
        weight = weight * np.sign(weight @ model) if np.any(weight) else model
        g = size * weight / np.linalg.norm(weight)
        return SensorPose(R_frame_sensor=np.eye(3), gravity=g, sign=1.0, turned=False, tilted=True)
    # the coefficient of R_frame_base[j, k] on force a is m R[j, a] g[k], a matrix of rank one
    fitted = _fit(-R_frame_base.reshape(-1, 9), force, bias)
    U, s, Vt = svd(fitted.reshape(3, 3, 3).transpose(0, 2, 1).reshape(9, 3))
    if s[1] > RANK_RATIO * s[0]:  # accelerations blur it: gravity starts from the model's
        R, sign = _guess_orientation(data, bias)
        return SensorPose(R_frame_sensor=R, gravity=model, sign=sign, turned=True, tilted=True)
    R, sign = _nearest_rotation(U[:, 0].reshape(3, 3))
    up = float(np.sign(Vt[0] @ model))  # sign and gravity could both be turned: the model's gravity decides
    return SensorPose(R_frame_sensor=R, gravity=up * size * Vt[0], sign=up * sign, turned=True, tilted=True)


def _fit(columns: Floats, force: Floats, bias: bool) -> Floats:
    """Coefficients (k, ...) of columns (N, k) in forces (N, ...), next to a constant if there is a bias."""
    ones = np.ones((len(force), int(bias)))
    return np.asarray(lstsq(np.hstack([columns, ones]), force)[: columns.shape[1]])


def _guess_orientation(data: WrenchData, bias: bool) -> tuple[Floats, float]:
    """With known gravity ``force = m R^T a`` is linear in m R."""
    return _nearest_rotation(_fit(data.matrix[:, :3, 9], data.wrench[:, :3], bias))


def _nearest_rotation(matrix: Floats) -> tuple[Floats, float]:
    """Rotation R and sign with ``sign * R`` nearest to a multiple of a matrix (3, 3)."""
    U, size, Vt = svd(matrix)
    if not size[-1] > RANK_RATIO * size[0]:
        raise IdentifiabilityError(
            "the poses do not reveal the orientation of the sensor",
            remedy="Turn the load through orientations in all directions.",
        )
    sign = float(np.sign(np.linalg.det(U @ Vt)))
    return sign * (U @ Vt), sign


def _tangents(g: Floats) -> Floats:
    """(3, 2) changes of a vector per radian of tilt about two axes normal to it."""
    axes = svd(g[None, :])[2][1:]
    return np.stack([np.cross(axis, g) for axis in axes], axis=1)


def _limit(step: Floats) -> Floats:
    return step * min(1.0, LARGEST_STEP / max(float(np.linalg.norm(step)), 1e-300))


def turn_angle(R: Floats) -> float:
    """Angle of a rotation [deg]."""
    return float(np.rad2deg(Rotation.from_matrix(R).magnitude()))
