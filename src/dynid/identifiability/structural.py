"""Base parameters of any tree without sampling: a recursion over the span of attainable energies.

The energy of the robot is ``sum_j delta_j . h_j(q, dq)``; a change delta of the parameters is invisible exactly when
that sum is constant. The row h_j (10,) of body j follows from its parent's, ``h_j = S_j(q_j)^T h_p + dq_j mixed(u_j,
t_j) + dq_j^2 K(u_j)`` ([GautierKhalil1990] eqs. (9)-(13)), where S_j is a polynomial in q_j (prismatic joint) or a
trigonometric one (revolute joint): ``S_j = sum_m phi_m(q_j) S_jm``, phi_0 = 1. So the *span* of all attainable h_j and
of all attainable twists t_j follows joint by joint, and seen from the last joint backwards delta is invisible exactly
when, with ``delta'_j = delta_j + sum_children S_c0 delta'_c``,

- ``delta'_j . S_jm^T h = 0`` for m > 0 and all attainable h of the parent (nothing may depend on q_j),
- ``delta'_j . mixed(u_j, t) = 0`` for all attainable t, and ``delta'_j . K(u_j) = 0`` (nothing may depend on dq_j).

These conditions are the rows that span what can be known. Rotor inertias, offsets and couplings enter the same
conditions. The idea of propagating spans instead of samples is that of the recursive parameter nullspace algorithm
(Wensing, Niemeyer, Slotine). The robot is expressed in its own units of length and time, so that "small" means the same
for a gripper and for a crane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import svd
from dynid.dynamics.inertia_maps import kinetic_row, mixed_kinetic_matrix, transport
from dynid.errors import ArgumentError
from dynid.identifiability.layout import parameter_layout
from dynid.identifiability.row_space import RowSpace, row_space
from dynid.robot.model import Body, Robot
from dynid.robot.parts import PlacedTerm
from dynid.spatial import EXACT, SAME, rotation_about, skew
from dynid.terms.base import Dependence

RATIO_DIGITS = 12
"""Decimals to which the ratios of a coupling are compared (convention)."""
_DIMENSIONS = {
    "kg m^2": (2, 0), "kg m": (1, 0), "kg": (0, 0), "N m": (2, -2), "N": (1, -2),
    "N m s/rad": (2, -1), "N s/m": (0, -1),
}  # fmt: skip
"""Unit -> exponents of length and time."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitRobot:
    """The same robot with its largest lever one unit long, under a gravity of one or none."""

    robot: Robot
    length: float
    """Its unit of length [m]."""
    factors: Floats
    """(p,) parameters in its units = factors * parameters in SI units."""


def unit_robot(robot: Robot) -> UnitRobot:
    """Express a robot in units of its own size; unknown units of parameters are left as they are."""
    length = max((float(np.linalg.norm(body.p_parent_joint)) for body in robot.bodies), default=0.0) or 1.0
    strength = float(np.linalg.norm(robot.gravity))
    time = float(np.sqrt(length / strength)) if strength > 0.0 else 1.0
    joints = []
    for joint in robot.joints:
        T = joint.T_parent_joint.copy()
        T[:3, 3] /= length
        joints.append(replace(joint, T_parent_joint=T))
    gravity = robot.gravity / strength if strength > 0.0 else robot.gravity
    exponents = [_DIMENSIONS.get(parameter.unit, (0, 0)) for parameter in parameter_layout(robot)]
    factors = np.array([length**-a * time**-b for a, b in exponents])
    return UnitRobot(replace(robot, joints=tuple(joints), gravity=gravity, source=None), length, factors)


@dataclass(frozen=True, slots=True, eq=False)
class AttainableSpan:
    """Energies and twists of a body over all motions of the robot."""

    energy: Floats
    """(k, 11) orthonormal rows that span the energy rows (h, 1); the 1 tells points from directions."""
    twists: Floats
    """(k, 6 + n) orthonormal rows that span (w, v, dq): twist of the origin in the body frame, joint velocities."""

    @property
    def turning(self) -> Floats:
        """(k, 3) orthonormal rows that span the attainable angular velocities, body frame."""
        return _orthonormal_rows(self.twists[:, :3])


def knows_terms(robot: Robot) -> bool:
    """Whether this recursion can describe the torques of all terms."""
    return all(placed.term.dependence is not Dependence.OTHER for placed in robot.terms)


def structural_row_space(robot: Robot, *, unmoved: Mapping[int, float] | None = None, static: bool = False) -> RowSpace:
    """The combinations of parameters on which the torques of the free joints depend; exact, for any tree.

    Args:
        robot: The robot; its terms may be accelerations, velocities, their signs and constants, see `Dependence`.
        unmoved: Joint number (from 0) -> position [rad or m] at which it is held; its torque is not measured.
        static: Whether the robot only stands still.
    """
    scaled = unit_robot(robot)
    robot, unmoved = scaled.robot, _scale_positions(robot, unmoved or {}, scaled.length)
    terms = _known_terms(robot)
    bodies = attainable_spans(robot, unmoved=unmoved, static=static)
    size = robot.parameter_vector.size
    rows = [np.zeros((0, size))]
    carried = np.zeros((robot.dof, 10, size))
    for j in reversed(range(robot.dof)):
        body = robot.bodies[j]
        carried[j, :, 10 * j : 10 * j + 10] += np.eye(10)
        parent = bodies[body.parent] if body.parent >= 0 else _base_span(robot, unmoved, static)
        if j in unmoved:
            constant = _energy_map(body, unmoved[j])
        else:
            constant = _parts(_energy_map, body)[0]
            rows.extend(_conditions(robot, j, parent, carried[j], terms, static))
        if body.parent >= 0:
            carried[body.parent] += constant @ carried[j]
    rows.extend(_friction_rows(robot, terms, unmoved, static))
    space = row_space(np.vstack(rows), rounding=EXACT)
    return replace(space, scale=space.scale * scaled.factors)


def _scale_positions(robot: Robot, unmoved: Mapping[int, float], length: float) -> dict[int, float]:
    return {j: position / length if robot.bodies[j].is_prismatic else position for j, position in unmoved.items()}


def attainable_spans(
    robot: Robot, *, unmoved: Mapping[int, float] | None = None, static: bool = False
) -> list[AttainableSpan]:
    """The spans of energies and twists of every body; arguments as in `structural_row_space`."""
    unmoved = unmoved or {}
    spans: list[AttainableSpan] = []
    for j, body in enumerate(robot.bodies):
        parent = spans[body.parent] if body.parent >= 0 else _base_span(robot, unmoved, static)
        spans.append(_next_span(body, j, parent, unmoved.get(j), static))
    return spans


def _base_span(robot: Robot, unmoved: Mapping[int, float], static: bool) -> AttainableSpan:
    """The span of the root, which does not move: gravity alone, and any velocities of the joints that may move."""
    energy = np.concatenate([np.zeros(6), -robot.gravity, [0.0, 1.0]])  # [GautierKhalil1990] eqs. (A10), (A12)
    rates = np.zeros((0, robot.dof)) if static else np.eye(robot.dof)[[j for j in range(robot.dof) if j not in unmoved]]
    return AttainableSpan(energy[None, :], np.hstack([np.zeros((len(rates), 6)), rates]))


def _next_span(body: Body, j: int, parent: AttainableSpan, held: float | None, static: bool) -> AttainableSpan:
    """The span of a body from that of its parent."""
    energy_maps, twist_maps = (
        _parts(map_at, body) if held is None else [map_at(body, held)] for map_at in (_energy_map, _twist_map)
    )
    # [GautierKhalil1990] eqs. (9), (10)
    energies = [_map_points(parent.energy, S.T, constant=m == 0) for m, S in enumerate(energy_maps)]
    twists = [_map_twists(parent.twists, X, constant=m == 0) for m, X in enumerate(twist_maps)]
    moved = np.vstack(twists)
    if held is None and not static:
        u = _unit_twist(body)
        # what the joint's own speed adds: [GautierKhalil1990] eqs. (A8), (A9)
        rows = np.vstack([moved[:, :6] @ mixed_kinetic_matrix(u).T, kinetic_row(u)])
        energies.append(np.hstack([rows, np.zeros((len(rows), 1))]))
        moved = moved.copy()
        moved[:, :6] += moved[:, 6 + j, None] * u
    return AttainableSpan(_orthonormal_rows(np.vstack(energies)), _orthonormal_rows(moved))


def _conditions(
    robot: Robot, j: int, parent: AttainableSpan, carried: Floats, terms: Mapping[int, PlacedTerm], static: bool
) -> list[Floats]:
    """Rows (k, p) whose products with the parameters must vanish so that nothing depends on joint j."""
    body, own = robot.bodies[j], {c: p.term.dependence for c, p in terms.items() if p.joints == (j,)}
    offsets = [column for column, dependence in own.items() if dependence is Dependence.CONSTANT]
    rotors = [column for column, dependence in own.items() if dependence is Dependence.ACCELERATION]
    rows = []
    for q, S in zip((1.0, -1.0) if body.is_prismatic else [0.0] * 5, _parts(_energy_map, body)[1:], strict=True):
        block = parent.energy[:, :10] @ S @ carried
        block[:, offsets] += q * parent.energy[:, 10, None]  # the energy of a slide's offset is OFF * q
        rows.append(block)
    if not static:
        u = _unit_twist(body)
        inertial = kinetic_row(u) @ carried
        inertial[rotors] += 0.5
        twists = np.vstack(
            [_map_twists(parent.twists, X, constant=m == 0) for m, X in enumerate(_parts(_twist_map, body))]
        )
        mixed = twists[:, :6] @ mixed_kinetic_matrix(u).T @ carried
        rows += [inertial[None, :], mixed + _coupled_inertia(robot, j, twists[:, 6:], terms)]
    return rows


def _coupled_inertia(robot: Robot, j: int, rates: Floats, terms: Mapping[int, PlacedTerm]) -> Floats:
    """Coefficient (k, p) of dq_j in the couplings' energy IAM * sum r_k r_i dq_k dq_i, from the joints i before j."""
    rows = np.zeros((len(rates), robot.parameter_vector.size))
    for column, placed in terms.items():
        ratios = placed.speeds if placed.term.dependence is Dependence.ACCELERATION else {}
        earlier = {i: ratio for i, ratio in ratios.items() if i < j}
        if j in ratios and earlier:
            rows[:, column] = ratios[j] * (rates[:, list(earlier)] @ np.array(list(earlier.values())))
    return rows


def _friction_rows(
    robot: Robot, terms: Mapping[int, PlacedTerm], unmoved: Mapping[int, float], static: bool
) -> list[Floats]:
    """Rows (1, p) for friction and offsets, whose torques no link parameter has (except the offset of a slide)."""
    size = robot.parameter_vector.size
    rows: dict[object, Floats] = {}

    def add(key: object, column: int, value: float) -> None:
        rows.setdefault(key, np.zeros(size))[column] += value

    for column, placed in terms.items():
        dependence = placed.term.dependence
        ratios = {j: ratio for j, ratio in placed.speeds.items() if j not in unmoved}
        if dependence is Dependence.CONSTANT:
            for j in ratios:
                if not robot.bodies[j].is_prismatic:
                    add((dependence, j), column, 1.0)
        elif dependence is Dependence.VELOCITY and not static:
            for pair in combinations(sorted(ratios), 2) if len(placed.joints) > 1 else [tuple(ratios)]:
                if pair:
                    add((dependence, pair), column, float(np.prod([ratios[k] for k in pair])))
        elif dependence is Dependence.DIRECTION and not static and ratios:
            direction, length = _direction(ratios)
            add(direction, column, length)
    return [row[None, :] for row in rows.values()]


def _direction(ratios: Mapping[int, float]) -> tuple[tuple[tuple[int, float], ...], float]:
    """Ratios up to a factor, and that factor's size: motors with the same direction share the sign of their speed."""
    first = ratios[min(ratios)]
    return tuple((k, round(r / first, RATIO_DIGITS)) for k, r in sorted(ratios.items())), abs(first)


def _known_terms(robot: Robot) -> dict[int, PlacedTerm]:
    """Column of every term -> the term.

    Raises:
        ArgumentError: The recursion cannot describe the torque of a term.
    """
    for placed in robot.terms:
        if placed.term.dependence is Dependence.OTHER:
            raise ArgumentError(
                f"the structural method does not know the term {type(placed.term).__name__}",
                place=f"joint '{placed.owner}'",
                remedy="Use method='numeric'.",
            )
    return dict(enumerate(robot.terms, start=10 * robot.dof))


# --- the joint's motion as a sum of functions of q


def _unit_twist(body: Body) -> Floats:
    """(6,) twist (w, v) of the body in its frame per unit of its joint's velocity."""
    zero = np.zeros(3)
    return np.concatenate([zero, body.axis] if body.is_prismatic else [body.axis, zero])


def _pose(body: Body, q: float) -> tuple[Floats, Floats]:
    """Rotation (3, 3) and position (3,) of the body in its parent's frame at joint position q."""
    if body.is_prismatic:
        return body.R_parent_joint, body.p_parent_joint + body.R_parent_joint @ body.axis * q
    return body.R_parent_joint @ rotation_about(body.axis, q), body.p_parent_joint


def _energy_map(body: Body, q: float) -> Floats:
    """(10, 10) the parameters of the body as parameters of its parent."""
    return transport(*_pose(body, q))


def _twist_map(body: Body, q: float) -> Floats:
    """(6, 6) from the parent's twist (w, v) to the body's, joint at rest."""
    R, p = _pose(body, q)
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ skew(p), R.T]])


def _parts(map_at: Callable[[Body, float], Floats], body: Body) -> list[Floats]:
    """The constant part of a map, then what spans its rest: samples of 1, q, q^2, or of harmonics up to the second."""
    if body.is_prismatic:
        constant, *samples = (map_at(body, q) for q in (0.0, 1.0, -1.0))
    else:
        samples = [map_at(body, 2.0 * np.pi * k / 5) for k in range(5)]
        constant = np.mean(samples, axis=0)
    return [constant, *(sample - constant for sample in samples)]


def _map_points(points: Floats, matrix: Floats, constant: bool) -> Floats:
    """Energy rows (k, 11) through a map (10, 10); only the constant part keeps the mark of a point."""
    return np.hstack([points[:, :10] @ matrix.T, points[:, 10:] * constant])


def _map_twists(twists: Floats, matrix: Floats, constant: bool) -> Floats:
    """Twist rows (k, 6 + n) through a map (6, 6); only the constant part keeps the joint velocities."""
    return np.hstack([twists[:, :6] @ matrix.T, twists[:, 6:] * constant])


def _orthonormal_rows(rows: Floats) -> Floats:
    """Orthonormal rows with the same span."""
    if rows.size == 0:
        return np.zeros((0, rows.shape[1]))
    _, values, Vt = svd(rows, full_matrices=False)
    return np.asarray(Vt[values > SAME * max(1.0, float(values[0]))])
