"""Base parameters in closed form, from the geometry alone ([GautierKhalil1990]).

One sweep from the last link to the first moves the parameters that the joint in between cannot tell apart to the link
before it: ``YY MZ M`` at a revolute joint (eq. 15), the whole tensor at a prismatic one (eq. 16), and between the
joints r and s some first moments as well (eqs. 19, 20). The conditions are the complete ones (see
`dynid.dynamics.chain`); coefficients are polynomials in the robot's own geometric symbols. Before the sweep begins,
rotor inertias are added to the link parameters that they cannot be told from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynid.dynamics.chain import Chain, is_along_z
from dynid.dynamics.inertia_maps import transport
from dynid.parameters.expression import ONE, Combination, DHSymbols, Polynomial, Term, dh_symbols
from dynid.parameters.layout import INERTIAL_SYMBOLS, ParameterLayout
from dynid.spatial import EXACT, SAME
from dynid.terms.base import Dependence

Linear = dict[str, Polynomial]
"""A linear combination of standard parameters, by name."""

XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M = range(10)


def closed_form(
    chain: Chain, layout: ParameterLayout
) -> tuple[tuple[int, ...], tuple[Combination, ...], dict[str, float]]:
    """Regroup the parameters of a serial robot in modified DH frames.

    Args:
        chain: The robot's table and gravity.
        layout: Its parameters; terms of all kinds of `Dependence` but OTHER are understood.

    Returns:
        The kept columns, the base parameters as combinations, and the values of the geometric symbols in them.
    """
    table, values = dh_symbols(chain.rows)
    links = [[{f"{symbol}{j}": ONE} for symbol in INERTIAL_SYMBOLS] for j in range(1, len(chain.rows) + 1)]
    models = {p.name: {p.name: ONE} for p in layout if p.kind == "term"}
    for rotor, substitutes in rotor_substitutes(chain, table, layout).items():
        del models[rotor]
        for name, coefficient in substitutes.items():
            parameter = layout[layout.index(name)]
            target = models[name] if name in models else links[parameter.number - 1][_position(parameter.symbol)]
            _add(target, {rotor: ONE}, coefficient)
    for j in reversed(range(len(links))):  # [GautierKhalil1990] section V, steps 2 and 3
        before = links[j - 1] if j else [{} for _ in range(10)]
        _regroup(chain, table[j], j, links[j], before)
    kept = {f"{INERTIAL_SYMBOLS[k]}{j + 1}": links[j][k] for j in range(len(links)) for k in _kept_positions(chain, j)}
    kept |= models
    names = [name for name in layout.names if name in kept]
    columns = tuple(layout.index(name) for name in names)
    return columns, tuple(_combination(layout, name, kept[name]) for name in names), values


def _position(symbol: str) -> int:
    return INERTIAL_SYMBOLS.index(symbol)


def _add(target: Linear, source: Mapping[str, Polynomial], factor: Polynomial | float = 1.0) -> None:
    for name, coefficient in source.items():
        total = target.get(name, Polynomial()) + coefficient * factor
        if total:
            target[name] = total
        else:
            target.pop(name, None)


def _regroup(chain: Chain, row: DHSymbols, j: int, link: list[Linear], before: list[Linear]) -> None:
    """Move the parameters that joint j cannot tell apart from link j to link j - 1."""
    S = transport(row.T_previous_joint[:3, :3], row.T_previous_joint[:3, 3])

    def move(source: int, *like: int) -> None:
        for k, factor in enumerate(S[:, list(like or (source,))].sum(axis=1)):
            _add(before[k], link[source], factor)

    if not chain.rows[j].sigma:  # [GautierKhalil1990] eq. (15)
        move(YY, XX, YY)
        move(MZ)
        move(M)
        _add(link[XX], link[YY], -1.0)
        point = chain.meeting_points[j]
        if j >= chain.s and point is not None:
            # without gravity and about a fixed point, first moments act as products of inertia do
            _add(link[XZ], link[MX], point)
            _add(link[YZ], link[MY], point)
        return
    for k in range(MX):  # it does not turn, so both links share the tensor: [GautierKhalil1990] eqs. (16), (17)
        move(k)
    if chain.r < j < chain.s:
        axis = chain.axis_of_r[j]
        if is_along_z(axis):  # [GautierKhalil1990] eqs. (19), (20) at r_j = 0; here the twist may be any angle
            move(MX)
            move(MY)
        else:
            k = int(np.argmax(np.abs(axis)))  # mass may shift along the only axis of rotation unnoticed
            for i in range(3):
                if i != k:
                    _add(link[MX + i], link[MX + k], -float(axis[i] / axis[k]))


def _kept_positions(chain: Chain, j: int) -> Sequence[int]:
    """Positions of the parameters that link j keeps."""
    if chain.rows[j].sigma:
        if j < chain.r:
            return (M,)
        if j > chain.s:
            return (MX, MY, MZ, M)
        axis = chain.axis_of_r[j]
        if is_along_z(axis):
            return (M,)
        dropped = MX + int(np.argmax(np.abs(axis)))
        return (*(k for k in (MX, MY, MZ) if k != dropped), M)
    if j < chain.s:
        return (ZZ, MX, MY) if chain.first_moments_act[j] else (ZZ,)
    return (XX, XY, XZ, YZ, ZZ) if chain.meeting_points[j] is not None else (XX, XY, XZ, YZ, ZZ, MX, MY)


def _combination(layout: ParameterLayout, name: str, linear: Linear) -> Combination:
    parameter = layout[layout.index(name)]
    order = sorted((other for other in linear if other != name), key=layout.index)
    terms = (Term(linear[name], name), *(Term(linear[other], other) for other in order))
    return Combination(parameter.regrouped_name if len(terms) > 1 else name, terms)


def rotor_substitutes(chain: Chain, table: Sequence[DHSymbols], layout: ParameterLayout) -> dict[str, Linear]:
    """For every rotor inertia that cannot be told from other parameters, those parameters with their coefficients.

    Revolute joints: r, and s if it is perpendicular to r; there the rotor turns with ``ZZ``. Prismatic joints: where
    all joints before are parallel revolute or perpendicular prismatic ones; there the rotor acts as mass that only
    slides, if gravity does not pull along the joint or the joint has an offset to make up for it.
    """
    found: dict[str, Linear] = {}
    terms = {(p.number, p.dependence): p.name for p in layout}
    for j, row in enumerate(chain.rows):
        number = j + 1
        rotor, offset = terms.get((number, Dependence.ACCELERATION)), terms.get((number, Dependence.CONSTANT))
        if rotor is None:
            continue
        if not row.sigma:
            if j == chain.r or (j == chain.s and _is_s_perpendicular(chain)):
                found[rotor] = {f"ZZ{number}": ONE}
            continue
        pull = _pull_along(chain, j)
        if pull is None or (pull != 0.0 and offset is None):
            continue
        substitutes = {f"M{number}": ONE}
        if j > 0:
            d = table[j].d
            carried = {"M": ONE, "MX": d, "YY": d * d, "ZZ": d * d}
            substitutes |= {f"{symbol}{j}": -factor for symbol, factor in carried.items() if factor}
        if offset is not None and pull != 0.0:
            substitutes[offset] = Polynomial.constant(pull)
        found[rotor] = substitutes
    return found


def _is_s_perpendicular(chain: Chain) -> bool:
    axis = chain.rows[chain.s].T_previous_joint[:3, :3].T
    before = chain.axis_of_r[chain.s - 1]
    return abs(float((axis @ before)[2])) <= SAME


def _pull_along(chain: Chain, j: int) -> float | None:
    """Gravity along prismatic joint j [m/s^2]; None where an earlier joint makes the rotor identifiable."""
    direction = np.array([0.0, 0.0, 1.0])
    for k in range(j, 0, -1):
        direction = chain.rows[k].T_previous_joint[:3, :3] @ direction  # axis j in frame k - 1
        along = abs(float(direction[2]))
        if along > SAME if chain.rows[k - 1].sigma else along < 1.0 - EXACT:
            return None
    pull = float(chain.gravity @ (chain.rows[0].T_previous_joint[:3, :3] @ direction))
    return 0.0 if abs(pull) <= SAME * max(1.0, float(np.linalg.norm(chain.gravity))) else pull
