"""Base parameters of a serial robot in closed form, from its modified DH table alone ([GautierKhalil1990]).

This is method "closed-form" of `base_parameters`, which calls `closed_form` with the DH table (as a `Chain`).

Some parameters of a link act on the torques exactly like parameters of the link before. One sweep from the last link to
the first moves them there: ``YY MZ M`` at a revolute joint (eq. 15), the whole inertia tensor at a prismatic one (eq.
16), and between the joints r and s some first moments as well (eqs. 19, 20). Joint r is the first revolute joint, s the
first revolute joint whose axis is not parallel to that of r. `dynid.dynamics.chain` finds both, and which first moments
act. Before the sweep, rotor inertias are added to the link parameters that they act like.

Coefficients are polynomials in symbols of the DH table, such as ``D3`` and ``CA3``. Joints and links are numbered from
0 in the code and from 1 in names, as in ``ZZ1``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynid.dynamics.chain import Chain, is_along_z
from dynid.dynamics.inertia_maps import transport
from dynid.identifiability.expression import ONE, Combination, DHSymbols, Polynomial, Summand, dh_symbols
from dynid.identifiability.layout import INERTIAL_SYMBOLS, MX, MY, MZ, XX, XY, XZ, YY, YZ, ZZ, M, ParameterLayout
from dynid.spatial import EXACT, SAME
from dynid.terms.base import Dependence

Linear = dict[str, Polynomial]
"""A linear combination of standard parameters: name -> coefficient."""


def closed_form(
    chain: Chain, layout: ParameterLayout
) -> tuple[tuple[int, ...], tuple[Combination, ...], dict[str, float]]:
    """Regroup the parameters of a serial robot in modified DH frames.

    Args:
        chain: The robot's DH table, and what its axes and gravity imply for each link.
        layout: Its parameters: ten per link, and those of the joints' rotor inertias, friction and offsets ("terms").

    Returns:
        The kept columns (b,), the base parameters (b,) as combinations of standard ones, and the values of the symbols
        in them (lengths [m], cosines and sines).
    """
    table, values = dh_symbols(chain.rows)
    # the combination that has gathered at each of the ten parameters of each link, and at each term: at first itself
    links = [[{f"{symbol}{j}": ONE} for symbol in INERTIAL_SYMBOLS] for j in range(1, len(chain.rows) + 1)]
    terms = {p.name: {p.name: ONE} for p in layout if p.kind == "term"}
    # a rotor inertia that acts like other parameters is added to these, and disappears itself
    for rotor, substitutes in rotor_substitutes(chain, table, layout).items():
        del terms[rotor]
        for name, coefficient in substitutes.items():
            parameter = layout[layout.index(name)]
            if name in terms:
                target = terms[name]
            else:
                target = links[parameter.number - 1][INERTIAL_SYMBOLS.index(parameter.symbol)]
            _add(target, {rotor: ONE}, coefficient)
    for j in reversed(range(len(links))):  # [GautierKhalil1990] section V, steps 2 and 3
        before = links[j - 1] if j > 0 else [{} for _ in range(10)]  # what moves to the base has no effect: dropped
        _regroup(chain, table[j], j, links[j], before)
    kept = {f"{INERTIAL_SYMBOLS[k]}{j + 1}": links[j][k] for j in range(len(links)) for k in _kept_positions(chain, j)}
    kept |= terms
    names = [name for name in layout.names if name in kept]
    columns = tuple(layout.index(name) for name in names)
    return columns, tuple(_combination(layout, name, kept[name]) for name in names), values


def _add(target: Linear, source: Mapping[str, Polynomial], factor: Polynomial | float = 1.0) -> None:
    """Add ``factor * source`` to a linear combination, in place; coefficients that cancel are removed."""
    for name, coefficient in source.items():
        total = target.get(name, Polynomial()) + coefficient * factor
        if total:
            target[name] = total
        else:
            target.pop(name, None)


def _regroup(chain: Chain, row: DHSymbols, j: int, link: list[Linear], before: list[Linear]) -> None:
    """Move parameters of link j that act like parameters of link j - 1 to that link, in place.

    Args:
        chain: The robot.
        row: DH row of joint j, in symbols.
        j: Index of the joint.
        link: The combination gathered at each of the ten parameters of link j.
        before: The same for link j - 1.
    """
    # (10, 10) from parameters of link j to those of link j - 1, with the joint at zero
    S = transport(row.T_previous_joint[:3, :3], row.T_previous_joint[:3, 3])

    def move(source: int, *acts_like: int) -> None:
        """Add what has gathered at a parameter to link j - 1, as if at the sum ``acts_like`` (itself by default)."""
        for k, factor in enumerate(S[:, list(acts_like or (source,))].sum(axis=1)):
            _add(before[k], link[source], factor)

    if not chain.rows[j].sigma:  # revolute: [GautierKhalil1990] eq. (15)
        move(YY, XX, YY)  # XX and YY together are symmetric about the axis; what is left is XX - YY
        move(MZ)
        move(M)
        _add(link[XX], link[YY], -1.0)
        point = chain.meeting_points[j]
        if j >= chain.s and point is not None:
            # without gravity and about a fixed point, first moments act as products of inertia do
            _add(link[XZ], link[MX], point)
            _add(link[YZ], link[MY], point)
        return
    # prismatic: link j does not turn against link j - 1, so their tensors add: [GautierKhalil1990] eqs. (16), (17)
    for k in range(MX):
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
    """Positions, among its ten parameters, of those that link j keeps as base parameters."""
    if chain.rows[j].sigma:  # prismatic
        if j < chain.r:  # nothing turns yet
            return (M,)
        if j > chain.s:  # turns freely
            return (MX, MY, MZ, M)
        axis = chain.axis_of_r[j]  # the only direction about which the link turns
        if is_along_z(axis):  # it slides along it: first moments have moved to the link before
            return (M,)
        dropped = MX + int(np.argmax(np.abs(axis)))
        return (*(k for k in (MX, MY, MZ) if k != dropped), M)
    if j < chain.s:  # turns about its own axis direction only
        return (ZZ, MX, MY) if chain.first_moments_act[j] else (ZZ,)
    # where all axes meet in one point and gravity is zero, first moments have moved to the products of inertia
    return (XX, XY, XZ, YZ, ZZ) if chain.meeting_points[j] is not None else (XX, XY, XZ, YZ, ZZ, MX, MY)


def _combination(layout: ParameterLayout, name: str, linear: Linear) -> Combination:
    """The base parameter of a kept standard parameter (``name``), which comes first in the combination."""
    parameter = layout[layout.index(name)]
    order = sorted((other for other in linear if other != name), key=layout.index)
    terms = (Summand(linear[name], name), *(Summand(linear[other], other) for other in order))
    return Combination(parameter.regrouped_name if len(terms) > 1 else name, terms)


def rotor_substitutes(chain: Chain, table: Sequence[DHSymbols], layout: ParameterLayout) -> dict[str, Linear]:
    """Find the rotor inertias that act on the torques like a combination of other parameters.

    Revolute joints: at r, and at s if its axis is perpendicular to that of r, the rotor acts like ``ZZ``. Prismatic
    joints: where all joints before are revolute and parallel to the slide, or prismatic and perpendicular to it, the
    rotor acts like a mass that only slides. Gravity would tell the two apart, unless it does not pull along the joint,
    or the joint has a force offset that takes up the pull.

    Args:
        chain: The robot.
        table: Its DH rows in symbols.
        layout: Its parameters.

    Returns:
        Name of a rotor inertia -> the combination that it acts like.
    """
    found: dict[str, Linear] = {}
    terms = {(p.number, p.dependence): p.name for p in layout}  # joint number and kind of a term -> its name
    for j, row in enumerate(chain.rows):
        number = j + 1
        rotor = terms.get((number, Dependence.ACCELERATION))
        offset = terms.get((number, Dependence.CONSTANT))
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
            # A unit mass on link j also acts when the slide rests: subtract it as a point mass of the link before, at
            # distance d on the x axis there.
            point_mass = {"M": ONE, "MX": d, "YY": d * d, "ZZ": d * d}
            substitutes |= {f"{symbol}{j}": -factor for symbol, factor in point_mass.items() if factor}
        if offset is not None and pull != 0.0:
            substitutes[offset] = Polynomial.constant(pull)
        found[rotor] = substitutes
    return found


def _is_s_perpendicular(chain: Chain) -> bool:
    """Whether the axis of joint s is perpendicular to that of joint r."""
    R_s_previous = chain.rows[chain.s].T_previous_joint[:3, :3].T
    axis_of_r = R_s_previous @ chain.axis_of_r[chain.s - 1]
    return abs(float(axis_of_r[2])) <= SAME


def _pull_along(chain: Chain, j: int) -> float | None:
    """Gravity along prismatic joint j [m/s^2]; None where the motion of an earlier joint tells its rotor from a mass.

    That is so unless all earlier revolute joints are parallel to it, and all earlier prismatic joints perpendicular.
    """
    direction = np.array([0.0, 0.0, 1.0])
    for k in range(j, 0, -1):
        direction = chain.rows[k].T_previous_joint[:3, :3] @ direction  # axis j in frame k - 1
        along = abs(float(direction[2]))  # cosine to axis k - 1: 0 perpendicular, 1 parallel
        if along > SAME if chain.rows[k - 1].sigma else along < 1.0 - EXACT:
            return None
    pull = float(chain.gravity @ (chain.rows[0].T_previous_joint[:3, :3] @ direction))
    return 0.0 if abs(pull) <= SAME * max(1.0, float(np.linalg.norm(chain.gravity))) else pull
