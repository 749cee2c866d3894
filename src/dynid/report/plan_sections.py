"""The report on a designed motion: key figures, curves, margins to the limits, predicted accuracy, a player."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.compiled import inverse_dynamics
from dynid.excitation.base import Margin
from dynid.excitation.excitation import Excitation
from dynid.excitation.trajectories.trajectory import SampledTrajectory
from dynid.report.html_blocks import MOST_LISTED, Block, Cards, Heading, Plot, Text
from dynid.report.page import Chapter, Page
from dynid.report.provenance import methods_chapter
from dynid.report.replay import play_motion
from dynid.report.series import MOST_POINTS
from dynid.robot.model import Robot
from dynid.tables import Table, plain_number


def plan_page(plan: Excitation, settings: Sequence[Chapter], robot: Robot) -> Page:
    """Make the page of a designed motion; ``settings`` are chapters on the settings of the run."""
    samples = plan.sample(MOST_POINTS / plan.trajectory.duration)
    overview = Chapter("Motion to record", (*_figures(plan), *_curves(plan, robot, samples), *_tables(plan)))
    chapters = [overview, play_motion(robot, samples.time, samples.q), *settings]
    return Page.of(f"{plan.robot}: exciting motion", [*chapters, methods_chapter("GautierKhalil1992")])


def _figures(plan: Excitation) -> list[Block]:
    """Make the cards with key figures, the checks and the cautions."""
    start, end = plan.trajectory.recorded
    cards = [
        ("condition number", plain_number(plan.condition_number)),
        ("recorded part [s]", f"{end - start:g}"),
        ("whole motion [s]", f"{plan.trajectory.duration:g}"),
    ]
    limited = np.isfinite(plan.limits.velocity)
    if limited.any():
        label = "peak speed of the least-used joint in its slower direction [% of its limit]"
        cards.append((label, f"{100 * plan.coverage[limited].min():.0f}"))  # (n, 2): forwards, backwards
    if plan.tightest is not None:
        label = f"margin to the nearest limit ({plan.tightest.limit}, {plan.tightest.where})"
        cards.append((label, f"{plan.tightest.margin:.2g} {plan.tightest.unit}"))
    note = "The recorded part is periodic; the whole motion starts and ends at rest."
    if plan.points is not None:
        note = f"Fifth-order segments through {plan.points}. The motion starts and ends at rest."
        energies = plan.points.sequence
        cards.insert(0, ("Cond(W) of the energies", f"{energies.condition_number:.4g}"))
        cards.insert(1, ("equilibrium S of the energies", f"{energies.equilibrium:.4g}"))
    return [
        Cards(tuple(cards)),
        Text(plan.checks_summary),
        *(Text(f"Caution: {caution.message}. {caution.remedy}", "verdict open") for caution in plan.cautions),
        Text(f"{note} Dashed lines are limits.", "hint"),
    ]


def _curves(plan: Excitation, robot: Robot, samples: SampledTrajectory) -> list[Plot]:
    """Plot each position with its limits, then speed, acceleration and torque of all joints as shares of the limits."""
    limits = plan.limits
    plots = []
    for name, unit, q, lower, upper in zip(
        limits.joint_names, limits.units or robot.position_units, samples.q.T, limits.lower, limits.upper, strict=True
    ):
        bounds = [("lower limit", lower), ("upper limit", upper)]
        curves = [("position", q), *((label, np.full(len(q), x)) for label, x in bounds if np.isfinite(x))]
        plots.append(Plot.of(f"position of {name}", "time [s]", f"{name} [{unit}]", samples.time, curves,
                             dashed=["lower limit", "upper limit"], small=True))  # fmt: skip
    for what, values, limit in (
        ("speed", samples.dq, limits.velocity),
        ("acceleration", samples.ddq, limits.acceleration),
        ("torque", inverse_dynamics(robot, samples.q, samples.dq, samples.ddq), limits.torque),
    ):
        limited = np.isfinite(limit) & (limit > 0.0)
        if limited.any():
            names = [name for name, has_limit in zip(limits.joint_names, limited, strict=True) if has_limit]
            one = np.ones(len(values))
            shares = zip(names, (values[:, limited] / limit[limited]).T, strict=True)
            plots.append(Plot.of(f"{what} of all joints as a share of the limits", "time [s]", f"{what} / limit",
                                 samples.time, [*shares, ("limit", one), ("-limit", -one)],
                                 dashed=["limit", "-limit"]))  # fmt: skip
    return plots


def _tables(plan: Excitation) -> list[Block]:
    """Make the tables of the nearest limits and of the predicted accuracy."""
    nearest: dict[tuple[str, str], Margin] = {}
    for margin in sorted(plan.margins, key=lambda margin: margin.relative):  # the first one kept is the nearest
        nearest.setdefault((margin.limit, margin.where), margin)
    margins = tuple(
        (m.limit, m.where, m.margin, m.unit, 100.0 * m.relative) for m in list(nearest.values())[:MOST_LISTED]
    )
    columns = (plan.parameter_names, plan.predicted_deviation.tolist(), plan.parameter_units)
    return [
        Heading("Nearest limits"),
        Table(("limit", "nearest at", "margin", "unit", "margin as share of the limit %"), margins),
        Heading("Predicted accuracy"),
        Text(f"The standard deviations hold for {plan.assumed}.", "hint"),
        plan.accuracy(),
        Table(
            ("parameter", "predicted standard deviation", "unit"),
            tuple(zip(*columns, strict=True)),
            folded="All parameters",
        ),
    ]
