"""`Recording`: a raw log in SI units, with the names of its joints and the digest of its file.

The functions that read logs make it, by a channel map that names columns and units. `dynid.process` filters and
differentiates it to an `Experiment`, from which parameters are identified. A log of servos may have `Commands`, the
positions that were commanded, instead of torques. Arrays are read-only, so that records can share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.array_types import Floats
from dynid.errors import DataError
from dynid.findings import Finding

STRETCH = 16
"""Number of consecutive samples that must agree to the last digit to be a copy (convention: so many that coarse
quantisation does not repeat them by chance, so few that short parts of a log have them)."""
KEPT_STRETCHES = 200
"""Number of stretches of a log that a result remembers, to recognise copies of it (convention: a part of 2 % of the log
has four of them)."""


def freeze(values: ArrayLike, kind: type = float) -> NDArray[Any]:
    """Make a read-only array of the values; a copy, unless the array and all arrays it is a view of are read-only."""
    array = np.asarray(values)
    owner: object = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    if owner is not None or array.dtype != kind:
        array = np.array(array, dtype=kind)
        array.setflags(write=False)
    return array


def seal(x: NDArray[Any]) -> NDArray[Any]:
    """Make an array and all arrays it is a view of read-only, so that `Recording` and `Experiment` need not copy it."""
    owner: object = x
    while isinstance(owner, np.ndarray):
        owner.setflags(write=False)
        owner = owner.base
    return x


def all_finite(x: Floats) -> bool:
    """Test whether all numbers are finite; their sum of squares first, which is fast and finite for usual numbers."""
    flat = x.ravel(order="K")
    with np.errstate(all="ignore"):
        return bool(np.isfinite(flat @ flat)) or bool(np.isfinite(flat).all())


def as_signal(name: str, values: ArrayLike | None, rows: int, width: int | None) -> Floats | None:
    """Make a channel a read-only (rows, width) array, or refuse its shape by its name; None stays None.

    A channel (rows,) becomes (rows, 1). For a width of None any number of columns is accepted.
    """
    if values is None:
        return None
    array = freeze(values)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[0] != rows or (width is not None and array.shape[1] != width):
        wanted = f"({rows}, {'n' if width is None else width})"
        raise DataError(
            f"channel '{name}' has shape {np.shape(values)}, expected {wanted}",
            remedy="Give one row per sample and one column per joint (six for a wrench).",
        )
    return array


def taken(record: object, names: Iterable[str], index: Any) -> dict[str, Any]:
    """Index those of the named arrays that a record has (others are None): name -> part of the array."""
    return {name: array[index] for name in names if (array := getattr(record, name)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Commands:
    """Commands to the drives, in SI units on the joint side, on a clock of their own. NaN marks a missing sample."""

    time: Floats
    """(M,) time of the commands, on the clock of the recording [s]."""
    position: Floats
    """(M, n) commanded positions [rad or m]."""
    velocity: Floats | None = None
    """(M, n) commanded velocities [rad/s or m/s]."""
    enabled: NDArray[np.bool_] | None = None
    """(M, n) whether the drive was switched on; None where the log does not say."""
    kp: Floats | None = None
    """(M, n) gain of the position error as the log states it, in the drive's own unit."""
    kd: Floats | None = None
    """(M, n) gain of the velocity error as the log states it, in the drive's own unit."""
    supply: Floats | None = None
    """(M,) supply voltage [V]."""
    held: bool = True
    """Whether a drive keeps each command until the next one; otherwise straight lines join them."""

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays."""
        time = freeze(self.time).reshape(-1)
        object.__setattr__(self, "time", time)
        joints = len(np.atleast_2d(np.transpose(self.position)))
        for name in ("position", "velocity", "enabled", "kp", "kd", "supply"):
            width = 1 if name == "supply" else joints
            value = as_signal(f"commands.{name}", getattr(self, name), time.size, width)
            if value is not None and name in ("enabled", "supply"):
                value = freeze(value > 0.0, bool) if name == "enabled" else value.reshape(-1)
            object.__setattr__(self, name, value)

    def columns(self, order: NDArray[np.int64]) -> Commands:
        """Put the joints into another order, given by the old index of each (n,)."""
        return replace(self, **taken(self, ("position", "velocity", "enabled", "kp", "kd"), (..., order)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Temperatures:
    """Temperatures of the joints, on a clock of their own. NaN marks a missing sample."""

    time: Floats
    """(M,) on the clock of the recording [s]."""
    values: Floats
    """(M, n) temperature of each joint [degC]."""

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays."""
        object.__setattr__(self, "time", freeze(self.time).reshape(-1))
        object.__setattr__(self, "values", as_signal("temperature.values", self.values, self.time.size, None))

    def mean(self, start_s: float, end_s: float) -> Floats | None:
        """Average the temperatures (n,) from one time to another [degC]; None if none is known.

        Without a sample between them the last one before is taken, or else the first of all.
        """
        inside = np.flatnonzero((self.time >= start_s) & (self.time <= end_s))
        if not inside.size:
            before = np.flatnonzero(self.time <= start_s)
            inside = before[-1:] if before.size else np.arange(min(1, self.time.size))
        rows = self.values[inside]
        known = np.isfinite(rows)
        if not known.any():
            return None
        total = np.where(known, rows, 0.0).sum(axis=0)
        return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)

    def columns(self, order: NDArray[np.int64]) -> Temperatures:
        """Put the joints into another order, given by the old index of each (n,)."""
        return replace(self, values=self.values[:, order])

    def followed_by(self, later: Temperatures | None, start_s: float) -> Temperatures:
        """Join these temperatures, from a time on [s], and later ones."""
        kept = self.time >= start_s
        parts = [(self.time[kept], self.values[kept]), *([] if later is None else [(later.time, later.values)])]
        times, values = zip(*parts, strict=True)
        return Temperatures(time=np.concatenate(times), values=np.concatenate(values))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """A raw log of N samples of n joints, in SI units, on the joint side of the gears.

    NaN marks a missing sample. Torques, currents and wrenches may have a clock of their own.
    """

    time: Floats
    """(N,) time of the position samples [s]."""
    q: Floats
    """(N, n) joint positions [rad or m]."""
    dq: Floats | None = None
    """(N, n) measured joint velocities [rad/s or m/s]."""
    effort: Floats | None = None
    """(N, n), or (M, n) on the clock `effort_time`: joint torques [N m or N]."""
    current: Floats | None = None
    """Motor currents [A], shaped as `effort`."""
    wrench: Floats | None = None
    """(N, 6), or (M, 6) on the clock `wrench_time`: force [N] and moment [N m] of a sensor, in the sensor's frame."""
    effort_time: Floats | None = None
    """(M,) times of effort and current [s]; None if they are those of `time`."""
    wrench_time: Floats | None = None
    """(M,) times of the wrench [s]; None if they are those of `time`."""
    commands: Commands | None = None
    """Commands to the drives, where the log has them; a log without torques has these and the positions only."""
    temperature: Temperatures | None = None
    """Temperatures of the joints, where the log has them."""
    joint_names: tuple[str, ...] = ()
    """Names of the columns of q; joint1, joint2, ... by default."""
    source: str = "arrays"
    """File or files it was read from."""
    sha256: str = ""
    """Digest of the source's bytes."""
    notes: tuple[str, ...] = ()
    """Remarks of the reader: converted units, ignored channels."""
    findings: tuple[Finding, ...] = ()
    """Faults that the reader found, such as lost parts of a damaged file."""
    gain: Floats | None = None
    """(n,) gains that the torques were computed with, from currents or from the torques of the log; None where no gain
    is stated."""
    gain_std: Floats | None = None
    """(n,) relative standard deviation of the gains that the torques were computed with; zero where a gain counts as
    exact, None where no gain is stated."""
    isolated: bool = False
    """Whether rows are single samples with unknown gaps between them: `time` is then only a counter."""

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays."""
        time = freeze(self.time).reshape(-1)
        q = as_signal("q", self.q, time.size, None)
        assert q is not None
        width = q.shape[1]
        flat = {
            name: None if value is None else freeze(value).reshape(-1)
            for name in ("effort_time", "wrench_time", "gain", "gain_std")
            for value in [getattr(self, name)]
        }
        # the clocks of effort and current, and of the wrench
        drive, sensor = (time if clock is None else clock for clock in (flat["effort_time"], flat["wrench_time"]))
        checked = {
            **flat,
            "time": time,
            "q": q,
            "dq": as_signal("dq", self.dq, time.size, width),
            "effort": as_signal("effort", self.effort, drive.size, width),
            "current": as_signal("current", self.current, drive.size, width),
            "wrench": as_signal("wrench", self.wrench, sensor.size, 6),
            "joint_names": tuple(self.joint_names) or tuple(f"joint{j + 1}" for j in range(width)),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        counted = {
            "joint names": self.joint_names,
            "commanded positions": None if self.commands is None else self.commands.position.T,
            "temperatures": None if self.temperature is None else self.temperature.values.T,
            "gains": self.gain,
            "uncertainties of gains": self.gain_std,
        }
        for what, listed in counted.items():
            if listed is not None and len(listed) != width:
                raise DataError(f"{len(listed)} {what} for {width} columns of q", remedy="Give one for every joint.")

    @property
    def mean_temperature(self) -> Floats | None:
        """(n,) mean temperature of each joint [degC], NaN where it is not known; None where none is."""
        stamps = self.time[np.isfinite(self.time)]
        if self.temperature is None or not stamps.size:
            return None
        return self.temperature.mean(float(stamps.min()), float(stamps.max()))

    @property
    def duration(self) -> float:
        """Time from the first to the last position sample [s]."""
        known = self.time[np.isfinite(self.time)]
        return float(known[-1] - known[0]) if known.size else 0.0

    def __repr__(self) -> str:
        """Size, duration and channels in one line."""
        names = ("dq", "effort", "current", "wrench", "commands", "temperature")
        channels = ", ".join(["q", *(name for name in names if getattr(self, name) is not None)])
        joints = f"{len(self.joint_names)} joints"
        return f"Recording('{self.source}', {self.time.size} samples of {joints} in {self.duration:.4g} s: {channels})"

    def stretch_keys(self) -> tuple[Floats, NDArray[np.int64]]:
        """Compute a key of every stretch of `STRETCH` samples in which the joints move, to find copies of logs.

        A key is a weighted sum of all positions and torques of a stretch. Two stretches have the same key, for all
        practical purposes, only if these agree to the last digit. Rows equal to one shortly before are left out: at
        rest, quantised signals repeat by chance.

        Returns:
            (M,) keys, NaN where a value is missing or absurd; (M,) index of the row where each stretch begins, among
            the rows of the torques where they have a clock of their own.
        """
        if self.effort is None or self.effort_time is not None:
            signals = self.q if self.effort is None else self.effort
        else:
            signals = np.hstack([self.q, self.effort])
        weights = np.random.default_rng(0).uniform(1.0, 2.0, max(signals.shape[1], STRETCH))  # the same in every run
        # (N,) weighted sum of each row, in a fixed order: equal rows have equal sums wherever they stand
        with np.errstate(over="ignore", invalid="ignore"):  # of absurd values, which other checks name
            row = sum((w * column for w, column in zip(weights, signals.T, strict=False)), np.zeros(len(signals)))
        is_new = np.ones(row.size, dtype=bool)
        for back in range(1, min(STRETCH, row.size)):
            is_new[back:] &= row[back:] != row[:-back]
        places = np.flatnonzero(is_new)
        row = row[places]
        count = max(places.size - STRETCH + 1, 0)
        # (count,) weighted sum of the sums of 16 consecutive rows
        with np.errstate(over="ignore", invalid="ignore"):
            keys = sum((w * row[k : k + count] for k, w in enumerate(weights[:STRETCH])), np.zeros(count))
        return np.where(np.isfinite(keys), keys, np.nan), places[:count]

    def kept_stretch_keys(self) -> Floats:
        """Take the keys (k,) of at most `KEPT_STRETCHES` stretches, spread over the log so that its parts have some."""
        keys = self.stretch_keys()[0]
        known = keys[np.isfinite(keys)]
        places = np.linspace(0, max(known.size - 1, 0), min(KEPT_STRETCHES, known.size)).astype(int)
        return np.asarray(known[places])

    def rows(self, rows: slice) -> Recording:
        """Take some rows of a recording with one clock for all channels; commands and temperatures stay complete."""
        return replace(self, **taken(self, ("time", "q", "dq", "effort", "current", "wrench"), rows))


def torque_remedy(recording: Recording) -> str:
    """Write the remedy of an error about a recording without torques."""
    mapped = "Name their columns under [effort] in the channel map, or those of currents under [current]."
    if recording.commands is None:
        return mapped
    return (
        "The log holds commands and positions, which suffice for drives, friction and gains: dynid actuate ROBOT LOG "
        f"needs no torques. For the links' parameters: {mapped[0].lower()}{mapped[1:]}"
    )
