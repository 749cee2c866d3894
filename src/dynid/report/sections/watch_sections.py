"""Page of a watch: alarms, torques from outside with their limits, and the pushes that would have been found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.findings import Finding
from dynid.monitor.alarms import Watch
from dynid.monitor.calibration import Sight
from dynid.monitor.planted_pushes import PushCurve
from dynid.report.html_blocks import Block, Plot, Rows, Text
from dynid.report.page import Chapter, Page

MOST_POINTS = 4000
"""Samples of a trace that are drawn (convention: some per pixel)."""


def watch_page(
    found: Sequence[Watch],
    sight: Sight,
    curve: PushCurve | None,
    findings: Sequence[Finding] = (),
    extra: Sequence[Chapter] = (),
) -> Page:
    """Make the page of a watch.

    Args:
        found: What was found in each log.
        sight: The smallest pushes that are seen.
        curve: Planted pushes.
        findings: Doubts about the logs and the calibration.
        extra: Further chapters.
    """
    doubts = Chapter("Doubts", tuple(Text(finding.sentence, "hint") for finding in findings))
    logs = [chapter for one in found for chapter in (_alarms(one), _traces(one))]
    return Page.of("Watch over a robot", [doubts, *logs, _pushes(sight, curve), *extra])


def _alarms(found: Watch) -> Chapter:
    table = found.table()
    verdict = Text(found.verdict, "verdict bad" if found.alarms else "verdict good")
    return Chapter(f"Alarms: {found.source}", (verdict, *([Rows(table.header, table.rows)] if table.rows else [])))


def _traces(found: Watch) -> Chapter:
    """The torque from outside of every joint, with the limit of slow disturbances."""
    rows = slice(None, None, max(1, found.time.size // MOST_POINTS))
    blocks: list[Block] = [
        Text("A slow disturbance leaves the limits; a contact raises an alarm already by its suddenness.", "hint")
    ]
    for j, joint in enumerate(found.joint_names):
        limit = found.limit[rows, j]
        curves = [("torque from outside", found.external[rows, j]), ("limit", limit), ("-limit", -limit)]
        label = f"torque from outside on {joint}, with the limit of an alarm"
        blocks.append(Plot.of(label, f"{joint}: time [s]", "torque [N m or N]", found.time[rows], curves,
                              dashed=("limit", "-limit")))  # fmt: skip
    return Chapter(f"Torques from outside: {found.source}", tuple(blocks) if found.time.size else ())


def _pushes(sight: Sight, curve: PushCurve | None) -> Chapter:
    """The smallest pushes that are seen; missed pushes over their size, for each rate of false alarms."""
    title, limits = "What would have been found", Text(f"The watch {sight.sentence}.")
    if curve is None:
        return Chapter(title, (limits,))
    text = (
        f"Steps of torque were planted into the watched logs, {curve.pushes} per size and joint. The curves "
        "show the share that no alarm followed within 20 ms. One sigma is "
        f"{np.median(curve.torque):.3g} N m or N in the median of the joints."
    )
    curves = [
        (f"{rate:g} false alarm{'' if rate == 1.0 else 's'} per hour", 100.0 * (1.0 - share.mean(axis=1)))
        for rate, share in zip(curve.rates, curve.found, strict=True)
    ]
    plot = Plot.of("missed pushes over their size", "step [sigma]", "missed [%]", np.array(curve.sizes), curves)
    return Chapter(title, (limits, Text(text, "hint"), plot))
