"""A force and torque sensor's own faults: gains and cross-talk, and its compliance ([Atkeson1986] section 4.1.1).

    measured = K true + bias

Known loads in several orientations give the true wrench by [Atkeson1986] eq. (8). One load at rest shows only three of
the six columns of K, since its moments follow from its forces (eq. 21); loads with other centres of mass, or motion,
show the rest.

A compliant sensor lets the load swing (Fig. 9); the swing is a term of the load's equations that is linear in the
sensor's compliance once the load is known, and linear in the load once the compliance is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import gaussian_filter1d

from dynid.arrays import Floats
from dynid.decompositions import eigh, pinv
from dynid.errors import DataError, EstimationError, IdentifiabilityError
from dynid.load.load import SURE
from dynid.load.load_solver import (
    BlockEquations,
    LinearSolution,
    solve_blocks,
    solve_load_equations,
    solve_weighted,
)
from dynid.load.wrench_equations import WrenchData, motion_columns
from dynid.robot.inertia import Inertia

RESOLUTION = 1e-6
"""Smallest relative singular value of the scaled equations that counts as determined; convention."""
NARROW, WIDEST = 1.5, 20.0
"""Standard deviations of the narrowest and the widest Gaussian that smooth a wrench [samples]; convention."""
REACH = 6.0
"""Half the length of the Gaussian's kernel [standard deviations]."""
HALF_POWER = 0.13
"""Frequency times standard deviation at which a Gaussian halves the power: sqrt(ln 2) / (2 pi)."""
PASSED = 3.0
"""Frequency, over the highest resonance, at which the smoothing halves the power; convention."""
STEPS = 30
"""Largest number of steps in the search for the compliance; convention."""
SETTLED = 1e-3
"""Step of a compliance, over its value or its standard deviation, below which the search has settled; convention."""
Columns = Callable[[WrenchData], list[Floats]]


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

    Example:
        >>> data = dynid.load.wrench_data(robot, wrist, "link3", dynid.load.Sensing())
        >>> calibration = dynid.load.calibrate_sensor([(data, load.inertia)])
        >>> np.allclose(np.diag(calibration.gain)[:3], 1.0, atol=0.05)
        True
    """
    if not runs:
        raise DataError("no run was given")
    true = np.concatenate([data.matrix @ body.vector for data, body in runs])  # [Atkeson1986] eq. (8)
    # the unknowns are departures from a perfect sensor, so that what the runs leave open stays perfect
    target = np.concatenate([data.wrench for data, _ in runs]) - true
    labels = np.concatenate([len(true) * place + data.blocks() for place, (data, _) in enumerate(runs)])
    W = np.column_stack([true, np.ones(len(true))])[:, None]
    if len(W) <= W.shape[2]:
        raise IdentifiabilityError(
            f"{len(W)} samples are too few for {W.shape[2]} unknowns per channel and the noise",
            remedy="Hold several known loads in many orientations.",
        )
    fits = [solve_blocks(BlockEquations.of(W, y[:, None], labels), resolution=RESOLUTION) for y in target.T]
    is_open = np.array([fit.undetermined[:6] for fit in fits])
    if np.diag(is_open).all():
        raise IdentifiabilityError(
            "the runs show no gain of the sensor", remedy="Hold several known loads in many orientations."
        )
    return SensorCalibration(
        gain=np.eye(6) + np.where(is_open, 0.0, [fit.values[:6] for fit in fits]),
        stderr=np.where(is_open, np.inf, [_spread(fit)[:6] for fit in fits]),
        bias=np.array([fit.values[6] for fit in fits]),
        residual_std=np.array([fit.noise_std[0] for fit in fits]),
    )


# --- compliance ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensorCompliance:
    """How a sensor yields: a spring and a damper in every channel between the robot and the load.

    A load on a compliant sensor swings ([Atkeson1986] section 4.1.1, Fig. 9). With the strain s that the sensor
    measures, the compliance k and the damping d of each channel,

        s + d ds/dt = A phi - M(phi) k d2s/dt2        M (6, 6) the load's own inertia about the sensor's origin

    The deflections are taken as small: the load's velocity and gravity stay those of the sensor's frame.
    """

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
        mass = _swing_columns(np.eye(6)) @ load.vector  # (6, 6), symmetric
        root = np.sqrt(self.compliance[soft])
        squares, shapes = eigh(root[:, None] * mass[np.ix_(soft, soft)] * root)  # 1 / omega^2, ascending
        squares, shapes = np.maximum(squares[::-1], 1e-300), shapes[:, ::-1]
        damping = np.sum(shapes**2 * self.damping_s[soft][:, None], axis=0) / (2.0 * np.sqrt(squares))
        return np.asarray(1.0 / (2.0 * np.pi * np.sqrt(squares))), np.asarray(damping)


def smooth_wrench(data: WrenchData, width: float = NARROW) -> tuple[WrenchData, Floats, Floats]:
    """Low-passed equations, and the first and second time derivative (N, 6) of the low-passed wrench.

    The same smoothing of both sides leaves the equations true. Samples near gaps are left out.

    Args:
        data: The equations, sampled uniformly between gaps.
        width: Standard deviation of the Gaussian that smooths [samples].

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
    return replace(inner, matrix=smooth(data.matrix), wrench=wrench), rate, bend


def solve_with_compliance(data: WrenchData, sides: Columns) -> tuple[SensorCompliance, LinearSolution]:
    """Estimate load, bias and drift together with the compliance and damping of every channel.

    A first pass finds the resonances; the second smooths the wrench as much as they allow.

    Args:
        data: The equations with corrected wrenches.
        sides: Makes the columns of the sensor's bias and drift.

    Returns:
        The compliance, and the solution: load, bias and drift, then the last steps of the compliances (6) and the
        damping (6).

    Raises:
        DataError: No stretch of the log is long enough.
        EstimationError: The search did not settle.
    """
    found, solution = _search(data, sides, NARROW)
    frequencies, _ = found.resonances(Inertia.from_vector(solution.values[:10]))
    if len(frequencies):
        period = float(np.median(np.diff(data.time)))
        width = min(HALF_POWER / (PASSED * float(frequencies[-1]) * period), WIDEST)
        if width > NARROW:
            return _search(data, sides, width)
    return found, solution


def _search(data: WrenchData, sides: Columns, width: float) -> tuple[SensorCompliance, LinearSolution]:
    """Gauss-Newton steps from a rigid sensor until they vanish."""
    smooth, rate, bend = smooth_wrench(data, width)
    extra, labels, compliance = sides(smooth), smooth.blocks(), np.zeros(6)
    load = solve_weighted(np.concatenate([smooth.matrix, *extra], axis=2), smooth.wrench).values[:10]
    for _ in range(STEPS):
        moved = smooth.matrix - _swing_columns(compliance * bend)
        units = [-_swing_columns(bend * unit) @ load for unit in np.eye(6)]
        W = np.concatenate([moved, *extra, np.stack(units, axis=2), -rate[:, :, None] * np.eye(6)], axis=2)
        solution = solve_load_equations(BlockEquations.of(W, smooth.wrench, labels))
        load = np.where(solution.undetermined[:10], 0.0, solution.values[:10])
        step, spread, is_open = solution.values[-12:-6], _spread(solution), solution.undetermined
        compliance = compliance + np.where(is_open[-12:-6], 0.0, step)
        if np.all(is_open[-12:-6] | (np.abs(step) <= SETTLED * np.maximum(np.abs(compliance), spread[-12:-6]))):
            solution = _add_attenuation(solution, _noise_share(data, bend, width) * compliance)
            spread = np.where(is_open, np.inf, _spread(solution))
            found = SensorCompliance(
                compliance=np.where(is_open[-12:-6], 0.0, compliance),
                damping_s=np.where(is_open[-6:], 0.0, solution.values[-6:]),
                compliance_stderr=spread[-12:-6],
                damping_stderr_s=spread[-6:],
            )
            return found, solution
    raise EstimationError(
        "the search for the compliance does not settle: the sensor may be rigid, or the load hardly swings on it",
        remedy="Leave find_compliance out to identify the load on a rigid sensor, or shake the load more.",
    )


def _noise_share(data: WrenchData, bend: Floats, width: float) -> Floats:
    """(6,) share of the squared second derivative of the wrench that is white noise.

    Fourth differences hold little but white noise, whose variance they multiply by 70 = 1 + 16 + 36 + 16 + 1.
    """
    impulse = np.zeros(2 * int(np.ceil(REACH * width)) + 1)
    impulse[len(impulse) // 2] = 1.0
    step = float(np.median(np.diff(data.time)))
    second = gaussian_filter1d(impulse, width, order=2, truncate=REACH) / step**2
    variance = np.mean(np.diff(data.wrench[max(data.stretches(), key=len)], n=4, axis=0) ** 2, axis=0) / 70.0
    return np.asarray(np.minimum(1.0, variance * np.sum(second**2) / np.maximum(np.mean(bend**2, axis=0), 1e-300)))


def _add_attenuation(solution: LinearSolution, attenuation: Floats) -> LinearSolution:
    """The solution with the uncertainty that noise in the wrench's second derivative adds to all unknowns.

    Such noise draws a compliance towards zero by about the noise's share; the other unknowns follow as they would
    follow any change of the compliance, by their covariance with it.

    Args:
        solution: Its last twelve unknowns are the compliances and the damping.
        attenuation: (6,) by how much each compliance may be too small [m/N, rad/(N m)].
    """
    own = slice(-12, -6)
    follows = solution.covariance[:, own] @ pinv(solution.covariance[own, own], rcond=RESOLUTION**2)
    return replace(solution, covariance=solution.covariance + (follows * attenuation**2) @ follows.T)


def _spread(solution: LinearSolution) -> Floats:
    return np.asarray(np.sqrt(np.maximum(np.diag(solution.covariance), 0.0)))


def _swing_columns(bend: Floats) -> Floats:
    """(N, 6, 10) equations of a load that accelerates by (N, 6) [m/s^2, rad/s^2] against a resting frame."""
    return motion_columns(np.zeros((len(bend), 3)), bend[:, 3:], bend[:, :3])
