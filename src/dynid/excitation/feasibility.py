"""Motions that keep every limit: positions to rest at, feasible amplitudes, and limits that are in conflict."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ExcitationError
from dynid.excitation.base import Constraint
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectories.trajectory import LinearTrajectory, Motion

_AMPLITUDES = (1.0, 0.995, 0.99, 0.98, 0.96, 0.93, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
"""Amplitudes to try, dense near 1 where a descent usually ends; smaller ones are halved. Convention."""
_SMALL = 0.1
"""Amplitude from which on amplitudes are halved. Convention."""
_HALVINGS = 16
"""Halvings of that amplitude before a motion counts as infeasible. Convention."""
_BISECTIONS = 10
"""Bisections of the largest feasible amplitude: a thousandth of the last step. Convention."""
_CREEP = 1e-6
"""Largest speed of a joint that is about to move [rad/s or m/s]: full dry friction, no other effect. Convention."""
_CREEP_SHARE = 1e-3
"""The same as a share of the smallest velocity limit. Convention."""
_OFF_THE_ENDS = (0.15, 0.85)
"""Shares of the position ranges between which a robot may rest: a motion needs room on both sides. Convention."""
_FEWEST_CANDIDATES = 400
"""Random positions that are tried at least. Convention."""
_CANDIDATES_EACH = 20
"""Random positions that are tried for each position wanted. Convention."""
_DESCENTS = 8
"""Number of the best random positions that are improved by descent. Convention."""
_COMFORTABLE = 0.25
"""Share of the random positions, those farthest from the limits, among which rest positions are drawn. Convention."""
_COMFORT = 1e-3
"""Relative margin that one of the random positions must have; otherwise positions are improved by descent. Convention.
"""
_DESCENT_MARGIN = 0.02
"""Relative margin that the descent aims at. Convention."""
_AT_THE_END = 1e-6
"""Relative excess of a joint that the descent left right at the end of its range: it is in no conflict. Convention."""


def check_mobility(limits: MotionLimits) -> None:
    """Refuse limits under which a joint cannot move at all.

    Raises:
        ExcitationError: Names every such limit.
    """
    still = {
        "position range": limits.upper <= limits.lower,
        "velocity": limits.velocity <= 0.0,
        "acceleration": limits.acceleration <= 0.0,
        "jerk": limits.jerk <= 0.0,
        "torque": limits.torque <= 0.0,
    }
    named = [f"{name} of joint '{limits.joint_names[j]}'" for name, bad in still.items() for j in np.flatnonzero(bad)]
    if named:
        raise ExcitationError(
            f"a joint cannot move: {', '.join(named)} is zero",
            remedy="Raise these limits, or hold the joint (--hold JOINT).",
        )


def is_feasible(constraints: tuple[Constraint, ...], motion: Motion, reserve: float = 0.0) -> bool:
    """Whether a motion keeps every limit at all its samples, with that relative reserve."""
    return all(bool(constraint.excess(motion).max(initial=-1.0) <= -reserve) for constraint in constraints)


def _about_to_move(constraints: tuple[Constraint, ...], q: Floats) -> list[Motion]:
    """Motions that stand at positions q (N, n) with the dry friction of a first movement in either direction."""
    zero = np.zeros_like(q)
    slowest = min((float(c.scale.min()) for c in constraints if c.name == "velocity"), default=1.0)
    speed = min(_CREEP, _CREEP_SHARE * slowest)
    return [Motion(q, zero + sign * speed, zero, zero) for sign in (-1.0, 1.0)]


def _rest_excess(constraints: tuple[Constraint, ...], q: Floats) -> Floats:
    """Largest excess (N,) over all limits of standing at positions q (N, n), about to move in either direction."""
    motions = _about_to_move(constraints, q)
    worst = [c.excess(motion).max(axis=1) for c in constraints for motion in motions]
    return np.asarray(np.max(worst, axis=0))


def rest_positions(
    constraints: tuple[Constraint, ...], limits: MotionLimits, count: int, rng: np.random.Generator
) -> Floats:
    """Positions (count, n) at which the robot can stand within all limits, dry friction of a first movement included.

    Raises:
        ExcitationError: There is none; it names the limits that are beyond reach at the best position found.
    """
    low = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
    high = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
    candidates = low + (high - low) * rng.uniform(
        *_OFF_THE_ENDS, size=(max(_FEWEST_CANDIDATES, _CANDIDATES_EACH * count), len(low))
    )
    candidates[0] = 0.5 * (low + high)
    if not constraints:
        return candidates[:count]
    excess = _rest_excess(constraints, candidates)
    if not np.any(excess < -_COMFORT):
        best = np.argsort(excess)[:_DESCENTS]
        candidates = np.array([_descend(constraints, q, low, high) for q in candidates[best]])
        excess = _rest_excess(constraints, candidates)
        if not np.any(excess < 0.0):
            raise _conflict(constraints, candidates[np.argmin(excess)])
    comfortable = np.flatnonzero(excess <= max(np.quantile(excess, _COMFORTABLE), float(excess.min())))
    chosen = rng.permutation(comfortable[excess[comfortable] < 0.0])
    chosen = chosen if len(chosen) else np.array([np.argmin(excess)])
    return candidates[np.resize(chosen, count)]


def _descend(constraints: tuple[Constraint, ...], q: Floats, low: Floats, high: Floats) -> Floats:
    """A position near q that violates the limits less, by descent on the squared excess."""
    from scipy.optimize import minimize

    def penalty(x: Floats) -> tuple[float, Floats]:
        value, gradient = 0.0, np.zeros_like(x)
        for motion in _about_to_move(constraints, x[None, :]):
            for constraint in constraints:
                force = np.maximum(constraint.excess(motion) + _DESCENT_MARGIN, 0.0)
                value += 0.5 * float(np.vdot(force, force))
                gradient = gradient + constraint.pullback(motion, force).q[0]
        return value, gradient

    result = minimize(penalty, q, jac=True, method="L-BFGS-B", bounds=np.column_stack([low, high]))
    return np.asarray(result.x)


def _conflict(constraints: tuple[Constraint, ...], q: Floats) -> ExcitationError:
    beyond: dict[tuple[str, str], tuple[float, str]] = {}  # one entry for both ends of a range
    motions = _about_to_move(constraints, q[None, :])
    for constraint in constraints:
        worst = np.max([constraint.excess(motion)[0] for motion in motions], axis=0)
        for where, excess, scale, unit in zip(constraint.where, worst, constraint.scale, constraint.units, strict=True):
            if excess >= 0.0:
                text = f"{constraint.name} of {where} (by {excess * scale:.3g} {unit})"
                place = constraint.name, where
                beyond[place] = max(beyond.get(place, (excess, text)), (excess, text), key=lambda entry: entry[0])
    found = beyond.values()
    named = [text for excess, text in found if excess > _AT_THE_END] or [text for _, text in found]
    return ExcitationError(
        f"no position of the joints meets all limits; in conflict at the best one: {', '.join(named)}",
        remedy="Relax one of these limits or widen the position ranges.",
    )


def with_feasible_amplitude(
    trajectory: LinearTrajectory, constraints: tuple[Constraint, ...], times: Floats, reserve: float = 0.0
) -> LinearTrajectory | None:
    """The motion with the largest amplitude, at most its own, that keeps all limits at the times; None if none does."""

    def feasible(amplitude: float) -> bool:
        return is_feasible(constraints, trajectory.with_amplitude(amplitude).motion(times), reserve)

    before = 1.0
    for amplitude in (*_AMPLITUDES, *(_SMALL * 0.5**k for k in range(_HALVINGS))):
        if feasible(amplitude):
            return trajectory.with_amplitude(_largest(feasible, amplitude, before)) if amplitude < 1 else trajectory
        before = amplitude
    return None


def _largest(feasible: Callable[[float], bool], good: float, bad: float) -> float:
    """The largest feasible amplitude between a feasible and an infeasible one, by bisection."""
    for _ in range(_BISECTIONS):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if feasible(middle) else (good, middle)
    return good
