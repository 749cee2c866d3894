"""What ``dynid watch --live`` does: samples from standard input, alarms to standard output as they begin."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from statistics import median
from typing import TYPE_CHECKING

from dynid import errors
from dynid.cli.screen import echo, print_json, show_finding, write_no_more
from dynid.plain_data import pick
from dynid.tables import count_words

if TYPE_CHECKING:
    from dynid.identification.identify import Identification
    from dynid.monitor.alarms import Alarm
    from dynid.monitor.calibration import Calibration
    from dynid.monitor.live_lines import Sample
    from dynid.monitor.live_watch import LiveWatch


SAID = 3
"""Broken lines that are said one by one (convention)."""
CHECKED = 1000
"""Samples in which faults of the stream are looked for, and whose steps of time are remembered (convention: some
seconds)."""


class _Stream:
    """The samples of lines whose time grows or was set; where it was set is said, and what is left out."""

    def __init__(self, lines: Iterable[str], joint_names: tuple[str, ...]) -> None:
        from dynid.monitor.live_lines import read_samples

        self._samples = self._in_order(read_samples(lines, joint_names, refused=_refuser()))
        self._steps: deque[float] = deque(maxlen=CHECKED)
        self.joints, self.useful = len(joint_names), 0

    def __iter__(self) -> Iterator[Sample]:
        return self._samples

    def _in_order(self, samples: Iterator[Sample]) -> Iterator[Sample]:
        from dynid.monitor.live_lines import is_clock_set

        last = before = None
        refuse, say = _refuser(), _refuser("warning")
        for sample in samples:
            self._steps.append(0.0 if before is None else sample.time_s - before)
            before = sample.time_s
            if last is not None and is_clock_set(last, sample.time_s):
                way = "ahead" if sample.time_s > last else "back"
                say(errors.DataError(f"the time jumps {way} from {last} s to {sample.time_s} s; the watch begins anew"))
            elif last is not None and sample.time_s <= last:
                refuse(errors.DataError(f"the time {sample.time_s} s does not follow {last} s", remedy="Let it grow."))
                continue
            last = sample.time_s
            yield sample

    def refuse_useless(self) -> None:
        """Refuse a stream of which nothing was of use.

        Raises:
            DataError: No sample came, or none could be judged.
        """
        from dynid.monitor.live_lines import ask_for_lines

        if not self._steps:
            raise errors.DataError("no sample came to watch", remedy=ask_for_lines(self.joints))
        if not self.useful:
            raise errors.DataError(
                f"no sample could be judged, and their times are {median(self._steps):.3g} s apart",
                remedy="Send one sample a line, more than the 0.3 s that a watch needs to begin, with times in "
                "seconds that grow at the rate of the calibration.",
            )

    def first_seconds(self, seconds: float) -> Iterator[Sample]:
        """The samples of some seconds, in which the clock may be set.

        Raises:
            DataError: The stream ends before.
        """
        from dynid.monitor.live_lines import is_clock_set

        elapsed, last = 0.0, None
        for sample in self._samples:
            if last is not None and not is_clock_set(last, sample.time_s):
                elapsed += sample.time_s - last
                self.useful += 1
            if elapsed >= seconds:
                return
            last = sample.time_s
            yield sample
        self.refuse_useless()
        raise errors.DataError(
            f"the stream ended after {elapsed:.3g} s of the {seconds:g} s of learning, so that nothing was watched",
            remedy="Let it go on, or learn from fewer seconds.",
        )


def watch_stream(
    fit: Identification,
    calibrated: Callable[[], Calibration],
    *,
    learn: float,
    per_hour: float,
    as_json: bool,
    cutoff_hz: float | None = None,
) -> int:
    """Watch standard input until it ends or is interrupted; the exit code is 1 if there was an alarm.

    Args:
        fit: The identified model.
        calibrated: Gives the calibration where nothing is learnt.
        learn: Seconds of the stream to calibrate from; zero for none [s].
        per_hour: Rate of false alarms of the whole arm [1/h].
        as_json: Whether alarms are JSON, one line each.
        cutoff_hz: Cutoff of the logs of the result, by which the stream is checked [Hz]; None for one by its noise.
    """
    from dynid.monitor.live_watch import LiveWatch
    from dynid.runs.live_calibration import calibrate_samples

    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")  # a broken line is left out
    stream = _Stream(sys.stdin, fit.robot.joint_names)
    if learn > 0.0:
        echo(f"learning from {learn:g} s, in which nothing may touch the robot", err=True)
        known = calibrate_samples(fit, list(stream.first_seconds(learn)))
        stream.useful = 0
    else:
        known = calibrated()
    guard = LiveWatch(fit, known, per_hour=per_hour)
    echo(guard.sentence, err=True)
    for finding in guard.sight.findings:
        show_finding(finding)
    alarms = 0
    try:
        for alarm in _alarms(fit, guard, stream, cutoff_hz):
            alarms += 1
            _print_alarm(alarm, as_json)
    except KeyboardInterrupt:
        echo("interrupted", err=True)  # the usual end of a watch
    except BrokenPipeError:
        write_no_more()  # who read the alarms has ended; that there were some still counts
        return 1
    if not alarms:
        stream.refuse_useless()
    with contextlib.suppress(OSError):
        expected = per_hour * guard.judged_s / 3600.0
        echo(f"{count_words(alarms, 'alarm')} in {guard.judged_s:.1f} s; {expected:.2g} false ones are expected at "
             f"{per_hour:g} per hour", err=True)  # fmt: skip
    return 1 if alarms else 0


def _alarms(fit: Identification, guard: LiveWatch, stream: _Stream, cutoff_hz: float | None) -> Iterator[Alarm]:
    """The alarms of a stream; doubts about its first samples are said on the way."""
    from dynid.runs.live_calibration import check_samples

    first: list[Sample] = []
    for sample in stream:
        yield from guard.step(*sample)
        stream.useful += guard.is_judging
        if len(first) < CHECKED:
            first.append(sample)
            for finding in check_samples(fit, first, cutoff_hz) if len(first) == CHECKED else ():
                show_finding(finding)


def _print_alarm(alarm: Alarm, as_json: bool) -> None:
    if as_json:
        print_json(pick(alarm, "time_s", "joint", "joints", "kind", "torque"), indent=None)
    else:
        what = "a step of " if alarm.kind == "contact" else ""
        echo(f"{alarm.time_s:.3f} s: {alarm.kind} at {alarm.joint}, {what}{alarm.torque:.3g} N m or N so far")


def _refuser(word: str = "left out") -> Callable[[errors.DataError], None]:
    """What is called with broken lines or times: says the first ones, and then each power of ten."""
    counted = count(1)

    def refuse(error: errors.DataError) -> None:
        number = next(counted)
        if number <= SAID or not str(number)[1:].strip("0"):
            echo(f"{word}: {error}" + (f" ({number} lines so far)" if number > SAID else ""), err=True)

    return refuse
