"""`CommandedMotion`: where the joints were sent and where they went, without any torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.checks import as_number
from dynid.errors import ArgumentError

MARGIN = 8
"""Samples around an instant whose slope is its velocity, and the fewest of a window. Convention."""
HOLE_S, HOLE_STEPS = 0.05, 3.5
"""Time [s], and number of usual steps, between two samples: beyond the longer of the two the commands in between are
not known well enough to simulate across. Convention: a motion of 2 Hz leaves a straight line through its commands by at
most 5 % of its amplitude in 0.05 s; two lost rows never cut a motion."""
AFTER_GAP = 17
"""Samples after a gap through which a cubic is fitted: its slope in the middle is the velocity of the new start.
Convention: the noise of that velocity is an eighth of that of one reading per period, and joints of 3 Hz at 200 Hz keep
within 0.1 % of their velocity."""


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
    counted: NDArray[np.bool_] | None = None
    """(N, n) whether a reading is compared with the simulated motion; None if all are."""
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
        self._fill_readings(shape)
        for name in ("command", "position", "command_velocity", "velocity"):
            self._frozen(name, shape)
        for name in ("kp", "kd", "ki"):
            self._frozen(name, shape[1:])
        for name in ("enabled", "counted"):
            if getattr(self, name) is None:
                continue
            flags = np.array(getattr(self, name), dtype=bool)
            if flags.shape != shape:
                raise ArgumentError(f"{name} of '{self.name}' has shape {flags.shape}", remedy=f"Give {shape}.")
            flags.setflags(write=False)
            object.__setattr__(self, name, flags)
        if self.voltage is not None:
            as_number("voltage", self.voltage, above=0.0)

    def _fill_readings(self, shape: tuple[int, int]) -> None:
        """Put straight lines in the place of missing readings, which do not count."""
        position = np.array(self.position, dtype=float)
        missing = np.isnan(position)
        if position.shape != shape or not missing.any():
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
        given = np.ones(shape, dtype=bool) if self.counted is None else np.asarray(self.counted)
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "counted", given & ~missing if given.shape == shape else given)

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

    @property
    def counts(self) -> NDArray[np.int64]:
        """(n,) number of readings of each joint that count."""
        whole = np.full(self.dof, len(self.time), dtype=np.int64)
        return whole if self.counted is None else np.asarray(self.counted.sum(axis=0))

    def compared(self, values: Floats) -> Floats:
        """Values (N, n, ...) at the readings, zero where a reading does not count."""
        return compared(values, self.counted)

    def stretches(self) -> tuple[CommandedMotion, ...]:
        """The motion cut where samples are so far apart that the commands in between are not known.

        Each stretch starts from a reading of its own: its first, or, after a gap and without measured velocities, the
        ninth, where the samples around it show the velocity. Stretches with hardly more samples are left out.
        """
        cuts = np.flatnonzero(np.diff(self.time) > longest_hole(self.period_s)) + 1
        if not cuts.size:
            return (self,)
        edges = pairwise([0, *cuts.tolist(), len(self.time)])
        parts = [self._stretch(self._known_row(start) if start else 0, stop) for start, stop in edges]
        kept = tuple(part for part in parts if part is not None)
        if not kept:
            remedy = "Record it again: no stretch without gaps is long enough."
            raise ArgumentError(f"'{self.name}' has {cuts.size} gaps", remedy=remedy)
        return kept

    def _stretch(self, start: int, stop: int) -> CommandedMotion | None:
        """Rows without a gap as a motion with its first velocity; None where there are too few."""
        name = f"{self.name} from {self.time[start]:.4g} s"
        if not start or self.velocity is not None:
            return self.part(slice(start, stop), name) if stop - start >= MARGIN else None
        if stop - start < AFTER_GAP + MARGIN:
            return None
        near, middle = slice(start, start + AFTER_GAP), start + AFTER_GAP // 2
        fitted = np.polynomial.polynomial.polyfit(self.time[near] - self.time[middle], self.position[near], 3)
        rest = self.part(slice(middle, stop), name)
        velocity = np.zeros_like(rest.position)
        velocity[0] = fitted[1]
        return replace(rest, velocity=velocity)

    def _known_row(self, row: int) -> int:
        """The first row from the given one on in which every reading counts; itself where there is none."""
        if self.counted is None:
            return row
        known = np.flatnonzero(self.counted[row:].all(axis=1))
        return row + int(known[0]) if known.size else row

    def part(self, rows: slice, name: str | None = None) -> CommandedMotion:
        """Some consecutive samples as a motion of their own."""
        fields = ("time", "command", "position", "counted", "command_velocity", "velocity", "enabled")
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
        cuts[1:-1] = [self._known_row(cut) for cut in cuts[1:-1]]
        whole = self._with_velocity()
        return tuple(
            whole.part(slice(start, stop), f"{self.name} {number}")
            for number, (start, stop) in enumerate(pairwise(dict.fromkeys(cuts)), start=1)
        )

    def hold_out(self, share: float) -> tuple[CommandedMotion, CommandedMotion]:
        """The beginning, and the rest with its own first state as in `windows`.

        Args:
            share: Share of the samples at the end, above 0 and at most 0.9.
        """
        as_number("share", share, above=0.0, most=0.9)
        cut = self._known_row(round((1.0 - share) * len(self.time)))
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
        fields = ("command", "position", "counted", "command_velocity", "velocity", "enabled")
        cut: dict[str, Any] = {field: _cut(getattr(self, field), np.s_[:, columns]) for field in fields}
        cut |= {gain: _cut(getattr(self, gain), columns) for gain in ("kp", "kd", "ki")}
        return replace(self, joint_names=tuple(self.joint_names[c] for c in columns), **cut)


def compared(values: Floats, counted: NDArray[np.bool_] | None) -> Floats:
    """Values (N, n, ...) where readings (N, n) count, zero elsewhere."""
    if counted is None:
        return values
    return np.where(counted.reshape(counted.shape + (1,) * (values.ndim - 2)), values, 0.0)


def longest_hole(period_s: float) -> float:
    """Longest time between two samples that does not cut a motion [s]."""
    return max(HOLE_S, HOLE_STEPS * period_s)


def stretches_of(motions: Sequence[CommandedMotion]) -> tuple[CommandedMotion, ...]:
    """All motions, cut at their gaps."""
    return tuple(part for motion in motions for part in motion.stretches())


def _cut(array: Any, where: Any) -> Any:
    """Some entries of an optional array."""
    return None if array is None else array[where]
