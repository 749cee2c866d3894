"""The page of a fleet: conspicuous arms first, then all arms, friction over time, shared parameters, unused logs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.constants import day

from dynid.estimators.estimate import TWO_SIDED_95
from dynid.fleet.differences import FEWEST_ARMS
from dynid.fleet.fleet import Arm, Fleet
from dynid.fleet.history import date_of
from dynid.report.html_blocks import Block, Cards, Notices, Plot, Text
from dynid.report.page import Chapter, Page
from dynid.robot.term_names import term_words
from dynid.tables import Table

MOST_PLOTS = 5
"""Most arms of which the course of one parameter is plotted, the most conspicuous first (convention)."""


def fleet_page(fleet: Fleet, further: Sequence[Chapter] = ()) -> Page:
    """Make the page of a fleet.

    Args:
        fleet: The fleet.
        further: Chapters at the end, such as the settings of a run.
    """
    ordered = [*fleet.outliers, *(arm for arm in fleet.arms if arm not in fleet.outliers)]
    unused = tuple((log.arm, log.name, log.problem) for log in fleet.failed)
    chapters = [
        Chapter("Conspicuous arms", tuple(_overview(fleet))),
        Chapter("Every arm's own parameters", tuple(_own_parameters(fleet, ordered))),
        Chapter("In the course of time", tuple(_changes_over_time(fleet, ordered))),
        Chapter("Friction and temperature", tuple(_temperature_effects(fleet))),
        Chapter("Shared parameters", (_shared_parameters(fleet),)),
        Chapter("Logs left out", (Table(("arm", "log", "reason"), unused),) if unused else ()),
    ]
    return Page.of(fleet.title, [*chapters, *further])


def _overview(fleet: Fleet) -> list[Block]:
    """Blocks with the verdict, key figures, and the differences of the conspicuous arms."""
    word = "bad" if fleet.outliers else "good" if len(fleet.arms) >= FEWEST_ARMS else "open"  # colour of the verdict
    cards = (
        ("arms", str(len(fleet.arms))),
        ("logs", str(sum(arm.logs for arm in fleet.arms))),
        ("samples", f"{sum(arm.samples for arm in fleet.arms):,}".replace(",", " ")),
        ("arms without a usable log", str(len(fleet.arms_without_logs))),
        ("logs left out", str(len(fleet.failed))),
        ("shared parameters", str(len(fleet.shared_names))),
    )
    items = [("warning", arm.name, d.sentence, "") for arm in fleet.outliers for d in arm.differences]
    return [
        Text(fleet.verdict.removesuffix("."), f"verdict {word}"),
        *([Text(fleet.gaps.removesuffix("."), "verdict bad")] if fleet.gaps else []),
        Cards(cards),
        Notices(tuple(items)),
        Text(f"Low-pass filter of all logs: {fleet.cutoff_words}.", "hint"),
    ]


def _own_parameters(fleet: Fleet, ordered: Sequence[Arm]) -> list[Block]:
    """Blocks with friction and offsets: a table, the conspicuous arms first, and one plot per parameter over the arms.

    Values that the logs of an arm leave open are not shown.
    """
    pairs = list(zip(fleet.own_names, fleet.own_units, strict=True))
    values = np.array([np.where(np.isfinite(arm.own.std), arm.own.values, np.nan) for arm in fleet.arms])
    std = np.array([np.where(np.isfinite(arm.own.std), arm.own.std, 0.0) for arm in fleet.arms])
    header = ("arm", "number in the plots", "logs", *(f"{name} [{unit}]" if unit else name for name, unit in pairs))
    places = [fleet.arms.index(arm) for arm in ordered]
    rows = tuple((fleet.arms[k].name, k + 1, fleet.arms[k].logs, *values[k].tolist()) for k in places)
    numbers = np.arange(1.0, len(fleet.arms) + 1.0)
    plots = [
        Plot.of(f"{name} of all arms", "number of the arm", f"{name} {unit}".strip(), numbers, [(name, values[:, k])],
                half=TWO_SIDED_95 * std[:, k], small=True)
        for k, (name, unit) in enumerate(pairs)
        if np.isfinite(values[:, k]).any() and len(fleet.arms) > 1
    ]  # fmt: skip
    robot = fleet.typical.robot
    base = fleet.typical.base
    # own parameters are terms, whose columns follow the ten of each link; FV3 is of the kind FV
    kinds = {
        base.names[place].rstrip("0123456789"): term_words([robot.terms[base.columns[place] - 10 * robot.dof].term])
        for place in fleet.pool.own_places
    }
    hint = (
        f"{', '.join(f'{name}: {words}' for name, words in kinds.items())}; the number is the joint's. Bands are 95 % "
        "intervals. Empty cells: the arm's logs do not determine the value."
    )
    return [Table(header, rows), Text(hint, "hint"), *plots]


def _changes_over_time(fleet: Fleet, ordered: Sequence[Arm]) -> list[Block]:
    """Plots of every parameter that changed in some arm: its values there over time, and the median of the fleet.

    Values are corrected to the mean temperature where its effect is known.
    """
    blocks: list[Block] = []
    for k, name in enumerate(fleet.own_names):
        changed = [arm for arm in ordered if any(d.kind == "change" and d.what == name for d in arm.differences)]
        known = [arm.own.values[k] for arm in fleet.arms if np.isfinite(arm.own.std[k])]
        for arm in changed[:MOST_PLOTS]:
            times, values, std = arm.history.values(k)
            joint = fleet.own_joints[k]
            trend = arm.history.trend(k, joint)
            at = ""
            if trend is not None:
                at = f" at {trend.temperature:.3g} °C" if np.isfinite(trend.per_kelvin) else ""
                values = trend.at_mean_temperature(values, arm.history.temperatures(k, joint))
            middle = float(np.median(known))
            curves = [(arm.name, values), ("median of the fleet", np.full(len(times), middle))]
            blocks.append(
                Plot.of(f"{name} of {arm.name} over time{at}", f"days since {date_of(times[0])}",
                        f"{name} [{fleet.own_units[k]}]{at}", (times - times[0]) / day, curves,
                        dashed=["median of the fleet"], half=TWO_SIDED_95 * std, small=True)
            )  # fmt: skip
    if not blocks and any(len(arm.history.windows) > 1 for arm in fleet.arms):
        return [Text("No parameter changed beyond its uncertainty.")]
    return blocks


def _temperature_effects(fleet: Fleet) -> list[Block]:
    """Blocks with a table of all effects of temperature; none where no log shows any."""
    rows = tuple(
        (e.name, e.value, e.unit, e.per_kelvin, TWO_SIDED_95 * e.std,
         100.0 * e.per_kelvin / e.value if e.value else None, e.arms, "" if e.is_sure else "not clear of zero")
        for e in fleet.warmth
    )  # fmt: skip
    header = ("parameter", "mean value", "unit", "change per K", "± (95 %)", "% per K", "arms", "")
    hint = "At constant age: time and temperature are fitted together, arm by arm. One temperature counts per log."
    return [Text(hint, "hint"), Table(header, rows)] if rows else []


def _shared_parameters(fleet: Fleet) -> Table:
    """Table of the base parameters of the links, which all arms share, with their standard deviations."""
    columns = (fleet.shared_names, fleet.pool.shared.tolist(), fleet.pool.std.tolist(), fleet.shared_units)
    return Table(("parameter", "value", "standard deviation", "unit"), tuple(zip(*columns, strict=True)))
