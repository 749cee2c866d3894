"""Own parameters of every arm over time and temperature: friction that rises, a gear that wears, an offset that drifts.

The logs of an arm are put into windows of time, and within them of temperature where it was logged. In each window the
arm's own parameters (friction and offsets) are estimated with the shared ones of the fleet taken as exact, which are
the same for all windows, so that their error does not look like a change. A line through the windows, weighted by their
variances, gives the trend in time and the effect of temperature (`dynid.fleet.trends`). The windows of all arms scatter
about their lines more than their uncertainty says (other motions, warmth that was not logged); this excess raises the
standard deviation by which a trend is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from scipy.stats import t as student

from dynid.array_types import Floats
from dynid.diagnosis.verdicts import LEVEL
from dynid.fleet.differences import CLEAR, Difference, is_clear_of_zero, percent
from dynid.fleet.pooling import ArmEquations, OwnPart, Pool, own_values
from dynid.fleet.trends import Trend, excess_scatter, fit_trend
from dynid.identification.leaves import Leaf, average_temperature

WINDOW_K = 4.0
"""Width of the windows of temperature [K] (convention: friction changes by a few per cent over it)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """The own parameters of an arm in one window of time and temperature."""

    time_s: float
    """Mean start of the logs in the window [s, Unix time where the logs have it]."""
    logs: int
    """Number of logs in the window."""
    own: OwnPart
    """The own parameters."""
    temperature: Floats | None = None
    """(n,) mean temperature of each joint [degC], NaN where it is not known; None where no log has any."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """The own parameters of one arm over time."""

    arm: str
    """Name of the arm."""
    windows: tuple[Window, ...]
    """In the order of time."""

    def values(self, parameter: int) -> tuple[Floats, Floats, Floats]:
        """Times [s], values and standard deviations of the own parameter with this number, in windows that show it."""
        rows = [(w.time_s, w.own.values[parameter], w.own.std[parameter]) for w in self._known(parameter)]
        times, values, std = np.array(rows, dtype=float).reshape(-1, 3).T
        return times, values, std

    def temperatures(self, parameter: int, joint: int) -> Floats:
        """Temperatures of a joint [degC] in the windows that show a parameter; NaN where no log has the temperature."""
        known = self._known(parameter)
        return np.array([np.nan if w.temperature is None else float(w.temperature[joint]) for w in known])

    def _known(self, parameter: int) -> list[Window]:
        return [window for window in self.windows if np.isfinite(window.own.std[parameter])]

    def trend(self, parameter: int, joint: int) -> Trend | None:
        """Fit a line through the windows of one own parameter, which acts in a joint; None for too few windows."""
        times, values, std = self.values(parameter)
        return fit_trend(times, self.temperatures(parameter, joint), values, std)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemperatureEffect:
    """How an own parameter depends on the temperature of its joint, averaged over all arms whose logs show it."""

    name: str
    """Name of the parameter."""
    unit: str
    """Unit of the parameter."""
    per_kelvin: float
    """Change per kelvin, mean of the arms weighted by the inverse of their variances."""
    std: float
    """Standard deviation of this mean, with the excess scatter of the windows about their lines."""
    value: float
    """Mean value of the parameter at the mean temperature."""
    arms: int
    """Number of arms whose logs show the effect."""

    @property
    def is_sure(self) -> bool:
        """Whether the effect differs significantly from zero."""
        return abs(self.per_kelvin) > CLEAR * self.std

    @property
    def sentence(self) -> str:
        """The effect with its 95 % interval, also relative to the value where that is not near zero."""
        half = 1.96 * self.std
        share = 100.0 / self.value if self.value else np.inf
        relative = f" ({self.per_kelvin * share:+.2g} ± {abs(half * share):.1g} %/K)" if abs(share) < 1e6 else ""
        return f"{self.name} changes by {self.per_kelvin:+.3g} ± {half:.2g} {self.unit}/K{relative} with temperature"


def window_logs(leaves: Sequence[Leaf], window_s: float) -> list[list[int]]:
    """Group an arm's logs into windows of time, and within them of temperature where it is known.

    Args:
        leaves: The logs.
        window_s: Length of the windows of time [s], counted from the first log.

    Returns:
        For each window in order the numbers of its logs.
    """
    first = min(leaf.start_s for leaf in leaves)
    grouped: dict[tuple[int, int], list[int]] = {}
    for number, leaf in enumerate(leaves):
        known = np.empty(0) if leaf.temperature is None else leaf.temperature[np.isfinite(leaf.temperature)]
        warmth = int(known.mean() // WINDOW_K) if known.size else 0
        grouped.setdefault((int((leaf.start_s - first) // window_s), warmth), []).append(number)
    return [grouped[place] for place in sorted(grouped)]


def arm_history(pool: Pool, arm: ArmEquations, leaves: Sequence[Leaf]) -> History:
    """Estimate an arm's own parameters window by window.

    Args:
        pool: The fleet.
        arm: The equations of the arm.
        leaves: Its logs.
    """
    made = []
    for window in arm.windows:
        logs = [leaves[log] for log in window]
        time_s = float(np.mean([leaf.start_s for leaf in logs]))
        warmth = average_temperature([(leaf.samples, leaf.temperature) for leaf in logs])
        made.append(Window(time_s=time_s, logs=len(logs), own=own_values(arm, pool, window), temperature=warmth))
    return History(arm=arm.name, windows=tuple(sorted(made, key=lambda window: window.time_s)))


def changed_values(
    names: Sequence[str], units: Sequence[str], joints: Sequence[int], histories: Sequence[History]
) -> list[Difference]:
    """Find the own parameters that changed significantly in the course of time, beyond the effect of temperature.

    Args:
        names: (k,) names of the own parameters.
        units: (k,) their units.
        joints: (k,) joint whose temperature acts on each.
        histories: Histories of all arms.
    """
    found = []
    trends = _trends(histories, joints)
    tests = max(sum(map(len, trends)), 1)
    for k, of_arms in enumerate(trends):
        scatter = excess_scatter(list(of_arms.values()))
        freedom = sum(trend.freedom for trend in of_arms.values())
        clear = is_clear_of_zero(np.array([one.middle for one in of_arms.values()]))
        for history in histories:
            trend = of_arms.get(history.arm)
            size = 0.0 if trend is None else abs(trend.slope) / (trend.std * np.sqrt(scatter))
            chance = 2.0 * float(student.sf(size, max(freedom, 1)))
            if trend is not None and chance <= LEVEL / tests:
                told = _describe_change(history, k, trend, names[k], units[k], clear)
                found.append(Difference(arm=history.arm, what=names[k], kind="change", chance=chance, told=told))
    return found


def temperature_effects(
    names: Sequence[str], units: Sequence[str], joints: Sequence[int], histories: Sequence[History]
) -> tuple[TemperatureEffect, ...]:
    """Estimate how own parameters depend on temperature; arguments as for `changed_values`.

    Parameters whose dependence no log shows are left out.
    """
    found = []
    for k, of_arms in enumerate(_trends(histories, joints)):
        told = [trend for trend in of_arms.values() if np.isfinite(trend.per_kelvin)]
        if not told:
            continue
        weight = np.array([trend.per_kelvin_std**-2 for trend in told])
        scatter = excess_scatter(list(of_arms.values()))
        mean = float(weight @ np.array([trend.per_kelvin for trend in told]) / weight.sum())
        value = float(weight @ np.array([trend.middle for trend in told]) / weight.sum())
        found.append(
            TemperatureEffect(name=names[k], unit=units[k], per_kelvin=mean, std=float(np.sqrt(scatter / weight.sum())),
                              value=value, arms=len(told))
        )  # fmt: skip
    return tuple(found)


def _trends(histories: Sequence[History], joints: Sequence[int]) -> list[dict[str, Trend]]:
    """For every parameter: arm -> its trend, for arms with windows enough."""
    return [
        {history.arm: trend for history in histories if (trend := history.trend(k, joint)) is not None}
        for k, joint in enumerate(joints)
    ]


def _describe_change(history: History, parameter: int, trend: Trend, name: str, unit: str, clear: bool) -> str:
    """Describe a change as a sentence; in percent, too, where the value is clear of zero in the fleet and at first."""
    times, values, std = history.values(parameter)
    change = trend.slope * float(times[-1] - times[0])
    before = float(values[0])
    share = percent(change, before) if clear and abs(before) > 2.0 * float(std[0]) else ""
    warm = " at constant temperature" if np.isfinite(trend.per_kelvin) else ""
    dates = f"from {date_of(times[0])} to {date_of(times[-1])}"
    return f"{name} changed by {change:+.3g} {unit}{share}{warm} {dates}"


EARLIEST_S = 631152000.0
"""Stamps from 1990-01-01 on are Unix times [s] (convention: smaller ones count from the start of a controller)."""


def date_of(stamp_s: float) -> str:
    """Write a stamp as a date where it is a Unix time, in seconds otherwise."""
    if stamp_s < EARLIEST_S:
        return f"{stamp_s:.6g} s"
    return datetime.fromtimestamp(stamp_s, tz=UTC).strftime("%Y-%m-%d")
