"""A watch over an experiment: when something pushed, against which joint, suddenly or slowly.

The momentum observer sees the torque from outside (external torque). A `Calibration` turns it into two statistics per
joint and sample: one of sudden torques, for contacts, and one of their size, for slow disturbances. An alarm begins
where one of them exceeds its level, which follows from a rate of false alarms. ``dynid watch`` calls
`watch_experiment`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.decompositions import one_blas_thread
from dynid.identification.identify import Identification
from dynid.monitor.alarm_tails import CLEAR_S
from dynid.monitor.calibration import Calibration, Kind, Levels, Statistics, calibrate, largest_motion
from dynid.monitor.watched_signals import true_runs, watched_stretches
from dynid.processing.experiment import Experiment
from dynid.spatial import TINY
from dynid.tables import Table, count_words, html_card

MOST_NAMED_GAPS = 5
"""Most gaps of a watch that its verdict names (convention)."""
OVER_SHARE = 1.0 / 3.0
"""Share of the largest torque of a contact below which it is over, if it stays there for `CLEAR_S` (convention)."""
LARGEST_REACH_RATIO = 1.2
"""Ratio of speeds or torques to the largest of the calibration above which no rate is stated (convention)."""
SAME_S = 1.0
"""Time after a contact in which the same joint may leave its band by the same push [s] (convention)."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm of the arm."""

    time_s: float
    """Time at which it began [s], on the clock of the log."""
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
    """Time at which a contact ended [s], on the clock of the log; None where no end was found."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Watch:
    """The alarms in one experiment, and the signals that they come from."""

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
    """The log."""
    calibrated_s: float
    """Length of the data that the rate was fitted to [s]."""
    unlike: str = ""
    """How the motion differs from those of the calibration, so that no rate can be stated; empty where it does not."""

    @property
    def seconds(self) -> float:
        """Time that was watched, without gaps [s]."""
        return float(np.median(np.diff(self.time)) * self.time.size) if self.time.size > 1 else 0.0

    @property
    def verdict(self) -> str:
        """Number of alarms, time that was watched and rate of false alarms, as one sentence."""
        expected = self.per_hour * self.seconds / 3600.0
        if not self.time.size:
            return "nothing was watched: no stretch is long enough and has the torques of all joints"
        rate = f"no rate of false alarms can be stated: {self.unlike}" if self.unlike else (
            f"{expected:.2g} false ones are expected at {self.per_hour:g} per hour (tails fitted to "
            f"{self.calibrated_s:.0f} s of clean motion)")  # fmt: skip
        return f"{count_words(len(self.alarms), 'alarm')} in {self.seconds:.1f} s, {self._describe_watch()}; {rate}"

    @property
    def gaps(self) -> tuple[tuple[float, float], ...]:
        """Begin and end [s] of each time between the first and the last sample that was not watched.

        A step of more than two and a half periods is such a time: one lost sample is none.
        """
        steps = np.diff(self.time)
        return tuple(
            (float(self.time[k]), float(self.time[k + 1])) for k in np.flatnonzero(steps > 2.5 * np.median(steps))
        )

    def _describe_watch(self) -> str:
        """Describe the time that was watched."""
        named = [f"{begin:.2f} to {end:.2f}" for begin, end in self.gaps[:MOST_NAMED_GAPS]]
        more = len(self.gaps) - len(named)
        gaps = ", ".join(named) + (f" and {more} more" if more else "")
        return f"from {self.time[0]:.2f} to {self.time[-1]:.2f} s" + (f" without {gaps} s" if named else "")

    def table(self) -> Table:
        """Make a table of all alarms."""
        rows = [
            (f"{alarm.time_s:.3f}", "-" if alarm.until_s is None else f"{alarm.until_s:.3f}", alarm.joint,
             ", ".join(name for name in alarm.joints if name != alarm.joint) or "-", alarm.kind,
             alarm.torque, alarm.excess)
            for alarm in self.alarms
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
        calibration: Calibration of the watch; None for one from the data of the identification.
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
        time=_join_arrays([one.stretch.time for one in found], 0),
        external=_join_arrays([one.external for one in found], len(known.joint_names)),
        limit=_join_arrays([levels.band * known.level_scale * one.std for one in found], len(known.joint_names)),
        source=run.source,
        calibrated_s=known.seconds,
        unlike=_compare_motion(known, found),
    )


def _compare_motion(known: Calibration, found: Sequence[Statistics]) -> str:
    """Describe how a motion goes beyond those of the calibration: speed or torque; empty where it does not."""
    if known.reach is None or not found:
        return ""
    ratio = np.max([largest_motion(one.stretch) for one in found], axis=0) / np.maximum(known.reach, TINY)  # (2, n)
    kind, joint = np.unravel_index(int(ratio.argmax()), ratio.shape)
    if ratio[kind, joint] <= LARGEST_REACH_RATIO:
        return ""
    words = ("moves {:.2g} times as fast as", "carries {:.2g} times the torque of")[int(kind)]
    return f"{known.joint_names[int(joint)]} {words.format(ratio[kind, joint])} the logs of the calibration"


def _join_arrays(parts: Sequence[Floats], width: int) -> Floats:
    """Join arrays (N, width), or (N,) for a width of zero; there may be none."""
    return np.concatenate(parts) if parts else np.zeros((0, width) if width else 0)


def find_alarms(found: Statistics, joints: Sequence[str], levels: Levels) -> Iterator[Alarm]:
    """Find the alarms of one stretch; onsets on several joints within `CLEAR_S` are one push.

    A joint that was touched may leave its band later: within `SAME_S` this is no other disturbance. Letting go is
    sudden, too: a jump that brings the torques back to where nothing pushes is the end of a contact.

    Args:
        found: The statistics along the stretch.
        joints: Names of the joints.
        levels: Levels of the statistics.
    """
    excess = found.excess(levels)  # kind -> (N, n) statistic over its level
    gap, same = (max(1, round(time_s * found.stretch.rate_hz)) for time_s in (CLEAR_S, SAME_S))  # [periods]
    # every row k and joint j at which an excess begins
    onsets = sorted(
        _Onset(k, kind != "contact", -float(over[k, j]), j)
        for kind, over in excess.items()
        for j in range(len(joints))
        for k in first_excesses(over[:, j] > 1.0, gap)
    )
    # a slow onset soon after a contact of the same joint is the same push
    touched = [onset for onset in onsets if not onset.is_slow]
    onsets = [
        onset
        for onset in onsets
        if not (onset.is_slow and any(t.joint == onset.joint and 0 < onset.row - t.row <= same for t in touched))
    ]
    while onsets:  # the earliest ones make one alarm
        first = onsets[0].row
        together = [onset for onset in onsets if onset.row - first <= gap]
        onsets = onsets[len(together) :]
        kind: Kind = "disturbance" if all(onset.is_slow for onset in together) else "contact"
        reached = sorted({onset.joint for onset in together})
        rows = slice(first, first + gap)
        j = max(reached, key=lambda i: max(float(over[rows, i].max()) for over in excess.values()))
        end = _find_end(found, levels, first, reached, gap) if kind == "contact" else None
        until = None
        if end is not None:
            rows = slice(first, end)
            until = float(found.stretch.time[end])
            # onsets at the end are the letting go, unless the joint is still pushed afterwards
            settled = _are_settled(found, levels, rows, gap)
            onsets = [onset for onset in onsets if not (abs(onset.row - end) <= gap and settled[onset.joint])]
        during = found.external[rows, j]
        largest = float(during[np.abs(during).argmax()])
        torque = largest if end is None else float(np.copysign(np.median(np.abs(during)), largest))
        most = max(float(over[rows, j].max()) for over in excess.values())
        names = tuple(joints[i] for i in reached)
        yield Alarm(float(found.stretch.time[first]), joints[j], kind, torque, most, names, until)


class _Onset(NamedTuple):
    """The first excess of one statistic of one joint; onsets are sorted by time, contacts before disturbances."""

    row: int
    """Index of the sample."""
    is_slow: bool
    """Whether it is a disturbance."""
    minus_excess: float
    """Minus the statistic over its level, so that the largest comes first."""
    joint: int
    """Index of the joint."""


def _find_end(found: Statistics, levels: Levels, first: int, reached: Sequence[int], gap: int) -> int | None:
    """Find the row from which on a contact no longer pushes the joints that it pushed beyond their bands.

    A joint is free again when it stays for ``gap`` rows in its band, or far below its largest torque.

    Returns:
        The row; None where the contact pushed no joint beyond its band, or no end is found.
    """
    begin = slice(first, first + gap)
    pushed = [j for j in reached if found.level[begin, j].max() > levels.band]
    if not pushed:
        return None
    torque = np.abs(found.external[first:, pushed])
    peak = torque[:gap].max(axis=0)
    is_over = ((torque < OVER_SHARE * peak) | (found.level[first:, pushed] < levels.band)).all(axis=1)
    is_over[: int(torque[:gap].argmax(axis=0).max()) + 1] = False  # not before all joints had their largest torque
    return next((first + begin for begin, end in true_runs(is_over) if end - begin >= gap), None)


def _are_settled(found: Statistics, levels: Levels, during: slice, gap: int) -> NDArray[np.bool_]:
    """Find out which joints (n,) are free after a contact: in their bands, or far below their torques during it.

    Args:
        found: The statistics along the stretch.
        levels: Levels of the statistics.
        during: Rows of the contact.
        gap: Rows after it that count.
    """
    after = slice(during.stop, during.stop + gap)
    is_inside = np.median(found.level[after], axis=0) < levels.band
    before = np.abs(found.external[during]).max(axis=0)
    return np.asarray(is_inside | (np.median(np.abs(found.external[after]), axis=0) < OVER_SHARE * before))


def first_excesses(over: NDArray[np.bool_], gap: int) -> list[int]:
    """List the rows at which an excess (N,) begins that no other excess precedes within ``gap`` rows."""
    places = np.flatnonzero(over)
    if not places.size:
        return []
    return [int(places[0]), *(int(k) for k in places[1:][np.diff(places) > gap])]
