"""Torque error of the two-rate structure ([Izaguirre1992] section 3).

The synchronous task multiplies the latest inertias by the present accelerations; inertias, gravity and velocity torques
come from background tasks and are one or two periods old. The error depends on how fast they change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.checks import as_number
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.kernels import gravity_torque, inertia_matrix, inverse_dynamics, velocity_torque
from dynid.robot.model import Robot
from dynid.tables import Table

CLOSED = 1e-6
"""A motion is closed if its ends differ by less than this share of its range; above rounding, a convention."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoRateStudy:
    """Torque error of the two-rate structure for several background periods."""

    periods: Floats
    """(k,) background periods [s]"""
    rms: Floats
    """(k, n) root mean square torque error [N m or N]"""
    largest: Floats
    """(k, n) largest torque error [N m or N]"""
    largest_torque: Floats
    """(n,) largest torque over the trajectory [N m or N]"""

    def to_table(self) -> Table:
        """Errors of the worst joint as shares of its largest torque."""
        scale = np.where(self.largest_torque > 0.0, self.largest_torque, 1.0)
        rows = [
            (1000.0 * float(T), 100.0 * float((rms / scale).max()), 100.0 * float((largest / scale).max()))
            for T, rms, largest in zip(self.periods, self.rms, self.largest, strict=True)
        ]
        return Table.of(["background period [ms]", "rms error [%]", "largest error [%]"], rows)

    def __str__(self) -> str:
        return self.to_table().to_text()


def two_rate_study(
    robot: Robot,
    trajectory: Trajectory,
    periods: Sequence[float] = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    *,
    rate_hz: float = 1000.0,
) -> TwoRateStudy:
    """Simulate the scheduler: a background result belongs to the state at which its computation started.

    Args:
        robot: The robot with its parameter values.
        trajectory: The motion.
        periods: Background periods [s]; a result is in use from the end of its period to the end of the next one.
        rate_hz: Rate of the synchronous task [Hz].

    Example:
        >>> type(dynid.control.two_rate_study(robot, move, periods=(0.01,))).__name__
        'TwoRateStudy'
    """
    periods = [as_number("a background period", period, above=0.0) for period in periods]
    if not periods:
        raise ArgumentError("periods is empty", remedy="Give at least one background period [s].")
    time = np.minimum(trajectory.times(as_number("rate_hz", rate_hz, above=0.0)), trajectory.duration)
    q, dq, ddq = trajectory.evaluate(time)
    exact = inverse_dynamics(robot, q, dq, ddq)
    rms, largest = [], []
    for period in periods:
        finished = np.floor(time / period + 1e-9) - 1.0  # number of the last background cycle that is complete
        begun = np.maximum(finished, 0.0) * period
        q_old, dq_old, _ = trajectory.evaluate(begun)
        # [Izaguirre1992] eq. (1) with D_ij, D_i and velocity torques of the earlier state
        torque = np.einsum("nij,nj->ni", inertia_matrix(robot, q_old), ddq) + gravity_torque(robot, q_old)
        torque += velocity_torque(robot, q_old, dq_old) + _friction(robot, q_old, dq_old)
        error = torque - exact
        rms.append(np.sqrt(np.mean(error**2, axis=0)))
        largest.append(np.abs(error).max(axis=0))
    return TwoRateStudy(
        periods=np.asarray(periods, dtype=float),
        rms=np.array(rms),
        largest=np.array(largest),
        largest_torque=np.abs(exact).max(axis=0),
    )


def _friction(robot: Robot, q: Floats, dq: Floats) -> Floats:
    """Friction and offsets (N, n)."""
    rest, theta = np.zeros(robot.dof), robot.parameter_vector
    rows = [np.asarray(term_torque(robot, theta, *state, rest), dtype=float) for state in zip(q, dq, strict=True)]
    return np.array(rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bandwidths:
    """How fast the signals of a repeated motion change."""

    hz: Mapping[str, float]
    """Signal -> frequency below which the share of its power lies [Hz]; 0 for a signal that is constant."""
    share: float
    """Share of the power after removal of the mean."""

    @property
    def ratio(self) -> float:
        """Bandwidth of the accelerations over that of the positions; infinite where the positions are constant.

        It depends on the shape of the motion, not on its duration: 3 for one minimum-jerk move, 9 for one move with
        full acceleration, then full braking (both at 95 % of the power).
        """
        return self.hz["accelerations"] / self.hz["positions"] if self.hz["positions"] > 0.0 else float("inf")

    def to_table(self) -> Table:
        """One row per signal."""
        return Table.of(["signal", f"{100 * self.share:g} % of the power below [Hz]"], list(self.hz.items()))

    def __str__(self) -> str:
        return self.to_table().to_text()


def bandwidths(robot: Robot, trajectory: Trajectory, *, rate_hz: float = 1000.0, share: float = 0.95) -> Bandwidths:
    """Find the frequency below which ``share`` of each signal's power lies, if the motion is repeated for ever.

    A motion that ends as it begins is repeated as it is, any other one there and back, so that the signals are periodic
    and have exact spectra: lines at the multiples of the frequency of repetition. One way alone has no spectrum of its
    own; its result would be that of the window. Slow positions and fast accelerations speak for two rates
    ([Izaguirre1992] section 3); what two rates cost is measured by `two_rate_study`.

    Args:
        robot: The robot with its parameter values.
        trajectory: The motion.
        rate_hz: Sampling rate of the analysis [Hz].
        share: Share of the power after removal of the mean.

    Example:
        >>> type(dynid.control.bandwidths(robot, move)).__name__
        'Bandwidths'
    """
    if as_number("share", share, above=0.0) >= 1.0:
        raise ArgumentError(f"share is {share}", remedy="Give a share between 0 and 1.")
    steps = max(2, math.ceil(trajectory.duration * as_number("rate_hz", rate_hz, above=0.0) - 1e-9))
    q, dq, ddq = _one_period(*trajectory.evaluate(np.linspace(0.0, trajectory.duration, steps + 1)))
    base_hz = steps / (trajectory.duration * len(q))
    signals = {
        "positions": q,
        "velocities": dq,
        "accelerations": ddq,
        "inertias": inertia_matrix(robot, q).reshape(len(q), -1),
        "gravity torques": gravity_torque(robot, q),
        "velocity torques": velocity_torque(robot, q, dq),
        "torques": inverse_dynamics(robot, q, dq, ddq),
    }
    return Bandwidths(hz={name: base_hz * _harmonic(values, share) for name, values in signals.items()}, share=share)


def _one_period(q: Floats, dq: Floats, ddq: Floats) -> tuple[Floats, Floats, Floats]:
    """One period (M, n) of the repeated motion: the motion itself if it is closed, otherwise there and back."""
    sizes = [np.ptp(signal, axis=0).max() for signal in (q, dq, ddq)]
    ends = [np.abs(signal[-1] - signal[0]).max() for signal in (q, dq, ddq)]
    if all(end <= CLOSED * size for end, size in zip(ends, sizes, strict=True)):
        return q[:-1], dq[:-1], ddq[:-1]
    # on the way back the same places have opposite velocities and the same accelerations
    back = [sign * signal[-2:0:-1] for sign, signal in ((1.0, q), (-1.0, dq), (1.0, ddq))]
    return tuple(np.concatenate([there, way]) for there, way in zip((q, dq, ddq), back, strict=True))  # type: ignore[return-value]


def _harmonic(values: Floats, share: float) -> int:
    """Number of the harmonic up to which ``share`` of the power of all columns (M, c) lies, each of unit power."""
    varying = values - values.mean(axis=0)
    size = np.sqrt(np.mean(varying**2, axis=0))
    moves = size > 1e-9 * max(float(np.abs(values).max()), 1e-300)
    if not moves.any():
        return 0
    power = np.cumsum((np.abs(np.fft.rfft(varying[:, moves] / size[moves], axis=0)) ** 2).sum(axis=1))
    return int(np.searchsorted(power, share * power[-1]))
