"""Calibration of a watch: the band, the memory of the noise and the tails of both statistics, from clean logs.

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

from dynid.checks import as_number, as_whole
from dynid.curves import lag_exponentially
from dynid.decompositions import one_blas_thread
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors, build_equations
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.links.identify import Identification, identify_equations
from dynid.monitor.alarm_tails import FEWEST_S, Tail, fit_tail, usual_peaks
from dynid.monitor.bands import Band, fit_band
from dynid.monitor.jumps import (
    Whitening,
    excuse_steps,
    fit_correlation,
    fit_whitening,
    jump_statistic,
    project_steps,
    take_news,
)
from dynid.monitor.observer import GAIN
from dynid.monitor.watched_signals import WatchedStretch, common_rate, watched_stretches
from dynid.processing.experiment import Experiment
from dynid.public_calls import public

__all__ = ["Calibration", "Kind", "Levels", "Statistics", "calibrate"]

Floats = NDArray[np.float64]
Kind = Literal["contact", "disturbance"]
FOLDS = 4
"""Parts of the training data, of which each is left out once (convention)."""
ROUNDS = 2
"""Times that the memory of the noise and the band of what is new are fitted in turn (convention: they settle)."""
KINDS = 2
"""Statistics that share the rate of false alarms: jumps and levels."""
LEAST_SHARE = 1e-3
"""Smallest part of the joints' time that a law of jumps gets (convention: no level is infinite)."""
ENDS = 2
"""Last periods of a stretch that no calibration uses (derivation: the velocity at the end of a log is one-sided)."""


class Levels(NamedTuple):
    """What the statistics must exceed for an alarm."""

    jump: float
    """Sudden torques of a joint that moves."""
    turn: float
    """Sudden torques of a joint that turns or rests; see `dynid.monitor.bands.Band.turning`."""
    band: float
    """Torque from outside over its band."""


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """What is compared with the levels of alarms along one stretch."""

    stretch: WatchedStretch
    std: Floats
    """(N, n) standard deviation of the raw torque from outside [N m or N]."""
    external: Floats
    """(N, n) torque from outside by the observer [N m or N]."""
    jump: Floats
    """(N, n) projection on a sudden torque, in standard deviations; see `dynid.monitor.jumps`."""
    turning: NDArray[np.bool_]
    """(N, n) whether a joint turns or rests."""
    level: Floats
    """(N, n) size of the torque from outside over its band."""

    def excess(self, levels: Levels) -> dict[Kind, Floats]:
        """(N, n) jumps (contacts) and levels (disturbances) over those of alarms; above one is an alarm."""
        return {
            "contact": self.jump / np.where(self.turning, levels.turn, levels.jump),
            "disturbance": self.level / levels.band,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """All that a watch knows of a robot on which nothing pushes."""

    joint_names: tuple[str, ...]
    band: Band
    whitening: Whitening
    news: Band
    """Band of what is new in the residuals; its noise is one on average."""
    scale: Floats
    """(2, 2 windows, n) size of the projections on steps of each age and joint, by their usual peaks [-]: each joint by
    itself, then given the others; while it moves, and while it turns or rests."""
    jump: Tail
    """Tail of half the squares of the jump statistics of joints that move: that of normal noise is exponential."""
    turn: Tail
    """The same of joints that turn or rest."""
    turn_share: float
    """Part of the joints' time in which they turn or rest."""
    level: Tail
    """Tail of the level statistics."""
    seconds: float
    """Length of the data that the tails were fitted to [s]."""
    typical_spread: Floats
    """(n,) median variance of the model's torque by the uncertainty of its parameters [(N m)^2 or N^2]."""
    gain: float = GAIN
    """Gain of the observer [1/s]."""

    @property
    def rate_hz(self) -> float:
        """Rate at which the watch runs [Hz]."""
        return self.whitening.rate_hz

    def levels(self, per_hour: float) -> Levels:
        """Levels of the statistics for a rate of false alarms of the whole arm [1/h].

        Both kinds get the same share of the rate, and both laws of jumps a share by the time for which they hold.
        """
        share = as_number("per_hour", per_hour, above=0.0) / 3600.0 / KINDS
        jump, turn = self.jump.level(share * (1.0 - self.turn_share)), self.turn.level(share * self.turn_share)
        return Levels(float(np.sqrt(2.0 * jump)), float(np.sqrt(2.0 * turn)), self.level.level(share))

    def rate(self, levels: Levels) -> float:
        """Rate of false alarms of the whole arm at some levels [1/h]."""
        jumps = self.jump.rate(0.5 * levels.jump**2) + self.turn.rate(0.5 * levels.turn**2)
        return 3600.0 * (jumps + self.level.rate(levels.band))

    def news_std(self, stretch: WatchedStretch) -> Floats:
        """(N, n) standard deviation of what is new, over that of the whitening; infinite where samples were lost."""
        return np.where(stretch.stale[:, None], np.inf, np.sqrt(self.news.noise(stretch)))

    def allowed(self, stretch: WatchedStretch) -> Floats:
        """(N, n) steps that friction may make by itself, where a joint stands still or did in the window [N m or N].

        At rest friction may be anything, and change at once, but no further than from end to end.
        """
        allowed = np.where(self.band.still(stretch), self.band.most_open, 0.0)
        periods = self.whitening.windows[-1] + 1
        return np.asarray(maximum_filter1d(allowed, periods, axis=0, origin=(periods - 1) // 2, mode="nearest"))

    def project(self, stretch: WatchedStretch) -> tuple[Floats, Floats]:
        """Projections on steps of all ages, and those of a unit step; see `dynid.monitor.jumps.project_steps`."""
        return project_steps(self.whitening, stretch.sudden, self.news_std(stretch))

    def excuse(self, stretch: WatchedStretch, sharp: Floats) -> Floats:
        """Projections that need no push; see `dynid.monitor.jumps.excuse_steps`."""
        return excuse_steps(self.whitening, sharp, self.allowed(stretch))

    def scale_at(self, turning: NDArray[np.bool_]) -> Floats:
        """(2 windows, N, n) size of the projections, by whether joints (N, n) turn or rest."""
        return np.asarray(np.where(turning, self.scale[1][:, None], self.scale[0][:, None]))

    def statistics(self, stretch: WatchedStretch) -> Statistics:
        """Both statistics along a stretch."""
        std = self.band.std(stretch)
        external = follow(stretch.raw, float(np.exp(-self.gain / stretch.rate_hz)))
        projected, sharp = self.project(stretch)
        turning = self.band.turning(stretch.dq, stretch.rate_hz)
        return Statistics(
            stretch=stretch,
            std=std,
            external=external,
            jump=jump_statistic(projected, self.excuse(stretch, sharp), self.scale_at(turning)),
            turning=turning,
            level=np.abs(external / std),
        )


def follow(raw: Floats, keep: float) -> Floats:
    """``r = keep r + (1 - keep) e`` from zero on, along (N, n): the observer's answer to the raw torque."""
    return np.asarray(lag_exponentially(np.vstack([np.zeros((1, raw.shape[1])), raw]), keep)[1:])


@public
@one_blas_thread()
def calibrate(
    fit: Identification,
    runs: Sequence[Experiment] | None = None,
    *,
    training: Sequence[Experiment] | None = None,
    folds: int = FOLDS,
    gain: float = GAIN,
) -> Calibration:
    """Learn how far the torque from outside strays while nothing pushes.

    Args:
        fit: The identification, with the samples it was made from, unless runs are given.
        runs: Clean experiments that the identification has not seen; by default parts of its own data are left out in
            turn, and the parameters fitted again without them.
        training: The data of the identification, where it was read from a file and does not hold them.
        folds: Number of these parts.
        gain: Gain of the observer [1/s].

    Raises:
        ArgumentError: The identification was read from a file, which does not hold its samples.
        DataError: The data are too short for a rate of false alarms, or recorded at rates that do not go together.

    Example:
        >>> dynid.monitor.calibrate(fit, [other], gain=50.0).joint_names
        ('joint1', 'joint2', 'joint3')
    """
    own = fit.equations.excerpts if training is None else tuple(training)
    if runs is None and not any(run.samples for run in own):
        raise ArgumentError(
            "the result holds no samples to calibrate from",
            remedy="Give the runs it was identified from, or other clean ones.",
        )
    clean = list(_left_out(fit, own, as_whole("folds", folds, least=2))) if runs is None else [
        stretch for run in runs for stretch in watched_stretches(fit, run, common_rate(runs))
    ]  # fmt: skip
    return calibrate_stretches(fit, clean, gain)


def calibrate_stretches(fit: Identification, clean: Sequence[WatchedStretch], gain: float) -> Calibration:
    """Calibrate from stretches that the model has not seen."""
    if not clean:
        raise ArgumentError("no stretch has all torques", remedy="Calibrate from logs with the torque of every joint.")
    clean = [stretch.cut(slice(None, -ENDS)) for stretch in clean]
    band = fit_band(clean)
    rate = float(np.median([stretch.rate_hz for stretch in clean]))
    sudden = [stretch.sudden for stretch in clean]
    whitening = fit_whitening(sudden, rate)
    for _ in range(ROUNDS):
        parts = [_news(whitening, stretch) for stretch in clean]
        news = fit_band(parts, whitening.least(sudden))
        std = [np.where(part.stale[:, None], np.inf, np.sqrt(news.noise(part))) for part in parts]
        whitening = fit_whitening(sudden, rate, std)
    news = fit_band([_news(whitening, stretch) for stretch in clean], whitening.least(sudden))
    none = Tail(0.0, 1.0, np.ones(1), np.zeros(1), np.ones(1), 0)
    spread = np.median(np.concatenate([stretch.spread for stretch in clean]), axis=0)
    positive = as_number("gain", gain, above=0.0)
    even = np.ones((2, 2 * len(whitening.windows), band.high_speed.size))
    draft = Calibration(
        fit.robot.joint_names, band, whitening, news, even, none, none, 0.5, none, 0.0, spread, positive
    )
    draft = replace(draft, whitening=replace(whitening, precision=_fit_precision(draft, clean)))
    draft = _fit_jumps(draft, clean)
    level = fit_tail([draft.statistics(stretch).level for stretch in clean], rate)
    seconds = sum(len(stretch.time) / stretch.rate_hz for stretch in clean)
    return replace(draft, level=level, seconds=seconds)


def _fit_precision(draft: Calibration, clean: Sequence[WatchedStretch]) -> Floats:
    """(n, n) inverse of the correlation of what is new on the joints."""
    news = [take_news(draft.whitening, stretch.sudden, draft.news_std(stretch))[0] for stretch in clean]
    return np.asarray(np.linalg.inv(fit_correlation(news, draft.rate_hz)))


def _fit_jumps(draft: Calibration, clean: Sequence[WatchedStretch]) -> Calibration:
    """The scales and laws of jumps: one law for joints that move and one for those that turn or rest.

    Where either has too few data, one law of all times serves both.
    """
    parts = []
    for stretch in clean:
        projected, sharp = draft.project(stretch)
        turning = draft.band.turning(stretch.dq, stretch.rate_hz)
        parts.append((projected, draft.excuse(stretch, sharp), turning))
    all_times = np.concatenate([turning.ravel() for _, _, turning in parts])
    share = float(np.clip(all_times.mean(), LEAST_SHARE, 1.0 - LEAST_SHARE))
    is_short = min(share, 1.0 - share) * all_times.size / draft.rate_hz < FEWEST_S
    scales, tails = [], []
    for state, part in enumerate((1.0 - share, share)):
        own = [(p * counts, excused) for p, excused, turns in parts for counts in [is_short | (turns == bool(state))]]
        even = np.ones_like(draft.scale[state])
        usual = np.array(
            [
                usual_peaks([jump_statistic(p[[w]], e[[w]], even[[w], None]) for p, e in own], draft.rate_hz)
                for w in range(len(even))
            ]
        )
        scales.append(usual / np.exp(np.log(usual[len(usual) // 2 - 1]).mean()))
        tail = fit_tail([0.5 * np.square(jump_statistic(p, e, scales[-1][:, None])) for p, e in own], draft.rate_hz)
        tails.append(replace(tail, events_hz=part * tail.events_hz) if is_short else tail)
    return replace(draft, scale=np.stack(scales), jump=tails[0], turn=tails[1], turn_share=share)


def _news(whitening: Whitening, stretch: WatchedStretch) -> WatchedStretch:
    """A stretch whose residuals are what is new in its own."""
    new = whitening.innovations(stretch.sudden)
    rest = stretch.cut(slice(whitening.order, None))
    return replace(rest, raw=new, spread=np.zeros_like(new))


def fit_quickly(equations: Factors) -> Identification:
    """Identify as `dynid.links.identify.identify_equations` does, without its checks."""
    estimate = FeasibleWLS().solve(equations)
    if estimate.standard is None:
        return identify_equations(equations)
    return Identification(equations=equations, estimate=estimate, standard=estimate.standard, selection=None)


def _left_out(fit: Identification, data: Sequence[Experiment], folds: int) -> Iterator[WatchedStretch]:
    """Stretches of the identification's own data, each with a model that has not seen it."""
    runs = [run for run in data if run.samples]
    for fold in range(folds):
        masks = [np.arange(run.samples) * folds // run.samples == fold for run in runs]
        rest = [replace(run, valid=run.valid & ~mask[:, None]) for run, mask in zip(runs, masks, strict=True)]
        refit = fit_quickly(
            build_equations(fit.robot, rest, base=fit.base, terms=fit.terms, band_hz=fit.equations.band_hz)
        )
        for run, mask in zip(runs, masks, strict=True):
            part = run.rows(np.flatnonzero(mask))
            if not np.isfinite(part.effort).any(axis=0).all():
                continue  # its torques are held out
            # a watch computes the spread of the model from all data: the band must hold with this one
            yield from watched_stretches(refit, part, common_rate(runs), spread_of=fit)
