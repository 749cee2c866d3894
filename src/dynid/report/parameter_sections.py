"""Chapters of the report on parameters: values, intervals, how far the data determine each, which are significant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.decompositions import eigvalsh
from dynid.estimators.estimate import Source
from dynid.identification.identification_view import shared_friction
from dynid.identification.identify import Identification
from dynid.identification.significance import PruningCost
from dynid.report.html_blocks import Block, Bullets, Heading, Text
from dynid.report.page import Chapter
from dynid.robot.term_names import term_words
from dynid.tables import Cell, Table

WEAK_PERCENT = 30.0
"""Relative standard deviation above which a value is called weakly known [%] (convention)."""
PRIOR = "prior-dominated"
"""Mark of a parameter whose value comes from the prior model rather than from the data."""
SHARED = "shared"
"""Mark of one of several terms that together carry the friction of a joint."""
MEANINGS = (
    ("identified", "The data determine this parameter by itself. Use the value."),
    (
        "combined",
        "The data determine the sum in the table of expressions, but no single term of it. Use the sum as a whole.",
    ),
    (
        SHARED,
        "One of several terms that carry the friction of a joint together: only a part of it. Use the friction of the "
        "joint as a whole.",
    ),
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
"""Every mark and its meaning."""
SOURCES: dict[Source, tuple[str, str]] = {
    "data": (
        "Determined by the data",
        "The intervals say how far another log of such motions may differ: they come from the scatter between blocks "
        "of time and between logs. Errors of the model that are the same in every log are not in them.",
    ),
    "prior": (
        "Determined by the prior more than by the data",
        "The prior knows these parameters better than the data alone. Their intervals are cautious: the distance of "
        "the value from what the data alone say counts as an error.",
    ),
    "open": ("Left open", "This motion does not reveal these parameters."),
}
"""Heading and note of the base parameters from each source."""
NAMES = (
    "XX3 to ZZ3 are moments and products of inertia of the third moving link about the origin of its frame, MX3, MY3 "
    "and MZ3 its first moments (mass times centre of mass), M3 its mass; the R of ZZR3 marks a sum with parameters of "
    "other links"
)
"""Explanation of the names of the links' parameters."""


def parameters_chapter(fit: Identification) -> Chapter:
    """Make the chapter of base parameters with their intervals, bodies, and standard parameters with their marks."""
    hidden = tuple(fit.base.reasons.items())
    why: list[Block] = [Heading("Parameters without effect on the torques"), Bullets(hidden)] if hidden else []
    marks = base_marks(fit)
    blocks: list[Block] = [
        Text(_explain_names(fit), "hint"),
        *_base_tables(fit, marks),
        Heading("What the marks mean"),
        Bullets(MEANINGS),
        *why,
        *_bodies(fit),
        _list_standard_parameters(fit),
    ]
    return Chapter("Parameters", tuple(blocks))


def _explain_names(fit: Identification) -> str:
    """Explain the names of the parameters: those of the links, and of the terms that this model has."""
    terms = [*(placed.term for placed in fit.robot.terms), *fit.terms]
    words = {term.symbol.strip("*@"): term_words([term]) for term in terms}  # * and @ stand for joints
    named = [f"{symbol}: {word}" for symbol, word in words.items() if symbol]
    return f"Names: {NAMES}{'; ' if named else ''}{', '.join(named)}."


def base_marks(fit: Identification) -> tuple[str, ...]:
    """(b,) mark of each estimated parameter, as explained in `MEANINGS`."""
    estimate = fit.estimate
    from_prior = set(fit.estimate.prior_dominated)
    shared = shared_friction(fit.equations)
    is_alone = [np.count_nonzero(row) == 1 for row in fit.base.grouping] + [True] * len(fit.terms)  # no sum
    marks = []
    for name, alone, is_open, relative in zip(
        estimate.names, is_alone, estimate.undetermined, estimate.relative_stderr, strict=True
    ):
        if is_open:
            mark = "not determined"
        elif name in from_prior:
            mark = PRIOR
        elif name in shared:
            mark = SHARED
        else:
            mark = "identified" if alone else "combined"
        marks.append(f"{mark}, weakly known" if not is_open and relative > WEAK_PERCENT else mark)
    return tuple(marks)


def standard_marks(fit: Identification) -> tuple[str, ...]:
    """(p,) mark of each standard parameter; one that is a base parameter by itself has the mark of that one."""
    fit = fit.in_columns
    base = fit.base
    hidden = set(base.unidentifiable)
    alone = {base.layout.index(name) for name in base.identifiable}
    marks = dict(zip(base.columns, base_marks(fit), strict=False))  # marks of further terms are left over
    return tuple(
        "unidentifiable" if name in hidden else marks[column] if column in alone else PRIOR
        for column, name in enumerate(base.layout.names)
    )


def _base_tables(fit: Identification, marks: Sequence[str]) -> list[Block]:
    """Tables of the base parameters with their intervals; terms that share the friction of a joint are folded away."""
    estimate = fit.estimate
    base = fit.base
    prior = base.project(fit.robot.parameter_vector).tolist() + [None] * len(fit.terms)
    shared = shared_friction(fit.equations)
    rows: dict[str, list[tuple[Cell, ...]]] = {source: [] for source in ("shared", *SOURCES)}
    columns = (estimate.names, estimate.values, 0.5 * np.ptp(estimate.interval(), axis=1), prior, estimate.units, marks)
    for source, name, value, half, *others in zip(estimate.sources, *columns, strict=True):
        result = f"{value:.4g}\u00a0±\u00a0{half:.2g}" if np.isfinite(half) else f"{value:.4g}"
        rows["shared" if name in shared else source].append((name, result, *others))
    header = ("base parameter", "result, with its 95 % interval", "prior", "unit", "mark")
    blocks: list[Block] = []
    for source, (heading, note) in SOURCES.items():
        if rows[source]:
            blocks += [Heading(heading), Text(note, "hint"), Table(header, tuple(rows[source]))]
    if parts := rows["shared"]:
        folded = f"{len(parts)} coefficients of friction that several terms share: each is only a part of it"
        blocks.append(Table(header, tuple(parts), folded))
    # the expression of a base parameter that is no sum is its own name
    sums = [(name, text) for name, text in zip(estimate.names, base.expressions, strict=False) if name != text]
    if sums:
        folded = f"Expressions of the {len(sums)} base parameters that are sums"
        blocks.append(Table(("base parameter", "expression"), tuple(sums), folded))
    return blocks


def _bodies(fit: Identification) -> list[Block]:
    """Table of the identified bodies: mass, centre of mass, principal moments."""
    rows = []
    for before, after in zip(fit.robot.bodies, fit.robot.with_parameters(fit.standard).bodies, strict=True):
        com = ", ".join(f"{1000 * c:.1f}" for c in after.inertia.com)
        moments = ", ".join(f"{m:.4g}" for m in eigvalsh(after.inertia.about_com))
        rows.append((after.joint.child, after.inertia.mass, before.inertia.mass, com, moments))
    header = ("body", "mass [kg]", "prior mass [kg]", "centre of mass [mm]", "principal moments [kg m^2]")
    note = "These bodies are physically possible; where the data allow several, they are nearest to the prior model."
    return [Heading("Bodies"), Text(note, "hint"), Table(header, tuple(rows))]


def _list_standard_parameters(fit: Identification) -> Table:
    """Folded table of all standard parameters."""
    columns = (fit.standard.tolist(), fit.robot.parameter_vector.tolist(), fit.standard_stderr.tolist())
    rows = tuple(zip(fit.base.layout.names, *columns, standard_marks(fit), strict=True))
    header = ("standard parameter", "value", "prior", "standard deviation", "mark")
    return Table(header, rows, f"All {len(rows)} standard parameters")


def significance_chapter(fit: Identification, cost: PruningCost) -> Chapter:
    """Make the chapter about the significant parameters: errors and operations of a model of them alone.

    The chapter is empty where the identification has no significant parameters.
    """
    found = fit.significance
    if found is None:
        return Chapter("Significant parameters", ())
    text = (
        f"{found.headline}. The others are left out, and the significant ones are fitted again by weighted least "
        "squares. The contribution is the largest torque that a parameter causes, over all samples, in percent of "
        "the largest measured torque of the same joint. dynid codegen --prune writes C code of this short model."
    )
    refitted = dict(zip(found.kept, found.estimate.values.tolist(), strict=True))
    rows = tuple(
        (name, float(share), "yes" if name in refitted else "no", refitted.get(name), unit)
        for name, share, unit in zip(found.every.names, found.contribution, found.every.units, strict=True)
    )
    header = ("parameter", "contribution %", "significant", "refitted value", "unit")
    folded = f"Contributions of all {len(rows)} parameters"
    blocks = (Text(text, "hint"), cost.table(), Table(header, rows, folded))
    return Chapter("Significant parameters", blocks)
