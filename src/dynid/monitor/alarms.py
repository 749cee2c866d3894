"""A watch over an experiment: when something pushed, against which joint, suddenly or slowly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import one_blas_thread
from dynid.identification.identify import Identification
from dynid.monitor.alarm_tails import CLEAR_S
from dynid.monitor.calibration import Calibration, Kind, Levels, Statistics, calibrate, largest_motion
from dynid.monitor.watched_signals import true_runs, watched_stretches
from dynid.processing.experiment import Experiment
from dynid.tables import Table, count_words, html_card

NAMED = 5
"""Gaps of a watch that its verdict names (convention)."""
OVER = 1.0 / 3.0
"""Share of the largest torque of a contact below which it is over, if it stays there for `CLEAR_S` (convention)."""
BEYOND = 1.2
"""Ratio of speeds or torques to the largest of the calibration from which on no rate is stated (convention)."""
SAME_S = 1.0
"""Time after a contact in which the same joint may leave its band by the same push [s] (convention)."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm of the arm."""

    time_s: float
    """When it came [s], on the clock of the log."""
    joint: str
    """The joint with the largest statistic over its level."""
    kind: Kind
    """``contact`` for a sudden torque; ``disturbance`` for one that came slowly: a load, a cable, wear."""
    torque: float
    """Torque from outside: the largest within a quarter of a second; of a contact whose end was seen its median size,
    with the sign of the largest; of a live watch the step of a contact as it is known at the alarm, and the torque of a
    disturbance so far [N m or N]."""
    excess: float
    """The largest statistic over its level, until the end or within a quarter of a second; of a live watch that at the
    alarm [-]."""
    joints: tuple[str, ...] = ()
    """All joints that were reached within a quarter of a second, in the order of the robot."""
    until_s: float | None = None
    """When a contact let go [s], on the clock of the log; None where this was not seen."""


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
    unlike: str = ""
    """In what the motion is unlike those of the calibration, so that no rate can be stated; empty where it is not."""

    @property
    def seconds(self) -> float:
        """Length of what was watched [s]."""
        return float(np.median(np.diff(self.time)) * self.time.size) if self.time.size > 1 else 0.0

    @property
    def verdict(self) -> str:
        """What was found, as one sentence."""
        expected = self.per_hour * self.seconds / 3600.0
        if not self.time.size:
            return "nothing was watched: no stretch is long enough and has the torques of all joints"
        rate = f"no rate of false alarms can be stated: {self.unlike}" if self.unlike else (
            f"{expected:.2g} false ones are expected at {self.per_hour:g} per hour (tails fitted to "
            f"{self.calibrated_s:.0f} s of clean motion)")  # fmt: skip
        return f"{count_words(len(self.alarms), 'alarm')} in {self.seconds:.1f} s, {self._watched()}; {rate}"

    @property
    def gaps(self) -> tuple[tuple[float, float], ...]:
        """Begin and end of what was not watched between the first and the last sample [s]."""
        steps = np.diff(self.time)
        return tuple(
            (float(self.time[k]), float(self.time[k + 1])) for k in np.flatnonzero(steps > 2.5 * np.median(steps))
        )

    def _watched(self) -> str:
        """The time that was watched, in words."""
        named = [f"{begin:.2f} to {end:.2f}" for begin, end in self.gaps[:NAMED]]
        more = len(self.gaps) - len(named)
        gaps = ", ".join(named) + (f" and {more} more" if more else "")
        return f"from {self.time[0]:.2f} to {self.time[-1]:.2f} s" + (f" without {gaps} s" if named else "")

    def table(self) -> Table:
        """All alarms."""
        rows = [
            (f"{a.time_s:.3f}", "-" if a.until_s is None else f"{a.until_s:.3f}", a.joint,
             ", ".join(name for name in a.joints if name != a.joint) or "-", a.kind,
             a.torque, a.excess)
            for a in self.alarms
        ]  # fmt: skip
        header = [
            "time [s]",
            "until [s]",
            "joint",
            "joints reached too",
            "kind",
            "torque [N m or N]",
            "largest statistic over level",
        ]
        return Table.of(header, rows)

    def summary(self) -> str:
        """The verdict, and the table of alarms."""
        return f"{self.verdict}\n\n{self.table().to_text()}" if self.alarms else self.verdict

    def to_json(self) -> dict[str, Any]:
        """The result as values that JSON can hold."""
        return {
            "verdict": self.verdict,
            "source": self.source,
            "seconds": self.seconds,
            "not_watched_s": [list(gap) for gap in self.gaps],
            "false_alarms_per_hour": None if self.unlike else self.per_hour,
            "unlike_the_calibration": self.unlike,
            "calibrated_seconds": self.calibrated_s,
            "alarms": [asdict(alarm) for alarm in self.alarms],
        }

    def __repr__(self) -> str:
        """The verdict in one line."""
        return f"Watch({self.verdict})"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Verdict and alarms, for notebooks."""
        return html_card(self.verdict, table=self.table())


@one_blas_thread()
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
    found = [known.statistics(stretch) for stretch in watched_stretches(fit, run, known.rate_hz)]
    levels = known.levels(per_hour)
    alarms = sorted(
        (alarm for one in found for alarm in find_alarms(one, known.joint_names, levels)), key=lambda a: a.time_s
    )
    return Watch(
        joint_names=known.joint_names,
        per_hour=per_hour,
        alarms=tuple(alarms),
        time=_joined([one.stretch.time for one in found], 0),
        external=_joined([one.external for one in found], len(known.joint_names)),
        limit=_joined([levels.band * known.level_scale * one.std for one in found], len(known.joint_names)),
        source=run.source,
        calibrated_s=known.seconds,
        unlike=_compare_motion(known, found),
    )


def _compare_motion(known: Calibration, found: Sequence[Statistics]) -> str:
    """In what a motion goes beyond those of the calibration, in words; empty where it does not."""
    if known.reach is None or not found:
        return ""
    most = np.max([largest_motion(one.stretch) for one in found], axis=0) / np.maximum(known.reach, 1e-300)
    kind, joint = np.unravel_index(int(most.argmax()), most.shape)
    if most[kind, joint] <= BEYOND:
        return ""
    words = ("moves {:.2g} times as fast as", "carries {:.2g} times the torque of")[int(kind)]
    return f"{known.joint_names[int(joint)]} {words.format(most[kind, joint])} the logs of the calibration"


def _joined(parts: Sequence[Floats], width: int) -> Floats:
    return np.concatenate(parts) if parts else np.zeros((0, width) if width else 0)


def find_alarms(found: Statistics, joints: Sequence[str], levels: Levels) -> Iterator[Alarm]:
    """The alarms of one stretch: what begins on several joints within `CLEAR_S` is one push.

    A joint that was touched may leave its band later: within `SAME_S` this is no other disturbance. Letting go is
    sudden, too: what brings the torques back to where nothing pushes is the end of a contact.
    """
    excess = found.excess(levels)
    gap, same = (max(1, round(time_s * found.stretch.rate_hz)) for time_s in (CLEAR_S, SAME_S))
    onsets = sorted(
        (k, kind != "contact", -float(over[k, j]), j)
        for kind, over in excess.items()
        for j in range(len(joints))
        for k in first_excesses(over[:, j] > 1.0, gap)
    )
    touched = [(k, j) for k, is_slow, _, j in onsets if not is_slow]
    onsets = [one for one in onsets if not (one[1] and any(j == one[3] and 0 < one[0] - k <= same for k, j in touched))]
    while onsets:
        first = onsets[0][0]
        together = [one for one in onsets if one[0] - first <= gap]
        onsets = onsets[len(together) :]
        kind: Kind = "contact" if not all(one[1] for one in together) else "disturbance"
        reached = sorted({one[3] for one in together})
        begin = slice(first, first + gap)
        j = max(reached, key=lambda i: max(float(over[begin, i].max()) for over in excess.values()))
        end = _find_end(found, levels, first, reached, gap) if kind == "contact" else None
        rows, until = begin, None
        if end is not None:
            rows, until = slice(first, end), float(found.stretch.time[end])
            settled = _are_settled(found, levels, rows, gap)
            onsets = [one for one in onsets if not (abs(one[0] - end) <= gap and settled[one[3]])]
        during = found.external[rows, j]
        largest = float(during[np.abs(during).argmax()])
        torque = largest if end is None else float(np.copysign(np.median(np.abs(during)), largest))
        most = max(float(over[rows, j].max()) for over in excess.values())
        names = tuple(joints[i] for i in reached)
        yield Alarm(float(found.stretch.time[first]), joints[j], kind, torque, most, names, until)


def _find_end(found: Statistics, levels: Levels, first: int, reached: Sequence[int], gap: int) -> int | None:
    """Index from which on a contact pushes no joint any more that it pushed beyond its band, for some samples.

    A joint is free again in its band, or far below its largest torque. None where it pushed no joint so far, and where
    no end is seen.
    """
    begin = slice(first, first + gap)
    pushed = [j for j in reached if found.level[begin, j].max() > levels.band]
    if not pushed:
        return None
    torque = np.abs(found.external[first:, pushed])
    peak = torque[:gap].max(axis=0)
    is_over = ((torque < OVER * peak) | (found.level[first:, pushed] < levels.band)).all(axis=1)
    is_over[: int(torque[:gap].argmax(axis=0).max()) + 1] = False
    return next((first + a for a, b in true_runs(is_over) if b - a >= gap), None)


def _are_settled(found: Statistics, levels: Levels, during: slice, gap: int) -> NDArray[np.bool_]:
    """(n,) whether nothing pushes against joints after a contact: in their bands, or far below the torque of before."""
    after = slice(during.stop, during.stop + gap)
    is_inside = np.median(found.level[after], axis=0) < levels.band
    before = np.abs(found.external[during]).max(axis=0)
    return np.asarray(is_inside | (np.median(np.abs(found.external[after]), axis=0) < OVER * before))


def first_excesses(over: NDArray[np.bool_], gap: int) -> list[int]:
    """Indices at which an excess begins that no other precedes within some samples."""
    places = np.flatnonzero(over)
    if not places.size:
        return []
    return [int(places[0]), *(int(k) for k in places[1:][np.diff(places) > gap])]
