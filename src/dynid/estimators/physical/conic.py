"""Convex cone programs, solved by Clarabel; the answer is checked here, whatever status the solver reports.

    minimise  1/2 |matrix y - target|^2 + 1/2 sum(pull (y - centre)^2)    subject to linear and matrix constraints

The unknowns y contain the 4 x 4 pseudo-inertia of each body as a vector (`svec`). A `ConeCondition` of kind "matrix"
keeps its eigenvalues from being negative: so only possible bodies are found. `physical.feasible` and `physical.nearest`
make such programs and call `solve_cone_program`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import EstimationError
from dynid.spatial import EXACT

ACCEPTED = 1e-5
"""Largest relative gap between primal and dual objective, and largest violation of a constraint, that are accepted
(convention)."""


def _places(entries: int) -> tuple[Any, Any, Floats]:
    """Compute rows, columns and scales (k,) of the k entries of a stacked triangle, see `svec`."""
    columns, rows = np.tril_indices(int(np.sqrt(2 * entries)))
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def svec(matrix: Floats) -> Floats:
    """Stack the upper triangle of a symmetric (d, d) matrix, column by column, off-diagonal entries times sqrt(2).

    So ``svec(A) @ svec(B)`` is the trace of ``A B``. The result has d (d + 1) / 2 entries.
    """
    rows, columns, scale = _places(len(matrix) * (len(matrix) + 1) // 2)
    return np.asarray(matrix[rows, columns] * scale)


def unsvec(vector: Floats) -> Floats:
    """Make the symmetric (d, d) matrix of an `svec`."""
    rows, columns, scale = _places(vector.size)
    matrix = np.zeros((columns[-1] + 1, columns[-1] + 1))
    matrix[rows, columns] = matrix[columns, rows] = vector / scale
    return matrix


@dataclass(frozen=True, slots=True, eq=False)
class ConeCondition:
    """A condition on ``slack = side - rows @ y``."""

    kind: Literal["equal", "at most", "matrix"]
    """The slack must be zero ("equal"), not negative ("at most"), or `svec` of a matrix without negative eigenvalues
    ("matrix")."""
    rows: Floats
    """(k, p) matrix."""
    side: Floats
    """(k,) right side."""
    name: str = ""
    """Name of a bound that a user gave, for error messages; empty for constraints of physics."""

    def violation(self, y: Floats) -> float:
        """Compute how far y (p,) violates the constraint: relative to the side, for matrices absolute; <= 0 if not."""
        slack = self.side - self.rows @ y
        if self.kind == "matrix":
            return -float(eigvalsh(unsvec(slack))[0])
        beyond = np.abs(slack) if self.kind == "equal" else -slack
        return float(np.max(beyond / (1.0 + np.abs(self.side)), initial=0.0 if self.kind == "equal" else -np.inf))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConeProgram:
    """``minimise 1/2 |matrix y - target|^2 + 1/2 sum(pull (y - centre)^2)`` over constrained y (p,)."""

    matrix: Floats
    """(b, p) equations."""
    target: Floats
    """(b,) right side of the equations."""
    centre: Floats
    """(p,) prior value of each unknown."""
    pull: Floats
    """(p,) weight of each unknown's squared distance from the centre; not negative."""
    constraints: Sequence[ConeCondition] = ()
    """What y must satisfy."""


def solve_cone_program(program: ConeProgram) -> Floats:
    """Find the minimiser y (p,).

    Raises:
        EstimationError: Inputs are not finite, the constraints contradict one another, or no answer passes the check.
    """
    if not all(np.isfinite(part).all() for part in (program.matrix, program.target, program.centre, program.pull)):
        raise EstimationError("the cone program contains numbers that are not finite")
    bounds = [constraint.name for constraint in program.constraints if constraint.name]
    squares = float(np.sum(program.target**2))
    # the second try has an objective of moderate size, which the solver's absolute tolerances suit better
    for scale in (1.0, 1.0 / max(squares, 1.0)):
        root = np.sqrt(scale)
        scaled = replace(program, matrix=root * program.matrix, target=root * program.target, pull=scale * program.pull)
        solution, status = _call(scaled)
        if "Infeasible" in status and bounds:
            raise EstimationError(
                f"no possible robot satisfies {' and '.join(bounds)}",
                remedy="Weaken or remove one of them; signs of friction and possible bodies count as bounds too.",
            )
        if solution is None:
            continue
        y = np.asarray(solution.x)[: program.centre.size]
        value = solution.obj_val / scale
        gap = abs(value - solution.obj_val_dual / scale)
        largest_gap = max(ACCEPTED * max(1.0, abs(value)), EXACT * squares)  # or too small for any digit that counts
        violation = max((constraint.violation(y) for constraint in program.constraints), default=0.0)
        if np.isfinite(y).all() and gap <= largest_gap and violation <= ACCEPTED:
            return y
    raise EstimationError(
        "the cone solver found no answer that passes its check",
        remedy="Check the torques of the log (dynid check), or use the estimator wls.",
    )


def _call(program: ConeProgram) -> tuple[Any, str]:
    """Call Clarabel; return its solution and status, None and "failed" if it broke off."""
    import clarabel
    from scipy import sparse

    b, p = program.target.size, program.centre.size
    # unknowns (y, r) with r = matrix y - target, so that the solver never sees the squared matrix
    quadratic = sparse.diags_array(np.concatenate([program.pull, np.ones(b)]), format="csc")
    linear = np.concatenate([-program.pull * program.centre, np.zeros(b)])
    used = [constraint for constraint in program.constraints if len(constraint.rows)]
    rows = np.zeros((b + sum(len(constraint.rows) for constraint in used), p + b))
    rows[:, :p] = np.vstack([program.matrix, *(constraint.rows for constraint in used)])
    rows[range(b), range(p, p + b)] = -1.0
    side = np.concatenate([program.target, *(constraint.side for constraint in used)])
    kinds = {"equal": clarabel.ZeroConeT, "at most": clarabel.NonnegativeConeT}
    cones = [
        clarabel.PSDTriangleConeT(int(np.sqrt(2 * len(each.rows))))
        if each.kind == "matrix"
        else kinds[each.kind](len(each.rows))
        for each in used
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.chordal_decomposition_enable = False  # 4 x 4 matrices need none; looking for it takes a sixth of the time
    try:
        solution = clarabel.DefaultSolver(
            quadratic, linear, sparse.csc_array(rows), side, [clarabel.ZeroConeT(b), *cones], settings
        ).solve()
    except BaseException as error:  # a panic of the solver, which is written in Rust, is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return None, "failed"
    return solution, str(solution.status)
