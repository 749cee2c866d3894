"""Pushes planted into clean data: which share a watch finds in time, for sizes of pushes and rates of false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.checks import as_whole
from dynid.monitor.calibration import Calibration, Levels, Statistics
from dynid.monitor.jumps import WINDOW_S, project_steps, sudden_part
from dynid.monitor.watched_signals import WatchedStretch

SIZES = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
"""Sizes of the planted steps, in standard deviations of the band (convention)."""
RATES = (3600.0, 60.0, 1.0)
"""Rates of false alarms of the whole arm [1/h]: one a second, a minute, an hour."""
LEAD_S = 0.5
"""Time before a push from which the statistic is computed again [s] (derivation: five times that of the average)."""


@dataclass(frozen=True, slots=True, eq=False)
class PushCurve:
    """Shares of planted pushes that were found within the window."""

    sizes: tuple[float, ...]
    """Sizes of the pushes, in standard deviations of the band."""
    rates: tuple[float, ...]
    """Rates of false alarms [1/h]."""
    found: Floats
    """(rates, sizes, n) share that was found."""
    torque: Floats
    """(n,) median of one standard deviation [N m or N]."""
    needed: Floats
    """(rates, pushes, n, 2) smallest push of either sign that is found at each instant [N m or N]."""
    pushes: int
    """Instants of pushes, for each joint."""


def plant_pushes(
    calibration: Calibration,
    clean: Sequence[Statistics],
    *,
    sizes: Sequence[float] = SIZES,
    rates: Sequence[float] = RATES,
    pushes: int = 50,
    seed: int = 0,
) -> PushCurve:
    """Add steps of torque to clean stretches, one joint and instant at a time, and count those found in time.

    A step counts as found if its jump statistic exceeds the level within `dynid.monitor.jumps.WINDOW_S`, at least at
    the first period after its onset. Projections are linear in the push, so that the smallest one that is found at an
    instant follows at once.
    """
    rng = np.random.default_rng(seed)
    lead = max(32, round(LEAD_S * calibration.whitening.rate_hz))
    count = as_whole("pushes", pushes, least=1)
    window = max(1, round(WINDOW_S * calibration.whitening.rate_hz))
    joints = len(calibration.joint_names)
    levels = [calibration.levels(rate) for rate in rates]
    usable = [one for one in clean if len(one.std) > lead + window]
    lengths = np.array([len(one.std) - lead - window for one in usable], dtype=float)
    needed, std = np.zeros((len(rates), count, joints, 2)), np.zeros((count, joints))
    for place, chosen in enumerate(rng.choice(len(usable), size=count, p=lengths / lengths.sum())):
        one = usable[chosen]
        onset = int(rng.integers(lead, len(one.std) - window))
        needed[:, place] = _smallest_found(
            calibration, one.stretch.cut(slice(onset - lead, onset + window)), lead, levels
        )
        std[place] = one.std[onset]
    signs = rng.choice([0, 1], (1, count, joints, 1))
    smallest = np.take_along_axis(needed, np.broadcast_to(signs, (len(rates), count, joints, 1)), axis=3)[..., 0]
    found = np.stack([(smallest < size * std).mean(axis=1) for size in sizes], axis=1)
    torque = np.median(np.concatenate([one.std for one in clean]), axis=0)
    return PushCurve(tuple(sizes), tuple(rates), found, torque, needed, count)


def _smallest_found(calibration: Calibration, stretch: WatchedStretch, onset: int, levels: Sequence[Levels]) -> Floats:
    """(rates, n, 2) smallest steps up and down from a period on that exceed the levels within the stretch."""
    whitening, std = calibration.whitening, calibration.news_std(stretch)
    step = np.zeros_like(stretch.raw)
    step[onset:] = 1.0
    clean, sharp = project_steps(whitening, stretch.sudden, std)
    # all joints are pushed at once, and each is judged as if it were pushed alone
    pushed, _ = project_steps(whitening.uncoupled, sudden_part(step, stretch.rate_hz), std, stretch.sudden)
    excused = calibration.excuse(stretch, sharp)
    clean, pushed, excused = (part[:, onset:] for part in (clean, pushed, excused))
    turning = calibration.band.turning(stretch.dq, stretch.rate_hz)[onset:]
    needed = np.array([np.where(turning, one.turn, one.jump) for one in levels])
    level = needed[:, None] * calibration.scale_at(turning) + excused
    with np.errstate(divide="ignore", invalid="ignore"):
        each = [np.where(np.abs(pushed) > 0.0, (level - sign * np.sign(pushed) * clean) / np.abs(pushed), np.inf)
                for sign in (1.0, -1.0)]  # fmt: skip
    return np.asarray(np.maximum(np.stack(each, axis=-1).min(axis=(1, 2)), 0.0))
