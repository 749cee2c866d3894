"""Section of the report on friction: one table and one curve per joint, whichever terms carry it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dynid.estimation.estimate import TWO_SIDED_95
from dynid.links.friction_summary import Figure, JointFriction
from dynid.report.html_blocks import Block, Plot, Rows, Text
from dynid.report.page import Section
from dynid.tables import Cell


@dataclass(frozen=True, slots=True, eq=False)
class Friction(Section):
    """The friction of every joint as a whole."""

    title: ClassVar[str] = "Friction"

    joints: tuple[JointFriction, ...]

    def blocks(self) -> Sequence[Block]:
        """A table of all joints, and a curve with its 95 % band for each."""
        if not self.joints:
            return []
        text = (
            "Each row is the whole friction of a joint at constant speed: the sum of all terms of the model that act "
            "against the motion, at the mean load of the data. Dry and viscous friction are the intercept and the "
            "slope of the straight line through the fast part; breakaway is the largest torque at creep speed without "
            "the viscous part; the Stribeck speed is where the difference between the two has fallen to 1/e; the "
            "load share is the dry friction that each N m of load on the joint adds (0.05 means 5 % of the load). A "
            "value smaller than its interval is not surely there. Intervals and bands are 95 %."
        )
        header = ["joint", "dry", "breakaway", "unit", "viscous", "unit", "Stribeck speed"]
        optional = {
            "load share": [friction.load_share for friction in self.joints],
            "difference of directions": [friction.asymmetry for friction in self.joints],
        }
        kept = {name: column for name, column in optional.items() if any(column)}
        rows: list[tuple[Cell, ...]] = []
        for k, f in enumerate(self.joints):
            stribeck = "none" if f.stribeck_speed is None else f"{f.stribeck_speed:.3g} {f.speed_unit}"
            more = [_text(column[k]) for column in kept.values()]
            slope = f.viscous_unit.replace(" ", "\u00a0")
            figures = (f.dry.text, f.breakaway.text, f.unit, f.viscous.text, slope)
            rows.append((f.name, *figures, stribeck, *more, f.kinds))
        return [
            Text(text, "hint"),
            Rows((*header, *kept, "terms of the model"), tuple(rows)),
            *(Text(friction.remark) for friction in self.joints if friction.remark),
            *(self._plot(friction) for friction in self.joints),
        ]

    def _plot(self, f: JointFriction) -> Plot:
        label = f"friction of {f.name} over speed, with its 95 % band"
        return Plot.of(label, f"{f.name}: speed [{f.speed_unit}]", f"friction [{f.unit}]", f.speed,
                       [("friction", f.torque)], small=True, half=TWO_SIDED_95 * f.stderr)  # fmt: skip


def _text(figure: Figure | None) -> str:
    return "none" if figure is None else figure.text
