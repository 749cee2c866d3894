"""Own parameters of every arm over time: friction that rises, a gear that wears, an offset that drifts.

The logs of an arm are put into windows of time. In each window the arm's own parameters are estimated at the shared
ones of the fleet, which are the same for all windows, so that their error does not feign a change. A line through the
windows, weighted by their information, tells the trend; what the windows of all arms scatter about their lines beyond
their own uncertainty (temperature, other motions) sets the scale by which a trend is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from dynid.fleet.differences import Difference
from dynid.fleet.pooling import ArmEquations, OwnPart, Pool, own_values

__all__ = ["DAY_S", "History", "Window", "arm_history", "changed_values", "date_of"]

Floats = NDArray[np.float64]
DAY_S = 86400.0
"""Length of a day [s]."""
FEWEST_WINDOWS = 4
"""Smallest number of windows of which a trend can be judged (convention: two more than a line has parameters)."""
CHANCE = 1e-2
"""Probability that any arm of a fleet without changes is reported, over all arms and parameters."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """The own parameters of an arm in one window of time."""

    time_s: float
    """Mean start of the logs in the window [s, Unix time where the logs have it]."""
    logs: int
    own: OwnPart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """The own parameters of one arm over time."""

    arm: str
    windows: tuple[Window, ...]

    def values(self, parameter: int) -> tuple[Floats, Floats, Floats]:
        """Times [s], values and standard deviations of one own parameter, where it is known."""
        known = [window for window in self.windows if np.isfinite(window.own.std[parameter])]
        return (
            np.array([window.time_s for window in known]),
            np.array([window.own.values[parameter] for window in known]),
            np.array([window.own.std[parameter] for window in known]),
        )


def arm_history(pool: Pool, number: int, arm: ArmEquations, times_s: Sequence[Sequence[float]]) -> History:
    """Estimate an arm's own parameters window by window.

    Args:
        pool: The fleet.
        number: Number of the arm in it.
        arm: Its equations.
        times_s: For each of its windows the starts of the logs [s].
    """
    windows = [
        Window(time_s=float(np.mean(starts)), logs=len(starts), own=own_values(arm, pool, number, window))
        for window, starts in enumerate(times_s)
    ]
    return History(arm=arm.name, windows=tuple(windows))


def changed_values(names: Sequence[str], units: Sequence[str], histories: Sequence[History]) -> list[Difference]:
    """Own parameters that changed in the course of time.

    Args:
        names: (k,) names of the own parameters.
        units: (k,) their units.
        histories: Those of all arms.
    """
    from scipy.special import stdtr

    found = []
    trends = {k: _trends(histories, k) for k in range(len(names))}
    tests = sum(map(len, trends.values()))
    for k, of_arms in trends.items():
        scatter, freedom = _scatter(list(of_arms.values())), sum(trend.freedom for trend in of_arms.values())
        for history in histories:
            trend = of_arms.get(history.arm)
            if trend is None:
                continue
            size = abs(trend.slope) / (trend.std * np.sqrt(scatter))
            if 2.0 * float(stdtr(freedom, -size)) <= CHANCE / tests:
                found.append(_change(history, k, trend, float(size), names[k], units[k]))
    return sorted(found, key=lambda difference: -difference.deviations)


@dataclass(frozen=True, slots=True, eq=False)
class _Trend:
    """A line through the values of one parameter of one arm."""

    slope: float
    """Per second."""
    std: float
    """Standard deviation of the slope, if the values scatter about the line as they should."""
    left_over: float
    """Weighted squares of what the values deviate from the line."""
    freedom: int
    """Windows beyond two."""


def _trends(histories: Sequence[History], parameter: int) -> dict[str, _Trend]:
    """Arm -> trend of a parameter, for arms with windows enough."""
    found = {}
    for history in histories:
        times, values, std = history.values(parameter)
        if len(times) < FEWEST_WINDOWS or np.ptp(times) <= 0.0:
            continue
        weight = 1.0 / np.maximum(std, 1e-12 * max(float(np.abs(values).max()), 1e-300)) ** 2
        centred = times - float(weight @ times / weight.sum())
        lever = float(weight @ centred**2)
        middle = float(weight @ values / weight.sum())
        slope = float(weight @ (centred * (values - middle))) / lever
        left = values - middle - slope * centred
        found[history.arm] = _Trend(slope, lever**-0.5, float(weight @ left**2), len(times) - 2)
    return found


def _scatter(trends: Sequence[_Trend]) -> float:
    """How much more the values of a parameter scatter about the arms' lines than their uncertainty says; at least one.

    The median over the arms, set against that of the distribution: a few arms that change otherwise do not count.
    """
    from scipy.special import chdtri

    ratios = [trend.left_over / float(chdtri(trend.freedom, 0.5)) for trend in trends]
    return max(1.0, float(np.median(ratios))) if ratios else 1.0


def _change(history: History, parameter: int, trend: _Trend, size: float, name: str, unit: str) -> Difference:
    times, values, std = history.values(parameter)
    change, before = trend.slope * float(times[-1] - times[0]), float(values[0])
    share = f", {100.0 * change / before:+.0f} %" if abs(before) > 2.0 * float(std[0]) else ""
    return Difference(
        arm=history.arm, what=name, kind="change", deviations=size,
        sentence=f"{name} changed by {change:+.3g} {unit}{share} from {date_of(times[0])} to {date_of(times[-1])} "
        f"({size:.2g} standard deviations)",
    )  # fmt: skip


EARLIEST_S = 631152000.0
"""Stamps from here on are Unix times [s]: 1990-01-01; smaller ones count from the start of a controller."""


def date_of(stamp_s: float) -> str:
    """A stamp as a date, where it is a Unix time; in seconds otherwise."""
    if stamp_s < EARLIEST_S:
        return f"{stamp_s:.6g} s"
    return datetime.fromtimestamp(stamp_s, tz=UTC).strftime("%Y-%m-%d")
