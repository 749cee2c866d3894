"""The page of a fleet: conspicuous arms first, then all arms, friction over time, shared parameters, lost logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.fleet.differences import FEWEST_ARMS
from dynid.fleet.fleet import Arm, Fleet
from dynid.fleet.history import DAY_S, date_of
from dynid.report.html_blocks import Block, Cards, Notices, Plot, Rows, Text
from dynid.report.page import Page, Section
from dynid.robot.term_names import term_words
from dynid.tables import Cell

MOST_CURVES = 5
"""Largest number of arms drawn in one plot (convention: more cannot be told apart)."""


def fleet_page(fleet: Fleet, further: Sequence[Section] = ()) -> Page:
    """Make the page of a fleet.

    Args:
        fleet: The fleet.
        further: Sections at the end, such as the settings of a run.
    """
    sections = [
        Overview(fleet),
        OwnParameters(fleet),
        Course(fleet),
        Warmth(fleet),
        SharedParameters(fleet),
        LostLogs(fleet),
    ]
    return Page.of(fleet.title, [*sections, *further])


@dataclass(frozen=True, slots=True, eq=False)
class _OfFleet(Section):
    """A section about a fleet."""

    fleet: Fleet

    def ordered(self) -> list[Arm]:
        """All arms, the conspicuous ones first."""
        odd = list(self.fleet.outliers)
        return [*odd, *(arm for arm in self.fleet.arms if arm not in odd)]


class Overview(_OfFleet):
    """Which arms differ, and in what."""

    title: ClassVar[str] = "Conspicuous arms"

    def blocks(self) -> Sequence[Block]:
        """A sentence, a few numbers, and every difference."""
        fleet = self.fleet
        odd = fleet.outliers
        told = "bad" if odd else "good" if len(fleet.arms) >= FEWEST_ARMS else "open"
        verdict = Text(fleet.verdict.removesuffix("."), f"verdict {told}")
        cards = Cards(
            (
                ("arms", str(len(fleet.arms))),
                ("logs", str(sum(arm.logs for arm in fleet.arms))),
                ("samples", f"{sum(arm.samples for arm in fleet.arms):,}".replace(",", " ")),
                ("arms without a usable log", str(len(fleet.arms_without_logs))),
                ("logs left out", str(len(fleet.failed))),
                ("shared parameters", str(len(fleet.shared_names))),
            )
        )
        gaps = [Text(fleet.gaps.removesuffix("."), "verdict bad")] if fleet.gaps else []
        cutoff = [Text(f"Low-pass filter of all logs: {fleet.cutoff_words}.", "hint")]
        odd_cutoff = tuple(("warning", "store", f"{f.message} {f.remedy}", "") for f in fleet.findings
                           if f.code == "cutoff-of-store")  # fmt: skip
        items = tuple(("warning", arm.name, difference.sentence, "") for arm in odd for difference in arm.differences)
        return [verdict, *gaps, cards, Notices((*items, *odd_cutoff)), *cutoff]


class OwnParameters(_OfFleet):
    """Friction, offsets and gains of every arm."""

    title: ClassVar[str] = "Every arm's own parameters"

    def blocks(self) -> Sequence[Block]:
        """A table, the conspicuous arms first, and one plot per parameter over the arms."""
        fleet = self.fleet
        header = ("arm", "number in the plots", "logs", *(f"{name} [{unit}]" if unit else name
                                   for name, unit in zip(fleet.own_names, fleet.own_units, strict=True)))  # fmt: skip
        rows: list[tuple[Cell, ...]] = [
            (arm.name, fleet.arms.index(arm) + 1, arm.logs, *(value if np.isfinite(std) else None
                                   for value, std in zip(arm.own.values.tolist(), arm.own.std.tolist(), strict=True)))
            for arm in self.ordered()
        ]  # fmt: skip
        values = np.array([arm.own.values for arm in fleet.arms])
        std = np.array([arm.own.std for arm in fleet.arms])
        places = np.arange(1.0, len(fleet.arms) + 1.0)
        plots = [
            Plot.of(f"{name} of all arms", "number of the arm", f"{name} {unit}".strip(),
                    places, [(name, np.where(np.isfinite(std[:, k]), values[:, k], np.nan))],
                    half=np.where(np.isfinite(std[:, k]), 2.0 * std[:, k], 0.0), small=True)
            for k, (name, unit) in enumerate(zip(fleet.own_names, fleet.own_units, strict=True))
            if np.isfinite(std[:, k]).any() and len(fleet.arms) > 1
        ]  # fmt: skip
        hint = f"{self._meanings()} Bands are two standard deviations wide on either side. Empty cells: the arm's logs "
        hint += "do not tell."
        return [Rows(header, tuple(rows)), Text(hint, "hint"), *plots]

    def _meanings(self) -> str:
        """What the names stand for, each kind once."""
        robot, base = self.fleet.typical.robot, self.fleet.typical.base
        kinds = {
            base.names[place].rstrip("0123456789"): term_words([robot.terms[base.columns[place] - 10 * robot.dof].term])
            for place in self.fleet.pool.own_places
        }
        return f"{', '.join(f'{name}: {words}' for name, words in kinds.items())}; the number is the joint's."


class Course(_OfFleet):
    """Own parameters in the course of time, for arms that changed."""

    title: ClassVar[str] = "In the course of time"

    def blocks(self) -> Sequence[Block]:
        """For every parameter that changed in some arm, its course there and the median of the others."""
        blocks: list[Block] = []
        for k, name in enumerate(self.fleet.own_names):
            changed = [arm for arm in self.ordered() if _changed(arm, name)][:MOST_CURVES]
            for arm in changed:
                times, values, std = arm.history.values(k)
                days, joint = (times - times[0]) / DAY_S, self.fleet.own_joints[k]
                trend = arm.history.trend(k, joint)
                at = "" if trend is None or not np.isfinite(trend.per_kelvin) else f" at {trend.temperature:.3g} °C"
                values = values if trend is None else trend.at_mean_temperature(
                    values, arm.history.temperatures(k, joint)
                )  # fmt: skip
                middle = float(np.median([other.own.values[k] for other in self.fleet.arms]))
                curves = [(arm.name, values), ("median of the fleet", np.full(len(days), middle))]
                unit = self.fleet.own_units[k]
                blocks.append(
                    Plot.of(f"{name} of {arm.name} over time{at}", f"days since {date_of(times[0])}",
                            f"{name} [{unit}]{at}", days, curves, dashed=["median of the fleet"], half=2.0 * std,
                            small=True)
                )  # fmt: skip
        if not blocks and any(len(arm.history.windows) > 1 for arm in self.fleet.arms):
            return [Text("No parameter changed beyond its uncertainty.")]
        return blocks


def _changed(arm: Arm, name: str) -> bool:
    return any(difference.kind == "change" and difference.what == name for difference in arm.differences)


class Warmth(_OfFleet):
    """How own parameters depend on temperature."""

    title: ClassVar[str] = "Friction and temperature"

    def blocks(self) -> Sequence[Block]:
        """A table of all effects, and for each sure one the values of the arm with most windows; else nothing."""
        if not self.fleet.warmth:
            return []
        rows = tuple(
            (e.name, e.value, e.unit, e.per_kelvin, 1.96 * e.std, 100.0 * e.per_kelvin / e.value if e.value else None,
             e.arms, "" if e.is_sure else "not clear of zero")
            for e in self.fleet.warmth
        )  # fmt: skip
        header = ("parameter", "mean value", "unit", "change per K", "± (95 %)", "% per K", "arms", "")
        hint = "At constant age: time and temperature are fitted together, arm by arm. One temperature counts per log."
        return [Text(hint, "hint"), Rows(header, rows), *(self._plot(e.name) for e in self.fleet.warmth if e.is_sure)]

    def _plot(self, name: str) -> Plot:
        k = self.fleet.own_names.index(name)
        arm = max(self.fleet.arms, key=lambda arm: len(arm.history.values(k)[0]))
        _, values, std = arm.history.values(k)
        warmth = arm.history.temperatures(k, self.fleet.own_joints[k])
        order = np.argsort(warmth, kind="stable")
        return Plot.of(f"{name} of {arm.name} over temperature", "temperature [°C]",
                       f"{name} [{self.fleet.own_units[k]}]", warmth[order], [(arm.name, values[order])],
                       half=2.0 * std[order], small=True)  # fmt: skip


class SharedParameters(_OfFleet):
    """Base parameters of the links, common to all arms."""

    title: ClassVar[str] = "Shared parameters"

    def blocks(self) -> Sequence[Block]:
        """Values with their standard deviations, and those of a single arm."""
        fleet = self.fleet
        single = [pool for pool in (fleet.pool.of_arms([k]) for k in range(len(fleet.arms))) if not pool[2].size]
        typical = np.median([np.sqrt(np.diagonal(c)) for _, c, _ in single], axis=0) if single else None
        rows = tuple(
            (name, float(fleet.pool.shared[k]), float(fleet.pool.std[k]),
             None if typical is None else float(typical[k]), unit)
            for k, (name, unit) in enumerate(zip(fleet.shared_names, fleet.shared_units, strict=True))
        )  # fmt: skip
        header = ("parameter", "value", "standard deviation", "by one arm alone (median)", "unit")
        return [Rows(header, rows)]


class LostLogs(_OfFleet):
    """Logs that could not be used."""

    title: ClassVar[str] = "Logs left out"

    def blocks(self) -> Sequence[Block]:
        """A table, if there are any."""
        rows = tuple((log.arm, log.path, log.reason) for log in self.fleet.failed)
        return [Rows(("arm", "log", "reason"), rows)] if rows else []
