"""Physically consistent estimation: every body possible, friction that takes power, the prior where data say nothing.

    minimise    |R K x - z|^2  +  weight * sum_j |svec(Q_j) - svec(1)|^2
    subject to  Q_j >= margin * 1,   rotors and friction as in `passivity`,   bounds

over all standard parameters x, with the triangle R of the weighted equations, the grouping matrix K, and each body's
pseudo-inertia Q_j whitened by the prior's. The weight is fixed: the prior is a measurement of every body with a
standard deviation of 100 % of itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.physical.bounds import Bounds
from dynid.estimation.physical.conic import ACCEPTED, ConeProgram, Constraint, solve_cone_program, svec, unsvec
from dynid.estimation.physical.passivity import Passivity, all_terms
from dynid.estimation.physical.prior import PriorCoordinates
from dynid.estimation.score_covariance import Draw, drawn_estimate
from dynid.findings import Finding
from dynid.information.factor import Factor

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

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if not 0.0 <= self.margin < 1.0:
            raise ArgumentError(f"margin is {self.margin}", remedy="Give a number from 0 to below 1.")
        if not self.prior_weight > 0.0:
            raise ArgumentError(f"prior_weight is {self.prior_weight}", remedy="Give a number above 0.")

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate all standard parameters; the base parameters are their combinations."""
        data = least_squares_estimate(equations, refined_weights(equations), self.title)
        factor = noise_factor(equations, data)
        solution = feasible_parameters(equations, factor, self)
        return replace(
            drawn_estimate(equations, data, factor, solution.draw, equations.grouping @ solution.theta),
            standard=solution.theta[: len(equations.base.layout)],
            findings=(*data.findings, *solution.findings),
            at_bound=(*solution.at_bound, *solution.given_bounds),
            given_bounds=solution.given_bounds,
            extras={"prior_weight": self.prior_weight},
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
    given_bounds: tuple[str, ...]
    """Names of the bounds that hold it."""
    findings: tuple[Finding, ...]
    draw: Draw
    """The prior around which it was found."""


def feasible_parameters(equations: Factors, factor: Factor, settings: FeasibleWLS) -> FeasibleSolution:
    """Solve the cone program and check the answer.

    Args:
        equations: The equations.
        factor: Their weighted triangle.
        settings: Weight, margin and bounds.

    Raises:
        EstimationError: No answer passes the check, or bounds contradict one another.
    """
    robot, terms = equations.robot, all_terms(equations)
    coordinates = PriorCoordinates.of(equations, factor.scale[equations.base.rank :])
    from_scaled, bodies = coordinates.from_scaled, robot.dof
    names = (*equations.base.layout.names, *(term.name for term in equations.terms))
    passivity = Passivity.of(robot.joint_names, terms)
    stated = settings.bounds.constraints(robot)
    given = [replace(bound, rows=bound.rows @ from_scaled[: bound.rows.shape[1]]) for bound in stated]
    smallest, minus = settings.margin * svec(np.eye(4)), -np.eye(len(from_scaled))
    program = ConeProgram(
        matrix=factor.R @ equations.grouping @ from_scaled,
        target=factor.z,
        centre=coordinates.centre,
        pull=settings.prior_weight * coordinates.pull,
        constraints=(
            *given,
            *(Constraint("matrix", minus[10 * j : 10 * j + 10], -smallest) for j in range(bodies)),
            *passivity.constraints(np.diagonal(from_scaled)[10 * bodies :], 10 * bodies),
        ),
    )
    y = solve_cone_program(program)
    signs = [10 * bodies + k for k in passivity.nonnegative]
    held = [
        body.joint.child
        for j, body in enumerate(robot.bodies)
        if eigvalsh(unsvec(y[10 * j : 10 * j + 10]))[0] < settings.margin + HELD
    ]
    held += [names[k] for k in signs if y[k] < HELD * HELD]
    y[signs] = np.maximum(y[signs], 0.0)
    exact = [bound for bound in given if bound.kind == "equal"]
    draw = Draw(
        to_base=equations.grouping @ from_scaled,
        centre=coordinates.centre,
        pull=program.pull,
        equal=np.vstack([np.zeros((0, y.size)), *(bound.rows for bound in exact)]),
        value=np.concatenate([np.zeros(0), *(bound.side for bound in exact)]),
    )
    theta = from_scaled @ y
    return FeasibleSolution(
        theta=theta,
        at_bound=tuple(held),
        given_bounds=tuple(bound.name for bound in stated if _holds(bound, theta[: len(equations.base.layout)])),
        findings=coordinates.findings,
        draw=draw,
    )


def _holds(bound: Constraint, theta: Floats) -> bool:
    """Whether standard parameters lie on the edge of an inequality."""
    size = np.abs(bound.rows) @ np.abs(theta) + np.abs(bound.side)
    return bound.kind == "at most" and bool(np.any(bound.side - bound.rows @ theta <= ACCEPTED * size))
