"""Sections of the report on parameters: values, intervals, how far the data determine each, which are significant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.decompositions import eigvalsh
from dynid.links.identify import Identification
from dynid.links.pruning import PruningCost
from dynid.report.html_blocks import Block, Bullets, Heading, Rows, Text
from dynid.report.page import Section

__all__ = ["Parameters", "SignificantParameters", "base_marks", "standard_marks"]

WEAK_PERCENT = 30.0
"""Relative standard deviation from which a value is called weakly known [%]; a convention."""
PRIOR = "prior-dominated"
"""Mark of a parameter whose value comes from the prior model rather than from the data."""
WORDS = (
    ("identified", "The data determine this parameter by itself. Use the value."),
    ("combined", "The data determine the sum in the last column, but no single term of it. Use the sum as a whole."),
    (
        "weakly known",
        f"The standard deviation exceeds {WEAK_PERCENT:g} % of the value: the parameter has little effect in this "
        "motion, or it is near zero.",
    ),
    ("not determined", "This motion does not reveal the parameter; its value is arbitrary. See dynid excite."),
    (
        PRIOR,
        "The prior model is more certain than the data alone. A standard parameter is prior-dominated where the data "
        "determine only sums that contain it; its value stays near the prior one.",
    ),
    ("unidentifiable", "No motion of this robot shows the parameter in the torques, so no log can determine it."),
)
"""Meaning of every mark."""


def base_marks(fit: Identification) -> tuple[str, ...]:
    """(b,) mark of each estimated parameter, as explained in `WORDS`."""
    estimate, prior = fit.estimate, set(fit.estimate.prior_dominated)
    single = [np.count_nonzero(row) == 1 for row in fit.equations.grouping]
    marks = []
    for name, alone, free, relative in zip(
        estimate.names, single, estimate.undetermined, estimate.relative_stderr, strict=True
    ):
        kind = "not determined" if free else PRIOR if name in prior else "identified" if alone else "combined"
        marks.append(f"{kind}, weakly known" if not free and relative > WEAK_PERCENT else kind)
    return tuple(marks)


def standard_marks(fit: Identification) -> tuple[str, ...]:
    """(p,) mark of each standard parameter; one that is a base parameter by itself has the mark of that one."""
    base, hidden = fit.base, set(fit.base.unidentifiable)
    alone = {base.layout.index(name) for name in base.identifiable}
    marks = dict(zip(base.columns, base_marks(fit), strict=False))
    return tuple(
        "unidentifiable" if name in hidden else marks[column] if column in alone else PRIOR
        for column, name in enumerate(base.layout.names)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Parameters(Section):
    """Base parameters with their intervals, bodies, and standard parameters with their marks."""

    fit: Identification

    @property
    def title(self) -> str:
        """Heading."""
        return "Parameters"

    def blocks(self) -> Sequence[Block]:
        """Tables, the meaning of the marks, and the reasons why some parameters have no effect."""
        hidden = tuple(self.fit.base.reasons.items())
        why: list[Block] = [Heading("Parameters without effect on the torques"), Bullets(hidden)] if hidden else []
        return [self._found(), Heading("What the marks mean"), Bullets(WORDS), *why, *self._bodies(), self._standard()]

    def _found(self) -> Rows:
        estimate, base = self.fit.estimate, self.fit.base
        terms = [term.name for term in self.fit.terms]
        prior = np.concatenate([base.project(self.fit.robot.parameter_vector), np.zeros(len(terms))])
        rows = [
            (name, float(value), float(low), float(high), float(before), unit, mark, expression)
            for name, value, (low, high), before, unit, mark, expression in zip(
                estimate.names,
                estimate.values,
                estimate.interval(),
                prior,
                estimate.units,
                base_marks(self.fit),
                (*base.expressions, *terms),
                strict=True,
            )
        ]
        return Rows(("base parameter", "value", "95 % from", "to", "prior", "unit", "mark", "expression"), tuple(rows))

    def _bodies(self) -> list[Block]:
        rows = []
        for before, after in zip(
            self.fit.robot.bodies, self.fit.robot.with_parameters(self.fit.standard).bodies, strict=True
        ):
            com = ", ".join(f"{1000 * c:.1f}" for c in after.inertia.com)
            moments = ", ".join(f"{m:.4g}" for m in eigvalsh(after.inertia.about_com))
            rows.append((after.joint.child, after.inertia.mass, before.inertia.mass, com, moments))
        header = ("body", "mass [kg]", "prior mass [kg]", "centre of mass [mm]", "principal moments [kg m^2]")
        note = (
            "These bodies are physically possible; where the data allow several, they are nearest to the prior model."
        )
        return [Heading("Bodies"), Text(note, "hint"), Rows(header, tuple(rows))]

    def _standard(self) -> Rows:
        fit = self.fit
        rows = [
            (name, float(value), float(before), float(spread), mark)
            for name, value, before, spread, mark in zip(
                fit.base.layout.names,
                fit.standard,
                fit.robot.parameter_vector,
                fit.standard_stderr,
                standard_marks(fit),
                strict=True,
            )
        ]
        header = ("standard parameter", "value", "prior", "standard deviation", "mark")
        return Rows(header, tuple(rows), folded=f"All {len(rows)} standard parameters")


@dataclass(frozen=True, slots=True, eq=False)
class SignificantParameters(Section):
    """The parameters that matter for the torques, and what it costs and saves to keep them alone."""

    fit: Identification
    cost: PruningCost

    @property
    def title(self) -> str:
        """Heading."""
        return "Significant parameters"

    def blocks(self) -> Sequence[Block]:
        """Errors and operations with all and with the significant parameters, and the contribution of each."""
        found = self.fit.significance
        if found is None:
            return []
        text = (
            f"{found.headline}. The others are left out, and the significant ones are fitted again by weighted least "
            "squares. The contribution is the largest torque that a parameter causes, over all samples, in percent of "
            "the largest measured torque of the same joint. dynid codegen --prune writes C code of this short model."
        )
        table = self.cost.table()
        refitted = dict(zip(found.kept, found.estimate.values.tolist(), strict=True))
        rows = [
            (name, float(share), "yes" if name in refitted else "no", refitted.get(name), unit)
            for name, share, unit in zip(found.every.names, found.contribution, found.every.units, strict=True)
        ]
        header = ("parameter", "contribution %", "significant", "refitted value", "unit")
        return [
            Text(text, "hint"),
            Rows(tuple(table.header), tuple(table.rows)),
            Rows(header, tuple(rows), folded=f"Contributions of all {len(rows)} parameters"),
        ]
