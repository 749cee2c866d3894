"""From motor currents to torques: gains of a log's currents, and the law of a three-phase motor.

Channel maps state `CurrentGains`, by which torques are computed when a log is read; `dynid.payload.drive_gains`
calibrates them by known loads. Users call `ThreePhase.torque` for logs of phase currents.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.errors import ArgumentError


@dataclass(frozen=True, slots=True, eq=False)
class CurrentGains:
    """Joint torque = gain x motor current, joint by joint."""

    gain: Floats
    """(n,) torque constant times gear ratio [N m/A]."""
    stderr: Floats = field(default_factory=lambda: np.zeros(()))
    """(n,) standard deviation of the gains [N m/A]; zero by default, for gains taken as exact."""

    def __post_init__(self) -> None:
        """Store both as arrays with one number per joint."""
        gain = np.atleast_1d(np.asarray(self.gain, dtype=float))
        object.__setattr__(self, "gain", gain)
        object.__setattr__(self, "stderr", np.broadcast_to(np.asarray(self.stderr, dtype=float), gain.shape))


@dataclass(frozen=True, slots=True)
class ThreePhase:
    """Torque of a three-phase brushless motor, [Atkeson1986] eq. (22)."""

    torque_constant: float
    """K_T [N m/A]"""
    pole_pairs: int = 1
    """Electrical turns per turn of the rotor."""

    def torque(self, currents: ArrayLike, angle: ArrayLike) -> Floats:
        """Torque (N,) [N m] from phase currents (N, 3) [A] and rotor angle (N,) [rad]."""
        amperes = np.asarray(currents, dtype=float)
        rotor = np.asarray(angle, dtype=float)
        if rotor.ndim != 1 or amperes.shape != (rotor.size, 3):
            raise ArgumentError(
                f"currents of shape {amperes.shape} for angles of shape {rotor.shape}",
                remedy="Give three currents, (N, 3), and one angle, (N,), per sample.",
            )
        # [Atkeson1986] eq. (22)
        electrical_angle = self.pole_pairs * rotor[:, None] + np.deg2rad([0.0, 120.0, 240.0])
        return np.asarray(self.torque_constant * np.sum(amperes * np.sin(electrical_angle), axis=1))
