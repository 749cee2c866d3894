"""What was measured, raw, and what identification works on, processed: two types, so that no stage can be skipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.processing.differentiation import Derivation
from dynid.processing.filters import Smoothing

if TYPE_CHECKING:
    from dynid.loop.loop import Loop

__all__ = ["Experiment", "Recording", "all_finite", "sealed"]

Floats = NDArray[np.float64]


def _frozen(values: ArrayLike, kind: type = float) -> NDArray[Any]:
    """A read-only array of the values: themselves where nobody can change them any more, a copy otherwise."""
    array = np.asarray(values)
    owner: object = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    if owner is not None or array.dtype != kind:
        array = np.array(array, dtype=kind)
        array.setflags(write=False)
    return array


def sealed(x: NDArray[Any]) -> NDArray[Any]:
    """An array of the caller's own making, never to be changed again; `Recording` and `Experiment` need not copy it."""
    owner: object = x
    while isinstance(owner, np.ndarray):
        owner.setflags(write=False)
        owner = owner.base
    return x


def all_finite(x: Floats) -> bool:
    """Whether all numbers are finite; a sum of squares tells at once unless it overflows."""
    flat = x.ravel(order="K")
    with np.errstate(all="ignore"):
        return bool(np.isfinite(flat @ flat)) or bool(np.isfinite(flat).all())


def _signal(name: str, values: ArrayLike | None, rows: int, width: int | None) -> Floats | None:
    """Copy a channel as a read-only (rows, width) array, or refuse it by name."""
    if values is None:
        return None
    array = _frozen(values)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[0] != rows or (width is not None and array.shape[1] != width):
        wanted = f"({rows}, {'n' if width is None else width})"
        raise DataError(
            f"channel '{name}' has shape {np.shape(values)}, expected {wanted}",
            remedy="Give one row per sample and one column per joint (six for a wrench).",
        )
    return array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """A raw log in SI units, on the joint side. NaN marks a missing sample. Channels may have clocks of their own."""

    time: Floats
    """(N,) time of the position samples [s]."""
    q: Floats
    """(N, n) joint positions [rad or m]."""
    dq: Floats | None = None
    """(N, n) measured joint velocities [rad/s or m/s]."""
    effort: Floats | None = None
    """(N, n) or (len(effort_time), n) joint torques [N m or N]."""
    current: Floats | None = None
    """Motor currents [A], shaped as `effort`."""
    wrench: Floats | None = None
    """(N, 6) or (len(wrench_time), 6) force [N] and moment [N m] of a sensor, in the sensor's frame."""
    effort_time: Floats | None = None
    """Clock of effort and current [s], where it differs from `time`."""
    wrench_time: Floats | None = None
    """Clock of the wrench [s], where it differs from `time`."""
    joint_names: tuple[str, ...] = ()
    """Names of the columns of q; joint1, joint2, ... when nothing better is known."""
    source: str = "arrays"
    """File or files it was read from."""
    sha256: str = ""
    """Digest of the source's bytes."""
    notes: tuple[str, ...] = ()
    """What the reader had to say: salvaged parts, converted units, ignored channels."""
    isolated: bool = False
    """Whether rows are picked samples with unknown gaps: `time` then only counts, and differences mean nothing."""

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays."""
        time = _frozen(self.time).reshape(-1)
        q = _signal("q", self.q, time.size, None)
        assert q is not None
        width = q.shape[1]
        clocks = {
            name: time if clock is None else _frozen(clock).reshape(-1)
            for name, clock in (("effort_time", self.effort_time), ("wrench_time", self.wrench_time))
        }
        checked = {
            "time": time,
            "q": q,
            "dq": _signal("dq", self.dq, time.size, width),
            "effort": _signal("effort", self.effort, clocks["effort_time"].size, width),
            "current": _signal("current", self.current, clocks["effort_time"].size, width),
            "wrench": _signal("wrench", self.wrench, clocks["wrench_time"].size, 6),
            "effort_time": None if self.effort_time is None else clocks["effort_time"],
            "wrench_time": None if self.wrench_time is None else clocks["wrench_time"],
            "joint_names": tuple(self.joint_names) or tuple(f"joint{j + 1}" for j in range(width)),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if len(self.joint_names) != width:
            raise DataError(f"{len(self.joint_names)} joint names for {width} columns of q")

    @property
    def duration(self) -> float:
        """Time from the first to the last position sample [s]."""
        return float(self.time[-1] - self.time[0]) if self.time.size else 0.0

    def rows(self, rows: slice) -> Recording:
        """Some rows of a recording whose channels share one clock."""
        channels = ("time", "q", "dq", "effort", "current", "wrench")
        parts: dict[str, Any] = {name: getattr(self, name) for name in channels}
        cut: dict[str, Any] = {name: None if x is None else x[rows] for name, x in parts.items()}
        return replace(self, **cut)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Experiment:
    """A processed log: uniformly sampled, filtered, differentiated, masked; ready for the regressor."""

    time: Floats
    """(N,) [s], uniform within a segment."""
    q: Floats
    """(N, n) [rad or m]"""
    dq: Floats
    """(N, n)"""
    ddq: Floats
    """(N, n)"""
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
    recipe: tuple[str, ...] = ()
    """What was done to the recording, step by step, in words."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Reason -> number of joint samples left out."""
    source: str = "arrays"
    sha256: str = ""
    smoothing: Smoothing | None = None
    """The low-pass that the torques went through, for columns that must go through the same."""
    derivation: Derivation | None = None
    """How the motion was made from measured positions; None where it is exact, or not known."""
    loop: Loop | None = None
    """The control loop that made the motion, where it is known; its clock is that of `time`."""

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays."""
        rows, width = np.shape(self.q)
        for name in ("q", "dq", "ddq", "effort", "valid"):
            value = _frozen(getattr(self, name), bool if name == "valid" else float)
            if value.shape != (rows, width):
                raise DataError(f"experiment channel '{name}' has shape {value.shape}, expected {(rows, width)}")
            object.__setattr__(self, name, value)
        if not all(all_finite(getattr(self, name)) for name in ("q", "dq", "ddq")):
            raise DataError("an experiment holds finite motion only", remedy="Drop the samples concerned before.")

    @property
    def samples(self) -> int:
        """Number of samples N."""
        return int(self.q.shape[0])

    def rows(self, rows: slice | NDArray[np.int64]) -> Experiment:
        """Some samples, in order."""
        names = ("time", "q", "dq", "ddq", "effort", "valid", "segment")
        wrench = None if self.wrench is None else self.wrench[rows]
        return replace(self, wrench=wrench, **{name: getattr(self, name)[rows] for name in names})

    def smooth(self, columns: Floats) -> Floats:
        """Columns (N, k) through the low-pass of the torques, segment by segment; needed by what jumps: sign(dq)."""
        if self.smoothing is None or self.smoothing.cutoff_hz is None:
            return columns
        return self.by_segment(self.smoothing.apply, columns)

    def by_segment(self, change: Callable[[Floats], Floats], columns: Floats) -> Floats:
        """Columns (N, k), each gap-free stretch of them changed by itself."""
        borders = np.flatnonzero(np.diff(self.segment)) + 1
        return np.concatenate([change(part) for part in np.split(columns, borders)])
