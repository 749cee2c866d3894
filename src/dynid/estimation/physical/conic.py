"""Convex programs over possible bodies, solved by Clarabel; the answer is checked here, whatever the solver says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import EstimationError

ACCEPTED = 1e-5
"""Relative gap between primal and dual objective, and violation of a constraint, that are accepted (convention)."""
NEGLIGIBLE = 1e-12
"""Gap over the sum of squares of the target that no estimate shows (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConeProgram:
    """``minimise 1/2 |matrix y - target|^2 + 1/2 sum(pull (y - centre)^2)`` over constrained y (p,)."""

    matrix: Floats
    """(b, p)"""
    target: Floats
    """(b,)"""
    centre: Floats
    """(p,)"""
    pull: Floats
    """(p,) weight of each unknown's squared distance from the centre; not negative."""
    bodies: int = 0
    """The first 10 * bodies unknowns are svec of 4 x 4 blocks that must exceed ``margin`` times the identity."""
    margin: float = 0.0
    at_least: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(m, p) rows of ``at_least @ y >= 0``; satisfied by y = 0, unlike bounds"""
    at_most: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(k, p) rows of ``at_most @ y <= limit``"""
    limit: Floats = field(default_factory=lambda: np.zeros(0))
    equal: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(e, p) rows of ``equal @ y == value``"""
    value: Floats = field(default_factory=lambda: np.zeros(0))
    cones: tuple[Floats, ...] = ()
    """Each (k, p): ``(cone @ y)[0] >= |(cone @ y)[1:]|``"""
    semidefinite: tuple[Floats, ...] = ()
    """Each (d (d + 1) / 2, p): rows of a symmetric matrix, stacked as by `svec`, without negative eigenvalues"""

    @property
    def is_bounded(self) -> bool:
        """Whether there are bounds, which may contradict one another."""
        return bool(len(self.equal) or len(self.at_most) or self.cones)


def solve_cone_program(program: ConeProgram) -> tuple[Floats, float]:
    """The minimiser y (p,) and the relative duality gap that was verified.

    Raises:
        EstimationError: Inputs are not finite, the constraints contradict one another, or no answer passes the check.
    """
    arrays = (program.matrix, program.target, program.centre, program.pull, program.at_most, program.limit)
    if not all(np.isfinite(array).all() for array in arrays):
        raise EstimationError("the cone program contains numbers that are not finite")
    squares = float(np.sum(program.target**2))
    # the second try has an objective of moderate size, which the solver's absolute tolerances suit better
    for scale in (1.0, 1.0 / max(squares, 1.0)):
        solution, status = _call(_scaled(program, scale))
        if "Infeasible" in status and program.is_bounded:
            raise EstimationError(
                "no possible robot satisfies all bounds", remedy="Look for bounds that exclude each other."
            )
        if solution is None:
            continue
        y = np.asarray(solution.x)[: program.centre.size]
        value, dual = solution.obj_val / scale, solution.obj_val_dual / scale
        largest = max(ACCEPTED * max(1.0, abs(value)), NEGLIGIBLE * squares)
        if np.isfinite(y).all() and abs(value - dual) <= largest and _violation(program, y) <= ACCEPTED:
            return y, float(abs(value - dual) / max(1.0, abs(value)))
    raise EstimationError(
        "the cone solver found no answer that passes its check",
        remedy="Check the torques of the log (dynid check), or use the estimator wls.",
    )


def is_contradictory(program: ConeProgram) -> bool:
    """Whether no y at all satisfies the bounds, by the solver's certificate."""
    return "Infeasible" in _call(program)[1] and program.is_bounded


def _scaled(program: ConeProgram, scale: float) -> ConeProgram:
    """The program with its objective multiplied by a number."""
    root = np.sqrt(scale)
    return replace(program, matrix=root * program.matrix, target=root * program.target, pull=scale * program.pull)


def _call(program: ConeProgram) -> tuple[Any, str]:
    import clarabel
    from scipy import sparse

    b, p = program.target.size, program.centre.size
    # unknowns (y, r) with r = matrix y - target, so that the solver never sees the squared matrix
    quadratic = sparse.diags_array(np.concatenate([program.pull, np.ones(b)]), format="csc")
    linear = np.concatenate([-program.pull * program.centre, np.zeros(b)])
    blocks, sides, cones = _constraints(program)
    rows = np.zeros((b + sum(len(block) for block in blocks), p + b))
    rows[:, :p] = np.vstack([program.matrix, *blocks])
    rows[range(b), range(p, p + b)] = -1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.chordal_decomposition_enable = False  # 4 x 4 blocks have no parts; looking for them takes a sixth of all
    side = np.concatenate([program.target, *sides])
    try:
        solution = clarabel.DefaultSolver(
            quadratic, linear, sparse.csc_array(rows), side, [clarabel.ZeroConeT(b), *cones], settings
        ).solve()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return None, "failed"  # a panic of the solver is no Exception
    return solution, str(solution.status)


def _constraints(program: ConeProgram) -> tuple[list[Floats], list[Floats], list[Any]]:
    """Rows A, sides b and cones of the constraints ``b - A y in cone``."""
    import clarabel

    found: list[tuple[Floats, Floats, Any]] = []
    for rows, side, cone, sign in (
        (program.equal, program.value, clarabel.ZeroConeT, 1.0),
        (program.at_least, np.zeros(len(program.at_least)), clarabel.NonnegativeConeT, -1.0),
        (program.at_most, program.limit, clarabel.NonnegativeConeT, 1.0),
    ):
        if len(rows):
            found.append((sign * rows, side, cone(len(rows))))
    found += [(-cone, np.zeros(len(cone)), clarabel.SecondOrderConeT(len(cone))) for cone in program.cones]
    for matrix in program.semidefinite:
        found.append((-matrix, np.zeros(len(matrix)), clarabel.PSDTriangleConeT(matrix_size(matrix))))
    smallest = np.zeros(10)
    smallest[[0, 2, 5, 9]] = program.margin
    minus = -np.eye(program.centre.size)
    for body in range(program.bodies):
        found.append((minus[10 * body : 10 * body + 10], -smallest, clarabel.PSDTriangleConeT(4)))
    return [f[0] for f in found], [f[1] for f in found], [f[2] for f in found]


def _violation(program: ConeProgram, y: Floats) -> float:
    """Largest violation of a bound, relative to its side."""
    worst = [0.0]
    if len(program.at_most):
        worst.append(float(np.max((program.at_most @ y - program.limit) / (1.0 + np.abs(program.limit)))))
    if len(program.equal):
        worst.append(float(np.max(np.abs(program.equal @ y - program.value) / (1.0 + np.abs(program.value)))))
    for cone in program.cones:
        first, *others = cone @ y
        worst.append(float((np.linalg.norm(others) - first) / (1.0 + abs(first))))
    if len(program.at_least):
        worst.append(float(np.max(-program.at_least @ y)))
    worst += [-smallest_eigenvalue(matrix, y) for matrix in program.semidefinite]
    return max(worst)


def matrix_size(rows: Floats) -> int:
    """Size of the matrix of which rows are the upper triangle."""
    return int(np.sqrt(2 * len(rows)))


def smallest_eigenvalue(rows: Floats, y: Floats) -> float:
    """Smallest eigenvalue of the symmetric matrix with the upper triangle ``rows @ y``, see `svec`."""
    size = matrix_size(rows)
    i, j = np.array([(i, j) for j in range(size) for i in range(j + 1)]).T
    matrix = np.zeros((size, size))
    matrix[i, j] = matrix[j, i] = (rows @ y) / np.where(i == j, 1.0, np.sqrt(2.0))
    return float(eigvalsh(matrix)[0])
