"""Physically consistent estimation: least squares over possible robots, with a prior for what the data do not show.

    minimise    |R K x - z|^2  +  weight * sum_j |svec(Q_j) - svec(1)|^2
    subject to  Q_j >= margin * 1,   rotors and friction as in `Passivity`,   bounds of the user

over all standard parameters x, with the triangle R and right side z of the weighted equations, the grouping matrix K
(base parameters = K x), and each body's 4 x 4 pseudo-inertia whitened by the prior's, Q_j (see
`dynid.estimators.physical.prior`); 1 is the identity. A body is possible exactly if Q_j is positive definite. The
weight does not depend on the data: the prior counts like a measurement of every body with a standard deviation of 100 %
of its parameters. `svec` stacks the entries of a symmetric matrix as a vector with the same norm.

`FeasibleWLS` is the default estimator of `identify`. R and z are the triangle of a QR decomposition of all weighted
equations. `feasible_parameters` solves the cone program, also for `physical.nearest`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dynid.array_types import Floats
from dynid.data_reduction.factor import Factor
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError
from dynid.estimators.equations import Factors
from dynid.estimators.estimate import Estimate, Estimator
from dynid.estimators.linear.least_squares import least_squares_estimate, refined_weights
from dynid.estimators.physical.bounds import Bounds
from dynid.estimators.physical.conic import ACCEPTED, ConeCondition, ConeProgram, solve_cone_program, svec, unsvec
from dynid.estimators.physical.passivity import Passivity, all_terms
from dynid.estimators.physical.prior import PriorCoordinates
from dynid.estimators.score_covariance import Prior, posterior_estimate
from dynid.findings import Finding

AT_BOUND = 1e-3
"""Distance of a whitened eigenvalue from its constraint at which the constraint counts as active (convention); its
square for parameters over their sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeasibleWLS(Estimator):
    """Weighted least squares over physically possible robots; the prior is the robot with its given parameters."""

    name: ClassVar[str] = "feasible"
    title: ClassVar[str] = "physically consistent weighted least squares"
    use: ClassVar[str] = "the result must be a robot that can exist (the default)"
    references: ClassVar[tuple[str, ...]] = ("LeeWensingPark2020", "Izaguirre1992")

    prior_weight: float = 1.0
    """Weight of the prior, an inverse variance: with 1 its standard deviations are 100 % of its parameters, with 100
    they are 10 %."""
    margin: float = 1e-4
    """Smallest eigenvalue of a body's pseudo-inertia relative to its prior's."""
    bounds: Bounds = field(default_factory=Bounds)
    """What the user knows of masses, centres of mass and whole bodies."""

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
            posterior_estimate(equations, data, factor, solution.prior, equations.grouping @ solution.theta),
            standard=solution.theta[: len(equations.base.layout)],  # the terms besides the robot's own stand behind
            findings=(*data.findings, *solution.findings),
            at_bound=(*solution.at_bound, *solution.given_bounds),
            given_bounds=solution.given_bounds,
            extras={"prior_weight": self.prior_weight},
        )


def noise_factor(equations: Factors, data: Estimate) -> Factor:
    """Weight all equations by the inverse variance of independent samples.

    The autocorrelation factor is part of it, so that samples correlated in time do not outweigh the prior.
    """
    return equations.information.weight(1.0 / (data.noise_std**2 * data.inflation))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeasibleSolution:
    """Solution of the cone program: the standard parameters of a possible robot."""

    theta: Floats
    """(p + k,) standard parameters, then the k terms besides the robot's own."""
    at_bound: tuple[str, ...]
    """Names of bodies and parameters that lie on a physical constraint."""
    given_bounds: tuple[str, ...]
    """Names of the user's bounds that are active."""
    findings: tuple[Finding, ...]
    """What had to be changed to make the prior possible."""
    prior: Prior
    """The prior, and the equality constraints."""


def feasible_parameters(equations: Factors, factor: Factor, settings: FeasibleWLS) -> FeasibleSolution:
    """Solve the cone program and check the answer.

    Args:
        equations: The equations.
        factor: Their weighted triangle.
        settings: Weight, margin and bounds.

    Raises:
        EstimationError: No answer passes the check, or bounds contradict one another.
    """
    robot = equations.robot
    bodies = robot.dof
    coordinates = PriorCoordinates.of(equations, factor.scale[equations.base.rank :])
    from_scaled = coordinates.from_scaled
    names = (*equations.base.layout.names, *(term.name for term in equations.terms))
    passivity = Passivity.of(robot.joint_names, all_terms(equations))
    bounds = settings.bounds.constraints(robot)  # on standard parameters, and on the unknowns y:
    scaled_bounds = [replace(bound, rows=bound.rows @ from_scaled[: bound.rows.shape[1]]) for bound in bounds]
    least = settings.margin * svec(np.eye(4))
    minus = -np.eye(len(from_scaled))  # constraints are about side - rows @ y, here y - least
    program = ConeProgram(
        matrix=factor.R @ equations.grouping @ from_scaled,
        target=factor.z,
        centre=coordinates.centre,
        pull=settings.prior_weight * coordinates.pull,
        constraints=(
            *scaled_bounds,
            *(ConeCondition("matrix", minus[10 * j : 10 * j + 10], -least) for j in range(bodies)),
            *passivity.constraints(np.diagonal(from_scaled)[10 * bodies :], 10 * bodies),
        ),
    )
    y = solve_cone_program(program)  # ten numbers for each body, then the parameters of the terms over their sizes
    signs = [10 * bodies + k for k in passivity.nonnegative]
    at_bound = [
        body.joint.child
        for j, body in enumerate(robot.bodies)
        if eigvalsh(unsvec(y[10 * j : 10 * j + 10]))[0] < settings.margin + AT_BOUND
    ]
    at_bound += [names[k] for k in signs if y[k] < AT_BOUND**2]
    y[signs] = np.maximum(y[signs], 0.0)  # the solver ends up to its tolerance below zero
    equalities = [bound for bound in scaled_bounds if bound.kind == "equal"]
    prior = Prior(
        to_base=equations.grouping @ from_scaled,
        centre=coordinates.centre,
        pull=program.pull,
        equal=np.vstack([np.zeros((0, y.size)), *(bound.rows for bound in equalities)]),
        value=np.concatenate([np.zeros(0), *(bound.side for bound in equalities)]),
    )
    theta = from_scaled @ y
    return FeasibleSolution(
        theta=theta,
        at_bound=tuple(at_bound),
        given_bounds=tuple(bound.name for bound in bounds if _is_active(bound, theta[: len(equations.base.layout)])),
        findings=coordinates.findings,
        prior=prior,
    )


def _is_active(bound: ConeCondition, theta: Floats) -> bool:
    """Whether standard parameters lie on the edge of an inequality."""
    size = np.abs(bound.rows) @ np.abs(theta) + np.abs(bound.side)
    return bound.kind == "at most" and bool(np.any(bound.side - bound.rows @ theta <= ACCEPTED * size))
