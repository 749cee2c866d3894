"""Page of a watch over logs: alarms, torques from outside with their limits, the smallest pushes that it detects."""

from __future__ import annotations

from collections.abc import Sequence

from dynid.findings import Finding
from dynid.monitor.alarms import Watch
from dynid.monitor.calibration import Sight
from dynid.report.html_blocks import Block, Plot, Text
from dynid.report.page import Chapter, Page
from dynid.report.series import MOST_POINTS


def watch_page(
    found: Sequence[Watch],
    sight: Sight,
    findings: Sequence[Finding] = (),
    extra: Sequence[Chapter] = (),
) -> Page:
    """Make the page of a watch.

    Args:
        found: What was found in each log.
        sight: The smallest pushes that the watch detects.
        findings: Doubts about the logs and the calibration.
        extra: Further chapters.
    """
    doubts = Chapter("Doubts", tuple(Text(finding.sentence, "hint") for finding in findings))
    logs = [chapter for one in found for chapter in (_alarms(one), _traces(one))]
    return Page.of(
        "Watch over a robot",
        [doubts, *logs, Chapter("What would have been found", (Text(f"The watch {sight.sentence}."),)), *extra],
    )


def _alarms(found: Watch) -> Chapter:
    """Chapter with the verdict on one log and the table of its alarms."""
    table = found.table()
    verdict = Text(found.verdict, "verdict bad" if found.alarms else "verdict good")
    return Chapter(f"Alarms: {found.source}", (verdict, *([table] if table.rows else [])))


def _traces(found: Watch) -> Chapter:
    """Chapter with the torque from outside of every joint in one log, with the limit of slow disturbances."""
    rows = slice(None, None, max(1, found.time.size // MOST_POINTS))  # each k-th sample
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
