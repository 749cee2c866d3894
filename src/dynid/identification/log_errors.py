"""Torque errors of each log: how measured and predicted torques are compared, and which log and joint is the worst.

`Comparison` low-passes the torques and sums the squares of their differences; a `LogError` holds the sums of one log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from dynid.array_types import Floats
from dynid.estimators.equations import relative_errors
from dynid.estimators.rows import stretches
from dynid.processing.cutoff import HIGHEST_CUTOFF
from dynid.processing.experiment import Experiment
from dynid.processing.filters import ORDER, Butterworth

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LogError:
    """Sums of squares over one log, or over several together, which its relative errors are made of."""

    name: str
    """Name of the log in tables and sentences; empty for several together."""
    squares: Floats
    """(n,) sum of the squares of each joint's residuals."""
    total: Floats
    """(n,) sum of the squares of each joint's measured torques."""

    @property
    def errors(self) -> Floats:
        """(n + 1,) relative error of each joint and of all together [%]."""
        return relative_errors(self.squares, self.total)

    @property
    def per_joint(self) -> Floats:
        """(n,) relative error of each joint [%]."""
        return self.errors[:-1]

    def error(self, joints: Mask | None = None) -> float:
        """Relative error [%] over the marked joints (n,) together, over all if None; NaN where nothing was measured."""
        counted = slice(None) if joints is None else joints
        return float(relative_errors(self.squares[counted], self.total[counted])[-1])

    def worst_joint(self, joints: Mask | None = None) -> int:
        """Index of the joint, among the marked ones (n,) or all if None, with the largest sum of squares."""
        return int(np.argmax(self.squares if joints is None else np.where(joints, self.squares, -1.0)))


def name_logs(runs: Sequence[Experiment]) -> list[str]:
    """Unique names of runs: the name of the file, or the number of the run where several files have the same name."""
    names = [Path(run.source).name for run in runs]
    counts = Counter(names)
    return [
        name if name and counts[name] == 1 else f"run {number}" + (f" ({name})" if name else "")
        for number, name in enumerate(names, start=1)
    ]


def name_worst(logs: Sequence[LogError], joint_names: Sequence[str], joints: Mask | None = None) -> str:
    """A clause that names the log with the largest error and its worst joint; empty where there is one log only.

    Args:
        logs: The errors of each log.
        joint_names: (n,) names of the joints.
        joints: (n,) joints that count; all if None.
    """
    known = [log for log in logs if np.isfinite(log.error(joints))]
    if len(logs) < 2 or not known:
        return ""
    worst = max(known, key=lambda log: log.error(joints))
    joint = worst.worst_joint(joints)
    name, error = joint_names[joint], worst.per_joint[joint]
    if joints is not None and not joints.all():
        return f"; of these {name} is worst in {worst.name} ({error:.3g} %)"
    return f"; the worst log is {worst.name} ({worst.error():.3g} %), there {name} ({error:.3g} %)"


SETTLING_ACCURACY = 1e-2
"""Remaining share of the filter's step response, by which the samples left out at the ends are chosen (convention)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rules by which measured and predicted torques are compared."""

    band_hz: float | None = None
    """Band to which the torques are low-passed [Hz]; None for no filter."""
    trim_s: float | None = None
    """Time left out at both ends of a low-passed stretch [s]; None for the settling time of the filter."""

    def torques(self, run: Experiment, *torques: Floats) -> tuple[tuple[Floats, ...], Mask]:
        """Low-pass torques of one run for the comparison, and mark the samples that count.

        With a band they are low-passed wherever they were measured, also at rest and in slow rows that do not count.
        The filter is a Butterworth filter of order 4, run forwards and backwards with odd extension of the ends.
        Samples near the ends, where the filter has not settled, are left out.

        Args:
            run: The run.
            *torques: Its torques or residuals, each (N, n).

        Returns:
            The same torques, zero where a sample does not count, and the mask (N, n) of those that count.
        """
        if self.band_hz is None or self.band_hz >= HIGHEST_CUTOFF * run.rate_hz:
            return tuple(np.where(run.valid, torque, 0.0) for torque in torques), run.valid
        smooth = np.zeros((len(torques), *run.effort.shape))
        counts = np.zeros_like(run.valid)
        trim = Butterworth(1.0, self.band_hz, SETTLING_ACCURACY).settling_s if self.trim_s is None else self.trim_s
        margin = int(np.ceil(trim * run.rate_hz - 1e-9))  # samples; less rounding, so that whole numbers stay
        sections = signal.butter(ORDER, self.band_hz, fs=run.rate_hz, output="sos")
        for rows, joint in _measured_stretches(run, margin):
            known = np.isfinite(run.effort[rows, joint])
            whole = np.column_stack([_bridge_holes(torque[rows, joint], known) for torque in torques])
            padding = min(3 * (ORDER + 1), len(whole) - 1)  # SciPy's usual one, if the stretch is that long
            table = signal.sosfiltfilt(sections, whole, axis=0, padlen=padding)
            inner = slice(rows.start + margin, rows.stop - margin)
            smooth[:, inner, joint] = table[margin : len(table) - margin].T
            counts[inner, joint] = run.valid[inner, joint]
        return tuple(np.where(counts, smooth, 0.0)), counts

    def error(self, runs: Sequence[Experiment], predict: Callable[[Experiment], Floats], name: str = "") -> LogError:
        """The errors of predicted torques over some runs together.

        Args:
            runs: The runs.
            predict: Gives the torques (N, n) of a run.
            name: Name of the result.
        """
        squares = []
        total = []
        for run in runs:
            (measured, residual), _ = self.torques(run, run.effort, run.effort - predict(run))
            squares.append((residual**2).sum(axis=0))
            total.append((measured**2).sum(axis=0))
        return LogError(name, np.sum(squares, axis=0), np.sum(total, axis=0))


def _measured_stretches(run: Experiment, margin: int) -> Iterator[tuple[slice, int]]:
    """Rows and joint of every stretch whose torques were measured without a hole longer than the margin [samples].

    Stretches that are no longer than the two margins which are cut off are left out.
    """
    for rows, _ in stretches(run):
        for joint in range(run.q.shape[1]):
            known = rows.start + np.flatnonzero(np.isfinite(run.effort[rows, joint]))
            for part in np.split(known, np.flatnonzero(np.diff(known) > margin) + 1):
                if part.size and part[-1] - part[0] > 2 * margin:
                    yield slice(int(part[0]), int(part[-1]) + 1), joint


def _bridge_holes(torque: Floats, known: Mask) -> Floats:
    """(N,) torques of one joint, interpolated linearly where they are not known (N,)."""
    rows = np.arange(torque.size)
    return np.interp(rows, rows[known], torque[known])
