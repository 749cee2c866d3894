"""What a possible robot's rotors and friction obey, whichever terms its model has.

- *Inertia*: the matrix of the rotor inertias between joints is positive semidefinite. Without coupled motors this is
  the sign of each rotor inertia; a motor that turns several joints makes a block of them.
- *Friction*: at constant speed it takes power and never gives any. Where all terms of a joint must not be negative this
  is their signs. Where other terms share the joint's friction only the sum counts: dry friction may be negative where a
  smooth sign more than makes up for it. The sum is held over a grid of the speeds, positions and loads of the data.
- *Viscous friction of coupled motors*: its matrix C is split into ``C = P + diag(s)`` with P positive semidefinite; the
  share s of a joint counts with the rest of that joint's friction.
- *Friction that grows with powers of the speed*, ``FC + FV v + FVQ v^2 + FVC v^3``, takes power at every speed v > 0,
  beyond those of the data, too: it is a sum of squares plus v times one (a theorem of Lukacs), so that the matrices
  ``[[FC, s], [s, t]]`` and ``[[FV - 2 s, (FVQ - t) / 2], [(FVQ - t) / 2, FVC]]`` are positive semidefinite for some
  shares s and t.

Offsets and torques of the position alone are conservative, and errors of sensors are no friction: nothing holds them.
Terms declare all this (`RecordableTerm.inertia`, `RecordableTerm.viscosity`, `Term.surface`,
`Term.steady_torque`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.estimation.equations import Factors
from dynid.estimation.physical.conic import smallest_eigenvalue
from dynid.processing.experiment import Experiment
from dynid.terms.base import JointTerm, RecordableTerm, SteadyMotion, Surface, Term
from dynid.terms.friction import Coulomb, CubicViscous, QuadraticViscous

ON_EDGE = 1e-5
"""Distance from the border, relative to the size of the terms, at which it is met (convention)."""
Entries = Mapping[tuple[int, int], float]
SLOWEST = 1e-3
"""Lowest speed of the grid over the highest speed of the data (convention: slower motion counts as rest)."""
FASTEST = 1.5
"""Highest speed of the grid over that of the data (convention: robots are moved faster than they were identified)."""
SPEEDS = 16
"""Speeds of the grid in either direction, each 1.6 times the one before (convention)."""
PLACES = 13
"""Positions of the grid, for friction that changes with the position (convention)."""
FED_IN = 1e-3
"""Torque along the motion that friction may have, over the joint's root mean square torque (convention): a tenth of a
percent is below the noise of every log, and the cone solver keeps away from a border without inner points."""


@dataclass(frozen=True, slots=True, eq=False)
class SemidefiniteBlock:
    """A symmetric matrix that must have no negative eigenvalue, as a linear function of the unknowns."""

    name: str
    rows: Floats
    """(d (d + 1) / 2, u) upper triangle, column by column, off-diagonals times sqrt(2)"""

    @classmethod
    def of(
        cls, name: str, joints: Sequence[int], matrices: Sequence[Entries], first: int, width: int,
        subtract: Mapping[int, int],
    ) -> SemidefiniteBlock:  # fmt: skip
        """The matrix of some joints.

        Args:
            name: What it is.
            joints: The joints.
            matrices: Entries per unit of each term.
            first: Place of the first term among the unknowns.
            width: Number of unknowns.
            subtract: Joint -> place of an unknown that is taken off the diagonal.
        """
        i, j = _triangle(len(joints))
        rows = np.zeros((i.size, width))
        for row, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
            for place, entries in enumerate(matrices, start=first):
                rows[row, place] = entries.get((joints[a], joints[b]), 0.0) * (1.0 if a == b else np.sqrt(2.0))
            if a == b and joints[a] in subtract:
                rows[row, subtract[joints[a]]] = -1.0
        return cls(name, rows)

    def smallest(self, unknowns: Floats) -> float:
        """Smallest eigenvalue of the matrix over its largest entry."""
        return smallest_eigenvalue(self.rows, unknowns) / max(float(np.abs(self.rows @ unknowns).max()), 1e-300)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Passivity:
    """The constraints on unknowns u: the p standard parameters, k terms, then shares s of friction."""

    nonnegative: tuple[int, ...]
    """Unknowns that must not be negative."""
    rows: Floats
    """(m, p + k + s) ``rows @ u >= -allowed``: torque against the motion on a surface, one row per state of the grid"""
    allowed: Floats
    """(m,) [N m or N]"""
    names: tuple[str, ...]
    """(m,) of the surface"""
    blocks: tuple[SemidefiniteBlock, ...]
    shares: int
    """Number s of the unknowns behind the terms."""

    @classmethod
    def of(cls, equations: Factors) -> Passivity:
        """The constraints of a robot and its terms, over the motion of the equations; found once."""
        if equations not in _CONSTRAINTS:
            _CONSTRAINTS[equations] = cls._of(equations)
        return _CONSTRAINTS[equations]

    @classmethod
    def _of(cls, equations: Factors) -> Passivity:
        names, placed = equations.robot.joint_names, all_terms(equations)
        inertias = [t.inertia(t.acts_on(names)) if isinstance(t, RecordableTerm) else {} for t in placed]
        viscous = [t.viscosity(t.acts_on(names)) if isinstance(t, RecordableTerm) else {} for t in placed]
        first, groups = 10 * equations.robot.dof, _connected(viscous)
        size = first + len(placed)
        shared = {joint: size + k for k, joint in enumerate(joint for group in groups for joint in group)}
        powers = _powers(placed, viscous, first, shared)
        shares = len(shared) + 2 * len(powers)
        blocks = [
            SemidefiniteBlock.of(f"{what} of {_join(names, group)}", group, matrices, first, size + shares, subtract)
            for what, matrices, subtract in (("rotor inertia", inertias, {}), ("viscous friction", viscous, shared))
            for group in _connected(matrices)
        ]
        for number, (joint, places) in enumerate(powers.items()):
            blocks += _at_every_speed(names[joint], places, size + len(shared) + 2 * number, size + shares)
        surfaces = _tables(equations, placed, viscous, shared, size + shares)
        mixed = {place for _, table, _ in surfaces for place in np.flatnonzero(table.any(axis=0)).tolist()}
        # the viscous friction of a coupled joint is held by its block and by its share
        mixed |= {first + k for k, e in enumerate(viscous) for i, j in e if i == j and shared.get(j) in mixed}
        held = {first + k for k, term in enumerate(placed) if term.is_non_negative} | set(shared.values())
        return cls(
            nonnegative=tuple(sorted(held - mixed)),
            rows=np.concatenate([np.zeros((0, size + shares)), *(table for _, table, _ in surfaces)]),
            allowed=np.concatenate([np.zeros(0), *(np.full(len(table), allow) for _, table, allow in surfaces)]),
            names=tuple(name for name, table, _ in surfaces for _ in table),
            blocks=tuple(blocks),
            shares=shares,
        )

    def active(self, unknowns: Floats) -> tuple[str, ...]:
        """Names of the surfaces and blocks that lie on the border of what is possible at unknowns u."""
        torque = self.rows @ unknowns
        edge = torque <= ON_EDGE * (np.abs(self.rows) @ np.abs(unknowns)) - (1.0 - ON_EDGE) * self.allowed
        rubbing = dict.fromkeys(name for name, on in zip(self.names, edge.tolist(), strict=True) if on)
        return (*rubbing, *(block.name for block in self.blocks if block.smallest(unknowns) <= ON_EDGE))

    def without(self, places: Sequence[int]) -> Passivity:
        """The constraints on the other unknowns, where some are zero."""
        if not places:
            return self
        first = self.rows.shape[1] - self.shares
        gone = set(places)
        for block in self.blocks:  # a joint without viscous friction has no share of it
            terms = np.delete(block.rows, [*gone, *range(first, first + self.shares)], axis=1)
            gone |= set() if terms.any() else set(np.flatnonzero(block.rows.any(axis=0)).tolist())
        columns = sorted(gone)
        rows = self.rows.copy()
        rows[:, columns] = 0.0
        kept = np.asarray(rows.any(axis=1))
        blocks = [replace(block, rows=block.rows * np.isin(np.arange(rows.shape[1]), columns, invert=True))
                  for block in self.blocks]  # fmt: skip
        return replace(
            self,
            nonnegative=tuple(k for k in self.nonnegative if k not in gone),
            rows=rows[kept],
            allowed=self.allowed[kept],
            names=tuple(name for name, keep in zip(self.names, kept.tolist(), strict=True) if keep),
            blocks=tuple(block for block in blocks if block.rows.any()),
        )

    @staticmethod
    def nothing(width: int) -> Passivity:
        """No constraints on so many unknowns."""
        return Passivity(nonnegative=(), rows=np.zeros((0, width)), allowed=np.zeros(0), names=(), blocks=(), shares=0)


_CONSTRAINTS: WeakKeyDictionary[Factors, Passivity] = WeakKeyDictionary()
"""What was found for equations, which do not change: a refit solves several programs with the same constraints."""


def all_terms(equations: Factors) -> list[Term]:
    """Every term in the order of its parameter: the robot's own on their joints, then the further ones."""
    own = [p.term.at(p.joints[0]) if isinstance(p.term, JointTerm) else p.term for p in equations.robot.terms]
    return [*own, *equations.terms]


def steady_states(surface: Surface, runs: Sequence[Experiment], speeds: int = SPEEDS) -> SteadyMotion:
    """Speeds, positions and loads of a surface, as a grid over the range of some experiments.

    Args:
        surface: The joint or motor.
        runs: The experiments.
        speeds: Number of speeds in either direction.
    """
    ranges = [surface_range(surface, run) for run in runs]
    high = max((each.speed for each in ranges), default=0.0) or 1.0
    used = [each for each in ranges if each.samples]
    low, top = (min(each.low for each in used), max(each.high for each in used)) if used else (-np.pi, np.pi)
    pressed = [each for each in ranges if each.counted]
    # friction is linear in the load, so that the ends of its range suffice
    ends = (min(each.least_load for each in pressed), max(each.most_load for each in pressed)) if pressed else (0.0,)
    return _steady_grid(high, speeds, (low, top), ends)


@lru_cache(maxsize=64)
def _steady_grid(high: float, speeds: int, places: tuple[float, float], loads: tuple[float, ...]) -> SteadyMotion:
    """Speeds up to a high one, positions between two, and loads; the same for all models of one run."""
    magnitudes = high * np.geomspace(SLOWEST, FASTEST, speeds)
    grid = np.meshgrid(
        np.concatenate([-magnitudes, magnitudes]), np.linspace(*places, PLACES), np.array(loads), indexing="ij"
    )
    return SteadyMotion(q=grid[1].ravel(), speed=grid[0].ravel(), load=grid[2].ravel())


class SurfaceRange(NamedTuple):
    """How far a run moves and loads a surface."""

    samples: int
    low: float
    """Smallest position [rad or m]."""
    high: float
    """Largest position [rad or m]."""
    speed: float
    """Highest speed in either direction [rad/s or m/s]."""
    counted: int
    """Number of samples whose torque counts."""
    least_load: float
    """Smallest size of these torques [N m or N]."""
    most_load: float
    """Largest size of these torques [N m or N]."""
    square: float
    """Sum of the squares of these torques."""


_RANGES: WeakKeyDictionary[Experiment, dict[Surface, SurfaceRange]] = WeakKeyDictionary()
"""What was found of each run: the same runs are asked for in every refit, and runs do not change."""


def surface_range(surface: Surface, run: Experiment) -> SurfaceRange:
    """The range of a surface in a run, found once."""
    known = _RANGES.setdefault(run, {})
    if surface not in known:
        q, dq = _of_surface(surface, run.q), _of_surface(surface, run.dq)
        joint = surface[-1][0]  # torques on the joint of a surface, the last one of several, where they count
        load = np.abs(run.effort[run.valid[:, joint], joint])
        known[surface] = SurfaceRange(
            samples=q.size,
            low=float(q.min(initial=np.inf)),
            high=float(q.max(initial=-np.inf)),
            speed=float(np.abs(dq).max(initial=0.0)),
            counted=load.size,
            least_load=float(load.min(initial=np.inf)),
            most_load=float(load.max(initial=0.0)),
            square=float(np.sum(load**2)),
        )
    return known[surface]


def _of_surface(surface: Surface, channel: Floats) -> Floats:
    """(N,) of a surface from (N, n) of the joints."""
    return np.asarray(sum(ratio * channel[:, joint] for joint, ratio in surface))


def _powers(
    terms: Sequence[Term], viscous: Sequence[Entries], first: int, shared: Mapping[int, int]
) -> dict[int, tuple[int, int, int, int]]:
    """Joint -> places of its dry friction and of that with the speed, its square and its cube, where it has all."""
    dry, square, cube = (
        {t.joint: place for place, t in enumerate(terms, start=first) if isinstance(t, kind) and t.joint is not None}
        for kind in (Coulomb, QuadraticViscous, CubicViscous)
    )
    linear = {j: place for place, entries in enumerate(viscous, start=first) for j, k in entries if j == k}
    linear.update(shared)
    common = sorted(dry.keys() & linear.keys() & square.keys() & cube.keys())
    return {j: (dry[j], linear[j], square[j], cube[j]) for j in common}


def _at_every_speed(joint: str, places: tuple[int, int, int, int], share: int, width: int) -> list[SemidefiniteBlock]:
    """Friction of a joint that takes power at every speed, by the places of its powers and of the first share."""
    dry, linear, square, cube = places
    even, odd = np.zeros((2, 3, width))
    even[0, dry] = even[2, share + 1] = odd[0, linear] = odd[2, cube] = 1.0
    even[1, share] = np.sqrt(2.0)
    odd[0, share] = -2.0
    odd[1, [square, share + 1]] = np.sqrt(0.5), -np.sqrt(0.5)
    return [SemidefiniteBlock(f"friction of {joint} at every speed", rows) for rows in (even, odd)]


def _tables(
    equations: Factors, terms: Sequence[Term], viscous: Sequence[Entries], shared: Mapping[int, int], width: int
) -> list[tuple[str, Floats, float]]:
    """For each surface that terms of either sign share: name, torque against the motion (m, u), what it may lack."""
    names, first = equations.robot.joint_names, 10 * equations.robot.dof
    members: dict[Surface, dict[int, Term | None]] = {((j, 1.0),): {place: None} for j, place in shared.items()}
    for place, (term, entries) in enumerate(zip(terms, viscous, strict=True), start=first):
        surface = term.surface(names)
        if surface is not None and not any(joint in shared for joint, _ in entries):
            members.setdefault(surface, {})[place] = term
    found = []
    for surface, rubbing in members.items():
        states = steady_states(surface, equations.excerpts)
        sign, either = np.sign(states.speed), False
        own = np.empty((states.speed.size, len(rubbing)), order="F")
        for column, rubs in zip(own.T, rubbing.values(), strict=True):
            np.multiply(sign, states.speed if rubs is None else rubs.steady_torque(states), out=column)
            either = either or (rubs is not None and not rubs.is_non_negative and bool(column.any()))
        if either:
            allow = FED_IN * typical_torque(surface, equations.excerpts)
            name = f"friction of {_join(names, [joint for joint, _ in surface])}"
            rows = distinct_rows(own)
            table = np.zeros((len(rows), width))
            table[:, list(rubbing)] = own[rows]
            found.append((name, table, allow))
    return found


def distinct_rows(table: Floats) -> NDArray[np.int64]:
    """Places of the rows that differ from all before them, in the order of their numbers (`numpy.unique`, faster)."""
    order = np.lexsort(table.T[::-1])
    rows = table[order]
    return np.asarray(order[np.concatenate([[True], np.any(rows[1:] != rows[:-1], axis=1)])])


def _join(names: Sequence[str], joints: Iterable[int]) -> str:
    return "+".join(names[joint] for joint in joints)


def typical_torque(surface: Surface, runs: Sequence[Experiment]) -> float:
    """Root mean square torque of the joint that a surface belongs to [N m or N]."""
    ranges = [surface_range(surface, run) for run in runs]
    counted = sum(each.counted for each in ranges)
    return float(np.sqrt(sum(each.square for each in ranges) / counted)) if counted else 0.0


def _connected(matrices: Sequence[Entries]) -> list[tuple[int, ...]]:
    """Groups of joints between which the matrices have entries, where every joint has one on the diagonal, too."""
    groups: list[set[int]] = []
    for pair in (pair for entries in matrices for pair in entries if pair[0] != pair[1]):
        near = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in near] + [set(pair).union(*near)]
    alone = {j for entries in matrices for j, k in entries if j == k}
    return [tuple(sorted(group)) for group in groups if group <= alone]


def _triangle(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of every entry of an upper triangle, column by column."""
    pairs = np.array([(i, j) for j in range(size) for i in range(j + 1)], dtype=np.int64)
    return pairs[:, 0], pairs[:, 1]
