"""Page of a comparison over time: which parameters moved, by joint, with dates, and the friction of every joint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynid.report.html_blocks import Block, Heading, Text
from dynid.report.page import Chapter, Page
from dynid.tables import Table


def drift_page(drift: Any, extra: Sequence[Chapter] = ()) -> Page:
    """Make the page of a comparison over time.

    Args:
        drift: A `dynid.workflows.drift_run.Drift`, which this layer cannot import.
        extra: Further chapters.
    """
    title = f"{drift.stored.fit.robot.name}: changes since {drift.stored.date}"
    return Page.of(title, [_moved_chapter(drift), _comparisons(drift), _friction_over_time(drift), *extra])


def _moved_chapter(drift: Any) -> Chapter:
    """Chapter with the verdict, and for each later occasion the parameters that moved."""
    stored = drift.stored
    blocks: list[Block] = [
        Text(drift.verdict, "verdict bad" if drift.has_moved else "verdict good"),
        Text(
            f"Stored: {stored.name} of {stored.date}. A parameter has moved where the difference exceeds both "
            "uncertainties together, at a level at which an unchanged robot shows one such parameter in twenty "
            "comparisons. Friction is compared as a whole for every joint, whichever terms carry it; where two "
            "occasions have other terms, only parameters of the same name are compared.",
            "hint",
        ),
    ]
    header = ("joint", "parameter", "before", "after", "difference", "in standard deviations", "unit")
    for later in drift.later:
        rows = tuple(
            (moved.joint, moved.name, moved.before, moved.after, moved.after - moved.before, moved.sigmas, moved.unit)
            for moved in later.moved
        )
        blocks += [Heading(f"{later.name} of {later.date}"), Table(header, rows) if rows else Text("Nothing.")]
    return Chapter("What moved", tuple(blocks))


def _comparisons(drift: Any) -> Chapter:
    """Which run predicts better on identical samples, joint by joint."""
    blocks: list[Block] = []
    for comparison in drift.comparisons:
        blocks.append(Text(comparison.sentence, "verdict open" if comparison.checks is None else "verdict good"))
        if comparison.checks is not None:
            columns = [[*check.per_joint.tolist(), check.relative_error] for check in comparison.checks]
            joints = zip([*comparison.checks[0].joint_names, "all"], *columns, strict=True)
            blocks.append(Table(("joint", *(f"{name}: held-out error %" for name in comparison.names)), tuple(joints)))
    return Chapter("Which run predicts better", tuple(blocks))


def _friction_over_time(drift: Any) -> Chapter:
    """Chapter with dry and viscous friction of every joint on every occasion; occasions without samples have none."""
    occasions = [occasion for occasion in (drift.stored, *drift.later) if occasion.friction]
    joints = dict.fromkeys(friction.name for occasion in occasions for friction in occasion.friction)
    pairs = [
        (occasion, friction)
        for joint in joints
        for occasion in occasions
        for friction in occasion.friction
        if friction.name == joint
    ]
    rows = tuple(
        (friction.name, occasion.date, occasion.name, occasion.temperature(friction.name), friction.line[0].text,
         friction.unit, friction.line[1].text, friction.viscous_unit)
        for occasion, friction in pairs
    )  # fmt: skip
    header = ("joint", "date", "occasion", "temperature [°C]", "dry", "unit", "viscous", "unit")
    return Chapter("Friction over time", (Table(header, rows),) if rows else ())
