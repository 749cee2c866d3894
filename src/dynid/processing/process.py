"""From a raw log to data for the regressor: q, dq, ddq and torques, filtered and sampled at one rate.

Input is a `Recording` (a log in SI units, with noise, gaps and other faults); output is an `Experiment`, from which the
equations ``regressor(q, dq, ddq) parameters = torque`` are built. The stages:

1. Torques are moved back by their delay (`Processing.effort_delay_s`).
2. Faults are removed, and all channels are interpolated to one uniform clock (`make_uniform` in uniform.py). Gaps cut
   the log into *stretches*; nothing is filtered or differentiated across the border of two stretches.
3. The cutoff of the low-pass is chosen from the spectrum of the positions, unless it is given (cutoff.py).
4. Positions are smoothed and differentiated twice (filters.py).
5. Torques are smoothed if wanted, samples of joints at rest are marked as not valid, both ends of every stretch are
   trimmed, and the rate is reduced if wanted.

`process` runs all stages. `PreparedLog` holds a log after stage 4, so that callers can choose one cutoff for several
logs (`share_cutoff`), or run stage 5 more than once. The low-pass has no phase, and torques that are filtered go
through the same one as positions: [Atkeson1986] section 3.1, [Izaguirre1992] section 7. Every stage adds a line to the
experiment's `processing_steps`, and counts the joint samples (one joint at one instant) that it leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from dynid.array_types import Floats
from dynid.checks import check_number
from dynid.errors import ArgumentError, DataError
from dynid.logs.recording import Recording, all_finite, seal
from dynid.processing.cutoff import HIGHEST_CUTOFF, choose_common_cutoff
from dynid.processing.experiment import Dropped, Experiment
from dynid.processing.filters import ORDER, Butterworth, CentralDifferences, Derivation, Derivatives, check_band
from dynid.processing.outliers import long_runs, rest_thresholds
from dynid.processing.uniform import Cleaning, Stretch, UniformRecording, make_uniform

Mask = NDArray[np.bool_]
Progress = Callable[[float, str], None]

LOWEST_CUTOFF_PER_BAND, HIGHEST_CUTOFF_PER_BAND = 1.5, 3.0
"""Limits of an automatic cutoff as multiples of `Processing.band_hz`. Convention: a Butterworth low-pass of order 4 run
forwards and backwards with a cutoff of 1.5 times the band is flat in the band; beyond 3 times, only noise is added."""
TRANSIENT_ERROR_SHARE = 0.5
"""Largest error by transients of the filter at the ends of a stretch, as a share of the predicted error of the
accelerations (convention)."""
ACCURACY_RANGE = (1e-6, 1e-2)
"""Smallest and largest `Processing.accuracy` that an automatic cutoff sets (convention)."""
LONGEST_DELAY_S = 1.0
"""Largest delay of the torques that is accepted [s] (convention: a larger number is probably one in milliseconds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processing:
    """All choices of `process`; one object serves many recordings."""

    cutoff_hz: float | Literal["auto"] | None = "auto"
    """Frequency at which the low-pass halves the amplitude [Hz]; "auto" chooses the best one for the accelerations;
    None for no filter."""
    band_hz: float | None = None
    """Upper end of the band in which torques are to be explained [Hz]: an automatic cutoff stays within 1.5 and 3 times
    it. None for no such limit."""
    rate_hz: float | None = None
    """Rate of the experiment [Hz]: that of the recording is divided by the nearest whole number; None keeps it."""
    differentiation: CentralDifferences = field(default_factory=CentralDifferences)
    """`CentralDifferences` of positions, or `MeasuredVelocity`, which differentiates measured velocities once."""
    trim_s: float | Literal["auto"] = "auto"
    """Time cut off at both ends of every stretch [s]; "auto" is the settling time of the filter."""
    rest: float | None = 0.5
    """Shortest standstill of a joint that is left out [s]; shorter ones, as at a change of direction, are kept. None
    keeps all."""
    dead_band: float = 0.0
    """Samples of a joint slower than this are left out [rad/s or m/s]."""
    filter_effort: bool = False
    """Whether torques are low-passed like positions. Least squares averages their noise anyway, while a filter would
    smear the step of dry friction at reversals. If the rate is reduced they are filtered in any case."""
    effort_delay_s: float | Literal["auto"] = 0.0
    """Delay of the torques behind the positions [s]; torques are moved back by it. `process` needs a number: callers
    replace "auto" by the estimate of `dynid.diagnosis.refinement.resolve_delay`, which uses the robot's equations."""
    accuracy: float = 1e-3
    """Relative error of the accelerations that transients of the filter may cause at the ends of a stretch; an
    automatic cutoff sets it."""
    cleaning: Cleaning = field(default_factory=Cleaning)
    """Which faults are removed from the signals, and when a log is refused."""

    def __post_init__(self) -> None:
        """Refuse numbers that no log can be processed with."""
        check_number("cutoff_hz", self.cutoff_hz, "a frequency above zero [Hz], 'auto' or None", auto=True)
        check_number("band_hz", self.band_hz, "the upper end of the band [Hz], or None")
        check_number("rate_hz", self.rate_hz, "a rate above zero [Hz]")
        check_number("trim_s", self.trim_s, "a time from zero up [s], or 'auto'", zero=True, auto=True)
        check_number("rest", self.rest, "a time from zero up [s], or None", zero=True)
        check_number("dead_band", self.dead_band, "a speed from zero up [rad/s or m/s]", zero=True)
        check_delay("effort_delay_s", self.effort_delay_s)

    @property
    def delay_s(self) -> float:
        """Delay of the torques [s]; refused while it is "auto"."""
        if isinstance(self.effort_delay_s, str):
            raise ArgumentError(
                f"effort_delay_s is {self.effort_delay_s!r}, and only a robot's equations tell a delay",
                remedy="Give a number [s], or identify with delay_s = 'auto'; dynid.diagnosis.find_delay estimates it.",
            )
        return self.effort_delay_s


def process(recording: Recording, options: Processing | None = None, **changes: Any) -> Experiment:
    """Turn a raw log into an experiment.

    Args:
        recording: The raw log.
        options: How the log is processed; `Processing()` by default.
        **changes: Fields of `Processing` that replace those of `options`: ``process(log, cutoff_hz=10)``.

    Raises:
        DataError: The log is too faulty or too short to be used; the message says what to do.

    Example:
        >>> dynid.process(log, cutoff_hz=10)
        Experiment('simulation of ddarm, seed 0', 561 samples of 3 joints at 100 Hz, 1683 torques can be used)
    """
    options = replace(options or Processing(), **changes)
    if recording.isolated:
        return isolated_rows(recording, options)
    return PreparedLog.start(recording, options).experiment()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedLog:
    """A log after stage 4, on one uniform clock with its positions differentiated.

    `start` makes it, and `experiment` does stage 5.
    """

    recording: Recording
    """The raw log."""
    requested: Processing
    """The options as they were given."""
    options: Processing
    """The options with a number for the cutoff."""
    uniform: UniformRecording
    """The log after stage 2."""
    notes: tuple[str, ...]
    """Lines for `Experiment.processing_steps`; the last one is the reason for the cutoff."""
    stretches: tuple[tuple[Stretch, Derivatives], ...]
    """Each gap-free stretch with its q, dq and ddq after stage 4, before anything is trimmed."""
    trim: int
    """Number of samples that stage 5 cuts off at both ends of every stretch."""
    dropped: dict[Dropped, int]
    """Reason -> joint samples left out so far."""

    @classmethod
    def start(
        cls,
        recording: Recording,
        options: Processing,
        *,
        period_s: float | None = None,
        origin_s: float | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Run stages 1 to 4.

        Args:
            recording: A log that is not `Recording.isolated`.
            options: How it is processed.
            period_s: Sampling period [s] where known, as for later pieces of a log; None to take it from the stamps.
            origin_s: A time stamp of the uniform clock [s] where known, as for later pieces of a log; None for any.
            progress: Called with the finished share (0 to 1) and a short description of the current step.
        """
        report = progress or (lambda share, note: None)
        report(0.0, "cleaning")
        uniform = make_uniform(
            recording,
            options.cleaning,
            effort_delay_s=options.delay_s,
            with_velocity=options.differentiation.source == "dq",
            period_s=period_s,
            origin_s=origin_s,
        )
        if options.band_hz is not None:
            check_band("band_hz", options.band_hz, uniform.rate_hz)
        report(0.4, "choosing the cutoff")
        resolved, reason = _resolve_cutoff(uniform, options)
        report(0.6, "filtering and differentiating")
        return cls._differentiated(recording, options, resolved, uniform, (*uniform.notes, reason))

    @classmethod
    def _differentiated(
        cls,
        recording: Recording,
        requested: Processing,
        options: Processing,
        uniform: UniformRecording,
        notes: tuple[str, ...],
    ) -> Self:
        """Run stage 4: smooth and differentiate the positions.

        Args:
            recording: The raw log.
            requested: The options as they were given.
            options: The options with a number for the cutoff.
            uniform: The log after stage 2.
            notes: As in `PreparedLog`.

        Raises:
            DataError: No stretch is long enough for the low-pass.
        """
        smoothing = _low_pass(options, uniform.rate_hz)
        trim = _trim_samples(options, smoothing)
        # at least two samples are left between what is trimmed and what differences reach beyond, at both ends
        shortest = 2 * (trim + options.differentiation.margin() + 1)
        long = [stretch for stretch in uniform.stretches if stretch.time.size >= shortest]
        dropped = Counter(uniform.dropped)
        dropped[Dropped.SHORT_STRETCH] += sum(s.q.size for s in uniform.stretches) - sum(s.q.size for s in long)
        if not long:
            longest = max(stretch.time.size for stretch in uniform.stretches)
            rate = uniform.rate_hz
            raise DataError(
                f"the log has {longest} samples ({longest / rate:.3g} s) without a gap, and its low-pass needs at "
                f"least {shortest} samples ({shortest / rate:.3g} s at {rate:.4g} Hz)",
                remedy="Record a longer motion without gaps, bridge longer gaps (max_gap_s), raise the cutoff "
                "(cutoff_hz) or trim less (trim_s).",
            )
        differentiated = tuple((s, options.differentiation.motion(s.q, s.dq, smoothing)) for s in long)
        return cls(
            recording=recording,
            requested=requested,
            options=options,
            uniform=uniform,
            notes=notes,
            stretches=differentiated,
            trim=trim,
            dropped=dict(dropped),
        )

    def with_cutoff(self, cutoff_hz: float, reason: str) -> Self:
        """Repeat stage 4 with another cutoff; nothing is cleaned or resampled again.

        Args:
            cutoff_hz: The cutoff [Hz].
            reason: The reason for it in `Experiment.processing_steps`; it replaces that for the first cutoff.
        """
        options = replace(self.options, cutoff_hz=cutoff_hz)
        notes = (*self.notes[:-1], reason)
        return self._differentiated(self.recording, self.requested, options, self.uniform, notes)

    def rest_thresholds(self) -> Floats | None:
        """Find the speeds (n,) below which a joint counts as resting [rad/s or m/s]; None if the options keep rest."""
        if self.options.rest is None:
            return None
        dq = np.concatenate([motion.dq[self._inner(motion)] for _, motion in self.stretches])
        return rest_thresholds(dq, [s.q for s in self.uniform.stretches], self.uniform.rate_hz)

    def experiment(self, *, filter_effort: bool | None = None, thresholds: Floats | None = None) -> Experiment:
        """Run stage 5: smooth torques if wanted, mark samples of joints at rest, trim, reduce the rate.

        Args:
            filter_effort: Whether torques are low-passed; None for `Processing.filter_effort`.
            thresholds: (n,) speeds as from `rest_thresholds`, of a longer log of which this one is a part; None to find
                those of this log.
        """
        rate = self.uniform.rate_hz
        step = _thinning_step(self.options, rate)
        wanted = self.options.filter_effort if filter_effort is None else filter_effort
        # a reduced rate needs the low-pass against aliasing
        options = replace(self.options, filter_effort=wanted or step > 1)
        smoothing = _low_pass(options, rate)
        limits = self.rest_thresholds() if thresholds is None else thresholds
        dropped: Counter[Dropped] = Counter(self.dropped)
        rows = [self._finish(*one, options, smoothing, limits, step, dropped) for one in self.stretches]
        final = replace(smoothing, rate_hz=rate / step)
        return _join_stretches(
            self.recording,
            rows,
            rate_hz=final.rate_hz,
            processing_steps=(*self.notes, *_describe_steps(options, smoothing, self.trim, step, rate)),
            dropped={str(reason): count for reason, count in dropped.items() if count},
            derivation=Derivation(smoothing, options.differentiation),
            smoothing=final if options.filter_effort else None,
        )

    def _inner(self, motion: Derivatives) -> slice:
        """Select the rows of a stretch that are not trimmed."""
        return slice(self.trim, motion.dq.shape[0] - self.trim)

    def _finish(
        self,
        stretch: Stretch,
        motion: Derivatives,
        options: Processing,
        smoothing: Butterworth,
        thresholds: Floats | None,
        step: int,
        dropped: Counter[Dropped],
    ) -> dict[str, NDArray[Any]]:
        """Run stage 5 for one stretch of N samples.

        Args:
            stretch: The stretch on the uniform clock.
            motion: Its positions, velocities and accelerations.
            options: The options, with a number for the cutoff.
            smoothing: The low-pass.
            thresholds: (n,) speed below which each joint rests; None to keep rest.
            step: Every step-th sample is kept.
            dropped: Reason -> joint samples left out; those of this stretch are added.

        Returns:
            Field of `Experiment` (time, q, dq, ddq, effort, valid, wrench) -> its rows in this stretch.
        """
        effort, known = _torques(stretch, smoothing, options.filter_effort, dropped)
        channels: dict[str, NDArray[Any]] = {
            "time": stretch.time, **motion._asdict(), "effort": effort, "valid": known
        }  # fmt: skip
        if stretch.wrench is not None:
            wrench, present = stretch.wrench, stretch.wrench_known
            wrench = smoothing.apply(wrench) if options.filter_effort else wrench
            channels["wrench"] = wrench if present is None else np.where(present.all(1, keepdims=True), wrench, np.nan)
        dropped[Dropped.TRANSIENT] += 2 * self.trim * motion.q.shape[1]
        channels = {name: values[self._inner(motion)] for name, values in channels.items()}
        channels["valid"] = _mask_slow(
            channels["dq"], channels["valid"], options, smoothing.rate_hz, thresholds, dropped
        )
        return {name: values[::step] for name, values in channels.items()}


def check_delay(name: str, delay_s: object) -> None:
    """Refuse a delay that is neither "auto" nor a time of up to `LONGEST_DELAY_S` in either direction [s].

    Raises:
        ArgumentError: It is neither; for a larger number the remedy takes it for milliseconds.
    """
    wanted = "seconds, such as 0.012, or 'auto'"
    check_number(name, delay_s, wanted, zero=True, signed=True, auto=True)
    if isinstance(delay_s, int | float) and abs(delay_s) > LONGEST_DELAY_S:
        raise ArgumentError(
            f"{name} is {delay_s:g} s, which is no delay of a log",
            remedy=f"It is in seconds: write {1e-3 * delay_s:g} for {delay_s:g} ms.",
        )


def _low_pass(options: Processing, rate_hz: float) -> Butterworth:
    """Make the low-pass at a sampling rate [Hz], from options with a number for the cutoff."""
    assert not isinstance(options.cutoff_hz, str)
    return Butterworth(rate_hz, options.cutoff_hz, options.accuracy)


def _resolve_cutoff(uniform: UniformRecording, options: Processing) -> tuple[Processing, str]:
    """Put a number for an automatic cutoff into the options, with the accuracy that belongs to it.

    Returns:
        The options, and the reason for the cutoff as text.
    """
    if isinstance(options.cutoff_hz, str):
        hz, reason, accuracy = _choose_cutoff([uniform], options)
        return replace(options, cutoff_hz=hz, accuracy=accuracy), reason
    given = "no low-pass" if options.cutoff_hz is None else f"cutoff {float(options.cutoff_hz):.4g} Hz as given"
    return options, given


def share_cutoff(prepared_logs: Sequence[PreparedLog]) -> tuple[float, str]:
    """Choose one cutoff for several logs of a robot from the spectra of their positions.

    Returns:
        The cutoff [Hz], and the reason for it as text.
    """
    hz, reason, _ = _choose_cutoff([prepared.uniform for prepared in prepared_logs], prepared_logs[0].requested)
    return hz, reason if len(prepared_logs) == 1 else f"{reason}, of all {len(prepared_logs)} logs"


def _choose_cutoff(logs: Sequence[UniformRecording], options: Processing) -> tuple[float, str, float]:
    """Choose the cutoff of some logs.

    Returns:
        The cutoff [Hz], the reason for it, and `Processing.accuracy`.
    """
    signals = []  # of each log the stretches of what is differentiated, (N_i, n) each, and the rate
    for log in logs:
        velocities = [s.dq for s in log.stretches if s.dq is not None and options.differentiation.source == "dq"]
        signals.append((velocities or [s.q for s in log.stretches], log.rate_hz))
    hz, reason, error = choose_common_cutoff(signals, differentiation=options.differentiation)
    accuracy = float(np.clip(TRANSIENT_ERROR_SHARE * error, *ACCURACY_RANGE))
    if (band := options.band_hz) is not None:
        unlimited = hz
        hz = float(np.clip(hz, LOWEST_CUTOFF_PER_BAND * band, HIGHEST_CUTOFF_PER_BAND * band))
        hz = min(hz, HIGHEST_CUTOFF * min(log.rate_hz for log in logs))
        if hz != unlimited:
            reason = f"cutoff {hz:.4g} Hz for a band of {band:g} Hz; without the band: {reason}"
    return hz, reason, accuracy


def _torques(
    stretch: Stretch, smoothing: Butterworth, filtered: bool, dropped: Counter[Dropped]
) -> tuple[Floats, Mask]:
    """Smooth the torques of a stretch if wanted, and mask those near missing samples.

    Returns:
        (N, n) torques, NaN where they are not known, and (N, n) whether they are known.
    """
    reach = int(0.5 * smoothing.settling_s * smoothing.rate_hz)  # samples around a missing one that the filter spoils
    known = stretch.effort_known
    if reach and not known.all():
        # a sample stays known if all samples within the reach are known
        known = ndimage.minimum_filter1d(known.astype(np.uint8), 2 * reach + 1, axis=0, mode="nearest") > 0
    has_effort = all_finite(stretch.effort)  # single missing torques are interpolated: it is all NaN without torques
    effort = smoothing.apply(stretch.effort) if has_effort and filtered else stretch.effort
    if not known.all():
        if has_effort:
            dropped[Dropped.NEAR_GAP] += int(np.count_nonzero(~known))
        effort = np.where(known, effort, np.nan)
    return effort, known


def _mask_slow(
    dq: Floats, valid: Mask, options: Processing, rate_hz: float, thresholds: Floats | None, dropped: Counter[Dropped]
) -> Mask:
    """Mark the samples of joints that rest or are slower than the dead band as not valid, and count them.

    Args:
        dq: (N, n) velocities [rad/s or m/s].
        valid: (N, n) whether each torque can be used so far.
        options: The times and speeds from which on samples are left out.
        rate_hz: Sampling rate [Hz].
        thresholds: (n,) speed below which each joint rests; None to keep rest.
        dropped: Reason -> joint samples left out; those found here are added.

    Returns:
        (N, n) whether each torque can be used.
    """
    left_out = {Dropped.DEAD_BAND: np.abs(dq) < options.dead_band}
    if options.rest is not None and thresholds is not None:
        left_out = {Dropped.AT_REST: long_runs(np.abs(dq) < thresholds, options.rest * rate_hz), **left_out}
    for reason, mask in left_out.items():
        dropped[reason] += int(np.count_nonzero(valid & mask))
        valid = valid & ~mask
    return valid


def _trim_samples(options: Processing, smoothing: Butterworth) -> int:
    """Compute the number of samples to cut off at both ends of every stretch.

    "auto" stands for those that the filter or the differences spoil; the settling time is zero without a filter.
    """
    if isinstance(options.trim_s, str):
        return max(int(np.ceil(smoothing.settling_s * smoothing.rate_hz)), options.differentiation.margin())
    return int(np.ceil(options.trim_s * smoothing.rate_hz))


def _thinning_step(options: Processing, rate_hz: float) -> int:
    """Find the step k for which keeping every k-th sample gives the wanted rate most nearly.

    Raises:
        ArgumentError: The cutoff is above half of the new rate, so that the samples would alias.
    """
    step = 1 if options.rate_hz is None else max(round(rate_hz / options.rate_hz), 1)
    cutoff = options.cutoff_hz
    if step > 1 and (not isinstance(cutoff, (int, float)) or cutoff > 0.5 * rate_hz / step):
        raise ArgumentError(
            f"samples at {rate_hz / step:g} Hz cannot hold signals filtered at {cutoff} Hz",
            remedy="Lower cutoff_hz below half of rate_hz.",
        )
    return step


def _describe_steps(options: Processing, smoothing: Butterworth, trim: int, step: int, rate_hz: float) -> list[str]:
    """Write the lines of `Experiment.processing_steps` about stages 1, 4 and 5."""
    what = "positions, torques and wrenches" if options.filter_effort else "positions"
    lines = [f"low-pass (Butterworth, order {ORDER}) on {what}"] if smoothing.cutoff_hz else []
    lines.append(f"differentiation {options.differentiation}")
    if options.delay_s:
        lines.append(f"torques moved back by {1e3 * options.delay_s:.4g} ms")
    lines.append(f"{trim / rate_hz:.3g} s trimmed at both ends of every stretch")
    if options.rest is not None:
        lines.append(f"rest longer than {options.rest:g} s left out, joint by joint")
    if options.dead_band > 0.0:
        lines.append(f"rows slower than {options.dead_band:g} rad/s or m/s left out")
    if step > 1:
        lines.append(f"every {step}th sample kept")
    return lines


def _join_stretches(recording: Recording, stretches: list[dict[str, NDArray[Any]]], **facts: Any) -> Experiment:
    """Make one experiment of all stretches.

    Args:
        recording: The raw log, for names, source and temperature.
        stretches: For each stretch: field of `Experiment` -> its rows in this stretch.
        **facts: Further fields of `Experiment`; `segment` is the number of the stretch of each sample by default.
    """
    channels = {name: [rows[name] for rows in stretches] for name in stretches[0]}
    # `seal` makes the arrays read-only, so that the experiment need not copy them
    joined: dict[str, Any] = {name: seal(np.concatenate(x) if len(x) > 1 else x[0]) for name, x in channels.items()}
    segment = np.repeat(np.arange(len(stretches), dtype=np.int64), [rows["time"].size for rows in stretches])
    return Experiment(
        **joined,
        joint_names=recording.joint_names,
        source=recording.source,
        sha256=recording.sha256,
        gain_std=recording.gain_std,
        temperature=recording.mean_temperature,
        **{"segment": segment, **facts},
    )


def isolated_rows(recording: Recording, options: Processing) -> Experiment:
    """Make an experiment of single samples with unknown gaps between them (`Recording.isolated`).

    Nothing is filtered or differentiated: velocities are the measured ones, or zero without any; accelerations are
    taken as zero, as for samples at standstill. Every sample is a segment of its own.
    """
    velocity = np.zeros_like(recording.q) if recording.dq is None else recording.dq
    effort = np.full_like(recording.q, np.nan) if recording.effort is None else recording.effort
    usable = np.flatnonzero(np.isfinite(recording.q).all(axis=1) & np.isfinite(velocity).all(axis=1))
    if usable.size < 2:
        raise DataError("fewer than two rows have finite positions", remedy="Check the log and its channel map.")
    valid = np.isfinite(effort[usable])
    slow = valid & (np.abs(velocity[usable]) < options.dead_band)
    dropped = {
        Dropped.NO_POSITION: (recording.q.shape[0] - usable.size) * recording.q.shape[1],
        Dropped.NO_TORQUE: int(np.count_nonzero(~valid)),
        Dropped.DEAD_BAND: int(np.count_nonzero(slow)),
    }
    channels = {
        "time": recording.time, "q": recording.q, "dq": velocity, "ddq": np.zeros_like(velocity), "effort": effort
    }  # fmt: skip
    if recording.wrench is not None:
        channels["wrench"] = recording.wrench
    return _join_stretches(
        recording,
        [{name: values[usable] for name, values in channels.items()} | {"valid": valid & ~slow}],
        segment=np.arange(usable.size),
        rate_hz=1.0 / float(np.median(np.diff(recording.time[usable]))),
        processing_steps=("isolated rows: not filtered, velocities as measured, accelerations taken as zero",),
        dropped={str(reason): count for reason, count in dropped.items() if count},
    )
