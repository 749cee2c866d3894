"""Physically consistent estimation: every body possible, friction that takes power, the prior where data say nothing.

    minimise    |R K x - z|^2  +  weight * sum_j |svec(Q_j) - svec(1)|^2
    subject to  Q_j >= margin * 1,   rotors and friction as in `passivity`,   bounds

over all standard parameters x, with the triangle R of the weighted equations, the grouping matrix K, and each body's
pseudo-inertia Q_j whitened by the prior's. The weight is fixed: the prior is a measurement of every body with a
standard deviation of 100 % of itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.intervals.drawn import Draw, drawn_estimate
from dynid.estimation.linear.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.physical.bounds import Bounds, Constraint
from dynid.estimation.physical.conic import ConeProgram, is_contradictory, solve_cone_program
from dynid.estimation.physical.passivity import Passivity, all_terms
from dynid.estimation.physical.prior import PriorCoordinates
from dynid.estimation.physical.pseudo_inertia import unsvec
from dynid.findings import Finding
from dynid.information import Factor

CHANCE = 1e-3
"""Probability by which bounds that are true raise the residuals enough to be doubted."""
HELD = 1e-3
"""Distance from a constraint, in units of the prior, at which it holds a parameter (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeasibleWLS(Estimator):
    """Weighted least squares over physically possible robots, drawn towards the robot's own parameters."""

    name: ClassVar[str] = "feasible"
    title: ClassVar[str] = "physically consistent weighted least squares"
    use: ClassVar[str] = "the result must be a robot that can exist (the default)"
    references: ClassVar[tuple[str, ...]] = ("LeeWensingPark2020", "Izaguirre1992")

    prior_weight: float = 1.0
    """How strongly the prior draws: 1 trusts it to 100 % of itself, 100 to 10 %."""
    margin: float = 1e-4
    """Smallest eigenvalue of a body's pseudo-inertia relative to its prior's."""
    bounds: Bounds = field(default_factory=Bounds)
    signs: bool = True
    """Whether rotors and friction must be possible; see `dynid.estimation.physical.passivity`."""
    rounds: int = 3
    """How often the joints' weights are refined."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if not 0.0 <= self.margin < 1.0:
            raise ArgumentError(f"margin is {self.margin}", remedy="Give a number from 0 to below 1.")
        if not self.prior_weight > 0.0:
            raise ArgumentError(f"prior_weight is {self.prior_weight}", remedy="Give a number above 0.")

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate all standard parameters; the base parameters are their combinations."""
        data = least_squares_estimate(equations, refined_weights(equations, self.rounds), self.title)
        factor = noise_factor(equations, data)
        solution = feasible_parameters(equations, factor, self)
        held, costs = _bounds_held(equations, factor, self, solution)
        found = drawn_estimate(equations, data, factor, solution.draw, equations.grouping @ solution.theta)
        return replace(
            found,
            standard=solution.theta[: len(equations.base.layout)],
            findings=(*data.findings, *solution.findings, *costs),
            at_bound=(*solution.at_bound, *held),
            given_bounds=held,
            extras={"prior_weight": self.prior_weight, "solver_gap": solution.gap},
        )


def noise_factor(equations: Factors, data: Estimate) -> Factor:
    """All equations in units of the noise, such that samples correlated in time do not outweigh the prior."""
    return equations.information.weight(1.0 / (data.noise_std**2 * data.inflation))


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
    draw: Draw
    """The prior around which it was found."""


def feasible_parameters(equations: Factors, factor: Factor, settings: FeasibleWLS) -> FeasibleSolution:
    """Solve the cone program and check the answer.

    Args:
        equations: The equations.
        factor: Their weighted triangle.
        settings: Weight, margin, bounds and signs.

    Raises:
        EstimationError: No answer passes the check, or bounds contradict one another.
    """
    robot, terms = equations.robot, all_terms(equations)
    coordinates = PriorCoordinates.of(equations, factor.scale[equations.base.rank :])
    from_scaled, bodies = coordinates.from_scaled, robot.dof
    names = (*equations.base.layout.names, *(term.name for term in equations.terms))
    passivity = Passivity.of(robot.joint_names, terms) if settings.signs else Passivity.of(robot.joint_names, ())
    # a constraint beside "zero" would leave the program no interior
    signs = [k for k in passivity.nonnegative if names[10 * bodies + k] not in settings.bounds.absent]
    sizes = np.diagonal(from_scaled)[10 * bodies :]
    program = ConeProgram(
        matrix=factor.R @ equations.grouping @ from_scaled,
        target=factor.z,
        centre=coordinates.centre,
        pull=settings.prior_weight * coordinates.pull,
        bodies=bodies,
        margin=settings.margin,
        **constraint_rows(settings.bounds.constraints(robot), from_scaled),
        **passive_rows(passivity, signs, sizes, 10 * bodies),
    )
    try:
        y, gap = solve_cone_program(program)
    except EstimationError:
        if not program.is_bounded:
            raise
        conflict = _conflict(program, settings.bounds.constraints(robot), from_scaled)
        raise EstimationError(
            f"no possible robot satisfies {' and '.join(conflict) or 'all bounds'}",
            remedy="Weaken or remove one of them; signs of friction and possible bodies count as bounds too.",
        ) from None
    held = [
        body.joint.child
        for j, body in enumerate(robot.bodies)
        if eigvalsh(unsvec(y[10 * j : 10 * j + 10]))[0] < settings.margin + HELD
    ]
    held += [names[10 * bodies + k] for k in signs if y[10 * bodies + k] < HELD * HELD]
    y[[10 * bodies + k for k in signs]] = np.maximum(y[[10 * bodies + k for k in signs]], 0.0)
    draw = Draw(
        equations.grouping @ from_scaled, coordinates.centre, program.pull, program.equal, program.value
    )  # fmt: skip
    return FeasibleSolution(
        theta=from_scaled @ y, at_bound=tuple(held), findings=coordinates.findings, gap=gap, draw=draw
    )


def passive_rows(passivity: Passivity, signs: Sequence[int], sizes: Floats, first: int) -> dict[str, Any]:
    """The part of a `ConeProgram` that rotors and friction make.

    Args:
        passivity: The constraints on the terms' parameters.
        signs: Terms that must not be negative.
        sizes: (k,) parameter of each term = size * scaled unknown.
        first: Place of the first term among the unknowns.
    """

    def scaled(rows: Floats) -> Floats:
        whole = np.zeros((len(rows), first + sizes.size))
        whole[:, first : first + rows.shape[1]] = rows * sizes[: rows.shape[1]]
        return np.asarray(whole / max(float(np.abs(whole).max(initial=0.0)), 1e-300))

    single = np.zeros((len(signs), first + sizes.size))
    single[range(len(signs)), [first + k for k in signs]] = 1.0
    return {
        "at_least": np.vstack([single, scaled(passivity.rows)]),
        "semidefinite": tuple(scaled(block) for block in passivity.blocks),
    }


def _bounds_held(
    equations: Factors, factor: Factor, settings: FeasibleWLS, solution: FeasibleSolution
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Names of the inequalities that the answer meets, and a finding where bounds raise the residuals beyond chance."""
    theta = solution.theta[: len(equations.base.layout)]
    constraints = settings.bounds.constraints(equations.robot)
    active = tuple(c.name for c in constraints if c.is_active(theta))
    binding = [c for c in constraints if c.kind == "equal" or c.name in active]
    if not binding:
        return (), ()
    free = feasible_parameters(equations, factor, replace(settings, bounds=Bounds()))
    with_bounds, without = (
        factor.residual + float(np.sum((factor.R @ (equations.grouping @ found.theta) - factor.z) ** 2))
        for found in (solution, free)
    )
    # squares are in units of the noise: bounds that are true raise them by one per row, about
    if with_bounds - without <= stats.chi2.isf(CHANCE, sum(len(c.rows) for c in binding)):
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


def _conflict(program: ConeProgram, constraints: list[Constraint], from_scaled: Floats) -> list[str]:
    """Names of constraints that contradict one another, none of which can be left out (deletion filter)."""
    left = list(constraints)
    for candidate in constraints:
        others = [c for c in left if c is not candidate]
        if is_contradictory(replace(program, **constraint_rows(others, from_scaled))):
            left = others
    return [constraint.name for constraint in left]
