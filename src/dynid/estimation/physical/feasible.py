"""Physically consistent estimation: every body possible, friction that takes power, the prior where data say nothing.

    minimise    |R K x - z|^2  +  weight * sum_j |svec(Q_j) - svec(1)|^2
    subject to  Q_j >= margin * 1,   rotors and friction as in `passivity`,   bounds

over all standard parameters x, with the triangle R of the weighted equations, the grouping matrix K, and each body's
pseudo-inertia Q_j whitened by the prior's. Solved by Clarabel in residual form; the answer is checked here, whatever
the solver says of itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.cross_validation import weigh_prior
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.intervals.quantiles import chi_squared_quantile
from dynid.estimation.physical.bounds import Bounds, Constraint
from dynid.estimation.physical.conic import ConeProgram, is_contradictory, solve_by_log_cholesky, solve_cone_program
from dynid.estimation.physical.constrained_spread import (
    drawn_estimate,
    prior_dominated,
    shifted_estimate,
    within_equalities,
)
from dynid.estimation.physical.passivity import Passivity
from dynid.estimation.physical.prior import Distance, PriorCoordinates, check_distance, prior_residual
from dynid.estimation.physical.prior_bias import Draw
from dynid.estimation.physical.pseudo_inertia import unsvec
from dynid.findings import Finding
from dynid.information import Factor
from dynid.robot.model import Robot

CHANCE = 1e-3
"""Probability by which bounds that are true raise the residuals enough to be doubted."""
GAUSS_NEWTON = 50
"""Most rounds towards a distance that is not quadratic."""
CONVERGED = 1e-9
"""Relative decrease of the cost below which a round has changed nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeasibleWLS(Estimator):
    """Weighted least squares over physically possible robots, drawn towards the robot's own parameters."""

    name: ClassVar[str] = "feasible"
    title: ClassVar[str] = "physically consistent weighted least squares"
    use: ClassVar[str] = "the result must be a robot that can exist (the default)"
    references: ClassVar[tuple[str, ...]] = ("LeeWensingPark2020", "Izaguirre1992")

    prior_weight: float | None = None
    """How strongly the prior draws: 1 trusts it to 100 % of itself, 100 to 10 %. None chooses by cross-validation."""
    distance: Distance = "pull-back"
    """How the distance from the prior is measured; see `dynid.estimation.physical.prior`. The weight is
    chosen with the quadratic one, which all others resemble near the prior."""
    margin: float = 1e-4
    """Smallest eigenvalue of a body's pseudo-inertia relative to its prior's."""
    bounds: Bounds = field(default_factory=Bounds)
    signs: bool = True
    """Whether rotor inertia must not be negative and friction must not feed power in; see
    `dynid.estimation.physical.passivity`."""
    rounds: int = 3
    """How often the joints' weights are refined."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if not 0.0 <= self.margin < 1.0:
            raise ArgumentError(f"margin is {self.margin}", remedy="Give a number from 0 to below 1.")
        if self.prior_weight is not None and not self.prior_weight > 0.0:
            raise ArgumentError(f"prior_weight is {self.prior_weight}", remedy="Give a number above 0, or None.")
        check_distance(self.distance)

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate all standard parameters; the base parameters are their combinations."""
        return self._estimate(equations, errors=True)

    def solve_for_mean(self, equations: Factors) -> Estimate:
        """As `solve`, but with the errors of the data alone: those of a mean of several fits are its own."""
        self._check_kind(equations)
        return replace(self._estimate(equations, errors=False), references=self.references)

    def _estimate(self, equations: Factors, *, errors: bool) -> Estimate:
        method = "physically consistent weighted least squares"
        weighing = weigh_prior(equations, self.prior_weight, self.rounds, method)
        plain = weighing.plain
        solution = feasible_parameters(equations, weighing.factor, weighing.prior_weight, self)
        held, costs = _bounds_held(equations, weighing.factor, weighing.prior_weight, self, solution)
        program, to_base = solution.program, equations.grouping @ solution.from_scaled
        data = within_equalities(equations, plain, weighing.weights, to_base, program.equal, program.value)
        values = equations.grouping @ solution.theta
        dominated = prior_dominated(plain, data, weighing.factor, to_base, program.pull)
        if len(program.equal):  # what the prior says within equalities is not known direction by direction
            found = shifted_estimate(data, values)
        elif not errors:
            found = replace(plain, values=values)
        else:
            draw = Draw(to_base, program.centre, program.pull)
            found = drawn_estimate(equations, weighing, draw, values, dominated)
        return replace(
            found,
            standard=solution.theta[: len(equations.base.layout)],
            findings=(*plain.findings, *solution.findings, *weighing.findings, *costs),
            at_bound=(*solution.at_bound, *held),
            given_bounds=tuple(held),
            prior_dominated=dominated,
            extras={"prior_weight": weighing.prior_weight, "solver_gap": solution.gap},
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeasibleSolution:
    """Standard parameters of a possible robot."""

    theta: Floats
    """(p + k,) standard parameters, then terms"""
    at_bound: tuple[str, ...]
    """Bodies whose pseudo-inertia, and parameters whose sign, is held by a constraint."""
    findings: tuple[Finding, ...]
    gap: float
    """Relative gap between primal and dual objective, computed here."""
    program: ConeProgram
    """What was solved, over scaled unknowns."""
    from_scaled: Floats
    """(p + k, p + k + s) theta = from_scaled @ y"""


def feasible_parameters(
    equations: Factors, factor: Factor, weight: float, settings: FeasibleWLS, nonnegative: Sequence[str] = ()
) -> FeasibleSolution:
    """Solve the cone program for one prior weight and check the answer.

    Args:
        equations: The equations.
        factor: Their weighted triangle.
        weight: Weight of the prior.
        settings: Margin, bounds and signs.
        nonnegative: Names of parameters that must not be negative by themselves, besides those that passivity holds.

    Raises:
        EstimationError: No answer passes the check, or bounds contradict one another.
    """
    coordinates = PriorCoordinates.of(equations.robot, factor.scale[equations.base.rank :])
    names = (*equations.base.layout.names, *(term.name for term in equations.terms))
    passivity = Passivity.of(equations) if settings.signs else Passivity.nothing(coordinates.centre.size)
    # a constraint beside "zero" would leave the program no interior
    passivity = passivity.without([k for k, name in enumerate(names) if name in settings.bounds.absent])
    alone = {k for k, name in enumerate(names) if name in nonnegative}
    coordinates = coordinates.widened(passivity.shares)
    bodies, held_signs = equations.robot.dof, tuple(sorted({*passivity.nonnegative, *alone}))
    program = ConeProgram(
        matrix=factor.R @ equations.grouping @ coordinates.from_scaled,
        target=factor.z,
        centre=coordinates.centre,
        pull=weight * coordinates.pull,
        bodies=bodies,
        margin=settings.margin,
        nonnegative=held_signs,
        **constraint_rows(settings.bounds.constraints(equations.robot), coordinates.from_scaled),
        **passive_rows(passivity, coordinates),
    )
    y, gap, findings = _solve_program(program, settings, coordinates, equations.robot, weight)
    held = [
        body.joint.child
        for j, body in enumerate(equations.robot.bodies)
        if _smallest(y, j) < settings.margin + 1e-3 * (1.0 - settings.margin)
    ]
    held += [names[k] for k in held_signs if k < len(names) and y[k] < 1e-6]
    held += passivity.active(coordinates.unknowns @ y)
    if any(_smallest(y, j) < 0.5 * settings.margin - 1e-9 for j in range(bodies)):
        raise EstimationError("the solver's answer contains an impossible body", remedy="Weaken bounds, or the margin.")
    y[list(held_signs)] = np.maximum(y[list(held_signs)], 0.0)
    return FeasibleSolution(
        theta=coordinates.from_scaled @ y,
        at_bound=tuple(held),
        findings=(*coordinates.findings, *findings),
        gap=gap,
        program=program,
        from_scaled=coordinates.from_scaled,
    )


def _bounds_held(
    equations: Factors, factor: Factor, weight: float, settings: FeasibleWLS, solution: FeasibleSolution
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Names of the inequalities that the answer meets, and a finding where bounds raise the residuals beyond chance."""
    theta = solution.theta[: len(equations.base.layout)]
    constraints = settings.bounds.constraints(equations.robot)
    active = tuple(c.name for c in constraints if c.is_active(theta))
    binding = [c for c in constraints if c.kind == "equal" or c.name in active]
    if not binding:
        return (), ()
    free = feasible_parameters(equations, factor, weight, replace(settings, bounds=Bounds()))
    with_bounds, without = (
        factor.residual + float(np.sum((factor.R @ (equations.grouping @ found.theta) - factor.z) ** 2))
        for found in (solution, free)
    )
    # squares are in units of the noise: bounds that are true raise them by one per row, about
    if with_bounds - without <= chi_squared_quantile(sum(len(c.rows) for c in binding), CHANCE):
        return active, ()
    rise = 100.0 * (np.sqrt(with_bounds / max(without, 1e-300)) - 1.0)
    names = ", ".join(c.name for c in binding)
    message = f"the data contradict the bounds: residuals are {rise:.2g} % larger than without ({names})"
    return active, (Finding(code="bounds-cost", severity="warning", where="bounds", message=message),)


def constraint_rows(constraints: Sequence[Constraint], from_scaled: Floats) -> dict[str, Any]:
    """The constraints' part of a `ConeProgram` over scaled unknowns y."""
    size = from_scaled.shape[1]

    def stacked(kind: str) -> tuple[Floats, Floats]:
        mine = [c for c in constraints if c.kind == kind]
        rows = [c.rows @ from_scaled[: c.rows.shape[1]] for c in mine]
        return np.vstack([np.zeros((0, size)), *rows]), np.concatenate([np.zeros(0), *(c.side for c in mine)])

    (at_most, limit), (equal, value) = stacked("at most"), stacked("equal")
    cones = tuple(c.rows @ from_scaled[: c.rows.shape[1]] for c in constraints if c.kind == "cone")
    return {"at_most": at_most, "limit": limit, "equal": equal, "value": value, "cones": cones}


def passive_rows(passivity: Passivity, coordinates: PriorCoordinates) -> dict[str, Any]:
    """The part of a `ConeProgram` that rotors and friction make, each row scaled to the size of its entries."""
    rows = coordinates.rescale_rows(passivity.rows)
    size = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0))
    np.maximum(size, 1e-300, out=size)
    rows /= size[:, None]
    blocks = (coordinates.rescale_rows(block.rows) for block in passivity.blocks)
    return {
        "passive": rows,
        "allowed": passivity.allowed / size,
        "semidefinite": tuple(block / max(float(np.abs(block).max()), 1e-300) for block in blocks),
    }


def _solve_program(
    program: ConeProgram, settings: FeasibleWLS, coordinates: PriorCoordinates, robot: Robot, weight: float
) -> tuple[Floats, float, tuple[Finding, ...]]:
    """The minimiser, its gap, and a finding where the cone solver had to be replaced.

    Raises:
        EstimationError: The bounds contradict one another; the message names the smallest set of them that does.
    """
    try:
        answer = solve_cone_program(program)
    except EstimationError:
        names = _conflict(program, settings.bounds.constraints(robot), coordinates.from_scaled)
        raise EstimationError(
            f"no possible robot satisfies {' and '.join(names) or 'all bounds'}",
            remedy="Weaken or remove one of them; signs of friction and possible bodies count as bounds too.",
        ) from None
    if answer is None:
        message = "the cone solver failed: the log-Cholesky form was solved"
        found = Finding(code="solver-fallback", severity="note", where="estimate", message=message)
        return solve_by_log_cholesky(program), float("nan"), (found,)
    if settings.distance == "pull-back":
        return (*answer, ())
    return _by_distance(program, answer[0], settings.distance, coordinates.from_scaled, weight)


def _conflict(program: ConeProgram, constraints: list[Constraint], from_scaled: Floats) -> list[str]:
    """Names of constraints that contradict one another, none of which can be left out (deletion filter)."""
    left = list(constraints)
    for candidate in constraints:
        others = [c for c in left if c is not candidate]
        if is_contradictory(replace(program, **constraint_rows(others, from_scaled))):
            left = others
    return [constraint.name for constraint in left]


def _by_distance(
    program: ConeProgram, y: Floats, distance: Distance, from_scaled: Floats, weight: float
) -> tuple[Floats, float, tuple[Finding, ...]]:
    """Gauss-Newton over cone programs, from the minimum for the quadratic distance."""
    pull = program.pull.copy()
    pull[: 10 * program.bodies] = 0.0
    data, gap = replace(program, pull=pull), 0.0

    def residual(y: Floats) -> tuple[Floats, Floats]:
        rows, slopes = np.zeros(10 * program.bodies), np.zeros((10 * program.bodies, y.size))
        for body in range(program.bodies):
            part = slice(10 * body, 10 * body + 10)
            rows[part], slopes[part, part] = prior_residual(distance, y[part], from_scaled[part, part])
        return np.sqrt(weight) * rows, np.sqrt(weight) * slopes

    def cost(y: Floats) -> float:
        fit = float(np.sum((data.matrix @ y - data.target) ** 2) + np.sum(pull * (y - data.centre) ** 2))
        return fit + float(np.sum(residual(y)[0] ** 2))

    for _ in range(GAUSS_NEWTON):
        r, J = residual(y)
        matrix, target = np.vstack([data.matrix, J]), np.concatenate([data.target, J @ y - r])
        answer = solve_cone_program(replace(data, matrix=matrix, target=target))
        if answer is None:
            message = f"the cone solver failed on the way to the {distance} distance"
            found = Finding(code="solver-fallback", severity="warning", where="estimate", message=message)
            return y, float("nan"), (found,)
        before, step, gap = cost(y), answer[0] - y, answer[1]
        scale = next((s for s in 0.5 ** np.arange(20.0) if cost(y + s * step) <= before), 0.0)
        y = y + scale * step
        if before - cost(y) <= CONVERGED * before:
            return y, gap, ()
    message = f"the {distance} distance had not converged after {GAUSS_NEWTON} rounds"
    return y, gap, (Finding(code="not-settled", severity="warning", where="estimate", message=message),)


def _smallest(y: Floats, body: int) -> float:
    return float(eigvalsh(unsvec(y[10 * body : 10 * body + 10]))[0])
