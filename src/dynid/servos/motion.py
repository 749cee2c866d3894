"""`CommandedMotion`: where the joints were sent and where they went, without any torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from dynid.arrays import Bools, Floats, Ints
from dynid.checks import as_number
from dynid.errors import ArgumentError

AROUND = 8
"""Samples on each side of an instant through which a cubic is fitted: its slope is the velocity there. Convention: the
noise of that velocity is an eighth of that of one reading per period, and joints of 3 Hz at 200 Hz keep within 0.1 % of
their velocity."""
HOLE_S, HOLE_STEPS = 0.05, 3.5
"""Time [s], and number of usual steps, between two samples: beyond the longer of the two the commands in between are
not known well enough to simulate across. Convention: a motion of 2 Hz leaves a straight line through its commands by at
most 5 % of its amplitude in 0.05 s; two lost rows never cut a motion."""


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
    """(N, n) measured positions, encoder coordinates [rad or m]; NaN where a reading is missing, which is then replaced
    by a straight line and does not count."""
    counted: Bools = field(default_factory=lambda: np.ones(0, dtype=bool))
    """(N, n) whether a reading is compared with the simulated motion; by default all that are not missing."""
    command_velocity: Floats | None = None
    """(N, n) commanded velocities [rad/s or m/s]; None where the robot is sent positions only."""
    velocity: Floats | None = None
    """(N, n) measured velocities [rad/s or m/s]; used for the initial state only."""
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
        """Put straight lines in the place of missing readings, which do not count."""
        position = np.array(self.position, dtype=float)
        missing = np.isnan(position)
        if np.size(self.counted) == 0:
            object.__setattr__(self, "counted", np.ones(shape, dtype=bool))
        if position.shape != shape or np.shape(self.counted) != shape or not missing.any():
            return
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
        """The motion cut where samples are so far apart that the commands in between are not known.

        Each stretch starts from a reading of its own: its first, or, after a gap and without measured velocities, the
        ninth, where the samples around it show the velocity. Stretches with hardly more samples are left out.
        """
        cuts = np.flatnonzero(np.diff(self.time) > longest_hole(self.period_s)) + 1
        if not cuts.size:
            return (self,)
        late = 0 if self.velocity is not None else AROUND
        kept = []
        for start, stop in pairwise([0, *cuts.tolist(), len(self.time)]):
            row = self._known_row(start + late) if start else 0
            if stop - row > AROUND:
                kept.append(self._begin_at(row, slice(start, stop), f"{self.name} from {self.time[row]:.4g} s"))
        if not kept:
            remedy = "Record it again: no stretch without gaps is long enough."
            raise ArgumentError(f"'{self.name}' has {cuts.size} gaps", remedy=remedy)
        return tuple(kept)

    def _begin_at(self, row: int, near: slice, name: str) -> CommandedMotion:
        """The samples from a row on, with the velocity there: the measured one, or that of a cubic through others near.

        Before its first sample the first command counts as held.
        """
        rest = self.part(slice(row, near.stop), name)
        if not row or self.velocity is not None:
            return rest
        around = slice(max(near.start or 0, row - AROUND), row + AROUND + 1)
        time, position = self.time[around] - self.time[row], self.position[around]
        velocity = np.zeros_like(rest.position)
        velocity[0] = np.polynomial.polynomial.polyfit(time, position, 3)[1]
        return replace(rest, velocity=velocity)

    def _known_row(self, row: int) -> int:
        """The first row from the given one on in which every reading counts; itself where there is none."""
        known = np.flatnonzero(self.counted[row:].all(axis=1))
        return row + int(known[0]) if known.size else row

    def part(self, rows: slice, name: str | None = None) -> CommandedMotion:
        """Some consecutive samples as a motion of their own."""
        fields = ("time", "command", "position", "counted", "command_velocity", "velocity", "enabled")
        given = {name: getattr(self, name) for name in fields}
        cut: dict[str, Any] = {name: None if values is None else values[rows] for name, values in given.items()}
        return replace(self, **cut, name=self.name if name is None else name)

    def cut_at(self, *shares: float) -> tuple[CommandedMotion, ...]:
        """Consecutive parts, cut at shares of the samples between 0 and 1, each with its own first state."""
        N = len(self.time)
        cuts = [0, *(self._known_row(round(share * N)) for share in shares), N]
        if min(np.diff(cuts)) <= AROUND:
            raise ArgumentError(f"'{self.name}' has {N} samples", remedy="Give more motions, or longer ones.")
        return tuple(
            self._begin_at(start, slice(0, stop), f"{self.name}, part {number}")
            for number, (start, stop) in enumerate(pairwise(cuts), start=1)
        )


def compared(values: Floats, counted: Bools) -> Floats:
    """Values (N, n, ...) where readings (N, n) count, zero elsewhere."""
    return np.where(counted.reshape(counted.shape + (1,) * (values.ndim - 2)), values, 0.0)


def longest_hole(period_s: float) -> float:
    """Longest time between two samples that does not cut a motion [s]."""
    return max(HOLE_S, HOLE_STEPS * period_s)


def stretches_of(motions: Sequence[CommandedMotion]) -> tuple[CommandedMotion, ...]:
    """All motions, cut at their gaps."""
    return tuple(part for motion in motions for part in motion.stretches())
