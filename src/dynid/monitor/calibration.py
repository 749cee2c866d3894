"""Calibration of a watch from clean logs: the band, the noise models, and the tails of both statistics.

A watch raises alarms when something pushes the arm. Its input is the torque from outside (external torque) of the
momentum observer, period by period: the *residual* of the model while nothing pushes. A *stretch* is a part of a log
without gaps, a `WatchedStretch`. `calibrate` makes a `Calibration`, with which `dynid.monitor.alarms` and
`dynid.monitor.live_watch` watch.

A watch has two statistics per joint. The jump statistic finds sudden torques (contacts): the largest projection of the
innovations (residuals less their prediction from the past) on steps, see `dynid.monitor.jumps`. The level statistic
finds slow ones (disturbances): the torque from outside over its standard deviation, the *band* (`dynid.monitor.bands`).
The *tail* of a statistic is the distribution of its peaks, from which the level of a rate of false alarms follows
(`dynid.monitor.alarm_tails`).

Residuals of a model on the data that it was fitted to are too small. Each part of the training data is therefore left
out in turn, the parameters are fitted to the rest, and the residuals of the left-out parts are used: nothing of the
data that a watch is judged on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.decompositions import one_blas_thread
from dynid.errors import ArgumentError
from dynid.estimators.equations import Samples, build_equations
from dynid.estimators.linear.least_squares import WLS
from dynid.findings import Finding
from dynid.identification.identify import Identification, identify_equations
from dynid.identification.run_differences import subtract_run_differences
from dynid.monitor.alarm_tails import Tail, fit_tail, usual_peaks
from dynid.monitor.bands import Band, Learnt, RunOffsets, fit_band, fit_offsets
from dynid.monitor.jumps import Whitening, fit_whitening, project_steps
from dynid.monitor.observer import GAIN, follow
from dynid.monitor.watched_signals import WatchedStretch, common_rate, watched_stretches
from dynid.processing.experiment import Experiment
from dynid.spatial import TINY

Kind = Literal["contact", "disturbance"]
FOLDS = 4
"""Parts of the training data, of which each is left out once (convention)."""
ROUNDS = 2
"""Times that the noise models and the band of the innovations are fitted in turn (convention: they settle)."""
KINDS = 2
"""Statistics that share the rate of false alarms: jumps and levels."""
ONE_SIDED_95 = 1.645
"""Standard deviations beyond a level at which normal noise hides a push in one of twenty instants (derivation)."""
LARGEST_CLEAN_JUMP = 18.0
"""Standard deviations of sudden torques at one false alarm an hour above which something pushed in the calibration
(experiment: four clean real logs have 5.1 to 13, clean logs of a simulated UR10 6 to 7, one with a push every two
seconds 24)."""
REACH_QUANTILE = 0.995
"""Quantile of speeds and torques that counts as the largest of the calibration (convention: spikes do not count)."""
LAST_PERIODS = 2
"""Last periods of a stretch that no calibration uses (derivation: the velocity at the end of a log is one-sided)."""


class Levels(NamedTuple):
    """The values that the statistics must exceed for an alarm."""

    jump: float
    """Level of the jump statistic [standard deviations]."""
    band: float
    """Level of the level statistic [-]."""


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """The smallest pushes on each joint that a watch detects in 19 of 20 instants, in the usual motion."""

    joint_names: tuple[str, ...]
    """Names of the joints, in the order of the arrays."""
    per_hour: float
    """Rate of false alarms of the whole arm [1/h]."""
    sudden: Floats
    """(n,) steps of torque, which are detected within `dynid.monitor.jumps.WINDOW_S` [N m or N]."""
    slow: Floats
    """(n,) torques that come slowly, once the offset of the run is known [N m or N]."""
    at_first: Floats
    """(n,) torques that come slowly, while the offset of the run is unknown [N m or N]."""
    settling_s: Floats
    """(n,) time of motion until the offset is known as well as the rest [s]; zero where the offsets of runs agree."""
    hourly_jump: float = 0.0
    """Level that the jump statistic exceeds once an hour in the calibration [standard deviations]."""

    @property
    def sentence(self) -> str:
        """The pushes that are detected, joint by joint."""
        sizes = zip(self.joint_names, self.sudden, self.slow, strict=True)
        named = ", ".join(
            f"{f'{sudden:.3g}' if np.isfinite(sudden) else '-'} and {slow:.3g} on {joint}"
            for joint, sudden, slow in sizes
        )
        rate = f"at {self.per_hour:g} false alarm{'' if self.per_hour == 1.0 else 's'} per hour"
        return (
            f"sees pushes of at least {named} (sudden and slow ones, N m or N) {rate} on motions like the calibration's"
        )

    def to_json(self) -> dict[str, dict[str, float]]:
        """The sizes by joint, as values that JSON can hold; a joint that never moved has none of sudden pushes."""
        parts = {"sudden": self.sudden, "slow": self.slow, "slow_at_first": self.at_first}
        return {
            kind: {name: float(size) for name, size in zip(self.joint_names, sizes, strict=True) if np.isfinite(size)}
            for kind, sizes in parts.items()
        }

    @property
    def findings(self) -> Iterator[Finding]:
        """Warnings where pushes in the calibration, or the spread of the offsets between runs, limit a watch."""
        if self.hourly_jump > LARGEST_CLEAN_JUMP:
            yield Finding(
                code="watch-calibration", severity="warning", where="calibration",
                message="the logs that calibrate the watch hold sudden torques as of pushes "
                f"({self.hourly_jump:.0f} standard deviations; noise has 6): pushes of this size raise no alarm",
                evidence={"standard deviations": self.hourly_jump},
                remedy="Calibrate with logs in which nothing touched the robot.",
            )  # fmt: skip
        unsettled = np.flatnonzero(self.settling_s > 0.0)
        if unsettled.size:
            sizes = {self.joint_names[j]: float(self.at_first[j]) for j in unsettled}
            yield Finding(
                code="watch-offsets", severity="warning", where="calibration",
                message="the offsets of the runs differ, so that of a new run is unknown: in its first "
                f"{self.settling_s.max():.2g} s of motion a watch sees slow pushes only of at least "
                f"{', '.join(f'{size:.3g} on {name}' for name, size in sizes.items())} N m or N, "
                "and what pushes from the beginning on is taken as its offset",
                evidence=sizes,
                remedy="Set the zeros of the torque sensors before each run, or let nothing touch the robot at first.",
            )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Both statistics of every joint along one stretch."""

    stretch: WatchedStretch
    """The stretch."""
    std: Floats
    """(N, n) standard deviation of the raw torque from outside [N m or N]."""
    external: Floats
    """(N, n) torque from outside by the observer, less the offset of the run as far as it is known [N m or N]."""
    jump: Floats
    """(N, n) jump statistic [standard deviations]."""
    step: Floats
    """(N, n) the sudden torque itself [N m or N]."""
    level: Floats
    """(N, n) level statistic [-]."""
    learnt: Learnt
    """The offset of the run, a constant of each joint, as it was learnt while the joint moved."""

    def excess(self, levels: Levels) -> dict[Kind, Floats]:
        """Kind of alarm -> (N, n) its statistic over its level; above one is an alarm."""
        return {
            "contact": self.jump / levels.jump,
            "disturbance": self.level / levels.band,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """The behaviour of the residuals while nothing pushes: bands, noise models and tails."""

    joint_names: tuple[str, ...]
    """In the order of the robot."""
    band: Band
    """Noise of the torque from outside."""
    whitening: Whitening
    """Noise models whose innovations the jump statistic uses."""
    innovation_band: Band
    """Noise of the innovations, whose variance is one on average."""
    scale: Floats
    """(windows, n) mean peak of the projections on steps of each age and joint, by which they are divided [-]."""
    jump: Tail
    """Tail of half the square of the jump statistic: that of normal noise is exponential."""
    level: Tail
    """Tail of the level statistic."""
    seconds: float
    """Length of the data that the tails were fitted to [s]."""
    typical_spread: Floats
    """(n,) median variance of the model's torque by the uncertainty of its parameters [(N m)^2 or N^2]; without that of
    offsets which differ between runs."""
    offsets: RunOffsets
    """Prior of the offset of a run."""
    typical_std: Floats
    """(n,) median standard deviation of the torque from outside, once the offset of a run is known [N m or N]."""
    typical_external: Floats
    """(n,) root mean square of the torque from outside by the observer, a low-pass filter of the noise [N m or N]."""
    level_scale: Floats
    """(n,) mean peak of the level statistic of each joint, by which it is divided [-]."""
    typical_step: Floats
    """(2, n) steps of torque on a moving joint, in the median of the instants [N m or N]: that at which the jump
    statistic is one, and that of one standard deviation of noise."""
    is_smooth: bool = False
    """Whether it was learnt from filtered motion, and not from samples as the robot recorded them."""
    reach: Floats | None = None
    """(2, n) largest speeds [rad/s or m/s] and expected torques [N m or N] of each joint; None where unknown."""

    @property
    def rate_hz(self) -> float:
        """Rate at which the watch runs [Hz]."""
        return self.whitening.rate_hz

    def levels(self, per_hour: float) -> Levels:
        """Compute the levels of both statistics for a rate of false alarms of the whole arm [1/h].

        Both kinds get the same share of the rate.
        """
        rate_hz = as_number("per_hour", per_hour, above=0.0) / 3600.0 / KINDS
        return Levels(float(np.sqrt(2.0 * self.jump.level(rate_hz))), self.level.level(rate_hz))

    def sight(self, per_hour: float) -> Sight:
        """Compute the smallest pushes that are detected at a rate of false alarms of the whole arm [1/h]."""
        levels = self.levels(per_hour)
        # a push is seen where push less noise (at its 95 % quantile) still reaches the level
        slow = levels.band * self.level_scale * self.typical_std + ONE_SIDED_95 * self.typical_external
        # ratio of the standard deviations while the offset is unknown and once it is known
        growth_at_first = np.sqrt(1.0 + self.offsets.variance / np.square(self.typical_std))
        return Sight(
            self.joint_names,
            per_hour,
            sudden=levels.jump * self.typical_step[0] + ONE_SIDED_95 * self.typical_step[1],
            slow=slow,
            at_first=slow * growth_at_first,
            settling_s=self.offsets.settling_s(self.typical_std),
            hourly_jump=self.levels(1.0).jump,
        )

    def innovation_std(self, stretch: WatchedStretch) -> Floats:
        """Compute the standard deviation (N, n) of the scaled innovations; infinite where samples were lost."""
        return np.where(stretch.stale[:, None], np.inf, np.sqrt(self.innovation_band.noise(stretch)))

    def friction_steps(self, stretch: WatchedStretch) -> Floats:
        """Compute the largest step (N, n) that friction can make without any push [N m or N].

        A joint that stood still in the window of a jump may have any dry friction between its ends, and change it at
        once. For other joints the step is zero.
        """
        allowed = np.where(self.band.stands_still(stretch), self.band.largest_friction_step, 0.0)
        periods = self.whitening.windows[-1] + 1
        return np.asarray(maximum_filter1d(allowed, periods, axis=0, origin=(periods - 1) // 2, mode="nearest"))

    def project(self, stretch: WatchedStretch) -> tuple[Floats, Floats]:
        """Project the innovations on steps of all ages, and subtract the steps that friction may make.

        Returns:
            The projections (windows, N, n) [standard deviations], and those of a unit step, see
            `dynid.monitor.jumps.project_steps`.
        """
        projected, unit = project_steps(self.whitening, stretch.sudden, self.innovation_std(stretch))
        allowed = unit * self.friction_steps(stretch)
        return np.sign(projected) * np.maximum(np.abs(projected) - allowed, 0.0), unit

    def statistics(self, stretch: WatchedStretch, before: Learnt | None = None) -> Statistics:
        """Compute both statistics along a stretch.

        Args:
            stretch: The stretch.
            before: The offset of the run in the first rows, where it was learnt there already.
        """
        # an offset that differs from run to run is learnt, and until then it adds to the variance
        learnt = self.offsets.learn_along(stretch, self.band, before)
        known = self.offsets.without_offsets(stretch)
        doubt = np.where(self.offsets.differ, self.offsets.doubt(learnt.seconds), 0.0)
        std = self.band.std(replace(known, spread=known.spread + doubt))
        external = follow(stretch.raw - learnt.offset, float(np.exp(-GAIN / stretch.rate_hz)))
        projected, unit_projected = self.project(stretch)
        jumps = np.abs(projected) / self.scale[:, None]
        best = jumps.argmax(axis=0)[None]  # (1, N, n) index of the age of the step
        jump, step, unit = (np.take_along_axis(part, best, axis=0)[0] for part in (jumps, projected, unit_projected))
        return Statistics(
            stretch=stretch,
            std=std,
            external=external,
            jump=jump,
            step=np.divide(step, unit, out=np.zeros_like(step), where=unit > 0.0),
            level=np.abs(external / (self.level_scale * std)),
            learnt=learnt,
        )


@one_blas_thread()
def calibrate(
    fit: Identification,
    runs: Sequence[Experiment] | None = None,
    *,
    training: Sequence[Experiment] | None = None,
    seen: Sequence[Experiment] | None = None,
) -> Calibration:
    """Calibrate a watch: learn how large the statistics become while nothing pushes.

    Args:
        fit: The identification, with the samples it was made from, unless runs are given.
        runs: Clean experiments that the identification has not seen; by default parts of its own data are left out in
            turn, and the parameters fitted again without them.
        training: The data of the identification, where it was read from a file and does not hold them.
        seen: The training data as the robot recorded them, run by run, where the watch reads such data; None where it
            reads processed ones.

    Raises:
        ArgumentError: The identification was read from a file, which does not hold its samples.
        DataError: The data are too short for a rate of false alarms, or recorded at rates that do not go together.

    Example:
        >>> dynid.monitor.calibrate(fit, [other]).joint_names
        ('joint1', 'joint2', 'joint3')
    """
    if runs is not None:
        rate = common_rate(runs)
        found = [one for number, run in enumerate(runs) for one in watched_stretches(fit, run, rate, number)]
        return calibrate_stretches(fit, found, of_fit=False)
    data = fit.equations.excerpts if training is None else training
    if not any(run.samples for run in data):
        raise ArgumentError(
            "the result holds no samples to calibrate from",
            remedy="Give the runs it was identified from, or other clean ones.",
        )
    found = list(_left_out_stretches(fit, data, seen))
    # where offsets differ from run to run, the models are fitted again to torques without these differences
    differ = fit_offsets(found, fit_band(found), of_fit=True)[0].differ
    return calibrate_stretches(fit, list(_left_out_stretches(fit, data, seen, differ)) if differ.any() else found)


def calibrate_stretches(fit: Identification, clean: Sequence[WatchedStretch], *, of_fit: bool = True) -> Calibration:
    """Calibrate from stretches that the model has not seen.

    Args:
        fit: The identification.
        clean: The stretches.
        of_fit: Whether the model was fitted to other parts of these runs, so that its offset is the mean of theirs.
    """
    if not clean:
        raise ArgumentError("no stretch has all torques", remedy="Calibrate from logs with the torque of every joint.")
    clean = [stretch.cut(slice(None, -LAST_PERIODS)) for stretch in clean]
    # the band, from residuals without the offsets of single runs
    offsets, run_means = fit_offsets(clean, fit_band(clean), of_fit=of_fit)
    centred = [replace(offsets.without_offsets(stretch), raw=stretch.raw - run_means[stretch.run]) for stretch in clean]
    band = fit_band(centred)
    rate = float(np.median([stretch.rate_hz for stretch in clean]))
    # noise models and the band of their innovations, which depend on each other
    sudden = [stretch.sudden for stretch in clean]
    whitening = fit_whitening(sudden, rate)
    for _ in range(ROUNDS):
        parts = [_innovations(whitening, stretch) for stretch in clean]
        innovation_band = fit_band(parts, whitening.floor_variance(sudden))
        innovation_std = [np.where(part.stale[:, None], np.inf, np.sqrt(innovation_band.noise(part))) for part in parts]
        whitening = fit_whitening(sudden, rate, innovation_std)
    parts = [_innovations(whitening, stretch) for stretch in clean]
    innovation_band = fit_band(parts, whitening.floor_variance(sudden))
    # what is usual, for the live watch and for `sight`
    spread = np.median(np.concatenate([stretch.spread for stretch in centred]), axis=0)
    std = np.median(np.concatenate([band.std(stretch) for stretch in centred]), axis=0)
    # a draft without tails and with all scales one computes the statistics, to which these are then fitted
    no_tail = Tail(0.0, 1.0, np.ones(1), np.zeros(1), np.ones(1))
    unit_scale = np.ones((len(whitening.windows), band.high_speed.size))
    draft = Calibration(
        fit.robot.joint_names, band, whitening, innovation_band, unit_scale, no_tail, no_tail, 0.0, spread, offsets,
        std, std, np.ones(std.size), np.ones((2, std.size)),
    )  # fmt: skip
    draft = _fit_jumps(draft, clean)
    levels = [draft.statistics(stretch).level for stretch in clean]
    peaks = usual_peaks(levels, rate)
    scale = peaks / np.exp(np.log(peaks).mean())  # over the geometric mean: the joints alone are made alike
    return replace(
        draft,
        level=fit_tail([level / scale for level in levels], rate),
        level_scale=scale,
        seconds=sum(len(stretch.time) / stretch.rate_hz for stretch in clean),
        typical_external=std * np.sqrt(np.mean(np.square(np.concatenate(levels)), axis=0)),
        typical_step=_usual_steps(draft, clean),
        reach=np.max([largest_motion(stretch) for stretch in clean], axis=0),
    )


def largest_motion(stretch: WatchedStretch) -> Floats:
    """Find the largest speed and expected torque (2, n) of each joint along a stretch; spikes do not count."""
    return np.asarray(np.quantile(np.abs([stretch.dq, stretch.expected]), REACH_QUANTILE, axis=1))


def _usual_steps(draft: Calibration, clean: Sequence[WatchedStretch]) -> Floats:
    """Compute `Calibration.typical_step` (2, n); infinite for joints that never move."""
    steps: list[Floats] = []
    for stretch in clean:
        rows = slice(draft.whitening.settling, None)
        unit_projected = np.maximum(draft.project(stretch)[1][:, rows], TINY)
        detected = draft.scale[:, None] / unit_projected  # steps at which the statistic is one
        best = detected.argmin(axis=0)[None]  # age at which the smallest step is detected
        found = np.concatenate([np.take_along_axis(part, best, axis=0) for part in (detected, 1.0 / unit_projected)])
        moves = ~draft.band.stands_still(stretch)[rows] & ~stretch.stale[rows, None]
        steps.append(np.where(moves, found, np.nan))
    all_times = np.concatenate(steps, axis=1)
    moved = np.isfinite(all_times[0]).any(axis=0)
    return np.where(moved, np.nanmedian(np.where(moved, all_times, 0.0), axis=1), np.inf)


def _fit_jumps(draft: Calibration, clean: Sequence[WatchedStretch]) -> Calibration:
    """Fit the scales and the tail of the jump statistic.

    Each age and joint is divided by its usual peak, so that steps of every age raise as many alarms.
    """
    jumps = [np.abs(draft.project(stretch)[0]) for stretch in clean]
    peaks = np.array([usual_peaks([one[w] for one in jumps], draft.rate_hz) for w in range(len(draft.scale))])
    scale = peaks / np.exp(np.log(peaks[-1]).mean())  # over the geometric mean of the oldest steps
    tail = fit_tail([0.5 * np.square((one / scale[:, None]).max(axis=0)) for one in jumps], draft.rate_hz)
    return replace(draft, scale=scale, jump=tail)


def _innovations(whitening: Whitening, stretch: WatchedStretch) -> WatchedStretch:
    """Make a stretch with innovations in place of its residuals, for `fit_band`."""
    innovations = whitening.innovations(stretch.sudden)
    rest = stretch.cut(slice(whitening.order, None))
    return replace(rest, raw=innovations, spread=np.zeros_like(innovations))


def _equations_like(fit: Identification, runs: Sequence[Experiment]) -> Samples:
    """Build the equations of runs with the unknowns of an identification."""
    known = fit.equations
    return build_equations(fit.robot, runs, base=known.base, terms=fit.terms, band_hz=known.band_hz)


def _left_out_stretches(
    fit: Identification,
    data: Sequence[Experiment],
    seen: Sequence[Experiment] | None = None,
    corrected_joints: NDArray[np.bool_] | None = None,
) -> Iterator[WatchedStretch]:
    """Iterate over stretches of the identification's data, each with residuals of a model that has not seen it.

    The refitted links are physically possible only where those of the identification are.

    Args:
        fit: The identification.
        data: Its data.
        seen: The same runs as the robot recorded them; None where the watch reads processed (filtered) ones.
        corrected_joints: (n,) joints on which the models are fitted without the offsets of the single runs, as the
            identification was; the residuals keep them.
    """
    links = slice(10 * fit.robot.dof)
    estimator = None if np.array_equal(fit.plain.theta[links], fit.rich.theta[links]) else WLS()
    runs = [run for run in data if run.samples]
    seen_runs = runs if seen is None else [other for other, run in zip(seen, data, strict=True) if run.samples]
    fitted = runs if corrected_joints is None else _subtract_run_offsets(fit, runs, corrected_joints)
    for fold in range(FOLDS):
        masks = [np.arange(run.samples) * FOLDS // run.samples == fold for run in runs]  # (N,) the left-out part
        # samples of the part are not valid, and do not count in the fit
        rest = [replace(run, valid=run.valid & ~mask[:, None]) for run, mask in zip(fitted, masks, strict=True)]
        refit = identify_equations(_equations_like(fit, rest), estimator)
        for number, (run, mask, seen_run) in enumerate(zip(runs, masks, seen_runs, strict=True)):
            if not mask.any():
                continue  # fewer samples than folds
            first, last = run.time[mask][[0, -1]]
            rows = mask if seen_run is run else (seen_run.time >= first) & (seen_run.time <= last)
            part = seen_run.rows(np.flatnonzero(rows))
            if not np.isfinite(part.effort).any(axis=0).all():
                continue  # its torques are held out
            # a watch computes the spread of the model from all data: the band must hold with this one
            yield from watched_stretches(refit, part, common_rate(seen_runs), number, spread_of=fit)


def _subtract_run_offsets(
    fit: Identification, runs: Sequence[Experiment], joints: NDArray[np.bool_]
) -> list[Experiment]:
    """Subtract from the torques of some joints the difference of each run's offset from the mean of all runs.

    Args:
        fit: The identification.
        runs: Its experiments.
        joints: (n,) whether a joint is corrected.
    """
    equations = _equations_like(fit, runs)
    settled = subtract_run_differences(equations, ("offset",))
    assert settled is not None  # there are several runs, because their offsets differ
    return [
        replace(run, effort=np.where(joints, corrected.effort, run.effort))
        for run, corrected in zip(equations.experiments, settled[0], strict=True)
    ]
