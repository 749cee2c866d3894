"""Page of a comparison over time: which parameters moved, by joint, with dates, and the friction of every joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dynid.report.html_blocks import Block, Heading, Rows, Text
from dynid.report.page import Page, Section
from dynid.tables import Cell

__all__ = ["drift_page"]


@dataclass(frozen=True, slots=True, eq=False)
class MovedParameters(Section):
    """Parameters beyond their intervals, for each later occasion."""

    drift: Any
    """A `dynid.runs.drift_run.Drift`."""

    @property
    def title(self) -> str:
        """Heading."""
        return "What moved"

    def blocks(self) -> Sequence[Block]:
        """A sentence, and a table per occasion."""
        stored = self.drift.stored
        blocks: list[Block] = [
            Text(self.drift.verdict, "verdict bad" if self.drift.has_moved else "verdict good"),
            Text(
                f"Stored: {stored.name} of {stored.date}. A parameter has moved where the difference exceeds both "
                "uncertainties together, at a level at which an unchanged robot shows one such parameter in twenty "
                "comparisons. Where two occasions have other terms, only parameters of the same name are compared.",
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

    drift: Any

    @property
    def title(self) -> str:
        """Heading."""
        return "Friction over time"

    def blocks(self) -> Sequence[Block]:
        """One table; occasions without samples have none."""
        occasions = [one for one in (self.drift.stored, *self.drift.later) if one.friction]
        rows: list[tuple[Cell, ...]] = [
            (friction.name, one.date, one.name, friction.dry.text, friction.viscous.text, friction.unit)
            for joint in dict.fromkeys(f.name for one in occasions for f in one.friction)
            for one in occasions
            for friction in one.friction
            if friction.name == joint
        ]
        return [Rows(("joint", "date", "occasion", "dry", "viscous", "unit"), tuple(rows))] if rows else []


def drift_page(drift: Any, extra: Sequence[Section] = ()) -> Page:
    """Make the page of a comparison over time."""
    title = f"{drift.stored.fit.robot.name}: changes since {drift.stored.date}"
    return Page.of(title, [MovedParameters(drift), FrictionOverTime(drift), *extra])
