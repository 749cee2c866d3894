"""Drives: from motor positions and currents to joint positions and torques.

With motor positions ``q_motor = G q`` (gear matrix G, with coupled joints off its diagonal) power is conserved if
``tau = G^T tau_motor``. `dynid.load.drive_gains` calibrates the gains with known loads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.decompositions import matrix_rank
from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording


@dataclass(frozen=True, slots=True, eq=False)
class GearMatrix:
    """Conversion between the motor side and the joint side of n drives."""

    ratios: Floats
    """(n, n) motor turns per joint turn; a vector (n,) stands for a diagonal matrix."""
    offset: ArrayLike = 0.0
    """(n,) added to the joint positions after division by the gears [rad]."""

    def __post_init__(self) -> None:
        """Store the ratios as a square, invertible matrix."""
        ratios = np.array(self.ratios, dtype=float)
        ratios = np.diag(ratios) if ratios.ndim == 1 else ratios
        if ratios.ndim != 2 or ratios.shape[0] != ratios.shape[1] or not np.isfinite(ratios).all():
            raise ArgumentError(f"gear ratios of shape {np.shape(self.ratios)}", remedy="Give (n,) or (n, n) numbers.")
        if matrix_rank(ratios) < ratios.shape[0]:
            raise ArgumentError("the gear matrix is singular", remedy="Every joint needs a motor of its own.")
        ratios.setflags(write=False)
        object.__setattr__(self, "ratios", ratios)

    def _columns(self, values: ArrayLike) -> Floats:
        """Check that the signals have one column per motor."""
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
        """Joint velocities (N, n) [rad/s] from motor velocities (N, n) [rad/s]."""
        return np.asarray(np.linalg.solve(self.ratios, self._columns(motor).T).T)

    def joint_torques(self, motor: ArrayLike) -> Floats:
        """Joint torques (N, n) [N m] from motor torques (N, n) [N m]."""
        return np.asarray(self._columns(motor) @ self.ratios)

    def motor_positions(self, joint: ArrayLike) -> Floats:
        """Motor positions (N, n) [rad] from joint positions (N, n) [rad]."""
        return np.asarray((self._columns(joint) - np.asarray(self.offset)) @ self.ratios.T)

    def motor_torques(self, joint: ArrayLike) -> Floats:
        """Motor torques (N, n) [N m] from joint torques (N, n) [N m]."""
        return np.asarray(np.linalg.solve(self.ratios.T, self._columns(joint).T).T)


@dataclass(frozen=True, slots=True, eq=False)
class CurrentGains:
    """Joint torque = gain x motor current, joint by joint."""

    gain: Floats
    """(n,) torque constant times gear ratio [N m/A]."""
    offset: Floats = field(default_factory=lambda: np.zeros(()))
    """(n,) torque at zero current [N m]; zero by default."""
    stderr: Floats = field(default_factory=lambda: np.zeros(()))
    """(n,) standard deviation of the gains [N m/A]; zero by default: exact."""

    def __post_init__(self) -> None:
        """Store both as arrays with one number per joint."""
        gain = np.atleast_1d(np.asarray(self.gain, dtype=float))
        offset, stderr = np.asarray(self.offset, dtype=float), np.asarray(self.stderr, dtype=float)
        if gain.ndim != 1 or offset.shape not in ((), gain.shape) or stderr.shape not in ((), gain.shape):
            raise ArgumentError(
                f"gains of shape {gain.shape} with offsets of shape {offset.shape}",
                remedy="Give one of each per joint.",
            )
        object.__setattr__(self, "gain", gain)
        object.__setattr__(self, "offset", np.broadcast_to(offset, gain.shape))
        object.__setattr__(self, "stderr", np.broadcast_to(stderr, gain.shape))

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
        return replace(
            recording,
            effort=self.effort(recording.current),
            gain=self.gain,
            gain_std=self.stderr / np.abs(self.gain),
            notes=(*recording.notes, note),
        )


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
        # [Atkeson1986] eq. (22)
        phase = self.pole_pairs * turn[:, None] + np.deg2rad([0.0, 120.0, 240.0])
        return np.asarray(self.torque_constant * np.sum(phases * np.sin(phase), axis=1))
