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
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.least_squares import least_squares_estimate, refined_weights
from dynid.estimation.problem import Problem
from dynid.estimation.pseudo_inertia import WhitenedBody, svec, unsvec
from dynid.information import Factor, Information
from dynid.robot.model import Robot

__all__ = ["FeasibleWLS", "feasible_parameters"]

Floats = NDArray[np.float64]
IDENTITY = svec(np.eye(4))
WEIGHTS = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Prior weights that cross-validation tries, in units of the torque's noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeasibleWLS(Estimator):
    """Weighted least squares over physically possible robots, drawn towards the robot's own parameters."""

    prior_weight: float | None = None
    """How strongly the prior draws: 1 trusts it to 100 % of itself, 100 to 10 %. None chooses by cross-validation."""
    margin: float = 1e-4
    """Smallest eigenvalue of a body's pseudo-inertia relative to its prior's."""
    bounds: Bounds = field(default_factory=Bounds)
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
            weight, notes = self._cross_validated(problem, scaled)
        factor = problem.information.weight(scaled)
        solution = feasible_parameters(problem, factor, weight, self)
        return replace(
            plain,
            values=problem.base.project(solution.theta),
            standard=solution.theta,
            notes=(*plain.notes, *solution.notes, *notes),
            at_bound=solution.at_bound,
            extras={"prior_weight": weight, "solver_gap": solution.gap},
        )

    def _cross_validated(self, problem: Problem, weights: Floats) -> tuple[float, tuple[str, ...]]:
        """The strongest prior whose error on left-out blocks is within 1 % of the best, over three folds."""
        segments = problem.information.segments
        if len(segments) < 3:
            return 1.0, ("too few blocks of time to choose the prior's weight by cross-validation: 1 was taken",)
        folds = [segments[start::3] for start in range(3)]
        errors = [
            sum(self._left_out_error(problem, problem.information, weights, weight, fold) for fold in folds)
            for weight in WEIGHTS
        ]
        good = [weight for weight, error in zip(WEIGHTS, errors, strict=True) if error <= 1.01 * min(errors)]
        return max(good), (f"prior weight {max(good):g} by cross-validation over {len(segments)} blocks",)

    def _left_out_error(
        self, problem: Problem, information: Information, weights: Floats, weight: float, fold: tuple[int, ...]
    ) -> float:
        solution = feasible_parameters(problem, information.without(*fold).weight(weights), weight, self)
        squares = information.only(*fold).per_joint_residual(problem.base.project(solution.theta))
        return float((squares.sum(axis=0) * weights).sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeasibleSolution:
    """Standard parameters of a possible robot."""

    theta: Floats
    """(p,)"""
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
    coordinates = _Coordinates.of(problem.robot)
    matrix = factor.R @ problem.base.grouping @ coordinates.from_scaled
    bodies = problem.robot.dof
    program = ConeProgram(
        matrix=matrix,
        target=factor.z,
        centre=coordinates.centre,
        pull=weight * coordinates.pull,
        bodies=bodies,
        margin=settings.margin,
        nonnegative=coordinates.nonnegative,
        **settings.bounds.rows(problem.robot, coordinates.from_scaled),
    )
    y, gap = solve_cone_program(program)
    held = [
        body.joint.child
        for j, body in enumerate(problem.robot.bodies)
        if _smallest(y, j) < settings.margin + 1e-3 * (1.0 - settings.margin)
    ]
    names = problem.base.layout.names
    held += [names[k] for k in coordinates.nonnegative if y[k] < 1e-6]
    if any(_smallest(y, j) < 0.5 * settings.margin - 1e-9 for j in range(bodies)):
        raise EstimationError("the solver's answer contains an impossible body", remedy="Weaken bounds, or the margin.")
    y[list(coordinates.nonnegative)] = np.maximum(y[list(coordinates.nonnegative)], 0.0)
    return FeasibleSolution(theta=coordinates.from_scaled @ y, at_bound=tuple(held), notes=coordinates.notes, gap=gap)


def _smallest(y: Floats, body: int) -> float:
    return float(np.linalg.eigvalsh(unsvec(y[10 * body : 10 * body + 10]))[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Coordinates:
    """Scaled unknowns y: svec of every body's whitened pseudo-inertia, then joint-model parameters over their size."""

    from_scaled: Floats
    """(p, p) standard parameters = from_scaled @ y"""
    centre: Floats
    """(p,) the prior's y"""
    pull: Floats
    """(p,) how strongly each y is drawn to the centre, relative to the weight"""
    nonnegative: tuple[int, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, robot: Robot) -> _Coordinates:
        bodies = [WhitenedBody.around(body.inertia, body.joint.child) for body in robot.bodies]
        models = robot.parameter_vector[10 * robot.dof :]
        count = 10 * len(bodies) + models.size
        from_scaled = np.zeros((count, count))
        for j, body in enumerate(bodies):
            from_scaled[10 * j : 10 * j + 10, 10 * j : 10 * j + 10] = body.from_whitened
        size = np.where(models != 0.0, np.abs(models), 1.0)
        from_scaled[range(10 * len(bodies), count), range(10 * len(bodies), count)] = size
        # unknown friction is left to the data; a trace of pull keeps the program strictly convex
        pull = np.concatenate([np.ones(10 * len(bodies)), np.where(models != 0.0, 1e-2, 1e-6)])
        return cls(
            from_scaled,
            np.concatenate([np.tile(IDENTITY, len(bodies)), models / size]),
            pull,
            tuple(10 * len(bodies) + k for k, sign in enumerate(_signs(robot)) if sign),
            tuple(body.note for body in bodies if body.note),
        )


def _signs(robot: Robot) -> list[bool]:
    """Whether each joint-model parameter must not be negative."""
    models = [flag for joint in robot.moving_joints for model in joint.models for flag in model.physical]
    return models + [flag for coupling in robot.couplings for flag in coupling.physical]
