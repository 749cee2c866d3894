"""Page of a comparison over time: which parameters moved, by joint, with dates, and the friction of every joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynid.report.html_blocks import Block, Heading, Plot, Rows, Text
from dynid.report.page import Page, Section
from dynid.tables import Cell


@dataclass(frozen=True, slots=True, eq=False)
class MovedParameters(Section):
    """Parameters beyond their intervals, for each later occasion."""

    title: ClassVar[str] = "What moved"

    drift: Any
    """A `dynid.runs.drift_run.Drift`."""

    def blocks(self) -> Sequence[Block]:
        """A sentence, and a table per occasion."""
        stored = self.drift.stored
        blocks: list[Block] = [
            Text(self.drift.verdict, "verdict bad" if self.drift.has_moved else "verdict good"),
            Text(
                f"Stored: {stored.name} of {stored.date}. A parameter has moved where the difference exceeds both "
                "uncertainties together, at a level at which an unchanged robot shows one such parameter in twenty "
                "comparisons. Friction is compared as a whole for every joint, whichever terms carry it; where two "
                "occasions have other terms, only parameters of the same name are compared.",
                "hint",
            ),
        ]
        for later in self.drift.later:
            rows: list[tuple[Cell, ...]] = [
                (one.joint, one.name, one.before, one.after, one.after - one.before, one.sigmas, one.unit)
                for one in self.drift.moved(later)
            ]
            header = ("joint", "parameter", "before", "after", "difference", "in standard deviations", "unit")
            blocks += [
                Heading(f"{later.name} of {later.date}"),
                Rows(header, tuple(rows)) if rows else Text("Nothing."),
            ]
        return blocks


@dataclass(frozen=True, slots=True, eq=False)
class FrictionOverTime(Section):
    """Dry and viscous friction of every joint on every occasion."""

    title: ClassVar[str] = "Friction over time"

    drift: Any

    def blocks(self) -> Sequence[Block]:
        """One table; occasions without samples have none."""
        occasions = [one for one in (self.drift.stored, *self.drift.later) if one.friction]
        pairs = [
            (one, friction)
            for joint in dict.fromkeys(f.name for one in occasions for f in one.friction)
            for one in occasions
            for friction in one.friction
            if friction.name == joint
        ]
        warm = any(np.isfinite(one.temperature(friction.name)) for one, friction in pairs)
        rows: list[tuple[Cell, ...]] = [
            (friction.name, one.date, one.name, *((_known(one.temperature(friction.name)),) if warm else ()),
             friction.dry.text, friction.unit, friction.viscous.text, friction.viscous_unit)
            for one, friction in pairs
        ]  # fmt: skip
        header = ("joint", "date", "occasion", *(("temperature [°C]",) if warm else ()), "dry", "unit", "viscous",
                  "unit")  # fmt: skip
        return [Rows(header, tuple(rows))] if rows else []


@dataclass(frozen=True, slots=True, eq=False)
class FrictionOverTemperature(Section):
    """What temperature and what time did to the friction, where logs have temperatures."""

    title: ClassVar[str] = "Friction over temperature"

    drift: Any

    def blocks(self) -> Sequence[Block]:
        """The effects of both, and a plot for every joint and kind."""
        trends = self.drift.trends
        if not trends:
            return []
        rows = tuple(
            (one.joint, one.kind, one.trend.middle, one.unit, *one.per_kelvin, *map(_known, one.per_day))
            for one in trends
        )
        header = ("joint", "friction", "mean", "unit", "change per K", "± (95 %)", "per day at constant temperature",
                  "± (95 %)")  # fmt: skip
        hint = "Time and temperature are fitted together; each log counts with its mean temperature."
        return [Text(hint, "hint"), Rows(header, rows), *map(self._plot, trends)]

    def _plot(self, one: Any) -> Plot:
        found = [
            (occasion.temperature(one.joint), getattr(friction, one.kind))
            for occasion in (self.drift.stored, *self.drift.later)
            for friction in occasion.friction
            if friction.name == one.joint and np.isfinite(occasion.temperature(one.joint))
        ]
        found.sort(key=lambda pair: pair[0])
        values = [figure.value for _, figure in found]
        return Plot.of(f"{one.kind} friction of {one.joint} over temperature", "temperature [°C]",
                       f"{one.kind} [{one.unit}]", [warm for warm, _ in found], [(one.kind, values)],
                       half=[2.0 * figure.stderr for _, figure in found], small=True)  # fmt: skip


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None


def drift_page(drift: Any, extra: Sequence[Section] = ()) -> Page:
    """Make the page of a comparison over time."""
    title = f"{drift.stored.fit.robot.name}: changes since {drift.stored.date}"
    return Page.of(title, [MovedParameters(drift), FrictionOverTime(drift), FrictionOverTemperature(drift), *extra])
