"""Optimum points for the energy model: positions and velocities whose energies reveal the base parameters best.

This is the method of [GautierKhalil1992] sections 2 to 4. Row i of the observation matrix is the difference of the
energy regressor between points i and i + 1; position and velocity limits become a change of variables, so that the
search has no constraints. The paper searched without derivatives of the criterion; here they are exact.

Symbols: n joints, r energy differences between r + 1 points, b base parameters; W (r, b) is the observation matrix,
Cond its condition number, S (the equilibrium) the ratio of its largest to its smallest absolute entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from dynid.array_types import Floats
from dynid.checks import as_row, as_whole
from dynid.decompositions import condition_number
from dynid.dynamics.energy import energy_rows
from dynid.errors import ArgumentError
from dynid.excitation.base import Recorded
from dynid.excitation.criteria import Criterion
from dynid.excitation.search import LBFGS_MEMORY
from dynid.excitation.trajectories.quintic import QuinticTrajectory
from dynid.excitation.trajectories.trajectory import PlannedMotion
from dynid.identifiability.base import base_parameters
from dynid.robot.model import Robot

BALANCED = Criterion({"condition": 1.0, "equilibrium": 0.01})
"""The cost of [GautierKhalil1992] eq. (18), which states no weights. Convention: usual S and Cond count alike."""
_POSITION_SPREAD = 0.1
"""Standard deviation of the positions of a random start, and the largest of random moves, in free variables [rad].

Experiment: chosen so that papers/gautier1992_points.py reaches the figures of [GautierKhalil1992].
"""
_EQUILIBRIUM_EXPONENT = 0.15
"""Exponent of S in the product with Cond, which is minimised before their weighted sum.

Experiment: on the paper's 3R arm, r = 30, the product leads to sums of 7; without it the search stalls at 16 to 48.
"""


class EnergyPoints:
    """The energy model of a robot, and the ranges of position and velocity in which its points lie."""

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
            robot: The robot; its terms and couplings are left out, because the energy model is that of the links.
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
        """Copy the model with ranges ``share`` times as large, positions about a centre (n,) [rad or m]."""
        other = copy(self)
        middle = np.asarray(centre, dtype=float)
        other.lower = middle + share * (self.lower - middle)
        other.upper = middle + share * (self.upper - middle)
        other.velocity = share * self.velocity
        return other

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.lower)

    def states(self, x: Floats) -> tuple[Floats, Floats]:
        """Map variables x (r + 1, 2, n) to positions and velocities (r + 1, n): [GautierKhalil1992] section 4.2."""
        q = self.lower + (self.upper - self.lower) * np.sin(x[:, 0]) ** 2
        return q, self.velocity * np.sin(x[:, 1])

    def variables(self, q: Floats, dq: Floats) -> Floats:
        """Map points within the limits to free variables (r + 1, 2, n), the inverse of `states`."""
        share = np.clip((q - self.lower) / (self.upper - self.lower), 0.0, 1.0)
        return np.stack([np.arcsin(np.sqrt(share)), np.arcsin(np.clip(dq / self.velocity, -1.0, 1.0))], axis=1)

    def matrix(self, q: Floats, dq: Floats) -> Floats:
        """Compute the observation matrix W (r, b) of a sequence of r + 1 points."""
        return np.diff(self._rows(PlannedMotion.at(q, dq)), axis=0)  # [GautierKhalil1992] eq. (9)

    def value_and_gradient(self, x: Floats, criterion: Criterion) -> tuple[float, Floats]:
        """Evaluate a criterion at free variables x (r + 1, 2, n), and its gradient (r + 1, 2, n)."""
        q, dq = self.states(x)
        value, dW = criterion.value_and_gradient(self.matrix(q, dq))
        # a point is in two differences, the last of one and the first of the next
        rates = self._rows.pullback(PlannedMotion.at(q, dq), -np.diff(dW, axis=0, prepend=0.0, append=0.0))
        gradient = np.empty_like(x)
        gradient[:, 0] = rates.q * (self.upper - self.lower) * np.sin(2.0 * x[:, 0])
        gradient[:, 1] = rates.dq * self.velocity * np.cos(x[:, 1])
        return value, gradient

    def random(self, count: int, rng: np.random.Generator) -> PointSequence:
        """Draw ``count`` + 1 points uniformly within the limits."""
        q = rng.uniform(self.lower, self.upper, size=(count + 1, self.dof))
        return self.sequence(q, rng.uniform(-self.velocity, self.velocity, size=(count + 1, self.dof)))

    def sequence(self, q: Floats, dq: Floats) -> PointSequence:
        """Put points together with their observation matrix."""
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
        """Predict standard deviations (b,) of the parameters from the standard deviation ``noise`` of energies [J]."""
        return noise * np.sqrt(np.diag(np.linalg.inv(self.W.T @ self.W)))

    def trajectory(
        self, *, velocity: ArrayLike, acceleration: ArrayLike, rest: ArrayLike | None = None
    ) -> QuinticTrajectory:
        """Join the points by fifth-order segments, from rest to rest, in the shortest time within the limits.

        Between the points positions may leave the range of the points; see `QuinticTrajectory.extremes`.

        Args:
            velocity: Velocity limits, scalar or (n,) [rad/s or m/s].
            acceleration: Acceleration limits, scalar or (n,) [rad/s^2 or m/s^2].
            rest: (n,) position at the start and at the end [rad or m]; the middle of the points by default.
        """
        still = np.asarray(0.5 * (self.q.min(axis=0) + self.q.max(axis=0)) if rest is None else rest, dtype=float)
        zero = np.zeros_like(still)
        q = np.vstack([still, self.q, still])
        dq = np.vstack([zero, self.dq, zero])
        return QuinticTrajectory.through(q, dq, velocity=velocity, acceleration=acceleration)


@dataclass(frozen=True, kw_only=True, eq=False)
class PointDesign:
    """The points that a designed motion passes between its ends at rest, and how much of the limits it uses."""

    sequence: PointSequence
    """The points."""
    box_share: float
    """Share of the position ranges and velocity limits that the points use."""
    acceleration_share: float
    """Share of the acceleration limits that the segments use."""

    def __str__(self) -> str:
        """Describe the points in one line."""
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
    not, and passes through the criterion's smooth stages. Before a weighted sum of Cond and S, Cond alone and their
    product are minimised: the sum stalls where a single entry of W is almost zero.

    Args:
        model: The energy model and its limits.
        count: Number r of energy differences, at least the number of parameters.
        criterion: The `Criterion` to minimise, or the value of its field ``terms``.
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
    *earlier_criteria, criterion = _leading_criteria(Criterion.of(criterion))
    rng = np.random.default_rng(seed)
    first = None if initial is None else model.variables(initial.q, initial.dq)
    best = np.empty(0) if first is None else first
    lowest = np.inf if first is None else criterion.value(model.matrix(*model.states(best)))
    for number in range(starts):
        x = _draw_clustered(count, model.dof, rng) if initial is None else _move_randomly(best, rng)
        for each in (*earlier_criteria, criterion):
            x = _descend(model, x, each, iterations)
        value = criterion.value(model.matrix(*model.states(x)))
        if value < lowest or not best.size:
            best, lowest = x, value
        if progress is not None:
            progress(number + 1, lowest)
    return model.sequence(*model.states(best))


def _leading_criteria(cost: Criterion) -> Sequence[Criterion]:
    """List the criteria to minimise one after the other: Cond, then the product of Cond and S, then the cost itself.

    The sum of Cond and S is dominated by S far from its minimum, where a single entry of W is almost zero; the product
    weighs relative changes instead. A cost that is not such a sum is minimised at once.
    """
    whole = {name: 1.0 for name, _ in cost.terms if name != "equilibrium"}
    if cost.product or not cost.positive or not whole or len(whole) == len(cost.terms):
        return (cost,)
    return (
        Criterion(whole, product=True),
        Criterion({**whole, "equilibrium": _EQUILIBRIUM_EXPONENT}, product=True),
        cost,
    )


def _draw_clustered(count: int, dof: int, rng: np.random.Generator) -> Floats:
    """Draw free variables (r + 1, 2, n): any velocities, positions close to one random position."""
    x = rng.normal(size=(count + 1, 2, dof))
    x[:, 0] = rng.uniform(0.0, 0.5 * np.pi, size=dof) + _POSITION_SPREAD * x[:, 0]
    return x


def _move_randomly(x: Floats, rng: np.random.Generator) -> Floats:
    """Move free variables by steps of one random size, because the distance to the next optimum is unknown."""
    return np.asarray(x + _POSITION_SPREAD * 10.0 ** rng.uniform(-1.0, 0.0) * rng.normal(size=x.shape))


def _descend(model: EnergyPoints, x: Floats, criterion: Criterion, iterations: int) -> Floats:
    """Minimise the smooth stages of a criterion in turn from x; returns the variables where it was lowest."""
    best = x
    lowest = criterion.value(model.matrix(*model.states(x)))
    for stage in criterion.stages():

        def search_function(flat: Floats, stage: Criterion = stage) -> tuple[float, Floats]:
            value, gradient = model.value_and_gradient(flat.reshape(-1, 2, model.dof), stage)
            return stage.objective(value, gradient.ravel(), len(model.columns))

        result = minimize(
            search_function,
            x.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": iterations, "maxcor": LBFGS_MEMORY},
        )
        x = result.x.reshape(x.shape)
        value = criterion.value(model.matrix(*model.states(x)))
        if value < lowest:
            best, lowest = x, value
    return best
