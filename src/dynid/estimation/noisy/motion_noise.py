"""How noisy positions are, how the noise spreads into velocities and accelerations, and whether joints move at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Floats
from dynid.checks import check_number
from dynid.errors import ArgumentError, EstimationError, IdentifiabilityError
from dynid.estimation.equations import Samples
from dynid.kernels import regressor
from dynid.processing.cutoff import choose_cutoff
from dynid.processing.differentiation import CentralDifferences, Differentiation
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth, Smoothing


def position_noise(runs: Sequence[Experiment]) -> float:
    """Standard deviation of white noise on the positions of experiments that were not low-passed [rad or m].

    From the floor of their spectrum; the root mean square over the joints.
    """
    squares = []
    for run in runs:
        pieces = np.split(run.q, np.flatnonzero(np.diff(run.segment)) + 1)
        choice = choose_cutoff(pieces, run.rate_hz, differentiation=CentralDifferences(), low_pass=Butterworth())
        squares.append(np.mean(choice.signal_noise**2))
    return float(np.sqrt(np.mean(squares)))


def check_noise_levels(position_std: float | None, torque_std: float | tuple[float, ...] | None) -> None:
    """Refuse standard deviations that are no numbers, or negative; torques' must be positive."""
    check_number("position_std", position_std, "a standard deviation, zero or more [rad or m], or None", zero=True)
    for level in torque_std if isinstance(torque_std, tuple | list | np.ndarray) else (torque_std,):
        check_number("torque_std", level, "standard deviations above zero [N m or N], or None")


def per_joint_std(torque_std: float | tuple[float, ...], dof: int) -> Floats:
    """(n,) standard deviations of the torques' noise, from one number for all joints or one for each."""
    levels = np.asarray(torque_std, dtype=float)
    if levels.ndim > 1 or levels.size not in (1, dof):
        raise ArgumentError(
            f"torque_std has shape {levels.shape}", remedy=f"Give one number, or one per joint ({dof}), in order."
        )
    return np.array(np.broadcast_to(levels, (dof,)))


def law_stiffness(run: Experiment) -> Floats | None:
    """(n,) torque per position error of the experiment's law [N m/rad or N/m]; None where it is not known."""
    if run.loop is None:
        return None
    stiffness = run.loop.law.stiffness(run.loop.dof)
    return stiffness if np.isfinite(stiffness).all() else None


def impulse_responses(differentiation: Differentiation, rate_hz: float, reach: int) -> Floats:
    """(3, 2 reach + 1) by how much position k + o enters position, velocity and acceleration k, o from -reach to reach.

    Args:
        differentiation: A linear strategy that needs no cutoff.
        rate_hz: Sampling rate [Hz].
        reach: Largest distance of samples that act on one another.
    """
    size = 8 * reach + 1
    centre = size // 2
    impulse = np.zeros((size, 1))
    impulse[centre] = 1.0
    smoothing = Smoothing(rate_hz=rate_hz, cutoff_hz=None, low_pass=Butterworth())
    motion = differentiation.motion(impulse, None, smoothing)
    # the response k samples after the impulse is the weight of the sample k before
    return np.stack([x[centre - reach : centre + reach + 1, 0][::-1] for x in motion])


def torque_lead(run: Experiment, delay_s: float | None) -> float:
    """Samples by which logged torques are earlier than the motion that they act on.

    Args:
        run: The experiment.
        delay_s: How much later than logged they act [s]; None takes half a control period where the loop is known:
            its law holds each torque from the logged instant on.

    Raises:
        ArgumentError: It is more than a sample.
    """
    known = 0.0 if run.loop is None else 0.5 * run.loop.period_s
    lead = (known if delay_s is None else delay_s) * run.rate_hz
    if lead > 1.0:
        raise ArgumentError(
            f"torques that act {lead:.3g} samples after they were logged",
            remedy="Move them first: dynid.process(recording, effort_delay_s=...), minus the delay.",
        )
    return lead


def cubic_weights(x: Floats) -> Floats:
    """(K, 4) by how much values at -1, 0, 1 and 2 enter the cubic through them at x (K,)."""
    return np.stack(
        [
            -x * (x - 1.0) * (x - 2.0) / 6.0,
            (x + 1.0) * (x - 1.0) * (x - 2.0) / 2.0,
            -(x + 1.0) * x * (x - 2.0) / 2.0,
            (x + 1.0) * x * (x - 1.0) / 6.0,
        ],
        axis=1,
    )


CERTAIN = 6.0
"""Standard deviations by which an inertia must be below zero to be a contradiction. Convention."""
MOVING = 3.0
"""Standard deviation of positions over that of their noise above which a joint moves. Convention."""
POSES = 50
"""Number of poses of each experiment at which inertias are checked. Convention."""


def check_joints_move(equations: Samples, position_std: float) -> None:
    """Check that some joint moves by more than the noise of its positions [rad or m].

    Raises:
        IdentifiabilityError: None does; the differentiated noise would be taken for a motion.
    """
    if not any(np.any(run.q.std(axis=0) > MOVING * position_std) for run in equations.experiments):
        raise IdentifiabilityError(
            f"no joint moves by more than the noise of its positions, {position_std:.2g}",
            remedy="Record a motion; give position_std where the noise is less.",
        )


def check_inertia_sign(equations: Samples, beta: Floats, covariance: Floats) -> None:
    """Check that no joint, all others held, has an inertia that is certainly below zero.

    No residual shows that: torques of the wrong sign are explained perfectly by the negative of all parameters.

    Args:
        equations: The equations.
        beta: (b + k,) base parameters, then terms.
        covariance: (b + k, b + k) of them.

    Raises:
        EstimationError: The inertia about a joint is negative.
    """
    n, columns, b = equations.robot.dof, equations.base.columns, equations.base.rank
    beta, covariance = beta[:b], covariance[:b, :b]
    poses = np.concatenate([run.q[:: max(1, run.samples // POSES)] for run in equations.experiments])
    rest = np.zeros_like(poses)
    held = regressor(equations.robot, poses, rest, rest, columns=columns)
    for joint in range(n):
        pushed = regressor(equations.robot, poses, rest, rest + np.eye(n)[joint], columns=columns)
        row = pushed[:, joint] - held[:, joint]  # row @ beta is the mass matrix' entry of the joint
        inertia, std = row @ beta, np.sqrt(np.einsum("ka,ab,kb->k", row, covariance, row))
        if np.any(inertia < -CERTAIN * std - 1e-12 * np.abs(row * beta).sum(axis=1)):
            raise EstimationError(
                f"the likeliest inertia about {equations.robot.joint_names[joint]!r} is negative, {inertia.min():.3g}",
                remedy="Check the sign of its torque and of its position, and that the terms fit.",
            )
