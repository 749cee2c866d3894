"""`Experiment`: a processed log, from which the equations ``regressor(q, dq, ddq) parameters = torque`` are built.

`dynid.processing.process` makes experiments of raw logs; identification, validation and diagnosis take them. A sample
is one instant; its mask `valid` says joint by joint whether the equation of the joint is used. A *segment* is a part of
the log without a gap, in which samples are uniform in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.errors import DataError
from dynid.logs.joint_order import column_order
from dynid.logs.recording import all_finite, freeze
from dynid.processing.filters import Butterworth, Derivation
from dynid.robot.model import Robot

if TYPE_CHECKING:  # not loaded otherwise: few experiments have a control loop
    from dynid.control_loop.loop import Loop


class Dropped(StrEnum):
    """Reasons for which a joint's sample is left out, with the texts that reports show."""

    SHORT_STRETCH = "stretch too short"
    TRANSIENT = "filter transient"
    NEAR_GAP = "torque missing nearby"
    AT_REST = "at rest"
    DEAD_BAND = "velocity dead band"
    REPEATED_ROW = "repeated row"
    NO_POSITION = "position not finite"
    NO_VELOCITY = "velocity not finite"
    POSITION_SPIKE = "position spike"
    NO_TORQUE = "torque not finite"
    TORQUE_SPIKE = "torque spike"
    SATURATED = "torque saturated"
    NO_TIME = "time not finite"
    REPEATED_STAMP = "repeated stamp"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Experiment:
    """A processed log of N samples of n joints: uniformly sampled, filtered, differentiated, masked."""

    time: Floats
    """(N,) time stamps [s], uniform within a segment."""
    q: Floats
    """(N, n) joint positions [rad or m]."""
    dq: Floats
    """(N, n) joint velocities [rad/s or m/s]."""
    ddq: Floats
    """(N, n) joint accelerations [rad/s^2 or m/s^2]."""
    effort: Floats
    """(N, n) joint torques [N m or N]; NaN only where `valid` is False."""
    valid: NDArray[np.bool_]
    """(N, n) whether joint j's equation at this sample may be used."""
    segment: NDArray[np.int64]
    """(N,) number of the gap-free part of the log that each sample belongs to."""
    rate_hz: float
    """Sampling rate [Hz]."""
    wrench: Floats | None = None
    """(N, 6) force [N] and moment [N m] of a sensor, in the sensor's frame; None where the log has none."""
    joint_names: tuple[str, ...] = ()
    """Names of the joints, in the order of the columns; empty where the log has none."""
    processing_steps: tuple[str, ...] = ()
    """What was done to the log, one sentence per step."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Reason, the text of a `Dropped` -> number of joint samples left out."""
    source: str = "arrays"
    """Where the log is from, such as its file."""
    sha256: str = ""
    """Digest of the log's file; empty without a file."""
    smoothing: Butterworth | None = None
    """The low-pass that the torques went through, so that the regressor's columns can go through the same; None for
    torques that were not filtered."""
    gain_std: Floats | None = None
    """(n,) relative standard deviation of the gains by which torques were computed from currents; None without."""
    temperature: Floats | None = None
    """(n,) mean temperature of each joint [degC], NaN where it is not known; None where the log has none."""
    stretch_keys: tuple[float, ...] = ()
    """Digests of some short parts of the log; a log with one of them holds a copy of that part, so that it cannot
    validate what was fitted to this one (`Recording.stretch_keys`)."""
    derivation: Derivation | None = None
    """Filter and differences by which the motion was computed; None where it is exact, or they are not known."""
    loop: Loop | None = None
    """The control loop that made the motion, with controller and commands, where it is known; its clock is `time`."""

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays."""
        shape = np.shape(self.q)
        for name in ("q", "dq", "ddq", "effort", "valid"):
            value = freeze(getattr(self, name), bool if name == "valid" else float)
            if value.shape != shape:
                raise DataError(f"experiment channel '{name}' has shape {value.shape}, expected {shape}")
            object.__setattr__(self, name, value)
        if not all(all_finite(getattr(self, name)) for name in ("q", "dq", "ddq")):
            raise DataError("an experiment holds finite motion only", remedy="Drop the samples concerned before.")

    def __repr__(self) -> str:
        """Size and rate in one line."""
        used = int(self.valid.sum())
        size = f"{self.samples} samples of {self.q.shape[1]} joints at {self.rate_hz:g} Hz"
        return f"Experiment('{self.source}', {size}, {used} torques can be used)"

    @property
    def samples(self) -> int:
        """Number of samples N."""
        return int(self.q.shape[0])

    def rows(self, rows: slice | NDArray[np.int64]) -> Experiment:
        """Take some samples, given by ascending indices; adjacent ones are not copied."""
        if isinstance(rows, np.ndarray) and rows.size and np.all(rows[1:] - rows[:-1] == 1):
            rows = slice(int(rows[0]), int(rows[-1]) + 1)
        names = ("time", "q", "dq", "ddq", "effort", "valid", "segment")
        wrench = None if self.wrench is None else self.wrench[rows]
        return replace(self, wrench=wrench, **{name: getattr(self, name)[rows] for name in names})

    def parts(self, most: int, count: int) -> Experiment:
        """Take evenly spread parts of a long experiment; each becomes a segment. A short one is returned as it is.

        Args:
            most: Largest number of samples of all parts.
            count: Number of parts.
        """
        if self.samples <= most:
            return self
        length = most // count
        starts = np.linspace(0, self.samples - length, count).astype(int)
        kept = self.rows((starts[:, None] + np.arange(length)).reshape(-1))
        # a border of old segments within a part remains one: number the pairs of old segment and part, from 0
        pair = count * kept.segment + np.repeat(np.arange(count), length)
        return replace(kept, segment=np.cumsum(np.diff(pair, prepend=pair[0]) != 0))

    def matched(self, robot: Robot) -> Experiment:
        """Put the columns into the order of the robot's joints, by the joint names.

        An experiment without names, or with none of the robot's, stays as it is.

        Raises:
            DataError: The order differs and the experiment has a control loop, which cannot be reordered; or some of
                its names are joints of the robot, but not every joint has one name.
        """
        order = self._order(robot)
        if order is None:
            return self
        if self.loop is not None:
            raise DataError(
                "the joints of an experiment with a control loop are in another order than the robot's",
                remedy="Match them before, by read_recording(log, robot).",
            )
        names = ("q", "dq", "ddq", "effort", "valid")
        ordered: dict[str, Any] = {name: getattr(self, name)[:, order] for name in names}
        for name in ("gain_std", "temperature"):
            values = getattr(self, name)
            ordered[name] = None if values is None else values[order]
        return replace(self, **ordered, joint_names=robot.joint_names)

    def as_recorded(self, columns: Floats, robot: Robot) -> Floats:
        """Put columns (N, n) from the order of the robot's joints into the order of this experiment's joints."""
        order = self._order(robot)
        return columns if order is None else columns[:, np.argsort(order)]

    def _order(self, robot: Robot) -> NDArray[np.int64] | None:
        """Find for every joint of the robot its column in this experiment, (n,); None where no column has to move."""
        return column_order(self.joint_names, robot, whose=f"the experiment '{self.source}'")

    def by_segment(self, change: Callable[[Floats], Floats], columns: Floats) -> Floats:
        """Apply a function, such as a filter, to every segment of columns (N, k); the results are joined again."""
        borders = np.flatnonzero(np.diff(self.segment)) + 1
        return np.concatenate([change(part) for part in np.split(columns, borders)])


def matched_runs(robot: Robot, experiments: Experiment | Sequence[Experiment]) -> tuple[Experiment, ...]:
    """Put the columns of one or several experiments into the robot's order, as functions of a robot need them."""
    given = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    return tuple(run.matched(robot) for run in given)
