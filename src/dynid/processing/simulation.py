"""Simulate logs of robots whose parameters are known: for tests, rehearsals and demonstrations.

No motion is integrated: the motion q(t) is given, and the torques are its inverse dynamics, with the robot's inertial
parameters and terms (friction, springs and the like). Noise, encoder steps and a delay of the torques are added. The
result is a `Recording`, as if it were read from a file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import check_number
from dynid.compiled import inverse_dynamics
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.logs.recording import Recording
from dynid.robot.check import refuse_negative_masses
from dynid.robot.model import Robot

States = tuple[Floats, Floats, Floats]
"""Positions, velocities and accelerations, each (N, n)."""
TimeFunction = Callable[[Floats], States]
"""Time (N,) [s] -> positions, velocities, accelerations, each (N, n)."""
Motion = Trajectory | TimeFunction
"""What `simulate_experiment` takes as a motion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Standard deviations of white measurement noise; one number, or one per joint."""

    position: ArrayLike = 0.0
    """[rad or m]"""
    velocity: ArrayLike = 0.0
    """[rad/s or m/s]"""
    effort: ArrayLike = 0.0
    """[N m or N]"""


NO_NOISE = Noise()
"""Noise of perfect sensors."""


def simulate_experiment(
    robot: Robot,
    trajectory: Motion,
    *,
    rate_hz: float,
    duration_s: float | None = None,
    noise: Noise = NO_NOISE,
    quantisation: ArrayLike = 0.0,
    delay_s: float = 0.0,
    with_velocity: bool = True,
    seed: int = 0,
) -> Recording:
    """Record a motion of a robot with known parameters.

    Args:
        robot: The true robot: geometry, inertias, terms (friction among them) and their values, as
            ``arm.with_terms(Viscous(1.0), Coulomb(2.0))``.
        trajectory: A trajectory; or a function of time (N,) that returns (q, dq, ddq), each (N, n).
        rate_hz: Sampling rate [Hz].
        duration_s: Length of the recording [s]; that of the motion by default, but required for a function.
        noise: White noise of positions, velocities and torques.
        quantisation: Step of the position encoders [rad or m]; one number, or one per joint.
        delay_s: Delay of the torques [s].
        with_velocity: Whether velocities are in the log.
        seed: Seed of all random numbers; the same seed gives the same recording.

    Example:
        >>> dynid.simulate_experiment(robot, motion, rate_hz=100, duration_s=2)
        Recording('simulation of ddarm, seed 0', 201 samples of 3 joints in 2 s: q, dq, effort)
    """
    refuse_negative_masses(robot)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError(f"a seed of {seed!r}", remedy="Give a whole number from zero up.")
    check_number("rate_hz", rate_hz, "a rate above zero [Hz]")
    check_number("duration_s", duration_s, "a time above zero [s]")
    check_number("delay_s", delay_s, "a finite time [s]", zero=True, signed=True)
    for name, spread in (*((f"noise.{x}", getattr(noise, x)) for x in Noise.__slots__), ("quantisation", quantisation)):
        _check_spread(name, spread, robot.dof)
    motion, duration = _motion(trajectory, duration_s)
    rng = np.random.default_rng(seed)
    # the factor keeps the last sample where rounding makes the product just smaller than an integer
    time = np.arange(int(np.floor(duration * rate_hz * (1 + 1e-12))) + 1) / rate_hz
    q, dq, _ = motion(time)
    if q.shape != (time.size, robot.dof):
        raise ArgumentError(
            f"the trajectory gives positions of shape {q.shape}, expected {(time.size, robot.dof)}",
            remedy=f"Give a motion of the {robot.dof} joints of '{robot.name}'.",
        )
    # (N, n) torques; a delayed torque belongs to the motion before
    effort = inverse_dynamics(robot, *(np.ascontiguousarray(x) for x in motion(time - delay_s)))
    measured = q + rng.normal(size=q.shape) * np.asarray(noise.position)
    step = np.broadcast_to(np.asarray(quantisation, dtype=float), (robot.dof,))  # zero for no quantisation
    measured = np.where(step > 0.0, np.round(measured / np.where(step > 0.0, step, 1.0)) * step, measured)
    velocity = dq + rng.normal(size=q.shape) * np.asarray(noise.velocity)
    return Recording(
        time=time,
        q=measured,
        dq=velocity if with_velocity else None,
        effort=effort + rng.normal(size=q.shape) * np.asarray(noise.effort),
        joint_names=robot.joint_names,
        source=f"simulation of {robot.name}, seed {seed}",
    )


def _check_spread(name: str, values: ArrayLike, joints: int) -> None:
    """Refuse standard deviations and encoder steps that are negative or infinite, or not of shape () or (n,)."""
    array = np.asarray(values, dtype=float)
    if array.shape not in ((), (joints,)) or not np.all((array >= 0.0) & (array < np.inf)):
        raise ArgumentError(
            f"{name} is {values!r}", remedy=f"Give one number from zero up, or {joints} of them, one per joint."
        )


def _motion(trajectory: Motion, duration_s: float | None) -> tuple[TimeFunction, float]:
    """Return the motion as a function of time, and its length [s]; `simulate_experiment` describes the arguments."""
    if isinstance(trajectory, Trajectory):
        end = trajectory.duration
        if duration_s is not None and duration_s > end * (1.0 + 1e-9):
            raise ArgumentError(
                f"the motion ends after {end:g} s, before duration_s {duration_s:g}",
                remedy="Leave duration_s out, or give a longer motion; a function of time has no end.",
            )
        return lambda t: trajectory.evaluate(np.clip(t, 0.0, end)), end if duration_s is None else min(duration_s, end)
    if not callable(trajectory):
        remedy = "Give a Trajectory, or a function of time."
        raise ArgumentError(f"{type(trajectory).__name__} is no motion", remedy=remedy)
    if duration_s is None:
        raise ArgumentError("a trajectory given as a function has no end", remedy="Give duration_s.")
    return trajectory, duration_s


def sum_of_sines(
    joints: int, *, period_s: float = 10.0, harmonics: int = 5, amplitude: ArrayLike = 0.5, seed: int = 0
) -> TimeFunction:
    """A smooth periodic motion with random harmonics, for rehearsals; `dynid.design_excitation` makes better ones.

    Args:
        joints: Number of joints n.
        period_s: Period [s].
        harmonics: Number of harmonics of the period.
        amplitude: Approximate largest excursion [rad or m]; one number, or one per joint.
        seed: Seed of the random coefficients.

    Returns:
        Time (N,) [s] -> positions, velocities and accelerations, (N, n) each.
    """
    rng = np.random.default_rng(seed)
    w = 2.0 * np.pi / period_s * np.arange(1, harmonics + 1)  # angular frequencies [rad/s]
    # (harmonics, n) coefficients; the sum has the root mean square of one sine of the given amplitude
    sine, cosine = rng.normal(size=(2, harmonics, joints)) / np.sqrt(2.0 * harmonics) * np.asarray(amplitude)

    def trajectory(t: Floats) -> States:
        s = np.sin(np.multiply.outer(t, w))
        c = np.cos(np.multiply.outer(t, w))
        q = s @ sine + c @ cosine
        dq = c @ (w[:, None] * sine) - s @ (w[:, None] * cosine)
        ddq = -(s @ (w[:, None] ** 2 * sine) + c @ (w[:, None] ** 2 * cosine))
        return q, dq, ddq

    return trajectory
