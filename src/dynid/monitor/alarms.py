"""A watch over an experiment: when something pushed, against which joint, suddenly or slowly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.links.identify import Identification
from dynid.monitor.calibration import Calibration, Statistics, calibrate
from dynid.monitor.watched_signals import watched_stretches
from dynid.processing.experiment import Experiment
from dynid.public_calls import public
from dynid.tables import Table, html_card

__all__ = ["Alarm", "Watch", "watch_experiment"]

Floats = NDArray[np.float64]
Kind = Literal["contact", "disturbance"]
CLEAR_S = 0.25
"""Time without excess after which a new excess is a new alarm [s] (convention: a block of the fitted tails)."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm."""

    time_s: float
    """When it came [s], on the clock of the log."""
    joint: str
    kind: Kind
    """``contact`` for a sudden torque; ``disturbance`` for one that came slowly: a load, a cable, wear."""
    torque: float
    """Torque from outside at the alarm [N m or N]."""
    excess: float
    """The statistic over its level [-]."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Watch:
    """What a watch found in one experiment."""

    joint_names: tuple[str, ...]
    per_hour: float
    """Stated rate of false alarms of the whole arm [1/h]."""
    alarms: tuple[Alarm, ...]
    """In the order of time."""
    time: Floats
    """(N,) [s]"""
    external: Floats
    """(N, n) torques from outside [N m or N]."""
    limit: Floats
    """(N, n) torque beyond which a slow disturbance is an alarm [N m or N]."""
    source: str
    calibrated_s: float
    """Length of the data that the rate was fitted to [s]."""

    @property
    def seconds(self) -> float:
        """Length of what was watched [s]."""
        return float(np.median(np.diff(self.time)) * self.time.size) if self.time.size > 1 else 0.0

    @property
    def verdict(self) -> str:
        """What was found, as one sentence."""
        expected = self.per_hour * self.seconds / 3600.0
        count = "no alarm" if not self.alarms else "1 alarm" if len(self.alarms) == 1 else f"{len(self.alarms)} alarms"
        return (
            f"{count} in {self.seconds:.1f} s; {expected:.2g} false ones are expected at {self.per_hour:g} per hour "
            f"(tails fitted to {self.calibrated_s:.0f} s of clean motion)"
        )

    def table(self) -> Table:
        """All alarms."""
        rows = [(f"{a.time_s:.3f}", a.joint, a.kind, a.torque, a.excess) for a in self.alarms]
        return Table.of(["time [s]", "joint", "kind", "torque [N m or N]", "statistic over level"], rows)

    def summary(self) -> str:
        """The verdict, and the table of alarms."""
        return f"{self.verdict}\n\n{self.table().to_text()}" if self.alarms else self.verdict

    def to_json(self) -> dict[str, Any]:
        """The result as values that JSON can hold."""
        return {
            "verdict": self.verdict,
            "source": self.source,
            "seconds": self.seconds,
            "false_alarms_per_hour": self.per_hour,
            "calibrated_seconds": self.calibrated_s,
            "alarms": [
                {"time_s": a.time_s, "joint": a.joint, "kind": a.kind, "torque": a.torque, "excess": a.excess}
                for a in self.alarms
            ],
        }

    def __repr__(self) -> str:
        """The verdict in one line."""
        return f"Watch({self.verdict})"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Verdict and alarms, for notebooks."""
        return html_card(self.verdict, table=self.table())


@public
def watch_experiment(
    fit: Identification,
    run: Experiment,
    calibration: Calibration | None = None,
    *,
    per_hour: float = 1.0,
) -> Watch:
    """Watch an experiment with an identified model.

    Args:
        fit: The identified model.
        run: The experiment; nothing of it may be in the calibration.
        calibration: What a clean robot does; from the identification's own data if None.
        per_hour: Rate of false alarms of the whole arm [1/h]: the only number to choose.

    Example:
        >>> found = dynid.monitor.watch_experiment(fit, run, dynid.monitor.calibrate(fit, [other]))
        >>> len(found.alarms)
        0
    """
    known = calibrate(fit) if calibration is None else calibration
    found = [known.statistics(stretch) for stretch in watched_stretches(fit, run)]
    levels = known.levels(per_hour)
    alarms = sorted(
        (alarm for one in found for alarm in _alarms(one, known.joint_names, levels)), key=lambda a: a.time_s
    )
    return Watch(
        joint_names=known.joint_names,
        per_hour=per_hour,
        alarms=tuple(alarms),
        time=_joined([one.stretch.time for one in found], 0),
        external=_joined([one.external for one in found], len(known.joint_names)),
        limit=_joined([levels[1] * one.std for one in found], len(known.joint_names)),
        source=run.source,
        calibrated_s=known.seconds,
    )


def _joined(parts: Sequence[Floats], width: int) -> Floats:
    return np.concatenate(parts) if parts else np.zeros((0, width) if width else 0)


def _alarms(found: Statistics, joints: Sequence[str], levels: tuple[float, float]) -> Iterator[Alarm]:
    """The alarms of one stretch; a slow one beside a sudden one of the same joint is the same push."""
    gap = max(1, round(CLEAR_S * found.stretch.rate_hz))
    for j, joint in enumerate(joints):
        sudden = first_excesses(found.jump[:, j] > levels[0], gap)
        slow = first_excesses(found.level[:, j] > levels[1], gap)
        alone = [k for k in slow if not any(0 <= k - s <= gap for s in sudden)]
        kinds: list[tuple[Kind, list[int], Floats, float]] = [
            ("contact", sudden, found.jump[:, j], levels[0]),
            ("disturbance", alone, found.level[:, j], levels[1]),
        ]
        for kind, places, statistic, level in kinds:
            for k in places:
                torque = float(found.external[k, j])
                yield Alarm(float(found.stretch.time[k]), joint, kind, torque, float(statistic[k] / level))


def first_excesses(over: NDArray[np.bool_], gap: int) -> list[int]:
    """Indices at which an excess begins that no other precedes within some samples."""
    places = np.flatnonzero(over)
    if not places.size:
        return []
    return [int(places[0]), *(int(k) for k in places[1:][np.diff(places) > gap])]
