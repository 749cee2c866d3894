"""Find what keeps every limit: positions to rest at and amplitudes of motions; name limits that are in conflict."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from dynid.array_types import Floats
from dynid.errors import ExcitationError
from dynid.excitation.base import Constraint
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.trajectory import PlannedMotion
from dynid.spatial import SAME

_AMPLITUDES = np.exp(-0.02 * np.arange(28.0) ** 2)
"""Amplitudes to try, dense near 1 where a search usually ends, down to a millionth (convention)."""
_CANDIDATES = 400
"""Number of random positions that are tried; if none is good, the best fiftieth of them is improved by descent
(convention)."""
_GOOD_MARGIN = 0.02
"""Relative margin to all limits from which on a position is good (convention)."""


def check_mobility(limits: MotionLimits) -> None:
    """Refuse limits under which a joint cannot move at all.

    Raises:
        ExcitationError: A joint cannot move; the message names every such limit.
    """
    is_still = {
        "position range": limits.upper <= limits.lower,
        "velocity": limits.velocity <= 0.0,
        "acceleration": limits.acceleration <= 0.0,
        "jerk": limits.jerk <= 0.0,
        "torque": limits.torque <= 0.0,
    }
    named = [
        f"{name} of joint '{limits.joint_names[j]}'" for name, which in is_still.items() for j in np.flatnonzero(which)
    ]
    if named:
        raise ExcitationError(
            f"a joint cannot move: {', '.join(named)} is zero",
            remedy="Raise these limits, or hold the joint (--hold JOINT).",
        )


def is_feasible(constraints: tuple[Constraint, ...], motion: PlannedMotion, reserve: float = 0.0) -> bool:
    """Test whether a motion keeps every limit at all its samples, with a relative reserve."""
    return all(bool(constraint.excess(motion).max(initial=-1.0) <= -reserve) for constraint in constraints)


def rest_positions(constraints: tuple[Constraint, ...], limits: MotionLimits, rng: np.random.Generator) -> Floats:
    """Find positions (k, n) at which the robot can stand within all limits, in random order.

    Dry friction of a first movement is included, so that a motion can start from there.

    Raises:
        ExcitationError: There is none; the message names the limits in conflict at the best position found.
    """
    low = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
    high = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
    shares = rng.uniform(0.15, 0.85, size=(_CANDIDATES, len(low)))  # a motion needs room on both sides
    shares[0] = 0.5
    candidates = low + (high - low) * shares
    excess = _rest_excess(constraints, candidates)
    if not np.any(excess < -_GOOD_MARGIN):
        best = np.argsort(excess)[: _CANDIDATES // 50]
        candidates = np.array([_descend(constraints, q, low, high) for q in candidates[best]])
        excess = _rest_excess(constraints, candidates)
        if not np.any(excess < 0.0):
            raise _conflict(constraints, candidates[np.argmin(excess)])
    chosen = np.flatnonzero((excess <= np.quantile(excess, 0.25)) & (excess < 0.0))  # the best quarter
    return np.asarray(candidates[rng.permutation(chosen)])


def _rest_excess(constraints: tuple[Constraint, ...], q: Floats) -> Floats:
    """Compute the largest excess (N,) over all limits of standing at positions q (N, n), about to move either way."""
    parts = [constraint.excess(motion) for constraint in constraints for motion in _about_to_move(q)]
    return np.asarray(np.hstack([np.full((len(q), 1), -1.0), *parts]).max(axis=1))


def _about_to_move(q: Floats) -> list[PlannedMotion]:
    """Make motions that stand at positions q (N, n) with the dry friction of a first movement, one per direction."""
    return [PlannedMotion.at(q, speed) for speed in (-SAME, SAME)]


def _descend(constraints: tuple[Constraint, ...], q: Floats, low: Floats, high: Floats) -> Floats:
    """Find a position near q that violates the limits less, by descent on the squared excess."""

    def penalty(x: Floats) -> tuple[float, Floats]:
        """Half of the squared excess, with the margin of a good position, and its gradient."""
        value = 0.0
        gradient = np.zeros_like(x)
        for motion in _about_to_move(x[None, :]):
            for constraint in constraints:
                excess = np.maximum(constraint.excess(motion) + _GOOD_MARGIN, 0.0)
                value += 0.5 * float(np.vdot(excess, excess))
                gradient = gradient + constraint.pullback(motion, excess).q[0]
        return value, gradient

    result = minimize(penalty, q, jac=True, method="L-BFGS-B", bounds=np.column_stack([low, high]))
    return np.asarray(result.x)


def _conflict(constraints: tuple[Constraint, ...], q: Floats) -> ExcitationError:
    """Make the error that names the limits in conflict at a position q (n,)."""
    beyond: dict[str, float] = {}  # one entry for both ends of a range
    for constraint in constraints:
        excess = np.max([constraint.excess(motion)[0] for motion in _about_to_move(q[None, :])], axis=0)
        for margin in constraint.margins(excess):
            if margin.relative <= 0.0:
                beyond[f"{margin.limit} of {margin.where} (by {-margin.margin:.3g} {margin.unit})"] = -margin.relative
    # the descent leaves joints exactly at the end of their range, which is no conflict
    named = [text for text, excess in beyond.items() if excess > SAME] or list(beyond)
    return ExcitationError(
        f"no position of the joints meets all limits; in conflict at the best one: {', '.join(named)}",
        remedy="Relax one of these limits or widen the position ranges.",
    )


def with_feasible_amplitude(
    trajectory: FourierTrajectory, constraints: tuple[Constraint, ...], times: Floats, reserve: float = 0.0
) -> FourierTrajectory | None:
    """Reduce the amplitude of a motion until it keeps all limits.

    Args:
        trajectory: The motion.
        constraints: The limits.
        times: (N,) times at which they are checked [s].
        reserve: Relative reserve to the limits.

    Returns:
        The motion with the largest feasible amplitude found, at most its own; None if no amplitude is feasible.
    """

    def feasible(amplitude: float) -> bool:
        return is_feasible(constraints, trajectory.with_amplitude(amplitude).motion(times), reserve)

    good = next((amplitude for amplitude in _AMPLITUDES if feasible(amplitude)), None)
    if good is None:
        return None
    if good == 1.0:
        return trajectory
    bad = _AMPLITUDES[good < _AMPLITUDES].min()
    for _ in range(10):  # halving, to a thousandth of the step between two amplitudes
        middle = 0.5 * (good + bad)
        if feasible(middle):
            good = middle
        else:
            bad = middle
    return trajectory.with_amplitude(float(good))
