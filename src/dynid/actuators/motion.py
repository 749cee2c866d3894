"""`CommandedMotion`: where the joints were sent and where they went, without any torque."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.checks import as_number
from dynid.errors import ArgumentError
from dynid.public_calls import public

__all__ = ["CommandedMotion"]

Floats = NDArray[np.float64]
MARGIN = 8
"""Samples around an instant whose slope is its velocity, and the fewest of a window. Convention."""


@public
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommandedMotion:
    """Commands and encoder readings of n joints at N instants, and the gains and the voltage they were driven with."""

    joint_names: tuple[str, ...]
    """(n,) names of the joints, in the order of the columns."""
    time: Floats
    """(N,) strictly rising times [s]."""
    command: Floats
    """(N, n) commanded positions, encoder coordinates [rad or m]."""
    position: Floats
    """(N, n) measured positions, encoder coordinates [rad or m]."""
    command_velocity: Floats | None = None
    """(N, n) commanded velocities [rad/s or m/s]; None where the robot is sent positions only."""
    velocity: Floats | None = None
    """(N, n) measured velocities [rad/s or m/s]; used for the initial state only."""
    enabled: NDArray[np.bool_] | None = None
    """(N, n) whether the joint's drive is on; None if it always is."""
    kp: Floats | None = None
    """(n,) gains of the position error during this motion, in the law's unit; None if the law states them."""
    kd: Floats | None = None
    """(n,) gains of the velocity error, in the law's unit; None if the law states them."""
    ki: Floats | None = None
    """(n,) gains of the integral of the position error, in the law's unit; None if the law states them."""
    voltage: float | None = None
    """Supply voltage [V]; None if it is not known or the law does not need it."""
    held: bool = True
    """Whether the drives keep each command from its time on until that of the next one; otherwise straight lines join
    the commands, as where the log shows samples of a set point that moves between them."""
    name: str = "motion"
    """A name for reports, such as the file's."""

    def __post_init__(self) -> None:
        """Check shapes and numbers, and freeze the arrays."""
        object.__setattr__(self, "joint_names", tuple(self.joint_names))
        time = self._frozen("time", (np.size(self.time),))
        if time.size < 2 or not (np.diff(time) > 0.0).all():
            raise ArgumentError(
                f"the times of '{self.name}' do not rise strictly", remedy="Give two samples or more, sorted by time."
            )
        shape = (time.size, len(self.joint_names))
        for name in ("command", "position", "command_velocity", "velocity"):
            self._frozen(name, shape)
        for name in ("kp", "kd", "ki"):
            self._frozen(name, shape[1:])
        if self.enabled is not None:
            flags = np.array(self.enabled, dtype=bool)
            if flags.shape != shape:
                raise ArgumentError(f"enabled of '{self.name}' has shape {flags.shape}", remedy=f"Give {shape}.")
            flags.setflags(write=False)
            object.__setattr__(self, "enabled", flags)
        if self.voltage is not None:
            as_number("voltage", self.voltage, above=0.0)

    def _frozen(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Replace a field by a read-only copy of the right shape; None stays None."""
        given = getattr(self, name)
        if given is None:
            return np.empty(0)
        value = np.array(given, dtype=float)
        if value.shape != shape:
            raise ArgumentError(f"{name} of '{self.name}' has shape {value.shape}", remedy=f"Give {shape}.")
        if not np.isfinite(value).all():
            raise ArgumentError(f"{name} of '{self.name}' is not finite everywhere", remedy="Leave these samples out.")
        value.setflags(write=False)
        object.__setattr__(self, name, value)
        return value

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.joint_names)

    @property
    def period_s(self) -> float:
        """Median time between two samples [s]."""
        return float(np.median(np.diff(self.time)))

    def part(self, rows: slice, name: str | None = None) -> CommandedMotion:
        """Some consecutive samples as a motion of their own."""
        fields = ("time", "command", "position", "command_velocity", "velocity", "enabled")
        cut: dict[str, Any] = {field: _cut(getattr(self, field), rows) for field in fields}
        return replace(self, **cut, name=self.name if name is None else name)

    def windows(self, length_s: float) -> tuple[CommandedMotion, ...]:
        """The motion in consecutive parts, each with its own first state: for a prediction that forgets its errors.

        First velocities are measured ones, or slopes of a straight line through the samples around the start. Before
        its first sample the first command of a part counts as held.

        Args:
            length_s: Length of a part [s]; what is left at the end is joined to the last part.
        """
        as_number("length_s", length_s, above=0.0)
        size = max(MARGIN, round(length_s / self.period_s))
        cuts = [*range(0, max(1, len(self.time) - size + 1), size), len(self.time)]
        whole = self._with_velocity()
        return tuple(
            whole.part(slice(start, stop), f"{self.name} {number}")
            for number, (start, stop) in enumerate(pairwise(cuts), start=1)
        )

    def hold_out(self, share: float) -> tuple[CommandedMotion, CommandedMotion]:
        """The beginning, and the rest with its own first state as in `windows`.

        Args:
            share: Share of the samples at the end, above 0 and at most 0.9.
        """
        as_number("share", share, above=0.0, most=0.9)
        cut = round((1.0 - share) * len(self.time))
        if min(cut, len(self.time) - cut) < MARGIN:
            raise ArgumentError(f"'{self.name}' has {len(self.time)} samples", remedy="Hold out a log of its own.")
        rest = self._with_velocity().part(slice(cut, None), f"{self.name}, last {100.0 * share:.3g} %")
        return self.part(slice(0, cut), f"{self.name}, first {100.0 * (1.0 - share):.3g} %"), rest

    def _with_velocity(self) -> CommandedMotion:
        return self if self.velocity is not None else replace(self, velocity=self._slopes())

    def _slopes(self) -> Floats:
        """(N, n) slopes of straight lines through the samples around each sample."""
        slopes = np.empty_like(self.position)
        for k in range(len(self.time)):
            near = slice(max(0, k - MARGIN // 2), k + MARGIN // 2 + 1)
            slopes[k] = np.polynomial.polynomial.polyfit(self.time[near] - self.time[k], self.position[near], 1)[1]
        return slopes

    def of_joints(self, columns: list[int]) -> CommandedMotion:
        """The same motion of some joints only, in the given order."""
        fields = ("command", "position", "command_velocity", "velocity", "enabled")
        cut: dict[str, Any] = {field: _cut(getattr(self, field), np.s_[:, columns]) for field in fields}
        cut |= {gain: _cut(getattr(self, gain), columns) for gain in ("kp", "kd", "ki")}
        return replace(self, joint_names=tuple(self.joint_names[c] for c in columns), **cut)


def _cut(array: Any, where: Any) -> Any:
    """Some entries of an optional array."""
    return None if array is None else array[where]
