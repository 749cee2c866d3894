"""Page of a comparison over time: which parameters moved, by joint, with dates, and the friction of every joint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynid.report.html_blocks import Block, Heading, Text
from dynid.report.page import Chapter, Page
from dynid.tables import Table


def drift_page(drift: Any, extra: Sequence[Chapter] = ()) -> Page:
    """Make the page of a comparison over time, of a `dynid.runs.drift_run.Drift`."""
    title = f"{drift.stored.fit.robot.name}: changes since {drift.stored.date}"
    return Page.of(title, [_moved(drift), _contests(drift), _friction_over_time(drift), *extra])


def _moved(drift: Any) -> Chapter:
    """Parameters beyond their intervals, for each later occasion."""
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
            (one.joint, one.name, one.before, one.after, one.after - one.before, one.sigmas, one.unit)
            for one in later.moved
        )
        blocks += [Heading(f"{later.name} of {later.date}"), Table(header, rows) if rows else Text("Nothing.")]
    return Chapter("What moved", tuple(blocks))


def _contests(drift: Any) -> Chapter:
    """Which run predicts better on identical samples, joint by joint."""
    blocks: list[Block] = []
    for contest in drift.contests:
        blocks.append(Text(contest.sentence, "verdict open" if contest.checks is None else "verdict good"))
        if contest.checks is not None:
            columns = [[*check.per_joint.tolist(), check.relative_error] for check in contest.checks]
            joints = zip([*contest.checks[0].joint_names, "all"], *columns, strict=True)
            blocks.append(Table(("joint", *(f"{name}: held-out error %" for name in contest.names)), tuple(joints)))
    return Chapter("Which run predicts better", tuple(blocks))


def _friction_over_time(drift: Any) -> Chapter:
    """Dry and viscous friction of every joint on every occasion; occasions without samples have none."""
    occasions = [one for one in (drift.stored, *drift.later) if one.friction]
    pairs = [
        (one, friction)
        for joint in dict.fromkeys(f.name for one in occasions for f in one.friction)
        for one in occasions
        for friction in one.friction
        if friction.name == joint
    ]
    rows = tuple(
        (friction.name, one.date, one.name, one.temperature(friction.name), friction.line[0].text, friction.unit,
         friction.line[1].text, friction.viscous_unit)
        for one, friction in pairs
    )  # fmt: skip
    header = ("joint", "date", "occasion", "temperature [°C]", "dry", "unit", "viscous", "unit")
    return Chapter("Friction over time", (Table(header, rows),) if rows else ())
