"""The cascade law of position drives: a position loop commands a velocity, a velocity loop the motor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_whole
from dynid.errors import ArgumentError
from dynid.loop.laws import ControlLaw, Tracked, as_gains, check_gains
from dynid.spatial import Array


def limit_amount(x: Array, limit: ArrayLike) -> Array:
    """Numbers clipped to a limit in amount, as half of abs(x + limit) - abs(x - limit), which a tape can record."""
    most = np.asarray(limit, dtype=float)
    clipped: Array = (np.abs(x + most) - np.abs(x - most)) / 2.0
    return clipped


@dataclass(frozen=True)
class Cascade(ControlLaw):
    """``gain clip(kv (kp (q_r - q) - dq), limit)``: what the drive commands, limited, times what a unit of it does."""

    kp: ArrayLike
    """Gains of the position loop, one number or (n,) [1/s]."""
    kv: ArrayLike
    """Gains of the velocity loop, one number or (n,) [command per rad/s or m/s]."""
    gain: ArrayLike = 1.0
    """Torque or force per unit of the command, one number or (n,) [N m or N per unit]."""
    limit: ArrayLike | None = None
    """Largest amount of the command, one number or (n,), in its unit; None for none."""
    velocity_late: int = 0
    """Control periods by which the velocity that the drive uses is late: 1 for differences over two periods,
    (q(k) - q(k - 2)) / 2 period."""

    def __post_init__(self) -> None:
        """Refuse gains that are no numbers from zero on, and a delay that cannot be counted."""
        for name in ("kp", "kv", "gain"):
            as_gains(getattr(self, name), name)
        if self.limit is not None and not (as_gains(self.limit, "limit") > 0.0).all():
            raise ArgumentError("the limit of the command is zero", remedy="Give a number above zero, or none.")
        as_whole("velocity_late", self.velocity_late, least=0)

    def memory_size(self, dof: int) -> int:
        return dof * self.velocity_late

    def torque(self, seen: Tracked, memory: Array, period: float) -> tuple[Array, Array]:
        dof = len(seen.q)
        kp, kv, gain = (as_gains(getattr(self, name), name, dof) for name in ("kp", "kv", "gain"))
        dq = memory[:dof] if self.velocity_late else seen.dq
        later = np.concatenate([memory[dof:], seen.dq]) if self.velocity_late else memory
        command = kv * (kp * (seen.q_wanted - seen.q) - dq)
        if self.limit is not None:
            command = limit_amount(command, np.broadcast_to(as_gains(self.limit, "limit", dof), (dof,)))
        return gain * command, later

    def stiffness(self, dof: int) -> Floats:
        kp, kv, gain = (as_gains(getattr(self, name), name, dof) for name in ("kp", "kv", "gain"))
        return np.array(np.broadcast_to(gain * kv * kp, (dof,)))

    def check_joints(self, joint_names: Sequence[str]) -> None:
        product = np.asarray(self.kv, dtype=float) * np.asarray(self.gain, dtype=float)
        check_gains(joint_names, kv_times_gain=product)
