"""From a recording to an experiment: clean, bring to one clock, smooth, differentiate, mask, trim.

The stages, each of which stands once in this file or the file named:

1. the delay of the torques (`Processing.effort_delay_s`; "auto" is resolved before, by diagnosis/),
2. faults are removed and all channels are put on one uniform clock (uniform.py),
3. the cutoff of the low-pass (`Processing.cutoff_hz`; "auto" chooses it from the spectrum, cutoff.py),
4. positions are smoothed and differentiated (filters.py),
5. torques are smoothed if wanted, rest and slow rows are masked, both ends are trimmed, samples are thinned out.

`Chain` holds a log after stage 4, so that stage 5 can be run more than once at little cost. `process` runs all stages.
Positions and torques go through the same zero-phase low-pass; [Atkeson1986] section 3.1 and [Izaguirre1992] section 7
describe the chain. Every stage adds a line to the experiment's `processing_steps` and counts what it leaves out.
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
from dynid.processing.filters import ORDER, Butterworth, CentralDifferences, Derivation, Motion, check_band
from dynid.processing.outliers import long_runs, rest_thresholds
from dynid.processing.uniform import Cleaning, Stretch, UniformRecording, make_uniform

Mask = NDArray[np.bool_]
Progress = Callable[[float, str], None]

LOWEST_CUTOFF_PER_BAND, HIGHEST_CUTOFF_PER_BAND = 1.5, 3.0
"""Limits of an automatic cutoff as multiples of `Processing.band_hz`. Convention: from 1.5 times the band on, a
Butterworth low-pass of order 4 run forwards and backwards is flat in it; beyond 3 times, only noise is added."""
TRANSIENT_ERROR_SHARE = 0.5
"""Share of the predicted acceleration error that filter transients may reach at the ends of a stretch; convention."""
ACCURACY_RANGE = (1e-6, 1e-2)
"""Smallest and largest `Processing.accuracy` that an automatic cutoff sets; convention."""
LONGEST_DELAY_S = 1.0
"""Largest delay of the torques that is accepted [s]; convention, against numbers in milliseconds."""


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
    """`CentralDifferences` or `MeasuredVelocity`."""
    trim_s: float | Literal["auto"] = "auto"
    """Time cut off at both ends of every stretch [s]; "auto" is the settling time of the filter."""
    rest: float | None = 0.5
    """Shortest standstill of a joint that is left out [s]; shorter ones, as at a change of direction, are kept. None
    keeps all."""
    dead_band: float = 0.0
    """Rows of a joint slower than this are left out [rad/s or m/s]."""
    filter_effort: bool = False
    """Whether torques are low-passed like positions. Least squares averages their noise anyway, while a filter would
    smear what dry friction does at reversals; thinning out filters them in any case."""
    effort_delay_s: float | Literal["auto"] = 0.0
    """Delay of the torques [s]; they are moved back by it. "auto" is to be replaced by an estimate before:
    `dynid.diagnosis.refinement.resolve_delay` makes it with the robot's equations."""
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
        """Delay of the torques [s], once it is a number."""
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
    return Chain.start(recording, options).experiment()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chain:
    """A log after stage 4, on one uniform clock with its positions differentiated; `experiment` does stage 5."""

    recording: Recording
    """The raw log."""
    requested: Processing
    """The options as they were given."""
    options: Processing
    """The options with a number for an automatic cutoff."""
    uniform: UniformRecording
    """The log after stage 2."""
    notes: tuple[str, ...]
    """Lines for `Experiment.processing_steps`; the last one is the reason for the cutoff."""
    pieces: tuple[tuple[Stretch, Motion], ...]
    """The gap-free stretches with their motion, before anything is trimmed."""
    trim: int
    """Samples cut off at both ends of every piece."""
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
        """Run the stages from the delay to the accelerations.

        Args:
            recording: A log that is not `Recording.isolated`.
            options: How it is processed.
            period_s: Sampling period [s] where known, as in a stream of chunks.
            origin_s: A time stamp of the uniform clock [s] where known, as in a stream of chunks.
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
        """Run stage 4: smooth and differentiate the positions of a log on one clock.

        Args:
            recording: The raw log.
            requested: The options as they were given.
            options: The options with a number for the cutoff.
            uniform: The log after stage 2.
            notes: As in `Chain`.

        Raises:
            DataError: No stretch is long enough for the low-pass.
        """
        smoothing = _low_pass(options, uniform.rate_hz)
        trim = _trim_samples(options, smoothing)
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
        pieces = tuple((s, options.differentiation.motion(s.q, s.dq, smoothing)) for s in long)
        return cls(
            recording=recording,
            requested=requested,
            options=options,
            uniform=uniform,
            notes=notes,
            pieces=pieces,
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
        """(n,) speed below which each joint counts as resting [rad/s or m/s]; None if the options keep rest."""
        if self.options.rest is None:
            return None
        dq = np.concatenate([motion.dq[self._inner(motion)] for _, motion in self.pieces])
        return rest_thresholds(dq, [s.q for s in self.uniform.stretches], self.uniform.rate_hz)

    def experiment(self, *, filter_effort: bool | None = None, thresholds: Floats | None = None) -> Experiment:
        """Run stage 5: smooth torques if wanted, mask rest and slow rows, trim, thin out.

        Args:
            filter_effort: Whether torques are low-passed; None for what the options say.
            thresholds: Speeds as from `rest_thresholds`, where those of a longer log hold; None for those of this log.
        """
        rate = self.uniform.rate_hz
        step = _thinning_step(self.options, rate)
        wanted = self.options.filter_effort if filter_effort is None else filter_effort
        options = replace(
            self.options, filter_effort=wanted or step > 1
        )  # thinning needs the low-pass against aliasing
        smoothing = _low_pass(options, rate)
        limits = self.rest_thresholds() if thresholds is None else thresholds
        dropped: Counter[Dropped] = Counter(self.dropped)
        parts = [self._part(*piece, options, smoothing, limits, step, dropped) for piece in self.pieces]
        final = replace(smoothing, rate_hz=rate / step)
        return _join_parts(
            self.recording,
            parts,
            rate_hz=final.rate_hz,
            processing_steps=(*self.notes, *_steps(options, smoothing, self.trim, step, rate)),
            dropped={str(reason): count for reason, count in dropped.items() if count},
            derivation=Derivation(smoothing, options.differentiation),
            smoothing=final if options.filter_effort else None,
        )

    def _inner(self, motion: Motion) -> slice:
        """The rows of a piece that are not trimmed."""
        return slice(self.trim, motion.dq.shape[0] - self.trim)

    def _part(
        self,
        stretch: Stretch,
        motion: Motion,
        options: Processing,
        smoothing: Butterworth,
        thresholds: Floats | None,
        step: int,
        dropped: Counter[Dropped],
    ) -> dict[str, NDArray[Any]]:
        """Run stage 5 for one piece.

        Args:
            stretch: The piece on the uniform clock.
            motion: Its positions, velocities and accelerations.
            options: Numbers for all choices.
            smoothing: The low-pass.
            thresholds: (n,) speed below which each joint rests; None to keep rest.
            step: Every step-th sample is kept.
            dropped: Reason -> joint samples left out; those of this piece are added.

        Returns:
            Field of `Experiment` -> rows of this piece.
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
    """The low-pass at a sampling rate [Hz], once the cutoff is a number."""
    assert not isinstance(options.cutoff_hz, str)
    return Butterworth(rate_hz, options.cutoff_hz, options.accuracy)


def _resolve_cutoff(uniform: UniformRecording, options: Processing) -> tuple[Processing, str]:
    """The options with a number for the cutoff (and the accuracy that belongs to it), and the reason for the cutoff."""
    if isinstance(options.cutoff_hz, str):
        hz, reason, accuracy = _choose_cutoff([uniform], options)
        return replace(options, cutoff_hz=hz, accuracy=accuracy), reason
    given = "no low-pass" if options.cutoff_hz is None else f"cutoff {float(options.cutoff_hz):.4g} Hz as given"
    return options, given


def share_cutoff(chains: Sequence[Chain]) -> tuple[float, str]:
    """Choose one cutoff [Hz] for several logs of a robot from the spectra of their positions; with the reason."""
    hz, reason, _ = _choose_cutoff([chain.uniform for chain in chains], chains[0].requested)
    return hz, reason if len(chains) == 1 else f"{reason}, of all {len(chains)} logs"


def _choose_cutoff(logs: Sequence[UniformRecording], options: Processing) -> tuple[float, str, float]:
    """Choose the cutoff of some logs.

    Returns:
        The cutoff [Hz], the reason for it, and `Processing.accuracy`.
    """
    # what is differentiated: positions, or measured velocities where the log has them
    signals = [[s.q if options.differentiation.source == "q" else s.dq for s in log.stretches] for log in logs]
    hz, reason, error = choose_common_cutoff(
        [
            ([s for s in parts if s is not None] or [s.q for s in log.stretches], log.rate_hz)
            for parts, log in zip(signals, logs, strict=True)
        ],
        differentiation=options.differentiation,
    )
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
        known = ndimage.minimum_filter1d(known.astype(np.uint8), 2 * reach + 1, axis=0, mode="nearest") > 0
    has_effort = all_finite(stretch.effort)
    effort = smoothing.apply(stretch.effort) if has_effort and filtered else stretch.effort
    if not known.all():
        if has_effort:
            dropped[Dropped.NEAR_GAP] += int(np.count_nonzero(~known))
        effort = np.where(known, effort, np.nan)
    return effort, known


def _mask_slow(
    dq: Floats, valid: Mask, options: Processing, rate_hz: float, thresholds: Floats | None, dropped: Counter[Dropped]
) -> Mask:
    """Mask the samples of joints that rest or are slower than the dead band, and count them.

    Returns:
        (N, n) whether the torque of a joint is used.
    """
    left_out = {Dropped.DEAD_BAND: np.abs(dq) < options.dead_band}
    if options.rest is not None and thresholds is not None:
        left_out = {Dropped.AT_REST: long_runs(np.abs(dq) < thresholds, options.rest * rate_hz), **left_out}
    for reason, mask in left_out.items():
        dropped[reason] += int(np.count_nonzero(valid & mask))
        valid = valid & ~mask
    return valid


def _trim_samples(options: Processing, smoothing: Butterworth) -> int:
    """Number of samples to cut off at both ends of every stretch; at least those that differentiation spoils."""
    trim_s = smoothing.settling_s if isinstance(options.trim_s, str) else options.trim_s
    unfiltered = smoothing.cutoff_hz is None and options.trim_s == "auto"
    shortest = 0 if unfiltered else int(np.ceil(trim_s * smoothing.rate_hz))
    return max(shortest, options.differentiation.margin() if options.trim_s == "auto" else 0)


def _thinning_step(options: Processing, rate_hz: float) -> int:
    """The step k for which every k-th sample is kept.

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


def _steps(options: Processing, smoothing: Butterworth, trim: int, step: int, rate_hz: float) -> list[str]:
    """Lines for `Experiment.processing_steps` about stages 1, 4 and 5."""
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


def _join_parts(recording: Recording, parts: list[dict[str, NDArray[Any]]], **facts: Any) -> Experiment:
    """Join the parts of an experiment.

    Args:
        recording: The raw log, for names, source and temperature.
        parts: For each gap-free part: field of `Experiment` -> its rows.
        **facts: Further fields of `Experiment`; `segment` may replace the number of the part.
    """
    channels = {name: [part[name] for part in parts] for name in parts[0]}
    joined: dict[str, Any] = {name: seal(np.concatenate(x) if len(x) > 1 else x[0]) for name, x in channels.items()}
    segment = np.repeat(np.arange(len(parts), dtype=np.int64), [part["time"].size for part in parts])
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
    """Make an experiment of rows that were picked from a log with unknown gaps (`Recording.isolated`).

    Nothing is filtered or differentiated: velocities are the measured ones, or zero without any; accelerations are
    taken as zero. Every row is a segment of its own.
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
    return _join_parts(
        recording,
        [{name: values[usable] for name, values in channels.items()} | {"valid": valid & ~slow}],
        segment=np.arange(usable.size),
        rate_hz=1.0 / float(np.median(np.diff(recording.time[usable]))),
        processing_steps=("isolated rows: not filtered, velocities as measured, accelerations taken as zero",),
        dropped={str(reason): count for reason, count in dropped.items() if count},
    )
