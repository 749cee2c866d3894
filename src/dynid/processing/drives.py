"""Drives: from motor positions and currents to joint positions and torques, and how their constants are calibrated.

With motor positions ``q_motor = G q`` (gear matrix G, coupled joints off its diagonal) power conservation makes
``tau = G^T tau_motor``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ArgumentError, DataError
from dynid.kernels import gravity_torque, inverse_dynamics
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot

__all__ = [
    "CurrentGains",
    "GearMatrix",
    "ThreePhase",
    "TorqueConstants",
    "gains_from_added_mass",
    "gains_from_lever_arm",
    "gains_from_static_load",
]

Floats = NDArray[np.float64]

MOST_SHIFT = 25
"""Samples by which two runs of one motion are tried against each other."""


@dataclass(frozen=True, slots=True, eq=False)
class GearMatrix:
    """Motor side <-> joint side for n motors and joints."""

    ratios: Floats
    """(n, n) motor turns per joint turn; a vector (n,) stands for a diagonal."""
    offset: ArrayLike = 0.0
    """(n,) added to the joint positions after division by the gears [rad]."""

    def __post_init__(self) -> None:
        """Make a square, invertible matrix of it."""
        ratios = np.array(self.ratios, dtype=float)
        ratios = np.diag(ratios) if ratios.ndim == 1 else ratios
        if ratios.ndim != 2 or ratios.shape[0] != ratios.shape[1] or not np.isfinite(ratios).all():
            raise ArgumentError(f"gear ratios of shape {np.shape(self.ratios)}", remedy="Give (n,) or (n, n) numbers.")
        if np.linalg.matrix_rank(ratios) < ratios.shape[0]:
            raise ArgumentError("the gear matrix is singular", remedy="Every joint needs a motor of its own.")
        ratios.setflags(write=False)
        object.__setattr__(self, "ratios", ratios)

    def _columns(self, values: ArrayLike) -> Floats:
        """(N, n), or refused."""
        array = np.asarray(values, dtype=float)
        if array.ndim == 0 or array.shape[-1] != len(self.ratios):
            raise ArgumentError(
                f"signals of shape {array.shape} for {len(self.ratios)} motors", remedy="Give one column per motor."
            )
        return array

    def joint_positions(self, motor: ArrayLike) -> Floats:
        """Joint positions (N, n) [rad] from motor positions (N, n) [rad]."""
        return np.asarray(np.linalg.solve(self.ratios, self._columns(motor).T).T + np.asarray(self.offset))

    def joint_velocities(self, motor: ArrayLike) -> Floats:
        """Joint velocities (N, n) from motor velocities (N, n)."""
        return np.asarray(np.linalg.solve(self.ratios, self._columns(motor).T).T)

    def joint_torques(self, motor: ArrayLike) -> Floats:
        """Joint torques (N, n) from motor torques (N, n) [N m]."""
        return np.asarray(self._columns(motor) @ self.ratios)

    def motor_positions(self, joint: ArrayLike) -> Floats:
        """Motor positions (N, n) from joint positions (N, n) [rad]."""
        return np.asarray((self._columns(joint) - np.asarray(self.offset)) @ self.ratios.T)

    def motor_torques(self, joint: ArrayLike) -> Floats:
        """Motor torques (N, n) from joint torques (N, n) [N m]."""
        return np.asarray(np.linalg.solve(self.ratios.T, self._columns(joint).T).T)


@dataclass(frozen=True, slots=True, eq=False)
class CurrentGains:
    """Joint torque = gain x motor current, joint by joint."""

    gain: Floats
    """(n,) torque constant times gear ratio [N m/A]."""
    offset: Floats = field(default_factory=lambda: np.zeros(()))
    """(n,) torque at zero current [N m]; zero by default."""

    def __post_init__(self) -> None:
        """Make arrays of both, one number per joint."""
        gain = np.atleast_1d(np.asarray(self.gain, dtype=float))
        offset = np.asarray(self.offset, dtype=float)
        if gain.ndim != 1 or offset.shape not in ((), gain.shape):
            raise ArgumentError(
                f"gains of shape {gain.shape} with offsets of shape {offset.shape}",
                remedy="Give one of each per joint.",
            )
        object.__setattr__(self, "gain", gain)
        object.__setattr__(self, "offset", np.broadcast_to(offset, gain.shape))

    def effort(self, current: ArrayLike) -> Floats:
        """Joint torques (N, n) [N m] from currents (N, n) [A]."""
        values = np.asarray(current, dtype=float)
        if values.ndim == 0 or values.shape[-1] != self.gain.size:
            raise ArgumentError(
                f"currents of shape {values.shape} for {self.gain.size} gains", remedy="Give one column per joint."
            )
        return np.asarray(values * self.gain + self.offset)

    def apply(self, recording: Recording) -> Recording:
        """The recording with torques computed from its currents."""
        if recording.current is None:
            raise DataError("the recording has no currents", remedy="Map a current channel, or use its torques.")
        note = f"torques from currents, gains {np.array2string(self.gain, precision=4)} N m/A"
        return replace(recording, effort=self.effort(recording.current), notes=(*recording.notes, note))


@dataclass(frozen=True, slots=True)
class ThreePhase:
    """Torque of a three-phase brushless motor, [Atkeson1986] eq. (22)."""

    torque_constant: float
    """K_T [N m/A]"""
    pole_pairs: int = 1
    """Electrical turns per turn of the rotor."""

    def torque(self, currents: ArrayLike, angle: ArrayLike) -> Floats:
        """Torque (N,) [N m] from phase currents (N, 3) [A] and rotor angle (N,) [rad]."""
        phases, turn = np.asarray(currents, dtype=float), np.asarray(angle, dtype=float)
        if turn.ndim != 1 or phases.shape != (turn.size, 3):
            raise ArgumentError(
                f"currents of shape {phases.shape} for angles of shape {turn.shape}",
                remedy="Give three currents, (N, 3), and one angle, (N,), per sample.",
            )
        phase = self.pole_pairs * turn[:, None] + np.deg2rad([0.0, 120.0, 240.0])
        return np.asarray(self.torque_constant * np.sum(phases * np.sin(phase), axis=1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TorqueConstants:
    """Calibrated gains with their uncertainty."""

    gain: Floats
    """(n,) [N m/A]; NaN for a joint the experiment says nothing about."""
    stderr: Floats
    """(n,) [N m/A]"""
    offset: Floats
    """(n,) torque at zero current [N m]: torque = gain x current + offset"""

    @property
    def gains(self) -> CurrentGains:
        """To convert recordings with, offset included."""
        return CurrentGains(self.gain, self.offset)


def _line(x: Floats, y: Floats, intercept: bool) -> tuple[float, float, float]:
    """Slope, its standard error and offset of y = slope x + offset."""
    A = np.column_stack([x, np.ones_like(x)]) if intercept else x[:, None]
    if np.linalg.matrix_rank(A) < A.shape[1] or x.size <= A.shape[1]:
        return np.nan, np.inf, 0.0
    solution = np.linalg.lstsq(A, y, rcond=None)[0]
    variance = float(np.sum((y - A @ solution) ** 2)) / (x.size - A.shape[1])
    stderr = float(np.sqrt(variance * np.linalg.inv(A.T @ A)[0, 0]))
    return float(solution[0]), stderr, float(solution[1]) if intercept else 0.0


def gains_from_lever_arm(current: ArrayLike, force: ArrayLike, lever_m: float) -> TorqueConstants:
    """Static calibration of one joint that presses on a force sensor at the end of a lever ([Atkeson1986] section 3.3).

    Args:
        current: (N,) motor current [A].
        force: (N,) force at the sensor, across the lever [N].
        lever_m: Distance from the joint axis to the sensor [m].
    """
    x, y = np.asarray(current, dtype=float), np.asarray(force, dtype=float)
    if x.ndim != 1 or x.shape != y.shape:
        raise ArgumentError(f"{x.shape} currents and {y.shape} forces", remedy="Give (N,) of both, sample for sample.")
    if not 0.0 < lever_m < np.inf:
        raise ArgumentError(f"a lever of {lever_m} m", remedy="Give its length, above zero [m].")
    known = np.isfinite(x) & np.isfinite(y)
    slope, stderr, offset = _line(x[known], lever_m * y[known], intercept=True)
    if not np.isfinite(slope):
        raise DataError("the current never changes", remedy="Press with at least three different currents.")
    if abs(slope) <= 3.0 * stderr:  # as for the other calibrations: noise alone has no gain
        slope, stderr, offset = np.nan, np.inf, 0.0
    return TorqueConstants(gain=np.array([slope]), stderr=np.array([stderr]), offset=np.array([offset]))


def gains_from_static_load(robot: Robot, q: ArrayLike, current: ArrayLike) -> TorqueConstants:
    """Static calibration from poses held against gravity, with a robot whose masses are known.

    Dry friction hides in the holding currents: approach every pose from both sides and give the mean.

    Args:
        robot: With the known load attached (`Robot.with_body`).
        q: (N, n) poses [rad or m].
        current: (N, n) currents that hold them [A].
    """
    poses, currents = np.asarray(q, dtype=float), np.asarray(current, dtype=float)
    if poses.ndim != 2 or poses.shape[1] != robot.dof or currents.shape != poses.shape:
        raise ArgumentError(
            f"poses of shape {poses.shape}, currents of shape {currents.shape}",
            remedy=f"Give (N, {robot.dof}) of both, pose for pose.",
        )
    torque = gravity_torque(robot, np.ascontiguousarray(poses))
    return _gains(currents, torque, intercept=True)


def gains_from_added_mass(
    robot: Robot, loaded: Experiment, unloaded: Experiment, *, link: str, load: Inertia
) -> TorqueConstants:
    """Gains from the same motion with and without a known load: friction and the robot's own mass cancel.

    Args:
        robot: Geometry; its own parameters do not matter.
        loaded: Processed run with the load, currents in the place of torques [A].
        unloaded: The same motion without it, sample for sample.
        link: Link the load is fixed to.
        load: Its mass properties, in that link's frame.
    """
    samples = min(loaded.samples, unloaded.samples)
    apart = np.abs(loaded.q[:samples] - unloaded.q[:samples]).max()
    if apart > 0.05:
        raise DataError(
            f"the two runs differ by up to {apart:.3g} rad or m",
            remedy="Run the same trajectory twice and start both recordings at the same instant of it.",
        )
    shift = _shift(loaded.q[:samples], unloaded.q[:samples])
    if shift:
        raise DataError(
            f"the loaded run is {shift} samples later than the unloaded one",
            remedy="Start both recordings at the same instant of the trajectory, or drop the first samples of one.",
        )
    own = robot.with_joint_models()
    motion = (loaded.q[:samples], loaded.dq[:samples], loaded.ddq[:samples])
    heavier = own.with_body("calibration_load", parent=link, inertia=load)
    torque = inverse_dynamics(heavier, *motion) - inverse_dynamics(own, *motion)
    difference = loaded.effort[:samples] - unloaded.effort[:samples]
    usable = loaded.valid[:samples] & unloaded.valid[:samples]
    return _gains(np.where(usable, difference, np.nan), torque, intercept=False)


def _shift(a: Floats, b: Floats) -> int:
    """By how many samples a motion a (N, n) is later than b, if being so makes them much more alike; 0 otherwise."""
    most = min(MOST_SHIFT, len(a) // 4)

    def apart(k: int) -> float:
        return float(np.sqrt(np.mean((a[max(k, 0) : len(a) + min(k, 0)] - b[max(-k, 0) : len(b) + min(-k, 0)]) ** 2)))

    best = min(range(-most, most + 1), key=lambda k: (apart(k), abs(k)))
    return best if apart(best) < 0.5 * apart(0) else 0


def _gains(current: Floats, torque: Floats, *, intercept: bool) -> TorqueConstants:
    """Fit current = torque / gain + offset per joint: the torque is known exactly, the current is what is measured."""
    gain, stderr, offset = [], [], []
    for i, t in zip(current.T, torque.T, strict=True):
        ok = np.isfinite(i) & np.isfinite(t)
        slope, error, zero = _line(t[ok], i[ok], intercept)
        seen = np.isfinite(slope) and abs(slope) > 3.0 * error
        gain.append(1.0 / slope if seen else np.nan)
        stderr.append(error / slope**2 if seen else np.inf)
        offset.append(-zero / slope if seen else 0.0)
    return TorqueConstants(gain=np.array(gain), stderr=np.array(stderr), offset=np.array(offset))
