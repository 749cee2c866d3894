"""`CommandedMotion`: commanded and measured positions of joints, without torques; and how it is cut into stretches.

It is the input of the identification of servos, made directly or from a log (`dynid.servos.commanded_motion`). The
servos are simulated under the commands and compared with the readings. A simulation needs the commands at every instant
and an initial state. So a motion is cut where samples are missing for long; each *stretch* between two cuts starts from
a reading whose velocity is measured, or computed from readings around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from dynid.array_types import Bools, Floats, Ints
from dynid.checks import as_number
from dynid.errors import ArgumentError
from dynid.processing.timing import GAP_PERIODS

AROUND = 8
"""Number of samples on each side of an instant to which a cubic is fitted; its slope is the velocity there (convention:
the noise of that velocity is an eighth of the noise of a reading over the sampling period, and motions of 3 Hz at
200 Hz get their velocity within 0.1 %)."""
HOLE_S = 0.05
"""A motion is cut where the time between two samples is longer than this time [s], and than `GAP_PERIODS` median
sampling periods (convention: a motion of 2 Hz deviates from a straight line through its commands by at most 5 % of its
amplitude in 0.05 s; two lost rows never cut a motion)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommandedMotion:
    """Commands and encoder readings of n joints at N instants, with the gains and the supply voltage of the drives."""

    joint_names: tuple[str, ...]
    """(n,) names of the joints, in the order of the columns."""
    time: Floats
    """(N,) strictly rising times [s]."""
    command: Floats
    """(N, n) commanded positions, encoder coordinates [rad or m]."""
    position: Floats
    """(N, n) measured positions, encoder coordinates [rad or m]; NaN for a missing reading, which is then interpolated
    and does not count."""
    counted: Bools = field(default_factory=lambda: np.ones(0, dtype=bool))
    """(N, n) whether a reading is compared with the simulated motion; by default (empty) all that are not missing."""
    command_velocity: Floats | None = None
    """(N, n) commanded velocities [rad/s or m/s]; None if the robot gets positions only."""
    velocity: Floats | None = None
    """(N, n) measured velocities, used for the initial state only [rad/s or m/s]; None if not measured."""
    enabled: Bools | None = None
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
    """Whether the drives keep each command until the next one; otherwise straight lines join the commands, for logs
    that sample a moving set point."""
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
        self._fill_readings(shape)
        for name in ("command", "position", "command_velocity", "velocity"):
            self._frozen(name, shape)
        for name in ("kp", "kd", "ki"):
            self._frozen(name, shape[1:])
        for name in ("enabled", "counted"):
            self._frozen(name, shape, bool)
        if self.voltage is not None:
            as_number("voltage", self.voltage, above=0.0)

    def _fill_readings(self, shape: tuple[int, int]) -> None:
        """Interpolate missing readings linearly, and do not count them; `shape` is (N, n)."""
        position = np.array(self.position, dtype=float)
        missing = np.isnan(position)
        if np.size(self.counted) == 0:
            object.__setattr__(self, "counted", np.ones(shape, dtype=bool))
        if position.shape != shape or np.shape(self.counted) != shape or not missing.any():
            return  # `_frozen` refuses wrong shapes
        for j in np.flatnonzero(missing.any(axis=0)):
            if missing[:, j].all():
                raise ArgumentError(
                    f"'{self.name}' has no reading of {self.joint_names[j]}", remedy="Hold the joint, or mend the log."
                )
            known = ~missing[:, j]
            position[~known, j] = np.interp(
                np.asarray(self.time)[~known], np.asarray(self.time)[known], position[known, j]
            )
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "counted", np.asarray(self.counted) & ~missing)

    def _frozen(self, name: str, shape: tuple[int, ...], kind: type = float) -> Any:
        """Replace a field by a read-only copy of the right shape; None stays None."""
        given = getattr(self, name)
        if given is None:
            return None
        value: Any = np.array(given, dtype=kind)
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

    @property
    def counts(self) -> Ints:
        """(n,) number of readings of each joint that count."""
        return np.asarray(self.counted.sum(axis=0))

    def stretches(self) -> tuple[CommandedMotion, ...]:
        """Cut the motion where samples are so far apart that the commands in between are not known.

        Each stretch starts from a reading of its own. That is its first one, or its ninth if it follows a gap and no
        velocities are measured: eight neighbours on each side then show the velocity. Stretches with eight or fewer
        samples from there on are left out.

        Raises:
            ArgumentError: No stretch is left.
        """
        cuts = np.flatnonzero(np.diff(self.time) > longest_hole(self.period_s)) + 1
        if not cuts.size:
            return (self,)
        skipped = 0 if self.velocity is not None else AROUND  # samples before the first one of a stretch
        kept = []
        for start, stop in pairwise([0, *cuts.tolist(), len(self.time)]):
            row = self._known_row(start + skipped) if start else 0
            if stop - row > AROUND:
                kept.append(self._begin_at(row, slice(start, stop), f"{self.name} from {self.time[row]:.4g} s"))
        if not kept:
            remedy = "Record it again: no stretch without gaps is long enough."
            raise ArgumentError(f"'{self.name}' has {cuts.size} gaps", remedy=remedy)
        return tuple(kept)

    def _begin_at(self, row: int, near: slice, name: str) -> CommandedMotion:
        """Make a motion of the samples from a row on, with an initial velocity.

        Without measured velocities this is the slope of a cubic through neighbours on both sides of the row; at the
        start of the whole motion it is not set, and the simulation starts at rest. The first command counts as held
        since before the start.

        Args:
            row: Index of the first sample.
            near: Samples without a gap around it; the last one is the end of the new motion.
            name: Name of the motion.
        """
        rest = self.part(slice(row, near.stop), name)
        if not row or self.velocity is not None:
            return rest
        around = slice(max(near.start or 0, row - AROUND), row + AROUND + 1)
        time, position = self.time[around] - self.time[row], self.position[around]
        velocity = np.zeros_like(rest.position)  # only the first row is used
        velocity[0] = np.polynomial.polynomial.polyfit(time, position, 3)[1]
        return replace(rest, velocity=velocity)

    def _known_row(self, row: int) -> int:
        """Find the first row, from a given one on, in which every reading counts; without such a row the given one."""
        known = np.flatnonzero(self.counted[row:].all(axis=1))
        return row + int(known[0]) if known.size else row

    def part(self, rows: slice, name: str | None = None) -> CommandedMotion:
        """Make a motion of some consecutive samples."""
        fields = ("time", "command", "position", "counted", "command_velocity", "velocity", "enabled")
        given = {name: getattr(self, name) for name in fields}
        cut: dict[str, Any] = {name: None if values is None else values[rows] for name, values in given.items()}
        return replace(self, **cut, name=self.name if name is None else name)

    def cut_at(self, *shares: float) -> tuple[CommandedMotion, ...]:
        """Cut the motion at shares of its samples between 0 and 1 into consecutive parts, each with its initial state.

        Raises:
            ArgumentError: A part is too short.
        """
        N = len(self.time)
        cuts = [0, *(self._known_row(round(share * N)) for share in shares), N]
        if min(np.diff(cuts)) <= AROUND:
            raise ArgumentError(f"'{self.name}' has {N} samples", remedy="Give more motions, or longer ones.")
        return tuple(
            self._begin_at(start, slice(0, stop), f"{self.name}, part {number}")
            for number, (start, stop) in enumerate(pairwise(cuts), start=1)
        )


def mask_uncounted(values: Floats, counted: Bools) -> Floats:
    """Set residuals or their derivatives (N, n, ...) to zero where readings do not count (``counted``, (N, n))."""
    return np.where(counted.reshape(counted.shape + (1,) * (values.ndim - 2)), values, 0.0)


def longest_hole(period_s: float) -> float:
    """Compute the longest time between two samples that does not cut a motion [s]."""
    return max(HOLE_S, GAP_PERIODS * period_s)


def stretches_of(motions: Sequence[CommandedMotion]) -> tuple[CommandedMotion, ...]:
    """Cut all motions at their gaps; return all stretches, in order."""
    return tuple(part for motion in motions for part in motion.stretches())
