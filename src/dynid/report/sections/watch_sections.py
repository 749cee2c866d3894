"""Page of a watch: alarms, torques from outside with their limits, and the pushes that would have been found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.findings import Finding
from dynid.monitor.alarms import Watch
from dynid.monitor.calibration import Sight
from dynid.monitor.planted_pushes import PushCurve
from dynid.report.html_blocks import Block, Plot, Rows, Text
from dynid.report.page import Page, Section

MOST_POINTS = 4000
"""Samples of a trace that are drawn (convention: some per pixel)."""


@dataclass(frozen=True, slots=True, eq=False)
class Alarms(Section):
    """Verdict and alarms of one log."""

    found: Watch

    @property
    def title(self) -> str:
        """Heading."""
        return f"Alarms: {self.found.source}"

    def blocks(self) -> Sequence[Block]:
        """A sentence and a table."""
        role = "verdict bad" if self.found.alarms else "verdict good"
        table = self.found.table()
        rows = [Rows(table.header, table.rows)] if table.rows else []
        return [Text(self.found.verdict, role), *rows]


@dataclass(frozen=True, slots=True, eq=False)
class Traces(Section):
    """The torque from outside of every joint, with the limit of slow disturbances."""

    found: Watch

    @property
    def title(self) -> str:
        """Heading."""
        return f"Torques from outside: {self.found.source}"

    def blocks(self) -> Sequence[Block]:
        """One plot per joint."""
        if not self.found.time.size:
            return []
        step = max(1, self.found.time.size // MOST_POINTS)
        rows = slice(None, None, step)
        plots = [
            Plot.of(
                f"torque from outside on {joint}, with the limit of an alarm",
                f"{joint}: time [s]",
                "torque [N m or N]",
                self.found.time[rows],
                [("torque from outside", self.found.external[rows, j]), ("limit", self.found.limit[rows, j]),
                 ("-limit", -self.found.limit[rows, j])],
                dashed=("limit", "-limit"),
            )
            for j, joint in enumerate(self.found.joint_names)
        ]  # fmt: skip
        text = "A slow disturbance leaves the limits; a contact raises an alarm already by its suddenness."
        return [Text(text, "hint"), *plots]


@dataclass(frozen=True, slots=True, eq=False)
class Pushes(Section):
    """Planted pushes that are found."""

    title: ClassVar[str] = "What would have been found"

    sight: Sight
    curve: PushCurve | None

    def blocks(self) -> Sequence[Block]:
        """The smallest pushes that are seen; missed pushes over their size, for each rate of false alarms."""
        limits = [Text(f"The watch {self.sight.sentence}.")]
        if self.curve is None:
            return limits
        text = (
            f"Steps of torque were planted into the watched logs, {self.curve.pushes} per size and joint. The curves "
            "show the share that no alarm followed within 20 ms. One sigma is "
            f"{np.median(self.curve.torque):.3g} N m or N in the median of the joints."
        )
        curves = [
            (f"{rate:g} false alarm{'' if rate == 1.0 else 's'} per hour", 100.0 * (1.0 - share.mean(axis=1)))
            for rate, share in zip(self.curve.rates, self.curve.found, strict=True)
        ]
        label = "missed pushes over their size"
        plot = Plot.of(label, "step [sigma]", "missed [%]", np.array(self.curve.sizes), curves)
        return [*limits, Text(text, "hint"), plot]


@dataclass(frozen=True, slots=True, eq=False)
class Doubts(Section):
    """What may be wrong with the logs or the calibration."""

    title: ClassVar[str] = "Doubts"

    findings: Sequence[Finding]

    def blocks(self) -> Sequence[Block]:
        """One sentence each."""
        return [Text(finding.sentence, "hint") for finding in self.findings]


def watch_page(
    found: Sequence[Watch],
    sight: Sight,
    curve: PushCurve | None,
    findings: Sequence[Finding] = (),
    extra: Sequence[Section] = (),
) -> Page:
    """Make the page of a watch.

    Args:
        found: What was found in each log.
        sight: The smallest pushes that are seen.
        curve: Planted pushes.
        findings: Doubts about the logs and the calibration.
        extra: Further sections.
    """
    doubts = [Doubts(findings)] if findings else []
    sections = [section for one in found for section in (Alarms(one), Traces(one))]
    return Page.of("Watch over a robot", [*doubts, *sections, Pushes(sight, curve), *extra])
