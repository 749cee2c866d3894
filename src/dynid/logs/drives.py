"""Drives: from currents to joint torques. `dynid.load.drive_gains` calibrates the gains with known loads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording


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
