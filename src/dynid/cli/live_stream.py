"""The work of ``dynid watch --live``: samples from standard input, alarms to standard output as they begin."""

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


REPORTED_SINGLY = 3
"""Broken lines that are reported one by one; of further ones every tenth, hundredth, ... is (convention)."""
SAMPLES_CHECKED = 1000
"""First samples in which faults of the stream are looked for, and last ones whose periods are kept for a message
(convention: some seconds)."""


class _Stream:
    """The samples of a stream whose time grows; broken lines, samples out of order and set clocks are reported."""

    def __init__(self, lines: Iterable[str], joint_names: tuple[str, ...]) -> None:
        """Begin a stream.

        Args:
            lines: Lines of text, see `dynid.monitor.live_lines`.
            joint_names: Names of the joints of the robot.
        """
        from dynid.monitor.live_lines import read_samples

        self.joints = len(joint_names)
        self.useful = 0
        """Samples that served to learn or could be judged; the caller counts the latter, and begins anew with zero."""
        self._steps: deque[float] = deque(maxlen=SAMPLES_CHECKED)
        self._samples = self._in_order(read_samples(lines, joint_names, refused=_reporter("left out")))

    def __iter__(self) -> Iterator[Sample]:
        return self._samples

    def _in_order(self, samples: Iterator[Sample]) -> Iterator[Sample]:
        """Leave out samples whose time does not grow; a clock that was set is reported, and its samples pass."""
        from dynid.monitor.live_lines import is_clock_set

        before = None  # time of the sample before
        last = None  # time of the last sample that passed
        leave_out = _reporter("left out")
        warn = _reporter("warning")
        for sample in samples:
            self._steps.append(0.0 if before is None else sample.time_s - before)
            before = sample.time_s
            if last is not None and is_clock_set(last, sample.time_s):
                way = "ahead" if sample.time_s > last else "back"
                message = f"the time jumps {way} from {last} s to {sample.time_s} s; the watch begins anew"
                warn(errors.DataError(message))
            elif last is not None and sample.time_s <= last:
                message = f"the time {sample.time_s} s does not follow {last} s"
                leave_out(errors.DataError(message, remedy="Let it grow."))
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
        """Take the samples of the first seconds, during which the clock may be set.

        Raises:
            DataError: The stream ends before.
        """
        from dynid.monitor.live_lines import is_clock_set

        elapsed = 0.0
        last = None
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
        calibrated: Makes the calibration; called only where nothing is learnt from the stream.
        learn: Seconds of the stream to calibrate from; zero for none [s].
        per_hour: Rate of false alarms of the whole arm [1/h].
        as_json: Whether alarms are JSON, one line each.
        cutoff_hz: Cutoff of the logs of the result, by which the stream is checked [Hz]; None for one by its noise.
    """
    from dynid.monitor.live_watch import LiveWatch
    from dynid.workflows.live_calibration import calibrate_samples

    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")  # a broken line is left out
    stream = _Stream(sys.stdin, fit.robot.joint_names)
    if learn > 0.0:
        echo(f"learning from {learn:g} s, in which nothing may touch the robot", err=True)
        calibration = calibrate_samples(fit, list(stream.first_seconds(learn)))
        stream.useful = 0
    else:
        calibration = calibrated()
    watch = LiveWatch(fit, calibration, per_hour=per_hour)
    echo(watch.sentence, err=True)
    for finding in watch.sight.findings:
        show_finding(finding)
    alarms = 0
    try:
        for alarm in _alarms(fit, watch, stream, cutoff_hz):
            alarms += 1
            _print_alarm(alarm, as_json)
    except KeyboardInterrupt:
        echo("interrupted", err=True)  # the usual end of a watch
    except BrokenPipeError:
        write_no_more()  # the program that read the alarms has ended; its last alarm still counts
        return 1
    if not alarms:
        stream.refuse_useless()
    with contextlib.suppress(OSError):
        expected = per_hour * watch.judged_s / 3600.0
        echo(f"{count_words(alarms, 'alarm')} in {watch.judged_s:.1f} s; {expected:.2g} false ones are expected at "
             f"{per_hour:g} per hour", err=True)  # fmt: skip
    return 1 if alarms else 0


def _alarms(fit: Identification, watch: LiveWatch, stream: _Stream, cutoff_hz: float | None) -> Iterator[Alarm]:
    """Watch a stream and yield its alarms; after the first samples, findings about them are printed."""
    from dynid.workflows.live_calibration import check_samples

    first: list[Sample] = []
    for sample in stream:
        yield from watch.step(*sample)
        if watch.is_judging:
            stream.useful += 1
        if len(first) == SAMPLES_CHECKED:
            continue
        first.append(sample)
        if len(first) == SAMPLES_CHECKED:
            for finding in check_samples(fit, first, cutoff_hz):
                show_finding(finding)


def _print_alarm(alarm: Alarm, as_json: bool) -> None:
    """Print an alarm in one line, as text or as JSON."""
    if as_json:
        print_json(pick(alarm, "time_s", "joint", "joints", "kind", "torque"), indent=None)
    else:
        what = "a step of " if alarm.kind == "contact" else ""
        echo(f"{alarm.time_s:.3f} s: {alarm.kind} at {alarm.joint}, {what}{alarm.torque:.3g} N m or N so far")


def _reporter(word: str) -> Callable[[errors.DataError], None]:
    """Make a function that prints errors after a word: the first ones all, then those whose number is round.

    Round numbers have one digit other than zero: 4, 5, ..., 9, 10, 20, ..., 100, 200, ...
    """
    counted = count(1)

    def report(error: errors.DataError) -> None:
        number = next(counted)
        if number <= REPORTED_SINGLY or not str(number)[1:].strip("0"):
            echo(f"{word}: {error}" + (f" ({number} lines so far)" if number > REPORTED_SINGLY else ""), err=True)

    return report
