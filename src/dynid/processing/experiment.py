"""`Experiment`: a processed log, uniformly sampled, filtered, differentiated, masked; what identification accepts."""

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
    """Reasons for which a sample of a joint is left out."""

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
    """A processed log: uniformly sampled, filtered, differentiated, masked; ready for the regressor."""

    time: Floats
    """(N,) [s], uniform within a segment."""
    q: Floats
    """(N, n) [rad or m]"""
    dq: Floats
    """(N, n) [rad/s or m/s]"""
    ddq: Floats
    """(N, n) [rad/s^2 or m/s^2]"""
    effort: Floats
    """(N, n) joint torques [N m or N]; NaN only where `valid` is False."""
    valid: NDArray[np.bool_]
    """(N, n) whether joint j's equation at this sample may be used."""
    segment: NDArray[np.int64]
    """(N,) number of the gap-free stretch each sample belongs to."""
    rate_hz: float
    """Sampling rate [Hz]."""
    wrench: Floats | None = None
    """(N, 6) force [N] and moment [N m], sensor frame."""
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
    """The low-pass that the torques went through, for columns that must go through the same."""
    gain_std: Floats | None = None
    """(n,) relative standard deviation of the gains that the torques were computed with; see `Recording`."""
    temperature: Floats | None = None
    """(n,) mean temperature of each joint [degC], NaN where it is not known; None where the log has none."""
    stretch_keys: tuple[float, ...] = ()
    """Numbers computed from some stretches of the log; another log that holds one of them shares a stretch with it."""
    derivation: Derivation | None = None
    """How the motion was computed from measured positions; None where it is exact, or this is not known."""
    loop: Loop | None = None
    """The control loop that made the motion, where it is known; its clock is that of `time`."""

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
        """The experiment with some samples only, in order; adjacent samples are not copied."""
        if isinstance(rows, np.ndarray) and rows.size and np.all(rows[1:] - rows[:-1] == 1):
            rows = slice(int(rows[0]), int(rows[-1]) + 1)
        names = ("time", "q", "dq", "ddq", "effort", "valid", "segment")
        wrench = None if self.wrench is None else self.wrench[rows]
        return replace(self, wrench=wrench, **{name: getattr(self, name)[rows] for name in names})

    def parts(self, most: int, count: int) -> Experiment:
        """Keep evenly spread parts of a long experiment; a short one stays as it is.

        Args:
            most: Largest number of samples of all parts.
            count: Number of parts.
        """
        if self.samples <= most:
            return self
        length = most // count
        starts = np.linspace(0, self.samples - length, count).astype(int)
        kept = self.rows((starts[:, None] + np.arange(length)).reshape(-1))
        # a number for every pair of old segment and part, then segments counted from 0
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
        """Put columns (N, n) from the order of the robot's joints into that of this experiment."""
        order = self._order(robot)
        return columns if order is None else columns[:, np.argsort(order)]

    def _order(self, robot: Robot) -> NDArray[np.int64] | None:
        """For every joint of the robot its column here; None where no column has to move."""
        return column_order(self.joint_names, robot, whose=f"the experiment '{self.source}'")

    def by_segment(self, change: Callable[[Floats], Floats], columns: Floats) -> Floats:
        """Apply a function to every gap-free stretch of columns (N, k)."""
        borders = np.flatnonzero(np.diff(self.segment)) + 1
        return np.concatenate([change(part) for part in np.split(columns, borders)])


def matched_runs(robot: Robot, experiments: Experiment | Sequence[Experiment]) -> tuple[Experiment, ...]:
    """One or several experiments with their columns in the robot's order; functions of a robot and runs begin so."""
    given = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
    return tuple(run.matched(robot) for run in given)
