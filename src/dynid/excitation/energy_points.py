"""Optimum points for the energy model: positions and velocities whose energies reveal the base parameters best.

This is the method of [GautierKhalil1992] sections 2 to 4. Row i of the observation matrix is the difference of the
energy regressor between points i and i + 1; position and velocity limits become a change of variables, so that the
search has no constraints. The paper searched without derivatives of the criterion; here they are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from dynid.arrays import Floats
from dynid.checks import as_row, as_whole
from dynid.decompositions import condition_number
from dynid.dynamics.energy import energy_rows
from dynid.errors import ArgumentError
from dynid.excitation.base import Recorded
from dynid.excitation.criteria import Criterion
from dynid.excitation.search import MEMORY
from dynid.excitation.trajectories.quintic import QuinticTrajectory
from dynid.excitation.trajectories.trajectory import Motion
from dynid.parameters.base import base_parameters
from dynid.robot.model import Robot

BALANCED = Criterion({"condition": 1.0, "equilibrium": 0.01})
"""The cost of [GautierKhalil1992] eq. (18), which states no weights: S of some hundred counts like Cond."""
_CLUSTER = 0.1
"""Spread of the positions of a random start, and largest size of random moves, in rad of the free variables.

Experiment: chosen so that papers/gautier1992_points.py reaches the figures of [GautierKhalil1992].
"""
_BALANCE = 0.15
"""Exponent of S beside Cond in the product that leads to their weighted sum.

Experiment: on the paper's 3R arm, r = 30, the product leads to sums of 7 where the sum alone stalls at 16 to 48.
"""


class EnergyPoints:
    """The energy model of a robot, and the box in which its points lie."""

    def __init__(
        self,
        robot: Robot,
        *,
        lower: ArrayLike,
        upper: ArrayLike,
        velocity: ArrayLike,
    ) -> None:
        """Record and compile the energy regressor of the base parameters of the links.

        Args:
            robot: The robot; its terms and couplings are left out: the energy model is that of the links.
            lower: Lowest positions, scalar or (n,) [rad or m].
            upper: Highest positions, scalar or (n,) [rad or m].
            velocity: Largest absolute velocities, scalar or (n,) [rad/s or m/s].
        """
        n = robot.dof
        self.lower, self.upper, self.velocity = (
            as_row(name, x, n, same=True) for name, x in (("lower", lower), ("upper", upper), ("velocity", velocity))
        )
        if not np.all((self.lower < self.upper) & (self.velocity > 0)):
            raise ArgumentError("points need ranges of position and positive velocities")
        links = robot.with_terms().with_couplings()
        self.columns = base_parameters(links).columns
        self._rows = Recorded(lambda q, dq: energy_rows(links, q, dq)[list(self.columns)], n, "q", "dq")

    def with_box_share(self, share: float, centre: ArrayLike) -> EnergyPoints:
        """The same model in a smaller box: positions about a centre (n,) and velocities, ``share`` times as large."""
        other, middle = copy(self), np.asarray(centre, dtype=float)
        other.lower = middle + share * (self.lower - middle)
        other.upper = middle + share * (self.upper - middle)
        other.velocity = share * self.velocity
        return other

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.lower)

    def states(self, x: Floats) -> tuple[Floats, Floats]:
        """Positions and velocities (r + 1, n) of free variables x (r + 1, 2, n): [GautierKhalil1992] section 4.2."""
        q = self.lower + (self.upper - self.lower) * np.sin(x[:, 0]) ** 2
        return q, self.velocity * np.sin(x[:, 1])

    def variables(self, q: Floats, dq: Floats) -> Floats:
        """Free variables (r + 1, 2, n) of points within the limits."""
        share = np.clip((q - self.lower) / (self.upper - self.lower), 0.0, 1.0)
        return np.stack([np.arcsin(np.sqrt(share)), np.arcsin(np.clip(dq / self.velocity, -1.0, 1.0))], axis=1)

    def matrix(self, q: Floats, dq: Floats) -> Floats:
        """Observation matrix W (r, b) of a sequence of r + 1 points."""
        return np.diff(self._rows(Motion.at(q, dq)), axis=0)  # [GautierKhalil1992] eq. (9)

    def value_and_gradient(self, x: Floats, criterion: Criterion) -> tuple[float, Floats]:
        """Criterion of the points' matrix, and its gradient with respect to the free variables, like x."""
        q, dq = self.states(x)
        value, dW = criterion.value_and_gradient(self.matrix(q, dq))
        rates = self._rows.pullback(Motion.at(q, dq), -np.diff(dW, axis=0, prepend=0.0, append=0.0))
        gradient = np.empty_like(x)
        gradient[:, 0] = rates.q * (self.upper - self.lower) * np.sin(2.0 * x[:, 0])
        gradient[:, 1] = rates.dq * self.velocity * np.cos(x[:, 1])
        return value, gradient

    def random(self, count: int, rng: np.random.Generator) -> PointSequence:
        """``count`` + 1 points drawn uniformly within the limits."""
        q = rng.uniform(self.lower, self.upper, size=(count + 1, self.dof))
        return self.sequence(q, rng.uniform(-self.velocity, self.velocity, size=(count + 1, self.dof)))

    def sequence(self, q: Floats, dq: Floats) -> PointSequence:
        """Points with their observation matrix."""
        return PointSequence(q=np.array(q), dq=np.array(dq), W=self.matrix(q, dq))


@dataclass(frozen=True, kw_only=True, eq=False)
class PointSequence:
    """A sequence of points with its observation matrix."""

    q: Floats
    """(r + 1, n) positions [rad or m]."""
    dq: Floats
    """(r + 1, n) velocities [rad/s or m/s]."""
    W: Floats
    """(r, b) energy differences between consecutive points, per unit of each parameter [J per unit]."""

    @property
    def condition_number(self) -> float:
        """Ratio of the extreme singular values of W."""
        return float(condition_number(self.W))  # [GautierKhalil1992] eq. (16)

    @property
    def equilibrium(self) -> float:
        """Ratio of the extreme absolute entries of W."""
        return Criterion("equilibrium").value(self.W)  # [GautierKhalil1992] eq. (19)

    def predicted_deviation(self, noise: float) -> Floats:
        """(b,) standard deviations of the parameters for energies with noise of that standard deviation [J]."""
        return noise * np.sqrt(np.diag(np.linalg.inv(self.W.T @ self.W)))

    def trajectory(
        self, *, velocity: ArrayLike, acceleration: ArrayLike, rest: ArrayLike | None = None
    ) -> QuinticTrajectory:
        """Fifth-order segments through the points, from rest to rest, in the shortest time within the limits.

        Between the points positions may leave the range of the points; see `QuinticTrajectory.extremes`.

        Args:
            velocity: Velocity limits, scalar or (n,) [rad/s or m/s].
            acceleration: Acceleration limits, scalar or (n,) [rad/s^2 or m/s^2].
            rest: (n,) position at the start and at the end [rad or m]; the middle of the points by default.
        """
        still = np.asarray(0.5 * (self.q.min(axis=0) + self.q.max(axis=0)) if rest is None else rest, dtype=float)
        zero = np.zeros_like(still)
        q, dq = np.vstack([still, self.q, still]), np.vstack([zero, self.dq, zero])
        return QuinticTrajectory.through(q, dq, velocity=velocity, acceleration=acceleration)


@dataclass(frozen=True, kw_only=True, eq=False)
class PointDesign:
    """The points that a designed motion passes, apart from its ends at rest."""

    sequence: PointSequence
    """The points."""
    box_share: float
    """Share of the position ranges and velocity limits that the points use."""
    acceleration_share: float
    """Share of the acceleration limits that the segments use."""

    def __str__(self) -> str:
        """One line about the points."""
        return (
            f"{len(self.sequence.q)} points in {100 * self.box_share:g} % of the ranges and speeds, "
            f"{len(self.sequence.W)} energy differences: Cond(W) {self.sequence.condition_number:.4g}, "
            f"equilibrium S {self.sequence.equilibrium:.4g}"
        )


def optimise_points(
    model: EnergyPoints,
    count: int,
    *,
    criterion: Any = "condition",
    seed: int = 0,
    starts: int = 4,
    iterations: int = 400,
    initial: PointSequence | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> PointSequence:
    """Find ``count`` + 1 points that minimise a criterion of their ``count`` energy differences.

    Each start draws points clustered in position, because gravity terms are large and differences of nearby points are
    not, and passes through the criterion's smooth stages. A cost of Cond and S is reached by way of Cond alone and of
    their product: the sum stalls where a single entry of W is almost zero.

    Args:
        model: The energy model and its limits.
        count: Number r of energy differences, at least the number of parameters.
        criterion: The `Criterion` to minimise, or what its terms may be.
        seed: Seed of the random starts.
        starts: Number of random starts, or of moves from the best points so far where ``initial`` is given; the best
            result counts. One start in two ends in a poor local optimum where equations are few.
        iterations: Steps of L-BFGS per stage.
        initial: Points to improve instead of random starts; they are moved a little before each descent, away from
            corners where the criterion has no gradient. The result is not worse than they are.
        progress: Called after every start with its number, from 1, and the lowest value so far.

    Raises:
        ArgumentError: There are too few differences, or no start or step, the criterion is none, or the initial points
            are not ``count`` + 1.

    Example:
        >>> model = dynid.excitation.EnergyPoints(pendulum, lower=-0.8, upper=0.8, velocity=1.0)
        >>> points = dynid.excitation.optimise_points(model, 5, starts=1, iterations=5)
        >>> len(points.q)
        6
    """
    if as_whole("count", count, least=1) < len(model.columns):
        raise ArgumentError(f"{count} differences cannot reveal {len(model.columns)} parameters", remedy="Use more.")
    as_whole("starts", starts, least=1)
    as_whole("iterations", iterations, least=1)
    if initial is not None and len(initial.q) != count + 1:
        raise ArgumentError(
            f"initial has {len(initial.q)} points, and {count} differences need {count + 1}",
            remedy=f"Ask for {len(initial.q) - 1} differences.",
        )
    *ways, criterion = _leading_criteria(Criterion.of(criterion))
    rng = np.random.default_rng(seed)
    first = None if initial is None else model.variables(initial.q, initial.dq)
    best = np.empty(0) if first is None else first
    lowest = np.inf if first is None else criterion.value(model.matrix(*model.states(best)))
    for number in range(starts):
        x = _draw_clustered(count, model.dof, rng) if initial is None else _move_randomly(best, rng)
        for stage in (*ways, criterion):
            x = _descend(model, x, stage, iterations)
        value = criterion.value(model.matrix(*model.states(x)))
        if value < lowest or not best.size:
            best, lowest = x, value
        if progress is not None:
            progress(number + 1, lowest)
    return model.sequence(*model.states(best))


def _leading_criteria(cost: Criterion) -> Sequence[Criterion]:
    """Criteria to minimise one after the other, ending with the cost: Cond, then Cond and S as a product, then a sum.

    The sum of Cond and S is dominated by S far from its minimum, where a single entry of W is almost zero; the product
    weighs relative changes instead.
    """
    whole = {name: 1.0 for name, _ in cost.terms if name != "equilibrium"}
    if cost.product or not cost.positive or not whole or len(whole) == len(cost.terms):
        return (cost,)
    return Criterion(whole, product=True), Criterion({**whole, "equilibrium": _BALANCE}, product=True), cost


def _draw_clustered(count: int, dof: int, rng: np.random.Generator) -> Floats:
    """Random free variables (r + 1, 2, n): any velocities, positions close to one random position."""
    x = rng.normal(size=(count + 1, 2, dof))
    x[:, 0] = rng.uniform(0.0, 0.5 * np.pi, size=dof) + _CLUSTER * x[:, 0]
    return x


def _move_randomly(x: Floats, rng: np.random.Generator) -> Floats:
    """Points moved by a random size, because the distance to the next optimum is unknown."""
    return np.asarray(x + _CLUSTER * 10.0 ** rng.uniform(-1.0, 0.0) * rng.normal(size=x.shape))


def _descend(model: EnergyPoints, x: Floats, criterion: Criterion, iterations: int) -> Floats:
    """Minimise each stage in turn, by its logarithm where it is positive: that is flatter where it is large."""
    best, lowest = x, criterion.value(model.matrix(*model.states(x)))
    for stage in criterion.stages():

        def objective(flat: Floats, stage: Criterion = stage) -> tuple[float, Floats]:
            value, gradient = model.value_and_gradient(flat.reshape(-1, 2, model.dof), stage)
            return stage.flatten(value, gradient.ravel(), len(model.columns))

        result = minimize(
            objective, x.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": iterations, "maxcor": MEMORY}
        )
        x = result.x.reshape(x.shape)
        value = criterion.value(model.matrix(*model.states(x)))
        if value < lowest:
            best, lowest = x, value
    return best
