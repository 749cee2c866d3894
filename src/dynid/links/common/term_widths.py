"""Widths of selected friction terms, where the data tell them.

Selection tries few widths, as parts of a joint's high speed. A width that is off by half leaves a misfit that comes
back with every reversal, so that no scatter in time shows it: dry and viscous friction are then off by several standard
deviations. So each joint's width is asked of the data, by the fit with columns of other widths in its place. It is
`dynid.estimation.fit_scales` in one pass over the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.linear.least_squares import noise_weights
from dynid.terms.base import ScaledTerm, Term
from dynid.terms.load_dependent import LoadFriction

__all__ = ["refine_widths"]

Floats = NDArray[np.float64]
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Widths that are tried over the selected one (convention: they bridge the gap between those that selection tries)."""
CLEAR = 10.0
"""Decrease of the squared residuals, in units of the noise, from which on another width is taken (convention: about
three standard deviations)."""
SWEEPS = 2
"""How often the widths are asked for in turn (convention: terms of different joints hardly depend on each other)."""


def refine_widths(equations: Samples, terms: Sequence[Term]) -> dict[Term, Term]:
    """Selected terms, each with the width of the best fit in its place.

    Args:
        equations: Equations with these terms and others.
        terms: The selected terms.
    """
    scaled = [term for term in terms if _width(term) is not None]
    better: dict[Term, Term] = {term: term for term in terms}
    if not scaled:
        return better
    tried = [[_widened(term, factor) for factor in FACTORS] for term in scaled]
    others = [term for term in equations.terms if term not in scaled]
    wide = build_equations(
        equations.robot, equations.experiments, base=equations.base, band_hz=equations.band_hz,
        terms=[*others, *(term for row in tried for term in row)],
    )  # fmt: skip
    factor = wide.information.weight(noise_weights(equations))
    fixed, side = factor.R[:, : len(equations.base.columns) + len(others)], factor.z
    columns = factor.R[:, fixed.shape[1] :].reshape(len(side), len(scaled), len(FACTORS))
    places = np.full(len(scaled), FACTORS.index(1.0))
    for _ in range(SWEEPS):
        for k in range(len(scaled)):
            kept = [columns[:, other, places[other]] for other in range(len(scaled)) if other != k]
            gains = _explained(np.column_stack([fixed, *kept]), columns[:, k], side)
            best = int(np.argmax(gains))
            places[k] = best if gains[best] > gains[FACTORS.index(1.0)] + CLEAR else FACTORS.index(1.0)
            better[scaled[k]] = _widened(scaled[k], _peak(gains, int(places[k])))
    return better


def _width(term: Term) -> float | None:
    """The speed over which a term changes [rad/s or m/s]; None where it has none."""
    friction = term.friction if isinstance(term, LoadFriction) else term
    return friction.scale if isinstance(friction, ScaledTerm) and not friction.has_memory else None


def _widened(term: Term, factor: float) -> Term:
    """The term with another width."""
    if isinstance(term, LoadFriction):
        return replace(term, friction=replace(term.friction, scale=factor * term.friction.scale))  # type: ignore[attr-defined,call-arg]
    return replace(term, scale=factor * term.scale)  # type: ignore[attr-defined,call-arg]


def _explained(fixed: Floats, columns: Floats, side: Floats) -> Floats:
    """(m,) squares of the right-hand side that each of some columns (r, m) explains beyond the fixed ones (r, f)."""
    length = np.linalg.norm(fixed, axis=0)
    Q, R = np.linalg.qr(fixed / np.where(length > 0.0, length, 1.0))
    Q = Q[:, np.abs(np.diagonal(R)) > 1e-9]
    table = np.column_stack([columns, side])
    table = table - Q @ (Q.T @ table)
    new = np.sum(table[:, :-1] ** 2, axis=0)
    squares = (table[:, :-1].T @ table[:, -1]) ** 2
    return np.asarray(np.divide(squares, new, out=np.zeros(len(new)), where=new > 0.0))


def _peak(gains: Floats, place: int) -> float:
    """The factor at the top of a parabola through a place and its neighbours, over the logarithm of the factor."""
    if (place == FACTORS.index(1.0) and np.argmax(gains) != place) or place in (0, len(FACTORS) - 1):
        return FACTORS[place]
    before, here, after = gains[place - 1 : place + 2]
    bend = before - 2.0 * here + after
    if not bend < -CLEAR:
        return FACTORS[place]
    step = 0.5 * (before - after) / bend
    return float(FACTORS[place] * (FACTORS[place + 1] / FACTORS[place]) ** step)
