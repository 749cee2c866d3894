"""A force and torque sensor beside the load: its zero, how it is turned, where gravity points, how it yields.

    wrench = turn(R^T) A(g) phi + zero               R = R_frame_sensor, g gravity in base axes
    s + d ds/dt = A phi - M(phi) k d2s/dt2 + zero    s strain, k compliance and d damping of each channel

M (6, 6) is the load's own inertia about the sensor's origin: a load on a compliant sensor swings ([Atkeson1986] section
4.1.1, Fig. 9); deflections are small, so that velocity and gravity stay those of the sensor's frame. Both are linear in
the load once the rest is known. A Gauss-Newton step is the linear problem of the load with a few more columns, so that
the uncertainty of the sensor comes with the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, TypeVar

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from dynid.arrays import Floats
from dynid.decompositions import eigh, lstsq, pinv, svd
from dynid.errors import ArgumentError, DataError, EstimationError, IdentifiabilityError
from dynid.load.load import SURE
from dynid.load.load_solver import BlockEquations, LinearSolution, solve_blocks, solve_load_equations
from dynid.load.wrench_equations import WrenchData, acceleration_columns, swing_columns
from dynid.robot.inertia import Inertia

STEPS = 30
"""Largest number of Gauss-Newton steps; convention."""
SETTLED = 1e-3
"""Step [rad], or part of a compliance or of its spread, below which a search ends: the next is about its square."""
LARGEST_STEP = 0.5
"""Longest step of one Gauss-Newton iteration [rad]; convention."""
RANK_RATIO = 0.2
"""Ratio of singular values of the guess that separates a determined from an undetermined orientation; convention."""
NARROW, WIDEST = 1.5, 20.0
"""Standard deviations of the narrowest and the widest Gaussian that smooth a wrench [samples]; convention."""
REACH = 6.0
"""Half the length of the Gaussian's kernel [standard deviations]."""
PASSED = 3.0
"""Frequency, over the highest resonance, at which the smoothing halves the power; convention."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensing:
    """Settings of the sensor: what is known about it, and what to estimate with the load."""

    bias: bool = True
    """Estimate a constant wrench."""
    drift: bool = False
    """Estimate a linear change of that bias over time; several runs must then share one clock."""
    bias_per_log: bool = False
    """Estimate a bias for each log, for a sensor that was zeroed between logs."""
    sign: Literal[1, -1] = 1
    """1 where the sensor reports the wrench on the load, -1 where it reports the wrench on the robot."""
    axes: Literal["sensor", "base"] = "sensor"
    """Whether wrenches were recorded in the sensor's axes or in those of the base."""
    moment_unit: float = 1.0
    """Size of the unit of recorded moments [N m]: 0.001 for N mm; negative where they are reversed against the forces.
    """
    delay_s: float = 0.0
    """Delay of the wrench against the positions [s]; `find_wrench_delay` estimates it."""
    find_orientation: bool = False
    """Estimate the orientation of the sensor in its frame."""
    find_gravity: bool = False
    """Estimate the direction of gravity in base axes."""
    find_compliance: bool = False
    """Estimate how the sensor yields under the load, from the load's swinging; not with the two settings above."""
    calibration: SensorCalibration | None = None
    """Gains, cross-talk and bias to undo first; an estimated bias is then the change since the calibration."""

    def __post_init__(self) -> None:
        """Refuse settings that exclude each other."""
        if self.find_compliance and (self.find_orientation or self.find_gravity):
            reason = "find_compliance excludes find_orientation and find_gravity"
            raise ArgumentError(reason, remedy="Find these in slow motion.")

    def correct(self, data: WrenchData) -> WrenchData:
        """The equations with the wrench corrected for sign, unit and calibration."""
        wrench = self.sign * data.wrench * np.repeat([1.0, self.moment_unit], 3)
        if self.calibration is not None:
            wrench = (wrench - self.calibration.bias) @ np.linalg.inv(self.calibration.gain).T
        return replace(data, wrench=wrench)

    def zero_columns(self, data: WrenchData) -> list[Floats]:
        """Columns (N, 6, 6) of a constant wrench, its change per second, and its change between logs."""
        eye = np.broadcast_to(np.eye(6), (len(data.time), 6, 6))
        span = (data.time - data.time.mean())[:, None, None] * np.eye(6)
        others = np.unique(data.log)[1:] if self.bias_per_log else ()
        columns = [(data.log == k)[:, None, None] * np.eye(6) for k in others]
        return [eye] * self.bias + [span] * self.drift + columns


class SensorState(Protocol):
    """What is guessed of a sensor, so that the rest is linear."""

    def equations(self) -> Floats:
        """(N, 6, 10) the load's equations as the sensor feels them."""

    def columns(self, phi: Floats) -> list[Floats]:
        """Derivatives (N, 6, k) of the wrench of a load phi (10,) with respect to the steps."""

    def step(self, solution: LinearSolution) -> tuple[Self, float]:
        """The state after the step that a solution ends with, and the size of this step."""


State = TypeVar("State", bound=SensorState)


def find_sensor(state: State, data: WrenchData, sensing: Sensing) -> tuple[State, LinearSolution]:
    """Gauss-Newton steps from a first state until they vanish; the steps are the last unknowns of the solution.

    Raises:
        EstimationError: The search did not settle.
    """
    zero, labels = sensing.zero_columns(data), data.blocks()
    linear = BlockEquations.of(np.concatenate([state.equations(), *zero], axis=2), data.wrench, labels)
    phi = solve_blocks(linear).values[:10]
    for _ in range(STEPS):
        W = np.concatenate([state.equations(), *zero, *state.columns(phi)], axis=2)
        solution = solve_load_equations(BlockEquations.of(W, data.wrench, labels))
        phi = np.where(solution.undetermined, 0.0, solution.values)[:10]
        state, size = state.step(solution)
        if size < SETTLED:
            return state, solution
    if sensing.find_compliance:
        raise EstimationError(
            "the search for the compliance does not settle: the sensor may be rigid, or the load hardly swings on it",
            remedy="Leave find_compliance out to identify the load on a rigid sensor, or shake the load more.",
        )
    raise EstimationError("the search for the sensor's orientation does not settle", remedy="Use more orientations.")


# --- orientation and gravity ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensorPose:
    """Orientation of the sensor and direction of gravity."""

    data: WrenchData
    R_frame_sensor: Floats
    """(3, 3) sensor axes in the frame"""
    gravity: Floats
    """(3,) base axes [m/s^2]"""
    sign: float
    """1, or -1 where the sensor reports the wrench on the robot"""
    turned: bool
    """Whether the orientation is estimated"""
    tilted: bool
    """Whether the direction of gravity is estimated"""

    @classmethod
    def guess(cls, data: WrenchData, sensing: Sensing) -> SensorPose:
        """A start for the search: the model's gravity, and with it the orientation from the forces alone.

        Raises:
            IdentifiabilityError: The poses do not reveal the orientation, or there is no gravity whose direction could
                be found.
        """
        R, sign = np.eye(3), 1.0
        if sensing.find_gravity and not np.any(data.gravity):
            raise IdentifiabilityError("the model has no gravity whose direction could be found")
        if sensing.find_orientation:  # force = m R^T a is linear in m R
            A = np.hstack([data.matrix[:, :3, 9], np.ones((len(data.time), int(sensing.bias)))])
            U, size, Vt = svd(lstsq(A, data.wrench[:, :3])[:3])
            if not size[-1] > RANK_RATIO * size[0]:
                raise IdentifiabilityError(
                    "the poses do not reveal the orientation of the sensor",
                    remedy="Turn the load through orientations in all directions.",
                )
            sign = float(np.sign(np.linalg.det(U @ Vt)))
            R = sign * (U @ Vt)
        return cls(data=data, R_frame_sensor=R, gravity=data.gravity, sign=sign, turned=sensing.find_orientation,
                   tilted=sensing.find_gravity)  # fmt: skip

    def step(self, solution: LinearSolution) -> tuple[SensorPose, float]:
        """A rotation about the sensor's axes (3,) and a tilt of gravity (2,) [rad], where estimated."""
        R, g = self.R_frame_sensor, self.gravity
        step = solution.values[len(solution.values) - 3 * self.turned - 2 * self.tilted :]
        size = float(np.linalg.norm(step))
        step = step * min(1.0, LARGEST_STEP / max(size, 1e-300))
        if self.turned:
            R = R @ Rotation.from_rotvec(step[:3]).as_matrix()
        if self.tilted:
            moved = g + self.tangents @ step[-2:]
            g = moved * np.linalg.norm(g) / np.linalg.norm(moved)
        return replace(self, R_frame_sensor=R, gravity=g), size

    def equations(self) -> Floats:
        """(N, 6, 10) the load's equations in the axes of the sensor."""
        change = -(self.data.R_frame_base @ (self.gravity - self.data.gravity))  # of acceleration minus gravity
        return self.sign * (self._turn @ (self.data.matrix + acceleration_columns(change)))

    @property
    def _turn(self) -> Floats:
        return np.asarray(np.kron(np.eye(2), self.R_frame_sensor.T), dtype=float)

    @property
    def tangents(self) -> Floats:
        """(3, 2) changes of gravity per radian of tilt about two axes normal to it."""
        return np.stack([np.cross(axis, self.gravity) for axis in svd(self.gravity[None, :])[2][1:]], axis=1)

    def columns(self, phi: Floats) -> list[Floats]:
        """Derivatives (N, 6, 3) and (N, 6, 2) of the wrench of a load with respect to the steps."""
        columns = []
        if self.turned:
            halves = np.split(self.equations() @ phi, 2, axis=1)  # R <- R exp([d x]) changes R^T x by (R^T x) x d
            turns = [np.stack([np.cross(x, e) for e in np.eye(3)], axis=2) for x in halves]
            columns.append(np.concatenate(turns, axis=1))
        if self.tilted:
            changes = [-(self.data.R_frame_base @ tangent) for tangent in self.tangents.T]
            wrenches = [acceleration_columns(change) @ phi for change in changes]
            columns.append(self.sign * (self._turn @ np.stack(wrenches, axis=2)))
        return columns

    def spread(self, solution: LinearSolution) -> tuple[Floats, Floats]:
        """Standard deviations of the turn about each sensor axis (3,) [rad] and of gravity (3,) [m/s^2]."""
        first = len(solution.values) - 3 * self.turned - 2 * self.tilted
        covariance, is_open = solution.covariance[first:, first:], solution.undetermined[first:]
        turn, tilt = np.zeros(3), np.zeros(3)
        if self.turned:
            turn = np.where(is_open[:3], np.inf, np.sqrt(np.diag(covariance)[:3]))
        if self.tilted:
            T = self.tangents
            tilt = np.full(3, np.inf) if is_open[-2:].any() else np.sqrt(np.diag(T @ covariance[-2:, -2:] @ T.T))
        return turn, tilt


# --- compliance ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensorCompliance:
    """How a sensor yields: a spring and a damper in every channel between the robot and the load."""

    compliance: Floats
    """(6,) deflection per force and moment of each channel [m/N, rad/(N m)], sensor axes"""
    damping_s: Floats
    """(6,) damping over stiffness of each channel [s]"""
    compliance_stderr: Floats
    """(6,) standard deviations of `compliance`; infinite where the data do not show it, which is then zero"""
    damping_stderr_s: Floats
    """(6,) standard deviations of `damping_s` [s]; infinite where the data do not show it, which is then zero"""

    def resonances(self, load: Inertia) -> tuple[Floats, Floats]:
        """Frequencies [Hz], ascending, and damping ratios of a load's free swinging on the sensor, (k,) each.

        Channels whose compliance is not clearly above zero count as rigid.
        """
        soft = self.compliance > SURE * self.compliance_stderr
        mass = swing_columns(np.eye(6)) @ load.vector  # (6, 6), symmetric
        root = np.sqrt(self.compliance[soft])
        squares, shapes = eigh(root[:, None] * mass[np.ix_(soft, soft)] * root)  # 1 / omega^2, ascending
        squares, shapes = np.maximum(squares[::-1], 1e-300), shapes[:, ::-1]
        damping = np.sum(shapes**2 * self.damping_s[soft][:, None], axis=0) / (2.0 * np.sqrt(squares))
        return np.asarray(1.0 / (2.0 * np.pi * np.sqrt(squares))), np.asarray(damping)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swinging:
    """Equations of a load that swings, low-passed so that the wrench has derivatives."""

    data: WrenchData
    rate: Floats
    """(N, 6) derivative of the wrench [N/s, N m/s]"""
    bend: Floats
    """(N, 6) second derivative of the wrench [N/s^2, N m/s^2]"""
    noise_share: Floats
    """(6,) share of the mean square of `bend` that is white noise"""
    compliance: Floats
    """(6,) [m/N, rad/(N m)], sensor axes"""

    @classmethod
    def rigid(cls, data: WrenchData, width: float) -> Swinging:
        """A rigid sensor as the start; both sides go through one Gaussian of a standard deviation [samples].

        Raises:
            DataError: No stretch of the log is long enough.
        """
        reach = int(np.ceil(REACH * width))
        long = [rows for rows in data.stretches() if len(rows) > 2 * reach]
        if not long:
            raise DataError(
                "no stretch of the log is long enough to differentiate the wrench", remedy="Give a log without gaps."
            )
        step = float(np.median(np.diff(data.time)))

        def smooth(signal: Floats, order: int = 0) -> Floats:
            parts = [gaussian_filter1d(signal[rows], width, axis=0, order=order, truncate=REACH) for rows in long]
            return np.concatenate([part[reach:-reach] for part in parts]) / step**order

        inner = data.rows(np.concatenate([rows[reach:-reach] for rows in long]))
        wrench, rate, bend = (smooth(data.wrench, order) for order in (0, 1, 2))
        # fourth differences hold little but white noise, whose variance they multiply by 70 = 1 + 16 + 36 + 16 + 1
        variance = np.mean(np.diff(data.wrench[max(long, key=len)], n=4, axis=0) ** 2, axis=0) / 70.0
        second = gaussian_filter1d(np.eye(1, 2 * reach + 1, reach)[0], width, order=2, truncate=REACH) / step**2
        share = variance * np.sum(second**2) / np.maximum(np.mean(bend**2, axis=0), 1e-300)
        return cls(data=replace(inner, matrix=smooth(data.matrix), wrench=wrench), rate=rate, bend=bend,
                   noise_share=np.minimum(1.0, share), compliance=np.zeros(6))  # fmt: skip

    def equations(self) -> Floats:
        """(N, 6, 10) the load's equations with its swinging."""
        return self.data.matrix - swing_columns(self.compliance * self.bend)

    def columns(self, phi: Floats) -> list[Floats]:
        """Derivatives (N, 6, 6) of the wrench of a load with respect to compliances and damping."""
        units = [-swing_columns(self.bend * unit) @ phi for unit in np.eye(6)]
        return [np.stack(units, axis=2), -self.rate[:, :, None] * np.eye(6)]

    def step(self, solution: LinearSolution) -> tuple[Swinging, float]:
        """The compliances after a step."""
        step = np.where(solution.undetermined, 0.0, solution.values)[-12:-6]
        moved = self.compliance + step
        size = np.maximum(np.abs(moved), solution.stderr[-12:-6])
        return replace(self, compliance=moved), float(np.max(np.abs(step) / np.maximum(size, 1e-300)))


def find_compliance(data: WrenchData, sensing: Sensing) -> tuple[SensorCompliance, LinearSolution]:
    """Estimate load, bias and drift together with the compliance and damping of every channel.

    A first pass finds the resonances; the second smooths the wrench as much as they allow.

    Raises:
        DataError: No stretch of the log is long enough.
        EstimationError: The search did not settle.
    """
    found, solution = _find_compliance(data, sensing, NARROW)
    frequencies, _ = found.resonances(Inertia.from_vector(solution.values[:10]))
    if len(frequencies):
        # a Gaussian of the standard deviation s halves the power at sqrt(ln 2) / (2 pi s)
        halved = np.sqrt(np.log(2.0)) / (2.0 * np.pi * PASSED * frequencies[-1])
        width = min(float(halved / np.median(np.diff(data.time))), WIDEST)
        if width > NARROW:
            return _find_compliance(data, sensing, width)
    return found, solution


def _find_compliance(data: WrenchData, sensing: Sensing, width: float) -> tuple[SensorCompliance, LinearSolution]:
    """The compliance by a wrench that is smoothed so much [samples], with the uncertainty that its noise adds.

    Noise in the second derivative draws a compliance towards zero by about the noise's share; the other unknowns follow
    as they would follow any change of the compliance, by their covariance with it.
    """
    start = Swinging.rigid(data, width)
    state, solution = find_sensor(start, start.data, sensing)
    own = slice(-12, -6)
    follows = solution.covariance[:, own] @ pinv(solution.covariance[own, own], rcond=1e-12)
    covariance = solution.covariance + (follows * (state.noise_share * state.compliance) ** 2) @ follows.T
    solution = replace(solution, covariance=covariance)
    return SensorCompliance(
        compliance=state.compliance,
        damping_s=np.where(solution.undetermined, 0.0, solution.values)[-6:],
        compliance_stderr=solution.stderr[own],
        damping_stderr_s=solution.stderr[-6:],
    ), solution


# --- gains and cross-talk ([Atkeson1986] section 4.1.1) ---


def calibrate_sensor(runs: Sequence[tuple[WrenchData, Inertia]]) -> SensorCalibration:
    """Estimate gains, cross-talk and bias from known loads: ``measured = K true + bias``.

    One load at rest shows only three of the six columns of K, since its moments follow from its forces ([Atkeson1986]
    eq. 21); loads with other centres of mass, or motion, show the rest.

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
