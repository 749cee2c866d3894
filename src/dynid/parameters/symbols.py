"""The robot's geometric constants by name, and coefficients recognised as expressions in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from dynid.parameters.expression import Combination, Polynomial, Term
from dynid.parameters.layout import Parameter, ParameterLayout
from dynid.robot.dh import DH
from dynid.robot.model import Robot

__all__ = ["DHSymbols", "dh_rows", "dh_symbols", "geometry_of", "readable_combinations", "recognise", "within"]

Floats = NDArray[np.float64]

_DEGREE = {"inertia": 2, "first moment": 1, "mass": 0}


@dataclass(frozen=True, slots=True)
class DHSymbols:
    """One row of a modified DH table as polynomials: numbers where they are 0 or 1, symbols otherwise."""

    d: Polynomial
    r: Polynomial
    cos_alpha: Polynomial
    sin_alpha: Polynomial
    cos_theta: Polynomial
    sin_theta: Polynomial


def dh_rows(robot: Robot) -> tuple[DH, ...] | None:
    """The modified DH table of a serial robot whose body frames already are modified DH frames; otherwise None."""
    rows = []
    for j, body in enumerate(robot.bodies):
        R, p = body.R_parent_joint, body.p_parent_joint
        z = R[:, 2]
        ours = body.parent == j - 1 and np.array_equal(body.axis, [0.0, 0.0, 1.0])
        if not ours or abs(z[0]) > 1e-12 or abs(p[1] * z[2] - p[2] * z[1]) > 1e-12 * max(1.0, float(np.abs(p).max())):
            return None
        alpha, theta = float(np.arctan2(-z[1], z[2])), float(np.arctan2(-R[0, 1], R[0, 0]))
        rows.append(DH(alpha=alpha, d=float(p[0]), theta=theta, r=float(p @ z), sigma=int(body.prismatic)))
    return tuple(rows)


def dh_symbols(rows: Sequence[DH]) -> tuple[list[DHSymbols], dict[str, float]]:
    """Symbols ``D3 R3 CA3 SA3 CT3 ST3`` of a table and their values; zeros, ones and right angles are folded."""
    table, values = [], {}

    def named(name: str, value: float) -> Polynomial:
        exact = round(value)
        if abs(value - exact) < 1e-12 and (exact == 0 or (exact in (-1, 1) and name[0] in "CS")):
            return Polynomial.constant(exact)
        values[name] = value
        return Polynomial.symbol(name)

    for j, row in enumerate(rows, start=1):
        table.append(
            DHSymbols(
                d=named(f"D{j}", row.d),
                r=named(f"R{j}", row.r) if not row.sigma else Polynomial(),
                cos_alpha=named(f"CA{j}", float(np.cos(row.alpha))),
                sin_alpha=named(f"SA{j}", float(np.sin(row.alpha))),
                cos_theta=named(f"CT{j}", float(np.cos(row.theta))) if row.sigma else Polynomial(),
                sin_theta=named(f"ST{j}", float(np.sin(row.theta))) if row.sigma else Polynomial(),
            )
        )
    return table, values


def geometry_of(robot: Robot) -> dict[str, float]:
    """Values of the geometric symbols: those of the DH table, or else ``PX3 PY3 PZ3`` of each placement."""
    rows = dh_rows(robot)
    if rows is not None:
        return dh_symbols(rows)[1]
    values = {}
    for j, body in enumerate(robot.bodies, start=1):
        values.update(
            {f"P{axis}{j}": float(p) for axis, p in zip("XYZ", body.p_parent_joint, strict=True) if abs(p) > 1e-12}
        )
    return values


def readable_combinations(
    layout: ParameterLayout, columns: Sequence[int], grouping: Floats, geometry: Mapping[str, float]
) -> tuple[Combination, ...]:
    """Every base parameter as a combination whose coefficients are recognised where they can be.

    Args:
        layout: The parameters.
        columns: (b,) kept columns.
        grouping: (b, p) numerical coefficients.
        geometry: Values of the geometric symbols.
    """
    known: dict[tuple[float, int, int, int], Polynomial] = {}
    found = []
    for column, row in zip(columns, grouping, strict=True):
        kept = layout[column]
        others = [int(k) for k in np.flatnonzero(row) if k != column]
        terms = [Term(Polynomial.constant(1.0), kept.name)]
        for k in others:
            key = (round(float(row[k]), 12), *_degree_and_range(kept, layout[k]))
            if key not in known:
                known[key] = recognise(float(row[k]), key[1], within(geometry, key[2], key[3]))
            terms.append(Term(known[key], layout[k].name))
        found.append(Combination(kept.regrouped_name if others else kept.name, tuple(terms)))
    return tuple(found)


def _degree_and_range(kept: Parameter, dropped: Parameter) -> tuple[int, int, int]:
    """Power of length in the coefficient, and the joints (after, up to) whose geometry may stand in it."""
    degree = _DEGREE.get(kept.kind, 0) - _DEGREE.get(dropped.kind, 0)
    return degree, min(kept.number, dropped.number), max(kept.number, dropped.number)


def within(geometry: Mapping[str, float], after: int, last: int) -> dict[str, float]:
    """The symbols that belong to joints beyond ``after`` up to ``last``."""
    return {name: value for name, value in geometry.items() if after < int(name.lstrip("PXYZDRCSAT")) <= last}


def recognise(value: float, degree: int, geometry: Mapping[str, float]) -> Polynomial:
    """A coefficient as a short polynomial of that degree in the lengths, or the number itself.

    Args:
        value: The number.
        degree: 0, 1 or 2 lengths are multiplied in it.
        geometry: Values of the symbols that may stand in it.
    """
    number = Polynomial.constant(value)
    if abs(2.0 * value - round(2.0 * value)) < 1e-10 and degree == 0:
        return Polynomial.constant(round(2.0 * value) / 2.0)
    candidates = _candidates(degree, geometry)
    tolerance = 1e-9 * abs(value) + 1e-12
    for factor in (1.0, -1.0, 2.0, -2.0):
        for polynomial, size in candidates:
            if abs(factor * size - value) <= tolerance:
                return polynomial * factor
    squares = [(p, s) for p, s in candidates if len(p.terms) == 1 and p.terms[0][0][0][1] == 2] if degree == 2 else []
    for count in range(2, min(len(squares), 6) + 1):
        for chosen in combinations(squares, count):
            signed = _signed(chosen, value, tolerance)
            if signed is not None:
                return signed
    found = _pair(candidates, value, tolerance)
    return number if found is None else found


def _candidates(degree: int, geometry: Mapping[str, float]) -> list[tuple[Polynomial, float]]:
    """Products of so many lengths with at most two cosines or sines."""
    lengths = [name for name in geometry if name[0] in "DRP"]
    angles = [name for name in geometry if name[0] in "CS"]
    one = Polynomial.constant(1.0)
    bases: list[Polynomial] = [one]
    for _ in range(degree):
        bases = list(dict.fromkeys(base * Polynomial.symbol(name) for base in bases for name in lengths))
    turns = [one, *(Polynomial.symbol(a) for a in angles)]
    turns += [Polynomial.symbol(a) * Polynomial.symbol(b) for k, a in enumerate(angles) for b in angles[k:]]
    bases = bases[:80] if degree >= 0 else []
    found = [base * turn for turn in turns[:40] for base in bases]
    return [(polynomial, polynomial.value(geometry)) for polynomial in found if polynomial]


def _signed(chosen: Sequence[tuple[Polynomial, float]], value: float, tolerance: float) -> Polynomial | None:
    """The sum of the chosen with some choice of signs that has this value."""
    for factors in product((1.0, -1.0), repeat=len(chosen)):
        if abs(sum(f * s for f, (_, s) in zip(factors, chosen, strict=True)) - value) <= tolerance:
            total = Polynomial()
            for factor, (polynomial, _) in zip(factors, chosen, strict=True):
                total = total + polynomial * factor
            return total
    return None


def _pair(candidates: Sequence[tuple[Polynomial, float]], value: float, tolerance: float) -> Polynomial | None:
    """A sum or difference of two candidates, each once or twice, that has this value."""
    sizes = np.array([size for _, size in candidates])
    for first in (1.0, -1.0, 2.0, -2.0):
        for second in (1.0, -1.0, 2.0, -2.0):
            hits = np.argwhere(np.abs(first * sizes[:, None] + second * sizes[None, :] - value) <= tolerance)
            if len(hits):
                a, b = (int(index) for index in hits[0])
                return candidates[a][0] * first + candidates[b][0] * second
    return None
