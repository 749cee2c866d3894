"""From a recording to an experiment: clean, bring to one clock, smooth, differentiate, mask, trim.

Positions and torques go through the same zero-phase low-pass; [Atkeson1986] section 3.1 and [Izaguirre1992] section 7
describe the chain. Every step writes a line into the experiment's recipe and counts what it leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.checks import check_number
from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording, all_finite, sealed
from dynid.processing.cutoff import choose_cutoff
from dynid.processing.delay import model_delay
from dynid.processing.differentiation import CentralDifferences, Derivation, Differentiation
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth, LowPass, Smoothing
from dynid.processing.rest import Rest
from dynid.processing.uniform import Cleaning, Stretch, UniformRecording, make_uniform
from dynid.robot.model import Robot

__all__ = ["Processing", "process"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LONG_REST = Rest()
"""Standstill of half a second or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processing:
    """All choices of `process` in one object, so that many recordings can be treated alike."""

    cutoff_hz: float | Literal["auto"] | None = "auto"
    """Where the low-pass has halved a signal [Hz]; "auto" finds the best for the accelerations; None for no filter."""
    rate_hz: float | None = None
    """Rate of the experiment [Hz], at most the recording's; None keeps that."""
    low_pass: LowPass = field(default_factory=Butterworth)
    differentiation: Differentiation = field(default_factory=CentralDifferences)
    trim_s: float | Literal["auto"] = "auto"
    """Time cut off at both ends of every stretch [s]; "auto" is the settling time of the filter."""
    rest: Rest | None = field(default_factory=Rest)
    """Which standstill is left out; None keeps it."""
    dead_band: float = 0.0
    """Rows of a joint slower than this are left out [rad/s or m/s]."""
    filter_effort: bool = False
    """Low-pass torques like positions. Least squares averages their noise anyway, while a filter would smear what dry
    friction does at reversals; thinning out filters them in any case."""
    effort_delay_s: float | Literal["auto"] = 0.0
    """How late torques are stamped [s]; "auto" estimates it. See `dynid.check_recording`."""
    accuracy: float = 1e-3
    """Relative accuracy of the accelerations that transients must not spoil; decides how much "auto" trims."""
    cleaning: Cleaning = field(default_factory=Cleaning)

    def __post_init__(self) -> None:
        """Refuse numbers that no log can be processed with."""
        check_number("cutoff_hz", self.cutoff_hz, "a frequency above zero [Hz], 'auto' or None", auto=True)
        check_number("rate_hz", self.rate_hz, "a rate above zero [Hz]")
        check_number("max_gap_s", self.cleaning.max_gap_s, "a time above zero [s], or None")
        check_number("trim_s", self.trim_s, "a time from zero up [s], or 'auto'", zero=True, auto=True)
        check_number("dead_band", self.dead_band, "a speed from zero up [rad/s or m/s]", zero=True)
        check_number(
            "effort_delay_s", self.effort_delay_s, "at most 10 s, or 'auto'", 10.0, zero=True, signed=True, auto=True
        )

    @property
    def delay_s(self) -> float:
        """How late torques are stamped [s], once it is a number."""
        if isinstance(self.effort_delay_s, str):
            raise ArgumentError(f"effort_delay_s is {self.effort_delay_s!r}", remedy="Give a number [s] or 'auto'.")
        return self.effort_delay_s

    def smoothing(self, rate_hz: float) -> Smoothing:
        """The smoothing at a sampling rate [Hz], once the cutoff is a number."""
        if isinstance(self.cutoff_hz, str):
            raise ArgumentError(f"cutoff_hz is {self.cutoff_hz!r}", remedy="Give a number [Hz], 'auto' or None.")
        return Smoothing(rate_hz=rate_hz, cutoff_hz=self.cutoff_hz, low_pass=self.low_pass, accuracy=self.accuracy)


def process(
    recording: Recording,
    *,
    cutoff_hz: float | Literal["auto"] | None = "auto",
    rate_hz: float | None = None,
    low_pass: LowPass | None = None,
    differentiation: Differentiation | None = None,
    trim_s: float | Literal["auto"] = "auto",
    rest: Rest | None = LONG_REST,
    dead_band: float = 0.0,
    filter_effort: bool = False,
    effort_delay_s: float | Literal["auto"] = 0.0,
    max_gap_s: float | None = None,
    repair_time: bool = False,
    cleaning: Cleaning | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Experiment:
    """Turn a raw log into an experiment.

    Args:
        recording: The raw log.
        cutoff_hz: Where the low-pass has halved a signal [Hz]; "auto" finds the best for the accelerations and says
            why; None filters nothing.
        rate_hz: Rate of the result [Hz]; the recording's own by default.
        low_pass: `Butterworth` (order 4, forwards and backwards) or `Fir`.
        differentiation: `CentralDifferences`, `SavitzkyGolay`, `SmoothingSpline`, `Fourier`, `MeasuredVelocity` or
            `QuasiStatic`.
        trim_s: Time cut off at both ends of every gap-free stretch [s]; "auto" is the filter's settling time.
        rest: Which standstill is masked; None keeps it.
        dead_band: Rows of a joint slower than this are masked [rad/s or m/s].
        filter_effort: Low-pass torques like positions; otherwise only where samples are thinned out.
        effort_delay_s: How late torques are stamped [s]; they are moved back by it. "auto" estimates it from the log
            alone, says so in the recipe, and moves nothing unless it is sure; `check_recording` knows more.
        max_gap_s: Longest step that is no gap [s]; three sampling periods by default.
        repair_time: Accept and sort a clock of which more than 1 % runs backwards.
        cleaning: What is taken out of the signals; replaces `max_gap_s` and `repair_time`.
        progress: Told the share that is done, 0 to 1, and what comes next.

    Raises:
        DataError: The log is too faulty or too short to be used; the message says what to do.
    """
    options = Processing(
        cutoff_hz=cutoff_hz,
        rate_hz=rate_hz,
        low_pass=low_pass or Butterworth(),
        differentiation=differentiation or CentralDifferences(),
        trim_s=trim_s,
        rest=rest,
        dead_band=dead_band,
        filter_effort=filter_effort,
        effort_delay_s=effort_delay_s,
        cleaning=cleaning or Cleaning(max_gap_s=max_gap_s, repair_time=repair_time),
    )
    if recording.isolated:
        return isolated_rows(recording, options)
    tell = progress or (lambda share, note: None)
    tell(0.0, "cleaning")
    options, delay = resolve_delay(recording, options)
    uniform = uniform_recording(recording, options)
    tell(0.4, "choosing the cutoff")
    resolved, reason = resolve_cutoff(uniform, options)
    tell(0.6, "filtering and differentiating")
    experiment = assemble(recording, uniform, resolved, reason)
    tell(1.0, "processed")
    return replace(experiment, recipe=(delay, *experiment.recipe)) if delay else experiment


def isolated_rows(recording: Recording, options: Processing) -> Experiment:
    """Rows picked from a log with unknown gaps: as they are, with measured velocities and no accelerations."""
    velocity = np.zeros_like(recording.q) if recording.dq is None else recording.dq
    effort = np.full_like(recording.q, np.nan) if recording.effort is None else recording.effort
    moving = np.flatnonzero(np.isfinite(recording.q).all(axis=1) & np.isfinite(velocity).all(axis=1))
    if moving.size < 2:
        raise DataError("fewer than two rows have finite positions", remedy="Check the log and its channel map.")
    valid = np.isfinite(effort[moving])
    slow = valid & (np.abs(velocity[moving]) < options.dead_band)
    dropped = {
        "position not finite": (recording.q.shape[0] - moving.size) * recording.q.shape[1],
        "torque not finite": int(np.count_nonzero(~valid)),
        "velocity dead band": int(np.count_nonzero(slow)),
    }
    return Experiment(
        time=recording.time[moving],
        q=recording.q[moving],
        dq=velocity[moving],
        ddq=np.zeros((moving.size, recording.q.shape[1])),
        effort=effort[moving],
        valid=valid & ~slow,
        segment=np.arange(moving.size),
        rate_hz=1.0 / float(np.median(np.diff(recording.time[moving]))),
        wrench=None if recording.wrench is None else recording.wrench[moving],
        joint_names=recording.joint_names,
        recipe=("isolated rows: not filtered, velocities as measured, accelerations taken as zero",),
        dropped={name: count for name, count in dropped.items() if count},
        source=recording.source,
        sha256=recording.sha256,
    )


def resolve_delay(recording: Recording, options: Processing, robot: Robot | None = None) -> tuple[Processing, str]:
    """The same options with a number for the delay of the torques, by a robot's equations, and what to say of it."""
    if options.effort_delay_s != "auto":
        return options, ""
    plain = replace(options, effort_delay_s=0.0, filter_effort=False, rate_hz=None)
    uniform = uniform_recording(recording, plain)
    delay, _ = model_delay(robot, assemble(recording, uniform, *resolve_cutoff(uniform, plain)))
    verdict = "moved back" if delay.sure else "left as they are"
    note = f"torques {1e3 * delay.seconds:.4g} ms late (standard error {1e3 * delay.stderr_s:.2g} ms): {verdict}"
    return replace(options, effort_delay_s=delay.seconds if delay.sure else 0.0), note


def uniform_recording(
    recording: Recording, options: Processing, period_s: float | None = None, origin_s: float | None = None
) -> UniformRecording:
    """The first stage: cleaned, on one uniform clock."""
    return make_uniform(
        recording,
        options.cleaning,
        effort_delay_s=options.delay_s,
        with_velocity=options.differentiation.source == "dq",
        period_s=period_s,
        origin_s=origin_s,
    )


def resolve_cutoff(uniform: UniformRecording, options: Processing) -> tuple[Processing, str]:
    """The same options with a number for the cutoff, and the reason for it."""
    if options.cutoff_hz is None:
        return options, "no low-pass"
    if options.cutoff_hz != "auto":
        return options, f"cutoff {float(options.cutoff_hz):.4g} Hz as given"
    if not options.differentiation.tunable:
        return replace(options, cutoff_hz=None), "no low-pass: accelerations are not computed"
    signals = [s.q if options.differentiation.source == "q" else s.dq for s in uniform.stretches]
    choice = choose_cutoff(
        [s for s in signals if s is not None] or [s.q for s in uniform.stretches],
        uniform.rate_hz,
        differentiation=options.differentiation,
        low_pass=options.low_pass,
    )
    accuracy = float(np.clip(0.5 * choice.relative_error, 1e-6, 1e-2))
    return replace(options, cutoff_hz=choice.hz, accuracy=accuracy), choice.reason


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """One processed stretch; fields as in Experiment."""

    time: Floats
    q: Floats
    dq: Floats
    ddq: Floats
    effort: Floats
    valid: Mask
    wrench: Floats | None

    def take(self, rows: slice) -> _Piece:
        wrench = None if self.wrench is None else self.wrench[rows]
        motion = (self.time[rows], self.q[rows], self.dq[rows], self.ddq[rows])
        return _Piece(*motion, self.effort[rows], self.valid[rows], wrench)


def assemble(
    recording: Recording,
    uniform: UniformRecording,
    options: Processing,
    reason: str,
    thresholds: Floats | None = None,
) -> Experiment:
    """The later stages: smooth, differentiate, mask, trim, thin out. Needs a cutoff that is a number or None."""
    smoothing = options.smoothing(uniform.rate_hz)
    step = _thinning(options, uniform.rate_hz)
    options = replace(options, filter_effort=options.filter_effort or step > 1)
    dropped: Counter[str] = Counter(uniform.dropped)
    trim = _trim_samples(options, smoothing)
    pieces: list[_Piece] = []
    for stretch in uniform.stretches:
        if stretch.time.size < 2 * trim + max(4, 2 * options.differentiation.margin() + 2):
            dropped["stretch too short"] += stretch.q.size
            continue
        piece = _smooth(stretch, smoothing, options, dropped)
        dropped["filter transient"] += 2 * trim * piece.q.shape[1]
        pieces.append(piece.take(slice(trim, piece.time.size - trim)))
    if not pieces:
        raise DataError(
            f"no gap-free stretch is longer than twice the transient of {trim / uniform.rate_hz:.3g} s",
            remedy="Raise the cutoff (cutoff_hz, --cutoff), trim less (trim_s, --trim), or allow longer gaps "
            "(max_gap_s, --max-gap).",
        )
    if thresholds is None and options.rest:
        thresholds = rest_thresholds(options.rest, uniform, np.concatenate([p.dq for p in pieces]))
    pieces = [_mask_rest(p, options, uniform.rate_hz, thresholds, dropped) for p in pieces]
    pieces = [p.take(slice(None, None, step)) for p in pieces]
    recipe = [*uniform.notes, reason, *_steps(options, smoothing, trim, step, uniform.rate_hz)]
    derivation = Derivation(smoothing, options.differentiation)
    final = replace(smoothing, rate_hz=uniform.rate_hz / step)
    experiment = _experiment(recording, pieces, final.rate_hz, tuple(recipe), dropped)
    return Experiment(**experiment, derivation=derivation, smoothing=final if options.filter_effort else None)


def rest_thresholds(rest: Rest, uniform: UniformRecording, dq: Floats) -> Floats:
    """Speed (n,) below which each joint counts as resting, over all stretches."""
    return rest.thresholds(dq, [stretch.q for stretch in uniform.stretches], uniform.rate_hz)


def _smooth(stretch: Stretch, smoothing: Smoothing, options: Processing, dropped: Counter[str]) -> _Piece:
    motion = options.differentiation.motion(stretch.q, stretch.dq, smoothing)
    known = _away_from_gaps(stretch.effort_known, int(0.5 * smoothing.settling_s * smoothing.rate_hz))
    has_effort = all_finite(stretch.effort)
    effort = smoothing.apply(stretch.effort) if has_effort and options.filter_effort else stretch.effort
    if not known.all():
        dropped["torque missing nearby"] += has_effort * int(np.count_nonzero(~known))
        effort = np.where(known, effort, np.nan)
    wrench = None if stretch.wrench is None else smoothing.apply(stretch.wrench)
    if wrench is not None and stretch.wrench_known is not None:
        wrench = np.where(stretch.wrench_known.all(axis=1, keepdims=True), wrench, np.nan)
    return _Piece(stretch.time, *motion, effort, known, wrench)


def _away_from_gaps(known: Mask, reach: int) -> Mask:
    """Samples that are known, and so are all within `reach` samples of them."""
    if known.all() or reach == 0:
        return known
    missing = np.cumsum(np.vstack([np.zeros((1, known.shape[1]), dtype=int), ~known]), axis=0)
    index = np.arange(known.shape[0])
    lower, upper = np.maximum(index - reach, 0), np.minimum(index + reach + 1, known.shape[0])
    return np.asarray(missing[upper] - missing[lower] == 0)


def _mask_rest(
    piece: _Piece, options: Processing, rate_hz: float, thresholds: Floats | None, dropped: Counter[str]
) -> _Piece:
    valid = piece.valid
    if options.rest is not None and thresholds is not None:
        resting = options.rest.mask(piece.dq, rate_hz, thresholds)
        if resting.any():
            dropped["at rest"] += int(np.count_nonzero(valid & resting))
            valid = valid & ~resting
    if options.dead_band > 0.0:
        slow = np.abs(piece.dq) < options.dead_band
        dropped["velocity dead band"] += int(np.count_nonzero(valid & slow))
        valid = valid & ~slow
    return replace(piece, valid=valid)


def _trim_samples(options: Processing, smoothing: Smoothing) -> int:
    trim_s = smoothing.settling_s if isinstance(options.trim_s, str) else options.trim_s
    unfiltered = smoothing.cutoff_hz is None and options.trim_s == "auto"
    shortest = 0 if unfiltered else int(np.ceil(trim_s * smoothing.rate_hz))
    return max(shortest, options.differentiation.margin() if options.trim_s == "auto" else 0)


def _thinning(options: Processing, rate_hz: float) -> int:
    """Every how-many-th sample is kept; refuses rates that are no whole part of the recording's, or would alias."""
    if options.rate_hz is None:
        return 1
    step = round(rate_hz / options.rate_hz)
    if step < 1 or abs(rate_hz / step - options.rate_hz) > 0.02 * options.rate_hz:
        nearest = rate_hz / max(step, 1)
        raise ArgumentError(
            f"rate_hz {options.rate_hz:g} is no whole part of the recording's {rate_hz:g} Hz",
            remedy=f"Use {nearest:.6g} Hz.",
        )
    cutoff = options.cutoff_hz
    if step > 1 and (not isinstance(cutoff, (int, float)) or cutoff > 0.5 * rate_hz / step):
        raise ArgumentError(
            f"samples at {rate_hz / step:g} Hz cannot hold signals filtered at {cutoff} Hz",
            remedy="Lower cutoff_hz below half of rate_hz.",
        )
    return step


def _steps(options: Processing, smoothing: Smoothing, trim: int, step: int, rate_hz: float) -> list[str]:
    what = "positions, torques and wrenches" if options.filter_effort else "positions and wrenches"
    lines = [f"low-pass {options.low_pass} on {what}"] if smoothing.cutoff_hz else []
    lines.append(f"differentiation {options.differentiation}")
    if options.delay_s:
        lines.append(f"torques moved back by {1e3 * options.delay_s:.4g} ms")
    lines.append(f"{trim / rate_hz:.3g} s trimmed at both ends of every stretch")
    if options.rest is not None:
        lines.append(f"rest longer than {options.rest.min_s:g} s left out, joint by joint")
    if options.dead_band > 0.0:
        lines.append(f"rows slower than {options.dead_band:g} rad/s or m/s left out")
    if step > 1:
        lines.append(f"every {step}th sample kept")
    return lines


def _experiment(
    recording: Recording, pieces: list[_Piece], rate_hz: float, recipe: tuple[str, ...], dropped: Counter[str]
) -> dict[str, Any]:
    """What an experiment has of its pieces and its recording."""

    def joined(name: str) -> NDArray[Any]:
        parts = [getattr(piece, name) for piece in pieces]
        return sealed(np.concatenate(parts) if len(parts) > 1 else parts[0])

    return dict(
        time=joined("time"),
        q=joined("q"),
        dq=joined("dq"),
        ddq=joined("ddq"),
        effort=joined("effort"),
        valid=joined("valid"),
        segment=np.concatenate([np.full(piece.time.size, k, dtype=np.int64) for k, piece in enumerate(pieces)]),
        rate_hz=rate_hz,
        wrench=None if recording.wrench is None else joined("wrench"),
        joint_names=recording.joint_names,
        recipe=recipe,
        dropped={name: count for name, count in dropped.items() if count},
        source=recording.source,
        sha256=recording.sha256,
    )
