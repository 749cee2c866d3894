"""Optimum points joined by fifth-order segments that stay within all limits.

This is [GautierKhalil1992] section 5. Between two moving points a segment overshoots, so that points optimised up to
the limits can rarely be joined inside them. Where the motion passes a limit, the points get a smaller box of positions
and velocities, as section 5.2 of the paper asks, until the motion keeps all limits. The paper checks positions; here
every limit of the robot is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.checks import as_number, as_whole, check_kind
from dynid.errors import ArgumentError, ExcitationError
from dynid.excitation.base import Constraint
from dynid.excitation.constraints import Margin, build_constraints, measure_margins
from dynid.excitation.criteria import (
    ConditionNumber,
    Criterion,
    Equilibrium,
    WeightedCost,
    require_criterion,
)
from dynid.excitation.feasibility import rest_positions
from dynid.excitation.limits import MotionLimits
from dynid.excitation.points.energy_points import EnergyPoints, PointSequence, optimise_points
from dynid.excitation.trajectories.quintic import QuinticTrajectory
from dynid.robot.model import Robot

_BOXES = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
"""Shares of the ranges and velocities for the points, tried in this order. Convention."""
_ACCELERATIONS = (1.0, 0.7, 0.5, 0.35, 0.25)
"""Shares of the acceleration limits for the segments: a slower motion between the same points needs less torque and
jerk. Convention."""
_EQUILIBRIUM_WEIGHT = 0.01
"""Weight of S where Cond has weight 1; the paper states none. Derivation: S of some hundred then counts like Cond."""
_TOUCH = 1e-8
"""Relative reserve of the segments to the velocity and acceleration limits, against rounding. Convention."""
_PER_SEGMENT = 100
"""Samples of each segment at which limits are checked, besides the exact extrema. Convention."""
_BETWEEN_SAMPLES = 1e-3
"""Relative reserve to limits that are checked at samples only.

Derivation: a segment has at most two half-waves, so a peak lies at most 1 - cos(pi / 100) = 5e-4 above a sample.
"""
_EXACT = ("position", "velocity", "acceleration")
"""Limits whose extrema are among the checked times."""


def balanced_cost(condition: float = 1.0, equilibrium: float = _EQUILIBRIUM_WEIGHT) -> WeightedCost:
    """Make the cost of [GautierKhalil1992] eq. (18): ``lambda_1 Cond(W) + lambda_2 S``.

    Args:
        condition: Weight lambda_1 of the condition number, zero or larger.
        equilibrium: Weight lambda_2 of the equilibrium, zero or larger; the paper states no weights.

    Raises:
        ArgumentError: A weight is negative or not finite, or both are zero.

    Example:
        >>> type(dynid.excitation.balanced_cost()).__name__
        'WeightedCost'
    """
    return WeightedCost(((condition, ConditionNumber()), (equilibrium, Equilibrium())))


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSettings:
    """How hard the search for points works; it has no time limit, so that equal seeds give equal points."""

    starts: int = 4
    """Random starts in the first box."""
    iterations: int = 200
    """Steps of L-BFGS per stage of the criterion."""
    rate_hz: float = 100.0
    """Independent measurements per second of the recording, for the predicted accuracy [Hz]."""

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        as_whole("starts", self.starts, least=1)
        as_whole("iterations", self.iterations, least=1)
        as_number("rate_hz", self.rate_hz, above=0.0)


@dataclass(frozen=True, slots=True)
class PointStep:
    """Where a search for points stands."""

    box: int
    """Number of the box, from 0."""
    share: float
    """The finished share of the search if every box is needed, 0 to 1."""
    value: float
    """Lowest value of the present criterion."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PointDesign:
    """Optimum points and the motion through them."""

    points: PointSequence
    """The points that the motion passes, apart from its ends at rest."""
    trajectory: QuinticTrajectory
    """The motion, from rest to rest."""
    criterion: Criterion
    """The criterion that the points minimise."""
    box_share: float
    """Share of the position ranges and velocity limits that the points use."""
    acceleration_share: float
    """Share of the acceleration limits that the segments use."""
    margins: tuple[Margin, ...]
    """Closest approach of the motion to every limit."""

    @property
    def value(self) -> float:
        """The criterion's value for the points."""
        return self.criterion.value(self.points.W)

    def __str__(self) -> str:
        """One line about the points."""
        return (
            f"{len(self.points.q)} points in {100 * self.box_share:g} % of the ranges and speeds, "
            f"{len(self.points.W)} energy differences: Cond(W) {self.points.condition_number:.4g}, "
            f"equilibrium S {self.points.equilibrium:.4g}"
        )


def design_point_trajectory(
    robot: Robot,
    limits: MotionLimits,
    count: int,
    *,
    criterion: Criterion | None = None,
    seed: int = 0,
    settings: PointSettings | None = None,
    progress: Callable[[PointStep], None] | None = None,
) -> PointDesign:
    """Find optimum points and the motion through them in minimal time within all limits.

    Args:
        robot: The robot.
        limits: Limits that the motion keeps; positions, velocities and accelerations must be limited.
        count: Number r of energy differences; the motion passes r + 1 points.
        criterion: The number that the points minimise; `balanced_cost` by default.
        seed: Seed of the random starts; equal seeds give equal points.
        settings: Effort of the search.
        progress: Called after every start with the `PointStep` that was reached.

    Raises:
        ArgumentError: A limit is missing, or the differences are too few.
        ExcitationError: Even the smallest box leads to a motion that passes a limit; the message names the limits.

    Example:
        >>> few = dynid.excitation.PointSettings(starts=1, iterations=5)
        >>> design = dynid.excitation.design_point_trajectory(pendulum, swing, 5, settings=few)
        >>> design.points.q.shape
        (6, 1)
    """
    check_point_limits(limits)
    cost, chosen = require_criterion(criterion or balanced_cost()), settings or PointSettings()
    check_kind("settings", chosen, PointSettings)
    constraints = build_constraints(robot, limits)
    rest = _resting_position(constraints, limits, seed)
    velocity, acceleration = ((1.0 - _TOUCH) * bound for bound in (limits.velocity, limits.acceleration))
    model = EnergyPoints(robot, lower=limits.lower, upper=limits.upper, velocity=velocity)
    points: PointSequence | None = None
    margins: tuple[Margin, ...] = ()
    for number, share in enumerate(_BOXES):
        report = None if progress is None else _make_report(progress, number, chosen.starts)
        points = optimise_points(
            model.with_box_share(share, rest), count, criterion=cost, seed=seed,
            starts=1 if number else chosen.starts, iterations=chosen.iterations,
            initial=_shrink(points, rest, number), progress=report,
        )  # fmt: skip
        for slower in _ACCELERATIONS:
            path = points.trajectory(velocity=velocity, acceleration=slower * acceleration, rest=rest)
            margins = measure_margins(constraints, path.motion(path.check_times(_PER_SEGMENT)))
            passed = _passed_limits(margins)
            if not passed:
                return PointDesign(
                    points=points, trajectory=path, criterion=cost, box_share=share, acceleration_share=slower,
                    margins=margins,
                )  # fmt: skip
            if "position" in passed:  # longer segments overshoot more
                break
    places = [f"{limit} of {where}" for limit, names in _passed_limits(margins).items() for where in names]
    raise ExcitationError(
        f"the motion through points passes limits even in {100 * _BOXES[-1]:g} % of the box: {', '.join(places)}",
        remedy="Relax one of these limits; with a higher acceleration limit the segments overshoot less.",
    )


def check_point_limits(limits: MotionLimits) -> None:
    """Refuse limits under which points cannot be joined in minimal time.

    Raises:
        ArgumentError: A velocity or an acceleration is not limited.
    """
    for kind, bound in (("velocity", limits.velocity), ("acceleration", limits.acceleration)):
        free = [name for name, value in zip(limits.joint_names, bound, strict=True) if not np.isfinite(value)]
        if free:
            raise ArgumentError(
                f"joining points in minimal time needs a limit of {kind} for {', '.join(free)}",
                remedy="State it, for example --acceleration 5." if kind == "acceleration" else "State it.",
            )


def _passed_limits(margins: tuple[Margin, ...]) -> dict[str, list[str]]:
    """The limits that a motion passes, each with the joints or places concerned: once, whichever end is passed."""
    passed: dict[str, list[str]] = {}
    for margin in margins:
        if margin.relative < (0.0 if margin.limit in _EXACT else _BETWEEN_SAMPLES):
            places = passed.setdefault(margin.limit, [])
            places.extend([margin.where] if margin.where not in places else [])
    return passed


def _resting_position(constraints: tuple[Constraint, ...], limits: MotionLimits, seed: int) -> Floats:
    """The position (n,) in which the motion starts and ends, and about which the box shrinks: the middle if allowed."""
    middle = 0.5 * (limits.lower + limits.upper)
    still = QuinticTrajectory(q=np.array([middle, middle]), dq=np.zeros((2, len(middle))), durations=np.ones(1))
    if all(margin.relative > 0.0 for margin in measure_margins(constraints, still.motion([0.0]))):
        return np.asarray(middle)
    return np.asarray(rest_positions(constraints, limits, 1, np.random.default_rng(seed))[0])


def _shrink(points: PointSequence | None, rest: Floats, number: int) -> PointSequence | None:
    """The points of the box before, moved into the next one; None for the first box."""
    if points is None:
        return None
    share = _BOXES[number] / _BOXES[number - 1]
    return PointSequence(q=rest + share * (points.q - rest), dq=share * points.dq, W=points.W)


def _make_report(progress: Callable[[PointStep], None], box: int, starts: int) -> Callable[[int, float], None]:
    """Tell the finished starts of a box as the share of the whole search."""
    return lambda number, value: progress(PointStep(box, (box + min(number / starts, 1.0)) / len(_BOXES), value))
