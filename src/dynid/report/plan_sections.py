"""Sections of the report on a designed motion: predicted accuracy, margins to the limits, the search, a player.

`plan_page` in report/report.py puts them together to a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.excitation.constraints import Margin
from dynid.excitation.excitation import Excitation
from dynid.excitation.trajectories.sampled_motion import Samples
from dynid.kernels import inverse_dynamics
from dynid.report.html_blocks import Block, Cards, Heading, Plot, Rows, Text
from dynid.report.page import Section
from dynid.report.replay import play_motion
from dynid.robot.model import Robot
from dynid.tables import plain_number

POINTS = 1000
"""Samples of the motion that are drawn; a convention, about one per pixel."""
NEAREST = 12
"""Limits listed as the nearest ones; a convention."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanOverview(Section):
    """Key figures, joint curves between their limits, predicted deviations, margins."""

    title: ClassVar[str] = "Motion to record"

    plan: Excitation
    robot: Robot | None = None
    """The robot, for plots of the torques; None leaves them out."""

    def blocks(self) -> Sequence[Block]:
        """Cards, plots and tables."""
        plan = self.plan
        start, end = plan.trajectory.recorded
        tightest = plan.tightest
        cards = [
            ("condition number", plain_number(plan.condition_number)),
            ("recorded part [s]", f"{end - start:g}"),
            ("whole motion [s]", f"{plan.trajectory.duration:g}"),
        ]
        if np.isfinite(plan.limits.velocity).any():
            share = plan.coverage[np.isfinite(plan.limits.velocity)].min()  # of (n, 2): forwards, backwards
            cards.append(
                ("peak speed of the least-used joint in its slower direction [% of its limit]", f"{100 * share:.0f}")
            )
        if tightest is not None:
            label = f"margin to the nearest limit ({tightest.limit}, {tightest.where})"
            cards.append((label, f"{tightest.margin:.2g} {tightest.unit}"))
        samples = plan.sample(POINTS / plan.trajectory.duration)
        if plan.points is None:
            note = "The recorded part is periodic; the whole motion starts and ends at rest."
        else:
            note = f"Fifth-order segments through {plan.points}. The motion starts and ends at rest."
            energies = plan.points.points
            cards.insert(0, ("Cond(W) of the energies", f"{energies.condition_number:.4g}"))
            cards.insert(1, ("equilibrium S of the energies", f"{energies.equilibrium:.4g}"))
        return [
            Cards(tuple(cards)),
            Text(plan.checks_summary),
            *(Text(f"Caution: {caution.message}. {caution.remedy}", role="verdict open") for caution in plan.cautions),
            Text(f"{note} Dashed lines are limits.", role="hint"),
            *self._positions(samples),
            *self._shares(samples),
            *self._tables(),
        ]

    def _positions(self, samples: Samples) -> list[Block]:
        """One small plot per joint, between its limits."""
        limits = self.plan.limits
        plots: list[Block] = []
        joints = zip(limits.joint_names, self._units(), samples.q.T, limits.lower, limits.upper, strict=True)
        for name, unit, q, lower, upper in joints:
            bounds = (("lower limit", lower), ("upper limit", upper))
            curves = [("position", q), *((label, np.full(len(q), x)) for label, x in bounds if np.isfinite(x))]
            plots.append(Plot.of(f"position of {name}", "time [s]", f"{name} [{unit}]", samples.time, curves,
                                 dashed=["lower limit", "upper limit"], small=True))  # fmt: skip
        return plots

    def _units(self) -> tuple[str, ...]:
        """The unit of each joint's positions, as the limits or the robot say."""
        limits = self.plan.limits
        if limits.units or self.robot is None:
            return limits.units or ("rad or m",) * len(limits.joint_names)
        return self.robot.position_units

    def _shares(self, samples: Samples) -> list[Block]:
        """Speed, acceleration and torque of all joints as shares of their limits, as far as there are limits."""
        limits = self.plan.limits
        kinds = [("speed", samples.dq, limits.velocity), ("acceleration", samples.ddq, limits.acceleration)]
        if self.robot is not None:
            torque = inverse_dynamics(self.robot, samples.q, samples.dq, samples.ddq)
            kinds.append(("torque", torque, limits.torque))
        plots: list[Block] = []
        for what, values, limit in kinds:
            limited = np.isfinite(limit) & (limit > 0.0)
            shares = values[:, limited] / limit[limited]
            names = [name for name, has_limit in zip(limits.joint_names, limited, strict=True) if has_limit]
            if names:
                one = np.ones(len(shares))
                curves = [*zip(names, shares.T, strict=True), ("limit", one), ("-limit", -one)]
                plots.append(Plot.of(f"{what} of all joints as a share of the limits", "time [s]", f"{what} / limit",
                                     samples.time, curves, dashed=["limit", "-limit"]))  # fmt: skip
        return plots

    def _tables(self) -> list[Block]:
        plan = self.plan
        found = zip(plan.parameter_names, plan.predicted_deviation, plan.parameter_units, strict=True)
        deviations = tuple((name, float(deviation), unit) for name, deviation, unit in found)
        accuracy = plan.accuracy()
        nearest: dict[tuple[str, str], Margin] = {}
        for margin in sorted(plan.margins, key=lambda margin: margin.relative):  # the first one kept is the nearest
            nearest.setdefault((margin.limit, margin.where), margin)
        margins = tuple(
            (m.limit, m.where, float(m.margin), m.unit, float(100.0 * m.relative))
            for m in list(nearest.values())[:NEAREST]
        )
        return [
            Heading("Nearest limits"),
            Rows(("limit", "nearest at", "margin", "unit", "margin as share of the limit %"), margins),
            Heading("Predicted accuracy"),
            Text(f"The standard deviations hold for {plan.assumed}.", role="hint"),
            Rows(accuracy.header, accuracy.rows),
            Rows(("parameter", "predicted standard deviation", "unit"), deviations, folded="All parameters"),
        ]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMotion(Section):
    """A player of the designed motion."""

    title: ClassVar[str] = "Motion"

    plan: Excitation
    robot: Robot

    def blocks(self) -> Sequence[Block]:
        """The player."""
        samples = self.plan.sample(POINTS / self.plan.trajectory.duration)
        return play_motion(self.robot, samples.time, samples.q)


@dataclass(frozen=True, slots=True, eq=False)
class Search(Section):
    """How the criterion decreased during the search."""

    title: ClassVar[str] = "Search"

    plan: Excitation

    def blocks(self) -> Sequence[Block]:
        """The best value of every start over time."""
        steps = sorted(self.plan.history, key=lambda step: step.elapsed_s)
        if len(steps) < 2:
            return []
        time = np.array([step.elapsed_s for step in steps])
        curves = []
        for start in sorted({step.start for step in steps}):
            own = np.array([step.value if step.start == start else np.inf for step in steps])
            best = np.minimum.accumulate(own)
            best = np.where(np.isfinite(best), best, np.nan)
            curves.append((f"start {start + 1}", np.log10(best) if self.plan.criterion.positive else best))
        name = type(self.plan.criterion).__name__
        ended = " The search was interrupted by the user." if self.plan.interrupted else ""
        note = f"Criterion {name} of the best motion so far that respects all limits; lower is better.{ended}"
        what = "log10 of the criterion" if self.plan.criterion.positive else "criterion"
        return [Text(note, role="hint"), Plot.of("criterion over time", "time [s]", what, time, curves)]
