"""A least-squares program over positive semidefinite 4 x 4 blocks, and two ways to solve it.

`solve_cone_program` calls Clarabel, here and nowhere else, and checks its answer. `solve_by_log_cholesky` is used where
Clarabel fails and there are no bounds: with ``Q_j = margin 1 + L_j L_j^T`` and the logarithms of L's diagonal as
unknowns ([RuckerWensing2022]) every body is possible by construction, and ``y = exp(u)`` is never negative. Penalties
hold friction of several terms and coupled rotors. It is slower, and finds a local minimum only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import EstimationError
from dynid.estimation.physical.pseudo_inertia import svec, unsvec

ACCEPTED_GAP = 1e-5
"""Largest relative gap between primal and dual objective, and constraint violation, of an answer that is used."""
NEGLIGIBLE_GAP = 1e-9
"""Gap over the squared target that is accepted in any case (derivation: the objective is at least as convex as its
first part, so that ``|matrix (y - best)|`` is at most the root of twice the gap, 5e-5 of the target). Without noise the
objective is small beside the squares that it is the difference of, and its own share says little."""
LOWEST_LOGARITHM = -6.0
"""Lowest logarithm of a log-Cholesky unknown (convention): at a constraint the true one is minus infinity."""
PENALTY = 1e6
"""Weight of violated friction and rotors in the log-Cholesky form, against residuals in units of noise
(experiment: with 1e4 a planted indefinite coupling stayed indefinite by 4 %, with 1e6 by 1e-5)."""
PENALISED = 1e-3
"""Largest violation that the penalty may leave, relative to the scaled unknowns (convention)."""
MANY_ROWS = 500
"""Passive rows from which on only likely ones are held at first (convention): of thousands, a few are active, and the
solver's time grows with their number."""
ALIKE = 64
"""Consecutive rows of which one is held at first (experiment: they are neighbours on the grid of a friction, so that
one of them that holds lets the others violate little; 5000 rows of tx40 took 35 ms, a quarter of all 100 ms)."""
ALIKE_VIOLATED = 4
"""Consecutive violated rows of which the worst is added (convention)."""
WIDENINGS = 4
"""How often rows that were left out and are violated are added, before all are held (convention)."""
OVERLOOKED = 1e-8
"""Violation of a scaled row that is the solver's own accuracy (convention)."""
SMALLEST_PULL = 1e-12
"""Keeps quotients finite where nothing draws an unknown (convention)."""
_LOWER = np.tril_indices(4, -1)


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
    bodies: int
    """The first 10 * bodies unknowns are svec of 4 x 4 blocks that must exceed ``margin`` times the identity."""
    margin: float
    nonnegative: tuple[int, ...]
    at_most: Floats
    """(k, p) rows of ``at_most @ y <= limit``"""
    limit: Floats
    equal: Floats
    """(e, p) rows of ``equal @ y == value``"""
    value: Floats
    cones: tuple[Floats, ...] = ()
    """Each (k, p): ``(cone @ y)[0] >= |(cone @ y)[1:]|``"""
    passive: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(m, p) rows of ``passive @ y >= -allowed``; always satisfied by some y, unlike bounds"""
    allowed: Floats = field(default_factory=lambda: np.zeros(0))
    """(m,) not negative"""
    semidefinite: tuple[Floats, ...] = ()
    """Each (d (d + 1) / 2, p): rows of a symmetric matrix, stacked as by `svec`, without negative eigenvalues"""


def solve_cone_program(program: ConeProgram) -> tuple[Floats, float] | None:
    """The minimiser y (p,) and the relative duality gap that was verified; None where no answer passes the check.

    Raises:
        EstimationError: Inputs are not finite, or the constraints contradict one another.
    """
    arrays = (program.matrix, program.target, program.centre, program.pull, program.at_most, program.limit)
    if not all(np.isfinite(array).all() for array in arrays):
        raise EstimationError("the cone program contains numbers that are not finite")
    kept = _likely_rows(program)
    for _ in range(WIDENINGS if kept.size < len(program.allowed) else 0):
        answer = _solve_checked(replace(program, passive=program.passive[kept], allowed=program.allowed[kept]))
        if answer is None:
            break
        slack = program.passive @ answer[0] + program.allowed
        worst = _least_of_neighbours(slack, ALIKE_VIOLATED)
        violated = worst[slack[worst] < -OVERLOOKED]
        if not violated.size:  # the minimiser over fewer constraints that meets the others, too, is that over all
            return answer
        kept = np.union1d(kept, violated)
    return _solve_checked(program)


def _likely_rows(program: ConeProgram) -> NDArray[np.int64]:
    """Those of many passive rows that have less slack than their neighbours where nothing but the pull acts."""
    count = len(program.allowed)
    if count <= MANY_ROWS:
        return np.arange(count)
    # in coordinates of the pull the free minimiser needs no more than the rows of the matrix
    root = np.sqrt(np.maximum(program.pull, SMALLEST_PULL))
    scaled = program.matrix / root
    gram = scaled @ scaled.T + np.eye(len(scaled))
    free = program.centre + scaled.T @ np.linalg.solve(gram, program.target - program.matrix @ program.centre) / root
    return _least_of_neighbours(program.passive @ free + program.allowed, ALIKE)


def _least_of_neighbours(values: Floats, count: int) -> NDArray[np.int64]:
    """Places of the least of each so many consecutive values."""
    padded = np.append(values, np.full(-values.size % count, np.inf)).reshape(-1, count)
    return np.asarray(padded.argmin(axis=1) + count * np.arange(len(padded)), dtype=np.int64)


def _solve_checked(program: ConeProgram) -> tuple[Floats, float] | None:
    """As `solve_cone_program`, for finite numbers and with all constraints at once."""
    squares = float(np.sum(program.target**2))
    # the second try has an objective of moderate size, which the solver's absolute tolerances suit better
    for scale in (1.0, 1.0 / max(squares, 1.0)):
        solution, status = _call(_scaled(program, scale))
        if _excluded(program, status):
            raise EstimationError(
                "no possible robot satisfies all bounds", remedy="Look for bounds that exclude each other."
            )
        if solution is None:
            continue
        y = np.asarray(solution.x)[: program.centre.size]
        value, dual = solution.obj_val / scale, solution.obj_val_dual / scale
        largest = max(ACCEPTED_GAP * max(1.0, abs(value)), NEGLIGIBLE_GAP * squares)
        if np.isfinite(y).all() and abs(value - dual) <= largest and _violation(program, y) <= ACCEPTED_GAP:
            return y, float(abs(value - dual) / max(1.0, abs(value)))
    return None


def _scaled(program: ConeProgram, scale: float) -> ConeProgram:
    """The program with its objective multiplied by a number."""
    if scale == 1.0:
        return program
    root = np.sqrt(scale)
    return replace(program, matrix=root * program.matrix, target=root * program.target, pull=scale * program.pull)


def is_contradictory(program: ConeProgram) -> bool:
    """Whether no y at all satisfies the constraints, by the solver's certificate."""
    return _excluded(program, _call(program)[1])


def _excluded(program: ConeProgram, status: str) -> bool:
    """Without bounds there is always a possible robot, whatever the solver says."""
    return "Infeasible" in status and bool(len(program.equal) or len(program.at_most) or program.cones)


@dataclass(frozen=True, slots=True, eq=False)
class CompressedColumns:
    """A sparse matrix as the solver reads it: what it asks of SciPy's ``csc_matrix``, which is slow to load."""

    data: Floats
    """The numbers that are not zero, column by column."""
    indices: NDArray[np.int32]
    """Their rows."""
    indptr: NDArray[np.int32]
    """(columns + 1,) where each column begins."""
    shape: tuple[int, ...]
    """Rows and columns."""
    has_canonical_format: ClassVar[bool] = True
    has_sorted_indices: ClassVar[bool] = True

    @property
    def nnz(self) -> int:
        """Number of numbers that are not zero."""
        return len(self.data)

    @classmethod
    def of(cls, matrix: Floats) -> CompressedColumns:
        """The numbers of a matrix (m, n) that are not zero."""
        turned = np.ascontiguousarray(matrix.T)
        columns, rows = np.nonzero(turned)
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(turned, axis=1))])
        return cls(turned[columns, rows], rows.astype(np.int32), starts.astype(np.int32), matrix.shape)

    @classmethod
    def diagonal(cls, values: Floats) -> CompressedColumns:
        """A matrix (n, n) with nothing but a diagonal (n,)."""
        places = np.flatnonzero(values).astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(values != 0.0)]).astype(np.int32)
        return cls(values[places], places, starts, (values.size, values.size))

    def beside(self, other: CompressedColumns) -> CompressedColumns:
        """Both matrices side by side; rows that the other one lacks are zero in it."""
        return CompressedColumns(
            np.concatenate([self.data, other.data]),
            np.concatenate([self.indices, other.indices]),
            np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]]),
            (self.shape[0], self.shape[1] + other.shape[1]),
        )


def _call(program: ConeProgram) -> tuple[Any, str]:
    import clarabel

    b = program.target.size
    # unknowns (y, r) with r = matrix y - target, so that the solver never sees the squared matrix
    quadratic = CompressedColumns.diagonal(np.concatenate([program.pull, np.ones(b)]))
    linear = np.concatenate([-program.pull * program.centre, np.zeros(b)])
    blocks, sides, cones = _constraints(program)
    rows = CompressedColumns.of(np.vstack([program.matrix, *blocks])).beside(CompressedColumns.diagonal(-np.ones(b)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.chordal_decomposition_enable = False  # 4 x 4 blocks have no parts; looking for them takes a sixth of all
    cones = [clarabel.ZeroConeT(b), *cones]
    try:
        solution = clarabel.DefaultSolver(
            quadratic, linear, rows, np.concatenate([program.target, *sides]), cones, settings
        ).solve()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return None, "failed"  # a panic of the solver is no Exception
    return solution, str(solution.status)


def _constraints(program: ConeProgram) -> tuple[list[Floats], list[Floats], list[Any]]:
    """Rows A, sides b and cones of the constraints ``b - A y in cone``."""
    import clarabel

    p = program.matrix.shape[1]
    blocks, sides, cones = [], [], []
    minus = -np.eye(p)

    def add(rows: Floats, side: Floats, cone: Any) -> None:
        blocks.append(rows)
        sides.append(side)
        cones.append(cone)

    if len(program.equal):
        add(program.equal, program.value, clarabel.ZeroConeT(len(program.equal)))
    if program.nonnegative:
        add(minus[list(program.nonnegative)], np.zeros(len(program.nonnegative)),
            clarabel.NonnegativeConeT(len(program.nonnegative)))  # fmt: skip
    if len(program.at_most):
        add(program.at_most, program.limit, clarabel.NonnegativeConeT(len(program.at_most)))
    for cone in program.cones:
        add(-cone, np.zeros(len(cone)), clarabel.SecondOrderConeT(len(cone)))
    if len(program.passive):
        add(-program.passive, program.allowed, clarabel.NonnegativeConeT(len(program.passive)))
    for matrix in program.semidefinite:
        add(-matrix, np.zeros(len(matrix)), clarabel.PSDTriangleConeT(matrix_size(matrix)))
    smallest = np.zeros(10)
    smallest[[0, 2, 5, 9]] = program.margin
    for body in range(program.bodies):
        add(minus[10 * body : 10 * body + 10], -smallest, clarabel.PSDTriangleConeT(4))
    return blocks, sides, cones


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
    if program.nonnegative:
        worst.append(float(-np.min(y[list(program.nonnegative)])))
    if len(program.passive):
        worst.append(float(np.max(-program.passive @ y - program.allowed)))
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


def solve_by_log_cholesky(program: ConeProgram) -> Floats:
    """The minimiser y (p,).

    Raises:
        EstimationError: The program has bounds, which this form cannot hold, or the search does not converge.
    """
    from scipy.optimize import least_squares

    if len(program.equal) or len(program.at_most) or program.cones:
        raise EstimationError(
            "the cone solver failed, and the fallback holds no bounds", remedy="Weaken or remove the bounds."
        )
    pull = np.sqrt(program.pull)

    def residual(u: Floats) -> Floats:
        y = _unknowns(program, u)
        fed_in = np.minimum(program.passive @ y + program.allowed, 0.0) if len(program.passive) else np.zeros(0)
        indefinite = [min(smallest_eigenvalue(matrix, y), 0.0) for matrix in program.semidefinite]
        fit = (program.matrix @ y - program.target, pull * (y - program.centre))
        return np.concatenate([*fit, PENALTY * fed_in, PENALTY * np.array(indefinite)])

    lowest = np.full(program.centre.size, -np.inf)
    for body in range(program.bodies):
        lowest[10 * body : 10 * body + 4] = LOWEST_LOGARITHM
    lowest[list(program.nonnegative)] = LOWEST_LOGARITHM
    found = least_squares(residual, _start_unknowns(program), bounds=(lowest, np.inf), ftol=1e-6, max_nfev=500)
    if not found.success or not np.isfinite(found.x).all():
        raise EstimationError(f"neither the cone solver nor the fallback converged: {found.message}")
    y = _unknowns(program, found.x)
    if _violation(program, y) > PENALISED:
        raise EstimationError(
            "the cone solver failed, and the fallback did not hold the friction of several terms in one joint",
            remedy="Leave the selection of terms out (selection=false), or use weighted least squares.",
        )
    return y


def _unknowns(program: ConeProgram, u: Floats) -> Floats:
    """(p,) y from log-Cholesky unknowns u (p,)."""
    y = u.copy()
    for body in range(program.bodies):
        part = slice(10 * body, 10 * body + 10)
        L = np.diag(np.exp(u[part][:4]))
        L[_LOWER] = u[part][4:]
        y[part] = svec(program.margin * np.eye(4) + L @ L.T)
    held = list(program.nonnegative)
    y[held] = np.exp(u[held])
    return y


def _start_unknowns(program: ConeProgram) -> Floats:
    """(p,) log-Cholesky unknowns u of the centre."""
    u = program.centre.copy()
    for body in range(program.bodies):
        part = slice(10 * body, 10 * body + 10)
        excess = unsvec(program.centre[part]) - program.margin * np.eye(4)
        L = np.linalg.cholesky(excess)
        u[part] = np.concatenate([np.log(np.diagonal(L)), L[_LOWER]])
    held = list(program.nonnegative)
    u[held] = np.log(np.maximum(program.centre[held], 0.1))
    return u
