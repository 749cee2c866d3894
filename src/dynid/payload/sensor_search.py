"""Search for properties of a wrist sensor: its orientation, the direction of gravity, its compliance, its gains.

`find_sensor` searches for orientation and gravity (`SensorPose`), or for compliance and damping (`Swinging`), together
with the load. `dynid.payload.wrist` calls it with the equations of a log (`WrenchData`). `calibrate_sensor` is public
and finds gains from known loads. The equations, with the ten parameters phi of the load, are

    wrench = turn(R^T) A(g) phi + zero               R = R_frame_sensor, g gravity in base axes
    s + d ds/dt = A phi - M(phi) k d2s/dt2 + zero    s strain, k compliance and d damping of each channel
    measured = K true + zero                         of known loads ([Atkeson1986] section 4.1.1)

where ``turn`` rotates force and moment, zero is the sensor's bias, and A (6, 10) is the load's wrench per unit of its
parameters. M (6, 6) is the load's spatial inertia about the sensor's origin: a load on a compliant sensor swings
([Atkeson1986] section 4.1.1, Fig. 9). Deflections are small, so that velocity and gravity in the sensor's axes do not
change. The first two equations are linear in the load once the rest is known. A Gauss-Newton step is the linear
problem of the load with a few more columns, so that the sensor's uncertainty is found with that of the load.

Shapes: N equations (samples), six channels (force, then moment), ten parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from dynid.array_types import Floats
from dynid.decompositions import eigh, lstsq, pinv, svd
from dynid.errors import DataError, EstimationError, IdentifiabilityError
from dynid.estimators.linear.robust import SETTLED
from dynid.payload.load import LARGE_SHARE, SIGNIFICANT_STD
from dynid.payload.load_solver import BlockEquations, LinearSolution, solve_blocks, solve_load_equations
from dynid.payload.sensing import Sensing, SensorCalibration
from dynid.payload.wrench_equations import WrenchData, acceleration_matrix, wrench_data
from dynid.processing.experiment import Experiment
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import TINY

STEPS = 30
"""Largest number of Gauss-Newton steps (convention)."""
NARROWEST_WIDTH, WIDEST_WIDTH = 1.5, 20.0
"""Standard deviations of the narrowest and the widest Gaussian that smooths a wrench [samples] (convention)."""
KERNEL_REACH = 6.0
"""Half the length of the Gaussian's kernel [standard deviations] (convention: beyond, it is below 1e-7)."""
CUTOFF_FACTOR = 3.0
"""Frequency at which the smoothing halves the power, over the highest resonance (convention)."""


# --- orientation and gravity ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensorPose:
    """A state of the search for the orientation of the sensor and the direction of gravity."""

    data: WrenchData
    """The equations of a sensor with the axes of the frame, under the model's gravity."""
    gravity: Floats
    """(3,) gravity in base axes [m/s^2]."""
    R_frame_sensor: Floats
    """(3, 3) sensor axes in the frame."""
    sign: float
    """1, or -1 where the sensor reports the wrench on the robot."""
    turned: bool
    """Whether the orientation is estimated."""
    tilted: bool
    """Whether the direction of gravity is estimated."""

    @classmethod
    def guess(cls, data: WrenchData, sensing: Sensing) -> SensorPose:
        """Make the start of the search: the model's gravity, and with it the orientation from the forces alone.

        Raises:
            IdentifiabilityError: The poses do not reveal the orientation, or there is no gravity whose direction could
                be found.
        """
        R = np.eye(3)
        sign = 1.0
        turned = "orientation" in sensing.find
        tilted = "gravity" in sensing.find
        if tilted and not np.any(data.gravity):
            raise IdentifiabilityError("the model has no gravity whose direction could be found")
        if turned:
            # force = m R^T a with the acceleration a less gravity (column 9 of A) in the frame: linear in m R (3, 3).
            # R is the rotation nearest to it (Procrustes); a reflection means that the sign is reversed.
            A = np.hstack([data.matrix[:, :3, 9], np.ones((len(data.time), int(sensing.bias)))])
            U, size, Vt = svd(lstsq(A, data.wrench[:, :3])[:3])
            if not size[-1] > LARGE_SHARE * size[0]:
                raise IdentifiabilityError(
                    "the poses do not reveal the orientation of the sensor",
                    remedy="Turn the load through orientations in all directions.",
                )
            sign = float(np.sign(np.linalg.det(U @ Vt)))
            R = sign * (U @ Vt)
        return cls(data=data, gravity=data.gravity, R_frame_sensor=R, sign=sign, turned=turned, tilted=tilted)

    def step(self, values: Floats, stderr: Floats) -> tuple[SensorPose, float]:
        """Make a step of the search.

        Args:
            values: A rotation about the sensor's axes (3,) [rad], then a tilt of gravity (2,) [rad], where estimated.
            stderr: Their standard deviations, which `find_sensor` gives and this step does not need.

        Returns:
            The state after the step, and the size of the step [rad].
        """
        R = self.R_frame_sensor
        g = self.gravity
        if self.turned:
            R = R @ Rotation.from_rotvec(values[:3]).as_matrix()
        if self.tilted:
            moved = g + self.tangents @ values[-2:]
            g = moved * np.linalg.norm(g) / np.linalg.norm(moved)
        return replace(self, R_frame_sensor=R, gravity=g), float(np.linalg.norm(values))

    def equations(self) -> Floats:
        """(N, 6, 10) the load's equations in the axes of the sensor."""
        return self._in_sensor_axes(self.data.matrix + self._weight(self.gravity - self.data.gravity))

    def _weight(self, gravity: Floats) -> Floats:
        """(N, 6, 10) equations of a load at rest under gravity (3,), axes of the frame."""
        return acceleration_matrix(-(self.data.R_frame_base @ gravity))

    def _in_sensor_axes(self, columns: Floats) -> Floats:
        """Turn columns (N, 6, k) from the axes of the frame to those of the sensor, with the sensor's sign."""
        return np.asarray(self.sign * (np.kron(np.eye(2), self.R_frame_sensor.T) @ columns))

    @property
    def tangents(self) -> Floats:
        """(3, 2) changes of gravity [m/s^2] per radian of tilt about two axes normal to it (its null space)."""
        return np.stack([np.cross(axis, self.gravity) for axis in svd(self.gravity[None, :])[2][1:]], axis=1)

    def columns(self, phi: Floats) -> list[Floats]:
        """Derivatives of the wrench of a load phi (10,) by the turn (N, 6, 3) and the tilt (N, 6, 2) of `step`.

        The list holds those that are estimated.
        """
        columns = []
        if self.turned:
            halves = np.split(self.equations() @ phi, 2, axis=1)  # R <- R exp([d x]) changes R^T x by (R^T x) cross d
            turns = [np.cross(half[:, :, None], np.eye(3)[None], axis=1) for half in halves]
            columns.append(np.concatenate(turns, axis=1))
        if self.tilted:
            columns.append(
                self._in_sensor_axes(np.stack([self._weight(tilt) @ phi for tilt in self.tangents.T], axis=2))
            )
        return columns


# --- compliance ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swinging:
    """A state of the search for compliance: equations of a load that swings on the sensor.

    The wrench is smoothed by a Gaussian, so that it can be differentiated twice; the equations are smoothed alike.
    """

    data: WrenchData
    """The smoothed equations of a rigid sensor."""
    rate: Floats
    """(N, 6) derivative of the wrench [N/s, N m/s]."""
    second_rate: Floats
    """(N, 6) second derivative of the wrench [N/s^2, N m/s^2]."""
    noise_share: Floats
    """(6,) share of the mean square of `second_rate` that is white noise."""
    compliance: Floats
    """(6,) compliance of each channel [m/N, rad/(N m)], sensor axes."""

    @classmethod
    def rigid(cls, data: WrenchData, width: float) -> Swinging:
        """Make the start of the search, a rigid sensor; the width is the Gaussian's standard deviation [samples].

        Raises:
            DataError: No stretch of the log is long enough.
        """
        reach = int(np.ceil(KERNEL_REACH * width))
        long = [rows for rows in data.stretches() if len(rows) > 2 * reach]
        if not long:
            raise DataError(
                "no stretch of the log is long enough to differentiate the wrench", remedy="Give a log without gaps."
            )
        step = float(np.median(np.diff(data.time)))

        def smooth(signal: Floats, order: int = 0) -> Floats:
            smoothed: Floats = gaussian_filter1d(signal, width, axis=0, order=order, truncate=KERNEL_REACH)
            return smoothed[reach : len(signal) - reach] / step**order

        def smooth_all(signal: Floats, order: int = 0) -> Floats:
            return np.concatenate([smooth(signal[rows], order) for rows in long])

        inner = data.rows(np.concatenate([rows[reach:-reach] for rows in long]))
        wrench, rate, second_rate = (smooth_all(data.wrench, order) for order in (0, 1, 2))
        # fourth differences hold little but white noise, whose variance they multiply by 70 = 1 + 16 + 36 + 16 + 1
        variance = np.mean(np.diff(data.wrench[max(long, key=len)], n=4, axis=0) ** 2, axis=0) / 70.0
        # impulse response of the second derivative; the sum of its squares multiplies the variance of white noise
        response = smooth(np.eye(1, 4 * reach + 1, 2 * reach)[0], order=2)
        share = variance * np.sum(response**2) / np.maximum(np.mean(second_rate**2, axis=0), TINY)
        smoothed = replace(inner, matrix=smooth_all(data.matrix), wrench=wrench)
        return cls(data=smoothed, rate=rate, second_rate=second_rate,
                   noise_share=np.minimum(1.0, share), compliance=np.zeros(6))  # fmt: skip

    def equations(self) -> Floats:
        """(N, 6, 10) the load's equations with its swinging, A phi - M(phi) k d2s/dt2.

        The second term is the wrench that accelerates the load, which is linear in phi as well.
        """
        return self.data.matrix - acceleration_matrix(self.compliance * self.second_rate)

    def columns(self, phi: Floats) -> list[Floats]:
        """Derivatives of the wrench of a load phi (10,) by compliances (N, 6, 6) and by damping (N, 6, 6)."""
        units = [-acceleration_matrix(self.second_rate * unit) @ phi for unit in np.eye(6)]
        return [np.stack(units, axis=2), -self.rate[:, :, None] * np.eye(6)]

    def step(self, values: Floats, stderr: Floats) -> tuple[Swinging, float]:
        """The state with compliances changed by the first six values, and the relative size of the step."""
        compliance = self.compliance + values[:6]
        size = np.maximum(np.maximum(np.abs(compliance), stderr[:6]), TINY)
        return replace(self, compliance=compliance), float(np.max(np.abs(values[:6]) / size))


State = TypeVar("State", SensorPose, Swinging)


def find_sensor(state: State, data: WrenchData, sensing: Sensing) -> tuple[State, LinearSolution, slice]:
    """Make Gauss-Newton steps from a first state until they are small; load, bias and drift are fitted with each.

    Args:
        state: The start of the search.
        data: The measured wrench and its blocks of time.
        sensing: Settings, which say whether bias and drift are estimated.

    Returns:
        The last state, the solution of the last step, and the slice of the step among its unknowns.

    Raises:
        EstimationError: The search did not settle.
    """
    zero: list[Floats] = data.bias_columns(sensing)
    labels = data.blocks()
    linear = BlockEquations.of(np.concatenate([state.equations(), *zero], axis=2), data.wrench, labels)
    phi: Floats = solve_blocks(linear).values[:10]
    step_slice = slice(10 + 6 * len(zero), None)
    for _ in range(STEPS):
        W = np.concatenate([state.equations(), *zero, *state.columns(phi)], axis=2)
        solution = solve_load_equations(BlockEquations.of(W, data.wrench, labels))
        phi = solution.determined[:10]
        state, size = state.step(solution.determined[step_slice], solution.stderr[step_slice])
        if size < SETTLED:
            return state, solution, step_slice
    if "compliance" in sensing.find:
        raise EstimationError(
            "the search for the compliance does not settle: the sensor may be rigid, or the load hardly swings on it",
            remedy="Leave compliance out to identify the load on a rigid sensor, or shake the load more.",
        )
    raise EstimationError("the search for the sensor's orientation does not settle", remedy="Use more orientations.")


def find_compliance(data: WrenchData, sensing: Sensing) -> tuple[dict[str, Floats], LinearSolution]:
    """Estimate load, bias and drift together with the compliance and damping of every channel.

    A first pass finds the resonances; the second smooths the wrench as much as they allow.

    Returns:
        ``compliance``, ``compliance_stderr``, ``damping_s`` and ``damping_stderr_s``, as in `Load.extras`, and the
        solution.

    Raises:
        DataError: No stretch of the log is long enough.
        EstimationError: The search did not settle.
    """
    found, solution = _find_compliance(data, sensing, NARROWEST_WIDTH)
    frequencies, _ = resonances(found, solution.values[:10])
    if len(frequencies):
        # a Gaussian of the standard deviation s halves the power at sqrt(ln 2) / (2 pi s)
        halved = np.sqrt(np.log(2.0)) / (2.0 * np.pi * CUTOFF_FACTOR * frequencies[-1])
        width = min(float(halved / np.median(np.diff(data.time))), WIDEST_WIDTH)
        if width > NARROWEST_WIDTH:
            return _find_compliance(data, sensing, width)
    return found, solution


def _find_compliance(data: WrenchData, sensing: Sensing, width: float) -> tuple[dict[str, Floats], LinearSolution]:
    """The results of `find_compliance` with a wrench that is smoothed by a Gaussian of a width [samples].

    The covariance contains a bias: noise in the second derivative draws a compliance towards zero by about the noise's
    share; the other unknowns follow as they would follow any change of the compliance, by their covariance with it.
    """
    start = Swinging.rigid(data, width)
    state, solution, _ = find_sensor(start, start.data, sensing)
    compliance, damping = slice(-12, -6), slice(-6, None)  # the last unknowns
    follows = solution.covariance[:, compliance] @ pinv(solution.covariance[compliance, compliance], rcond=1e-12)
    covariance = solution.covariance + (follows * (state.noise_share * state.compliance) ** 2) @ follows.T
    solution = replace(solution, covariance=covariance)
    return {
        "compliance": state.compliance,
        "compliance_stderr": solution.stderr[compliance],
        "damping_s": solution.determined[damping],
        "damping_stderr_s": solution.stderr[damping],
    }, solution


def resonances(found: dict[str, Floats], vector: Floats) -> tuple[Floats, Floats]:
    """(k,) frequencies [Hz], ascending, and (k,) damping ratios of a load that swings freely on the sensor.

    Channels whose compliance is not significantly above zero count as rigid.

    Args:
        found: Compliance and damping, as `find_compliance` returns them.
        vector: (10,) parameters of the load.
    """
    soft = found["compliance"] > SIGNIFICANT_STD * found["compliance_stderr"]
    mass = acceleration_matrix(np.eye(6)) @ vector  # (6, 6), symmetric
    root = np.sqrt(found["compliance"][soft])
    # modes of M k d2s/dt2 + s = 0: eigenvalues of k^1/2 M k^1/2 are 1 / omega^2, ascending
    squares, shapes = eigh(root[:, None] * mass[np.ix_(soft, soft)] * root)
    omega, shapes = 1.0 / np.sqrt(np.maximum(squares[::-1], TINY)), shapes[:, ::-1]
    return omega / (2.0 * np.pi), 0.5 * omega * np.sum(shapes**2 * found["damping_s"][soft][:, None], axis=0)


# --- gains and cross-talk ---


def calibrate_sensor(
    robot: Robot, runs: Sequence[tuple[Experiment, Inertia]], *, sensor_frame: str, sensing: Sensing | None = None
) -> SensorCalibration:
    """Estimate gains, cross-talk and bias from known loads: ``measured = K true + bias``.

    One load at rest shows only three of the six columns of K, since its moments follow from its forces ([Atkeson1986]
    eq. 21); loads with other centres of mass, or motion, show the rest.

    Args:
        robot: Geometry and gravity.
        runs: Experiments with a wrench channel, each with the load that was held in it, gripper included.
        sensor_frame: Link in whose frame the wrench is measured.
        sensing: Settings of the sensor.

    Raises:
        IdentifiabilityError: The runs determine no gain.

    Example:
        >>> calibration = dynid.payload.calibrate_sensor(robot, [(wrist, load.inertia)], sensor_frame="link3")
        >>> np.allclose(np.diag(calibration.gain)[:3], 1.0, atol=0.05)
        True
    """
    parts = [(wrench_data(robot, run, sensor_frame, sensing or Sensing()), body) for run, body in runs]
    true = np.concatenate([data.matrix @ body.vector for data, body in parts])  # [Atkeson1986] eq. (8)
    # the unknowns are departures from a perfect sensor, so that what the runs leave open stays perfect
    target = np.concatenate([data.wrench for data, _ in parts]) - true
    labels = np.concatenate([len(true) * place + data.blocks() for place, (data, _) in enumerate(parts)])
    W = np.column_stack([true, np.ones(len(true))])[:, None]
    fits = [solve_blocks(BlockEquations.of(W, y[:, None], labels)) for y in target.T]
    values, stderr = (np.array([getattr(fit, name) for fit in fits]) for name in ("determined", "stderr"))
    if np.isinf(np.diag(stderr)).all():
        raise IdentifiabilityError(
            "the runs show no gain of the sensor", remedy="Hold several known loads in many orientations."
        )
    noise = np.array([fit.noise_std[0] for fit in fits])
    return SensorCalibration(
        gain=np.eye(6) + values[:, :6], stderr=stderr[:, :6], bias=values[:, 6], residual_std=noise
    )
