"""Physically consistent estimation: every body possible, friction not negative, the prior where data say nothing.

    minimise    |R K x - z|^2  +  weight * sum_j |svec(Q_j) - svec(1)|^2
    subject to  Q_j >= margin * 1,   friction and rotor inertia >= 0,   bounds

over all standard parameters x, with the triangle R of the weighted equations, the grouping matrix K, and each body's
pseudo-inertia Q_j whitened by the prior's. Solved by Clarabel in residual form; the answer is checked here, whatever
the solver says of itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.bounds import Bounds
from dynid.estimation.conic import ConeProgram, solve_cone_program
from dynid.estimation.cross_validation import cross_validated_weight
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.log_cholesky import solve_by_log_cholesky
from dynid.estimation.prior import PriorCoordinates
from dynid.estimation.problem import Problem
from dynid.estimation.pseudo_inertia import unsvec
from dynid.information import Factor

__all__ = ["FeasibleWLS", "feasible_parameters"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeasibleWLS(Estimator):
    """Weighted least squares over physically possible robots, drawn towards the robot's own parameters."""

    prior_weight: float | None = None
    """How strongly the prior draws: 1 trusts it to 100 % of itself, 100 to 10 %. None chooses by cross-validation."""
    margin: float = 1e-4
    """Smallest eigenvalue of a body's pseudo-inertia relative to its prior's."""
    bounds: Bounds = field(default_factory=Bounds)
    signs: bool | None = None
    """Whether friction and rotor inertia must not be negative; None: unless features share the joints' torque."""
    rounds: int = 3
    """How often the joints' weights are refined."""

    def __post_init__(self) -> None:
        """Refuse settings without meaning."""
        if not 0.0 <= self.margin < 1.0 or (self.prior_weight is not None and not self.prior_weight > 0.0):
            raise ArgumentError(f"margin must be in [0, 1) and the prior's weight positive, not {self}")

    def solve(self, problem: Problem) -> Estimate:
        """Estimate all standard parameters; the base parameters are their combinations."""
        weights = refined_weights(problem, self.rounds)
        plain = least_squares_estimate(problem, weights, "physically consistent weighted least squares")
        scaled = weights / plain.inflation  # so that correlated samples do not outweigh the prior
        weight, notes = self.prior_weight, tuple[str, ...]()
        if weight is None:
            weight, notes = cross_validated_weight(problem, scaled)
        factor = problem.information.weight(scaled)
        solution = feasible_parameters(problem, factor, weight, self)
        return replace(
            plain,
            values=problem.grouping @ solution.theta,
            standard=solution.theta[: len(problem.base.layout)],
            notes=(*plain.notes, *solution.notes, *notes),
            at_bound=solution.at_bound,
            extras={"prior_weight": weight, "solver_gap": solution.gap},
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeasibleSolution:
    """Standard parameters of a possible robot."""

    theta: Floats
    """(p + k,) standard parameters, then features"""
    at_bound: tuple[str, ...]
    """Bodies whose pseudo-inertia, and parameters whose sign, is held by a constraint."""
    notes: tuple[str, ...]
    gap: float
    """Relative gap between primal and dual objective, computed here."""


def feasible_parameters(problem: Problem, factor: Factor, weight: float, settings: FeasibleWLS) -> FeasibleSolution:
    """Solve the cone program for one prior weight and check the answer.

    Raises:
        EstimationError: No answer passes the check, or bounds contradict one another.
    """
    coordinates = PriorCoordinates.of(problem.robot, factor.scale[problem.base.rank :])
    matrix = factor.R @ problem.grouping @ coordinates.from_scaled
    bodies = problem.robot.dof
    hold_signs = not problem.features if settings.signs is None else settings.signs
    nonnegative = coordinates.nonnegative if hold_signs else ()
    program = ConeProgram(
        matrix=matrix,
        target=factor.z,
        centre=coordinates.centre,
        pull=weight * coordinates.pull,
        bodies=bodies,
        margin=settings.margin,
        nonnegative=nonnegative,
        **settings.bounds.rows(problem.robot, coordinates.from_scaled),
    )
    y, gap, notes = _solved(program)
    held = [
        body.joint.child
        for j, body in enumerate(problem.robot.bodies)
        if _smallest(y, j) < settings.margin + 1e-3 * (1.0 - settings.margin)
    ]
    names = problem.base.layout.names
    held += [names[k] for k in nonnegative if y[k] < 1e-6]
    if any(_smallest(y, j) < 0.5 * settings.margin - 1e-9 for j in range(bodies)):
        raise EstimationError("the solver's answer contains an impossible body", remedy="Weaken bounds, or the margin.")
    y[list(nonnegative)] = np.maximum(y[list(nonnegative)], 0.0)
    return FeasibleSolution(
        theta=coordinates.from_scaled @ y, at_bound=tuple(held), notes=(*coordinates.notes, *notes), gap=gap
    )


def _solved(program: ConeProgram) -> tuple[Floats, float, tuple[str, ...]]:
    """The minimiser, its gap, and a note where the cone solver had to be replaced."""
    answer = solve_cone_program(program)
    if answer is not None:
        return (*answer, ())
    return solve_by_log_cholesky(program), float("nan"), ("the cone solver failed: the log-Cholesky form was solved",)


def _smallest(y: Floats, body: int) -> float:
    return float(np.linalg.eigvalsh(unsvec(y[10 * body : 10 * body + 10]))[0])
