"""Base parameters of any tree robot without sampling: method "structural" of `base_parameters`.

Input is a robot, output the row space of its torque regressor: the combinations of parameters that its torques show.

Notation. theta_j (10,) are the inertial parameters of body j about the origin of its frame, h_j(q, dq) (10,) is the
total energy (kinetic and potential) of body j per unit of each of them, t_j = (w, v) is the twist of its frame, u_j the
twist per unit velocity of joint j. The total energy of all links is ``E = sum_j h_j . theta_j``. A change delta of the
parameters changes no torque exactly when it changes E by a constant ([GautierKhalil1990] section III).

Outward recursion ([GautierKhalil1990] eqs. (9)-(13)), p being the parent of j and X_j(q_j) the map of twists to body j:

    t_j = X_j(q_j) t_p + dq_j u_j
    h_j = S_j(q_j)^T h_p + dq_j B(u_j) X_j(q_j) t_p + dq_j^2 k(u_j)

S_j is `transport`, B is `mixed_kinetic_matrix`, k is `kinetic_row`. X_j and S_j are sums of functions of q_j times
constant matrices, ``S_j = sum_m phi_m(q_j) S_jm`` with phi_0 = 1: powers of q_j up to the second (prismatic joint), or
cosines and sines of q_j and 2 q_j (revolute joint). So the linear spans of all attainable h_j and t_j follow exactly,
joint by joint (`attainable_spans`).

Inward recursion, from the last joint to the first: ``delta'_j = delta_j + sum over children c of S_c0 delta'_c`` is the
change of body j and all bodies behind it, at constant parts only. E stays constant exactly when at every joint j

    delta'_j . S_jm^T h_p = 0         for m > 0 and all attainable h_p    (E does not depend on q_j)
    delta'_j . B(u_j) X_j(q_j) t_p = 0    for all attainable t_p and q_j  (E has no term in dq_j)
    delta'_j . k(u_j) = 0                                                 (E has no term in dq_j^2)

These conditions are linear in delta; their coefficients are the rows of the row space that is sought. Rotor inertias,
offsets and motor couplings have an energy as well and add coefficients to these rows; friction gives rows of its own.
Spans instead of samples are also the idea of the recursive parameter nullspace algorithm (Wensing, Niemeyer, Slotine).
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
"""Unit of a parameter -> exponents of length and time in it."""


def knows_terms(robot: Robot) -> bool:
    """Whether this recursion can describe all terms of the robot (its friction, rotor inertias, offsets, couplings).

    It can where a term's torque per unit of its parameter is an acceleration, a velocity, the sign of one, or constant.
    """
    return all(placed.term.dependence is not Dependence.OTHER for placed in robot.terms)


def structural_row_space(robot: Robot, *, unmoved: Mapping[int, float] | None = None, static: bool = False) -> RowSpace:
    """The combinations of the p parameters on which the torques of the moving joints depend; exact, for any tree.

    Args:
        robot: The robot; see `knows_terms` for the terms it may have.
        unmoved: Index of a joint -> position [rad or m] at which it is held; its torque is not measured.
        static: Whether the robot only stands still.

    Raises:
        ArgumentError: The recursion cannot describe a term.
    """
    scaled = unit_robot(robot)
    robot, unmoved = scaled.robot, _scale_positions(robot, unmoved or {}, scaled.length)
    terms = _terms_by_column(robot)
    spans = attainable_spans(robot, unmoved=unmoved, static=static)
    size = robot.parameter_vector.size
    rows = [np.zeros((0, size))]
    composite = np.zeros((robot.dof, 10, size))  # composite[j] (10, p): delta'_j = composite[j] @ delta
    for j in reversed(range(robot.dof)):
        body = robot.bodies[j]
        composite[j, :, 10 * j : 10 * j + 10] += np.eye(10)
        parent = spans[body.parent] if body.parent >= 0 else _base_span(robot, unmoved, static)
        if j in unmoved:
            constant = _parameter_map(body, unmoved[j])
        else:
            constant = _constant_and_rest(_parameter_map, body)[0]
            rows.extend(_conditions(robot, j, parent, composite[j], terms, static))
        if body.parent >= 0:
            composite[body.parent] += constant @ composite[j]
    rows.extend(_friction_rows(robot, terms, unmoved, static))
    space = row_space(np.vstack(rows), rounding=EXACT)
    return replace(space, scale=space.scale * scaled.factors)  # columns per SI unit of the parameters again


def _terms_by_column(robot: Robot) -> dict[int, PlacedTerm]:
    """Column of the regressor -> the term whose parameter it belongs to; the columns of the links come before.

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


# --- units: lengths near one, so that "smaller than rounding" means the same for a gripper and for a crane


@dataclass(frozen=True, slots=True, eq=False)
class UnitRobot:
    """The same robot in units in which its longest joint offset and its gravity are one (gravity may be none)."""

    robot: Robot
    length: float
    """Its unit of length [m]."""
    factors: Floats
    """(p,) parameters in its units = factors * parameters in SI units."""


def unit_robot(robot: Robot) -> UnitRobot:
    """Express a robot in units of its own size; parameters of other units than `_DIMENSIONS` are left as they are."""
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


def _scale_positions(robot: Robot, unmoved: Mapping[int, float], length: float) -> dict[int, float]:
    """Positions of held joints with those of prismatic joints in the unit of length."""
    return {j: position / length if robot.bodies[j].is_prismatic else position for j, position in unmoved.items()}


# --- outward: what energies and twists each body can have


@dataclass(frozen=True, slots=True, eq=False)
class AttainableSpan:
    """Linear spans of the energy rows and of the twists of a body over all motions of the robot."""

    energy: Floats
    """(k, 11) orthonormal rows that span all (h, 1). The 1 is carried along because h itself fills an affine set only:
    the last column tells whether a row of the basis stands for an h or for a difference of two."""
    twists: Floats
    """(k, 6 + n) orthonormal rows that span all (w, v, dq): the body's twist in its own frame, all joint velocities."""

    @property
    def turning(self) -> Floats:
        """(k, 3) orthonormal rows that span the attainable angular velocities, body frame."""
        return _orthonormal_rows(self.twists[:, :3])


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
    """The span of the base, which does not move: energy from gravity alone, and any speeds of the joints that move."""
    # potential energy -g . (m c): [GautierKhalil1990] eqs. (A10), (A12); then the 1 of (h, 1)
    energy = np.concatenate([np.zeros(6), -robot.gravity, [0.0, 1.0]])
    rates = np.zeros((0, robot.dof)) if static else np.eye(robot.dof)[[j for j in range(robot.dof) if j not in unmoved]]
    return AttainableSpan(energy[None, :], np.hstack([np.zeros((len(rates), 6)), rates]))


def _next_span(body: Body, j: int, parent: AttainableSpan, held: float | None, static: bool) -> AttainableSpan:
    """The spans of body j from those of its parent; `held` is the position of a joint that does not move, or None."""
    parameter_maps, twist_maps = (
        _constant_and_rest(map_at, body) if held is None else [map_at(body, held)]
        for map_at in (_parameter_map, _twist_map)
    )
    # [GautierKhalil1990] eqs. (9), (10)
    energies = [_map_energies(parent.energy, S.T, is_constant=m == 0) for m, S in enumerate(parameter_maps)]
    moved = _moved_twists(parent.twists, twist_maps)
    if held is None and not static:
        u = _unit_twist(body)
        # what the joint's own speed adds, B(u) X t and k(u): [GautierKhalil1990] eqs. (A8), (A9)
        rows = np.vstack([moved[:, :6] @ mixed_kinetic_matrix(u).T, kinetic_row(u)])
        energies.append(np.hstack([rows, np.zeros((len(rows), 1))]))
        moved[:, :6] += moved[:, 6 + j, None] * u
    return AttainableSpan(_orthonormal_rows(np.vstack(energies)), _orthonormal_rows(moved))


def _map_energies(energies: Floats, matrix: Floats, is_constant: bool) -> Floats:
    """Energy rows (k, 11) through one matrix (10, 10) of a map; the 1 of (h, 1) passes with the constant one only."""
    return np.hstack([energies[:, :10] @ matrix.T, energies[:, 10:] * is_constant])


def _moved_twists(twists: Floats, maps: list[Floats]) -> Floats:
    """Rows (k, 6 + n) that span (X t, dq) over all joint positions; X = maps[0] + functions of q times the others."""
    return np.vstack([np.hstack([twists[:, :6] @ X.T, twists[:, 6:] * (m == 0)]) for m, X in enumerate(maps)])


def _orthonormal_rows(rows: Floats) -> Floats:
    """Orthonormal rows with the same span."""
    if rows.size == 0:
        return np.zeros((0, rows.shape[1]))
    _, values, Vt = svd(rows, full_matrices=False)
    return np.asarray(Vt[values > SAME * max(1.0, float(values[0]))])


# --- inward: the conditions at each joint


def _conditions(
    robot: Robot, j: int, parent: AttainableSpan, composite: Floats, terms: Mapping[int, PlacedTerm], static: bool
) -> list[Floats]:
    """Rows (k, p): the energy changes with q_j or dq_j unless their products with delta vanish.

    Args:
        robot: The robot in its own units.
        j: Index of a joint that moves.
        parent: The spans of the body before joint j.
        composite: (10, p) map from delta to delta'_j.
        terms: Column -> term.
        static: Whether all velocities are zero.
    """
    body, own = robot.bodies[j], {c: p.term.dependence for c, p in terms.items() if p.joints == (j,)}
    offsets = [column for column, dependence in own.items() if dependence is Dependence.CONSTANT]
    rotors = [column for column, dependence in own.items() if dependence is Dependence.ACCELERATION]
    rows = []
    # The energy of a slide's offset is OFF * q; q = 1, -1 are the samples of `_constant_and_rest`. An offset of a
    # revolute joint has no single-valued energy and stands in `_friction_rows`.
    positions = (1.0, -1.0) if body.is_prismatic else [0.0] * 5
    for q, S in zip(positions, _constant_and_rest(_parameter_map, body)[1:], strict=True):
        block = parent.energy[:, :10] @ S @ composite
        block[:, offsets] += q * parent.energy[:, 10, None]
        rows.append(block)
    if not static:
        u = _unit_twist(body)
        inertial = kinetic_row(u) @ composite
        inertial[rotors] += 0.5  # energy of a rotor: 1/2 IA dq_j^2
        twists = _moved_twists(parent.twists, _constant_and_rest(_twist_map, body))
        mixed = twists[:, :6] @ mixed_kinetic_matrix(u).T @ composite
        rows += [inertial[None, :], mixed + _coupled_inertia(robot, j, twists[:, 6:], terms)]
    return rows


def _coupled_inertia(robot: Robot, j: int, rates: Floats, terms: Mapping[int, PlacedTerm]) -> Floats:
    """What the inertia of motors that turn with several joints adds to the coefficient of dq_j in the energy.

    Such an energy is IAM times the sum of r_k r_i dq_k dq_i over all pairs of its joints, r being the gear ratios. Here
    each pair counts at its later joint.

    Args:
        robot: The robot.
        j: Index of the joint.
        rates: (k, n) joint velocities.
        terms: Column -> term.

    Returns:
        Rows (k, p).
    """
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
    """Rows (1, p) for friction and for the offsets of revolute joints, whose torques no link parameter gives.

    Terms with the same torque up to a factor share a row: offsets of one joint, viscous friction of one joint or
    between the same two joints, dry friction of motors that always turn together.
    """
    size = robot.parameter_vector.size
    rows: dict[object, Floats] = {}  # what identifies the torque -> factor of every parameter in it

    def add(torque: object, column: int, factor: float) -> None:
        rows.setdefault(torque, np.zeros(size))[column] += factor

    for column, placed in terms.items():
        dependence = placed.term.dependence
        ratios = {j: ratio for j, ratio in placed.speeds.items() if j not in unmoved}
        if dependence is Dependence.CONSTANT:
            for j in ratios:
                if not robot.bodies[j].is_prismatic:
                    add((dependence, j), column, 1.0)
        elif dependence is Dependence.VELOCITY and not static:
            # viscous friction of a coupling acts between its different joints only
            for pair in combinations(sorted(ratios), 2) if len(placed.joints) > 1 else [tuple(ratios)]:
                if pair:  # empty where the term's only joint is held
                    add((dependence, pair), column, float(np.prod([ratios[k] for k in pair])))
        elif dependence is Dependence.DIRECTION and not static and ratios:
            direction, length = _direction(ratios)
            add(direction, column, length)
    return [row[None, :] for row in rows.values()]


def _direction(ratios: Mapping[int, float]) -> tuple[tuple[tuple[int, float], ...], float]:
    """Gear ratios divided by the first, as pairs (joint, ratio), and the size of the first.

    Motors with the same divided ratios always turn together, so their dry friction has the same sign.
    """
    first = ratios[min(ratios)]
    return tuple((k, round(r / first, RATIO_DIGITS)) for k, r in sorted(ratios.items())), abs(first)


# --- the joint's motion: S_j(q) and X_j(q), and their split into constant matrices


def _unit_twist(body: Body) -> Floats:
    """(6,) twist (w, v) of the body in its frame per unit of its joint's velocity."""
    zero = np.zeros(3)
    return np.concatenate([zero, body.axis] if body.is_prismatic else [body.axis, zero])


def _pose(body: Body, q: float) -> tuple[Floats, Floats]:
    """Rotation (3, 3) and position (3,) of the body in its parent's frame at joint position q."""
    if body.is_prismatic:
        return body.R_parent_joint, body.p_parent_joint + body.R_parent_joint @ body.axis * q
    return body.R_parent_joint @ rotation_about(body.axis, q), body.p_parent_joint


def _parameter_map(body: Body, q: float) -> Floats:
    """S_j(q) (10, 10): inertial parameters in the body's frame -> the same mass in the parent's frame."""
    return transport(*_pose(body, q))


def _twist_map(body: Body, q: float) -> Floats:
    """X_j(q) (6, 6): twist (w, v) of the parent's frame -> of the body's frame, joint at rest."""
    R, p = _pose(body, q)
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ skew(p), R.T]])


def _constant_and_rest(map_at: Callable[[Body, float], Floats], body: Body) -> list[Floats]:
    """The constant part of a map of the joint position, then matrices that span all its other parts.

    Prismatic: value at 0, then the differences to it at 1 and -1, which fix a quadratic. Revolute: mean over five
    equal angles, then the differences to it there, which fix harmonics up to the second.
    """
    if body.is_prismatic:
        constant, *samples = (map_at(body, q) for q in (0.0, 1.0, -1.0))
    else:
        samples = [map_at(body, 2.0 * np.pi * k / 5) for k in range(5)]
        constant = np.mean(samples, axis=0)
    return [constant, *(sample - constant for sample in samples)]
