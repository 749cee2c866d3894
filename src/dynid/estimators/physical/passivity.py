"""Constraints on the parameters of terms: no rotor inertia is negative, and friction only brakes.

A term is a part of the model that adds a torque to joints, linear in its one parameter: a friction, a rotor inertia, an
offset. `Passivity` collects the constraints for the cone program of the estimator `feasible`; `all_terms` lists the
terms in the order of their parameters. The constraints are:

- No rotor inertia and no friction coefficient is negative, so that friction takes power at every speed.
- Viscous friction that differs between the directions brakes in both: ``FV >= |FVA|``.
- A motor that turns several joints gives blocks of the matrices of rotor inertias and of viscous friction between
  joints, which have no negative eigenvalue.

Offsets and torques of the position alone are conservative, and errors of sensors are no friction: they have no
constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.array_types import Floats
from dynid.estimators.equations import Factors
from dynid.estimators.physical.conic import ConeCondition, svec
from dynid.robot.model import Robot
from dynid.terms.base import JointTerm, RecordableTerm, Term
from dynid.terms.friction import AsymmetricViscous, Viscous

Entries = Mapping[tuple[int, int], float]
"""Entries of a symmetric matrix between joints: (row, column) -> value per unit of a term's parameter."""


@dataclass(frozen=True, slots=True, eq=False)
class Passivity:
    """Constraints on the parameters (k,) of k terms."""

    nonnegative: tuple[int, ...]
    """Places of parameters that must not be negative."""
    rows: Floats
    """(m, k) matrix of the m constraints ``rows @ parameters >= 0``."""
    blocks: tuple[Floats, ...]
    """Matrices (d (d + 1) / 2, k): ``block @ parameters`` is `svec` of a (d, d) matrix that must have no negative
    eigenvalue."""

    @classmethod
    def of(cls, joint_names: Sequence[str], terms: Sequence[Term]) -> Passivity:
        """Collect the constraints on some terms of a robot with these moving joints."""
        inertias: list[Entries] = [{} for _ in terms]
        frictions: list[Entries] = [{} for _ in terms]
        for place, term in enumerate(terms):
            if isinstance(term, RecordableTerm):
                joints = term.acts_on(joint_names)
                inertias[place], frictions[place] = term.inertia(joints), term.viscosity(joints)
        viscous = {term.joint: place for place, term in enumerate(terms) if isinstance(term, Viscous)}
        rows = []
        for place, term in enumerate(terms):
            if isinstance(term, AsymmetricViscous) and term.joint in viscous:
                rows += [_row(len(terms), {viscous[term.joint]: 1.0, place: sign}) for sign in (1.0, -1.0)]
        return cls(
            nonnegative=tuple(place for place, term in enumerate(terms) if term.is_non_negative),
            rows=np.array(rows).reshape(len(rows), len(terms)),
            blocks=tuple(_block(group, kind) for kind in (inertias, frictions) for group in _find_groups(kind)),
        )

    def constraints(self, sizes: Floats, first: int) -> tuple[ConeCondition, ...]:
        """Write the constraints over the unknowns of a cone program.

        Args:
            sizes: (u,) for the unknowns of the terms and all behind them; parameter = size * unknown. The first k are
                those of the terms.
            first: Place of the first term among the unknowns.
        """

        def make_condition(kind: Literal["at most", "matrix"], rows: Floats) -> ConeCondition:
            """Write ``rows @ parameters >= 0``, of numbers or of a matrix, over the unknowns; largest entry one."""
            whole = np.zeros((len(rows), first + sizes.size))
            whole[:, first : first + rows.shape[1]] = -rows * sizes[: rows.shape[1]]
            return ConeCondition(kind, whole / max(float(np.abs(whole).max(initial=0.0)), 1e-300), np.zeros(len(rows)))

        single = np.zeros((len(self.nonnegative), first + sizes.size))
        single[range(len(self.nonnegative)), [first + k for k in self.nonnegative]] = -1.0
        return (
            ConeCondition("at most", single, np.zeros(len(single))),
            make_condition("at most", self.rows),
            *(make_condition("matrix", block) for block in self.blocks),
        )


def _row(size: int, entries: Mapping[int, float]) -> Floats:
    """Make a row of zeros with some entries."""
    row = np.zeros(size)
    row[list(entries)] = list(entries.values())
    return row


def _block(joints: Sequence[int], matrices: Sequence[Entries]) -> Floats:
    """Stack `svec` of the matrices between d joints, per unit of each of k parameters: (d (d + 1) / 2, k)."""
    tables = [np.array([[entries.get((i, j), 0.0) for j in joints] for i in joints]) for entries in matrices]
    return np.stack([svec(table) for table in tables], axis=1)


def _find_groups(matrices: Iterable[Entries]) -> list[list[int]]:
    """Find the groups of two or more joints that terms couple with one another."""
    groups: list[set[int]] = []
    for entries in matrices:
        for pair in entries:
            if pair[0] != pair[1]:
                joined = set(pair).union(*(group for group in groups if group & set(pair)))
                groups = [group for group in groups if not group & joined] + [joined]
    return [sorted(group) for group in groups]


def placed_terms(robot: Robot) -> list[Term]:
    """List the robot's own terms, each placed on its joint, in the order of the robot's parameters."""
    return [p.term.at(p.joints[0]) if isinstance(p.term, JointTerm) else p.term for p in robot.terms]


def all_terms(equations: Factors) -> list[Term]:
    """List all terms in the order of their parameters: the robot's own ones, then the further ones."""
    return [*placed_terms(equations.robot), *equations.terms]
