"""Widths of selected friction terms, where the data tell them.

Selection tries few widths, as parts of a joint's high speed. A width that is off by half leaves a misfit that comes
back with every reversal, so that no scatter in time shows it: dry and viscous friction are then off by several standard
deviations. So each joint's width is asked of the data, by the fit with columns of other widths in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import svd
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.linear.least_squares import noise_weights
from dynid.terms.base import ScaledTerm, Term
from dynid.terms.load_dependent import LoadFriction

FACTORS = (np.array([0.25, 0.5, 1.0, 2.0, 4.0]), 2.0 ** np.array([-0.8, -0.4, 0.0, 0.4, 0.8]))
"""Widths that are tried over the selected one, and then over the best of them (convention: the first bridge the gap
between those that selection tries). Over such steps a parabola is off by a tenth: with it alone, and friction of 5 % of
the load, dry and viscous friction of a joint of ddarm covered 82 and 86 % in 200 runs of
tests/campaigns/selection_coverage.py."""
MIDDLE = 2
"""Place of the factor of one."""
CLEAR = (10.0, 0.0)
"""Decrease of the squared residuals, in units of the noise, from which on another width is taken, of the first factors
and then of the others (convention: about three standard deviations; where the data tell a width, the best one is
taken)."""
RESOLVED = 1e-9
"""Part of a column's length that those before it must leave for it to count (convention: well above rounding)."""
SWEEPS = 2
"""How often the widths are asked for in turn (convention: terms of different joints hardly depend on each other)."""


def refine_widths(equations: Samples, terms: Sequence[Term]) -> dict[Term, Term]:
    """Selected terms, each with the width of the best fit in its place.

    Args:
        equations: Equations with these terms and others.
        terms: The selected terms.
    """
    weights = noise_weights(equations) if terms else np.ones(1)
    better = {term: term for term in terms}
    asked = [term for term in terms if _width(term) is not None]
    for factors, clear in zip(FACTORS, CLEAR, strict=True):
        if asked:
            others = [term for term in equations.terms if term not in asked]
            others = [better.get(term, term) for term in others]
            found = _ask_widths(equations, others, [better[term] for term in asked], (factors, clear), weights)
            better |= zip(asked, found, strict=True)
            asked = [term for term in asked if better[term] != term]  # the data tell its width
    return better


def _ask_widths(
    equations: Samples, others: Sequence[Term], scaled: Sequence[Term], grid: tuple[Floats, float], weights: Floats
) -> list[Term]:
    """Terms with the widths of the best fit beside other terms, among their own times the factors of a grid."""
    factors, clear = grid
    tried = [[_widened(term, factor) for factor in factors.tolist()] for term in scaled]
    wide = build_equations(
        equations.robot, equations.experiments, base=equations.base, band_hz=equations.band_hz, blocks=1,
        terms=[*others, *(term for row in tried for term in row)],
    )  # fmt: skip
    factor = wide.information.weight(weights)
    length = np.linalg.norm(factor.R, axis=0)
    count = len(equations.base.columns) + len(others)
    columns, side = _beyond(factor.R / np.where(length > 0.0, length, 1.0), factor.z, count)
    columns = columns.reshape(len(side), len(scaled), len(factors))
    places = np.full(len(scaled), MIDDLE)
    found = list(scaled)
    for _ in range(SWEEPS):
        for k in range(len(scaled)):
            kept = [columns[:, other, places[other]] for other in range(len(scaled)) if other != k]
            gains = _explained(np.array(kept).reshape(-1, len(side)).T, columns[:, k], side)
            best = int(np.argmax(gains))
            places[k] = best if gains[best] > gains[MIDDLE] + clear else MIDDLE
            found[k] = _widened(scaled[k], _peak(gains, int(places[k]), factors, clear))
    return found


def _width(term: Term) -> float | None:
    """The speed over which a term changes [rad/s or m/s]; None where it has none."""
    friction = term.friction if isinstance(term, LoadFriction) else term
    return friction.scale if isinstance(friction, ScaledTerm) and not friction.has_memory else None


def _widened(term: Term, factor: float) -> Term:
    """The term with another width."""
    if isinstance(term, LoadFriction):
        return replace(term, friction=replace(term.friction, scale=factor * term.friction.scale))  # type: ignore[attr-defined,call-arg]
    return replace(term, scale=factor * term.scale)  # type: ignore[attr-defined,call-arg]


def _beyond(triangle: Floats, side: Floats, count: int) -> tuple[Floats, Floats]:
    """What the first columns of a triangle (p, p) leave of its others, and of the right-hand side (p,)."""
    if np.all(np.abs(np.diagonal(triangle)[:count]) > RESOLVED):  # they span the first rows: the others are left
        return triangle[count:, count:], side[count:]
    U, sizes, _ = svd(triangle[:, :count])
    rest = U[:, np.count_nonzero(sizes > RESOLVED * sizes[0]) :].T
    return rest @ triangle[:, count:], rest @ side


def _explained(fixed: Floats, columns: Floats, side: Floats) -> Floats:
    """(m,) squares of the right-hand side that each of some columns (r, m) explains beyond the fixed ones (r, f)."""
    Q, R = np.linalg.qr(fixed)
    Q = Q[:, np.abs(np.diagonal(R)) > RESOLVED]
    table = np.column_stack([columns, side])
    table = table - Q @ (Q.T @ table)
    new = np.sum(table[:, :-1] ** 2, axis=0)
    squares = (table[:, :-1].T @ table[:, -1]) ** 2
    return np.asarray(np.divide(squares, new, out=np.zeros(len(new)), where=new > 0.0))


def _peak(gains: Floats, place: int, factors: Floats, clear: float) -> float:
    """The factor at the top of a parabola through a place and its neighbours, over the logarithm of the factor."""
    if (place == MIDDLE and np.argmax(gains) != place) or place in (0, len(factors) - 1):
        return float(factors[place])
    before, here, after = gains[place - 1 : place + 2]
    bend = before - 2.0 * here + after
    if not bend < -clear:
        return float(factors[place])
    step = 0.5 * (before - after) / bend
    return float(factors[place] * (factors[place + 1] / factors[place]) ** step)
