"""Held-out errors log by log: of several logs that are judged together, which one is the worst, and in which joint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.estimation.equations import relative_errors
from dynid.processing.experiment import Experiment

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LogError:
    """What one held-out log adds to the errors."""

    name: str
    squares: Floats
    """(n,) sum of the squares of each joint's residuals."""
    total: Floats
    """(n,) sum of the squares of each joint's measured torques."""

    @property
    def per_joint(self) -> Floats:
        """(n,) relative error of each joint [%]."""
        return relative_errors(self.squares, self.total)[:-1]

    def error(self, joints: Mask | None = None) -> float:
        """Relative error over some joints together, or over all [%]; NaN where nothing was measured."""
        counted = slice(None) if joints is None else joints
        return float(relative_errors(self.squares[counted], self.total[counted])[-1])

    def worst_joint(self, joints: Mask | None = None) -> int:
        """The one of some joints, or of all, that adds most to the error."""
        return int(np.argmax(self.squares if joints is None else np.where(joints, self.squares, -1.0)))


def name_logs(runs: Sequence[Experiment]) -> list[str]:
    """Names that tell runs apart: that of the file, with the number of the run where several have the same name."""
    names = [Path(run.source).name for run in runs]
    counts = Counter(names)
    return [
        name if name and counts[name] == 1 else f"run {number}" + (f" ({name})" if name else "")
        for number, name in enumerate(names, start=1)
    ]


def name_worst(logs: Sequence[LogError], joint_names: Sequence[str], joints: Mask | None = None) -> str:
    """A clause that names the log with the largest error over some joints, or over all, and its worst joint.

    It is empty where there is one log only.
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
