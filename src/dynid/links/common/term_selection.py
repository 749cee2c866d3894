"""Selection of further terms: the standard candidates that pass a rule are added to the equations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.linear.least_squares import weighted_values
from dynid.estimation.selection import ForwardSelection, Selection, standard_candidates
from dynid.links.common.fewer_samples import shorten_long
from dynid.links.common.term_widths import refine_widths
from dynid.terms.base import Reference, Term
from dynid.terms.load_dependent import LoadFriction

SHORTEST_MEMORY = 50
"""Samples that gap-free stretches must have on average for friction with memory to be tried (convention)."""
REFERENCES = 1
"""Number of fits that better the torques on which selected terms depend (convention: each leaves the product of the
former error and the size of the term; two gave the same coverage)."""
REPEATED = 1e-6
"""Share of a term's torque that must be new for it to be a term of its own (convention: well above rounding)."""


def select_terms(equations: Samples, rule: ForwardSelection) -> tuple[Samples, Selection]:
    """Add the standard candidates that pass the rule to the equations; of long runs some parts choose them."""
    runs = shorten_long(equations.experiments) if equations.band_hz is None else list(equations.experiments)
    if sum(run.samples for run in runs) == sum(run.samples for run in equations.experiments):
        return _select(equations, rule)
    build = partial(build_equations, equations.robot, base=equations.base)
    _, selection = _select(build(runs, terms=equations.terms), rule)
    terms = [*equations.terms, *selection.terms]
    return build(equations.experiments, terms=terms, blocks=max(rule.folds)), selection


def _select(equations: Samples, rule: ForwardSelection) -> tuple[Samples, Selection]:
    """Add the candidates, which are judged by all samples."""
    reference = Reference(equations.representative(weighted_values(equations)))
    stretches = sum(int(run.segment[-1]) + 1 for run in equations.experiments)
    samples = sum(run.samples for run in equations.experiments)
    # isolated rows do not follow one another in time, so friction with memory makes no sense
    memory = samples >= SHORTEST_MEMORY * stretches
    candidates = standard_candidates(
        equations.robot, equations.experiments, reference, memory=memory, present=equations.terms
    )
    extra = [term for candidate in candidates for term in candidate.terms]
    wide = build_equations(
        equations.robot, equations.experiments, base=equations.base, terms=[*equations.terms, *extra],
        band_hz=equations.band_hz, blocks=max(rule.folds),
    )  # fmt: skip
    selection = rule.run(wide, candidates, present=equations.terms)
    chosen = wide.keep((*equations.terms, *selection.terms))
    # the cosine of an angle may be the torque of a weight: what repeats others is no term of its own
    R = chosen.information.weight().R
    news = np.abs(np.diagonal(R)) > REPEATED * np.maximum(np.linalg.norm(R, axis=0), 1e-300)
    terms = tuple(f for f, new in zip(selection.terms, news[len(equations.names) :], strict=True) if new)
    if terms != selection.terms:
        models = tuple(tuple(term for term in model if term in terms) for model in selection.models)
        selection = replace(selection, terms=terms, models=models)
        chosen = wide.keep((*equations.terms, *terms))
    chosen, selection = _with_better_reference(chosen, selection, present=equations.terms, blocks=max(rule.folds))
    return _with_better_widths(chosen, selection, present=equations.terms, blocks=max(rule.folds))


def _with_better_widths(
    chosen: Samples, selection: Selection, *, present: tuple[Term, ...], blocks: int
) -> tuple[Samples, Selection]:
    """Give the selected terms the widths that the data tell; see `refine_widths`."""
    better = refine_widths(chosen, selection.terms)
    if all(term == new for term, new in better.items()) or len(set(better.values())) < len(better):
        return chosen, selection
    models = tuple(tuple(better[term] for term in model) for model in selection.models)
    return build_equations(
        chosen.robot, chosen.experiments, base=chosen.base, terms=[*present, *better.values()],
        band_hz=chosen.band_hz, blocks=blocks,
    ), replace(selection, terms=tuple(better.values()), models=models)  # fmt: skip


def _with_better_reference(
    chosen: Samples, selection: Selection, *, present: tuple[Term, ...], blocks: int
) -> tuple[Samples, Selection]:
    """Let terms of the links' torques take these from a fit that has the terms.

    The fit without them, which selection starts from, puts a part of what they explain into the links. With friction
    of 5 % of the load the intervals of the links' parameters then covered 72 % for ddarm and 88 % for scara; with this
    step 88 % and 93 % (tests/campaigns/selection_coverage.py, 20 runs).
    """
    if not any(_has_reference(term) for term in selection.terms):
        return chosen, selection
    for _ in range(REFERENCES):
        reference = Reference(chosen.representative(weighted_values(chosen)))
        load = reference.of_links(chosen.robot.dof)
        better = {
            term: replace(term, reference=load if isinstance(term, LoadFriction) else reference)  # type: ignore[call-arg]
            if _has_reference(term)
            else term
            for term in selection.terms
        }
        models = tuple(tuple(better[term] for term in model) for model in selection.models)
        selection = replace(selection, terms=tuple(better.values()), models=models)
        chosen = build_equations(
            chosen.robot, chosen.experiments, base=chosen.base, terms=[*present, *selection.terms],
            band_hz=chosen.band_hz, blocks=blocks,
        )  # fmt: skip
    return chosen, selection


def _has_reference(term: Term) -> bool:
    return isinstance(getattr(term, "reference", None), Reference)
