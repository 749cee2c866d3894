"""Control experiments: tracking errors of controllers with good and bad models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number, as_whole
from dynid.control.control_simulation import Controller, Imperfections, Simulation, simulate
from dynid.control.controllers import ComputedTorque, GravityCompensation
from dynid.control.plant import Plant, RungeKuttaPlant
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.robot.model import Robot
from dynid.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tracking:
    """Result of following a trajectory."""

    simulation: Simulation
    error: Floats
    """(N + 1, n) reference minus true positions [rad or m]"""
    stroke: Floats
    """(n,) range of each joint's reference [rad or m]"""

    @property
    def rms(self) -> Floats:
        """(n,) root mean square error [rad or m]."""
        return np.asarray(np.sqrt(np.mean(self.error**2, axis=0)))

    @property
    def largest(self) -> Floats:
        """(n,) largest error [rad or m]."""
        return np.asarray(np.abs(self.error).max(axis=0))

    @property
    def relative(self) -> Floats:
        """(n,) largest error as a share of the stroke; zero for joints whose reference stands still."""
        return np.divide(self.largest, self.stroke, out=np.zeros_like(self.stroke), where=self.stroke > 1e-9)


def track(
    robot: Robot | Plant,
    controller: Controller,
    trajectory: Trajectory,
    *,
    rate_hz: float = 1000.0,
    imperfections: Imperfections | None = None,
    seed: int = 0,
) -> Tracking:
    """Simulate a robot that follows a trajectory and starts on it.

    Args:
        robot: The true robot.
        controller: The controller, with its own model.
        trajectory: The reference motion.
        rate_hz: Control rate [Hz].
        imperfections: Imperfections of drives and sensors; none by default.
        seed: Seed of the noise.

    Example:
        >>> controller = dynid.control.ComputedTorque(robot, move)
        >>> float(dynid.control.track(robot, controller, move).rms.max()) < 0.01
        True
    """
    q0, dq0, _ = trajectory.evaluate(0.0)
    run = simulate(
        robot,
        controller,
        duration=trajectory.duration,
        q0=q0,
        dq0=dq0,
        rate_hz=rate_hz,
        imperfections=imperfections,
        seed=seed,
    )
    reference = trajectory.evaluate(np.minimum(run.time, trajectory.duration))[0]
    return Tracking(simulation=run, error=reference - run.q, stroke=np.asarray(np.ptp(reference, axis=0)))


def hold_still(
    robot: Robot | Plant, model: Robot, q: ArrayLike, *, duration: float = 1.0, damping: float = 0.0
) -> float:
    """Simulate a robot that is released under gravity compensation; returns its largest drift [rad or m].

    Args:
        robot: The true robot.
        model: The controller's model of the robot.
        q: (n,) positions at which it is released at rest [rad or m].
        duration: Length of the simulation [s].
        damping: Damping by the controller [N m s/rad or N s/m].

    Example:
        >>> round(dynid.control.hold_still(robot, robot, q, duration=0.05), 6)
        0.0
    """
    run = simulate(robot, GravityCompensation(model, damping), duration=duration, q0=q)
    return float(np.abs(run.q - run.q[0]).max())


def with_wrong_parameters(robot: Robot, share: float, seed: int = 0) -> Robot:
    """Change every parameter by the relative error ``share`` (0 to 1), with random sign.

    Example:
        >>> np.allclose(dynid.control.with_wrong_parameters(robot, 0.0).parameter_vector, robot.parameter_vector)
        True
    """
    share = as_number("share", share, least=0.0, most=1.0)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], robot.parameter_vector.size)
    return robot.with_parameters(robot.parameter_vector * (1.0 + share * signs))


def robustness(
    robot: Robot,
    trajectory: Trajectory,
    shares: Sequence[float] = (0.0, 0.01, 0.05, 0.1, 0.2),
    *,
    controller: Callable[[Robot, Trajectory], Controller] = ComputedTorque,
    seeds: int = 3,
    imperfections: Imperfections | None = None,
) -> Table:
    """Measure the tracking error over the error of the model parameters ([Atkeson1986] section 4.2.2).

    Args:
        robot: The true robot.
        trajectory: The reference motion.
        shares: Relative errors of all parameters (0 to 1); their signs are random.
        controller: Makes a controller from a model and the trajectory.
        seeds: Number of wrong models per share; the median is reported.
        imperfections: Imperfections of drives and sensors; none by default.

    Example:
        >>> len(dynid.control.robustness(robot, move, shares=(0.0, 0.1), seeds=1).rows)
        2
    """
    plant, seeds = RungeKuttaPlant(robot), as_whole("seeds", seeds, least=1)
    if not len(shares):
        raise ArgumentError("shares is empty", remedy="Give at least one relative error, such as 0.1.")
    shares = [as_number("a share", share, least=0.0, most=1.0) for share in shares]
    rows = []
    for share in shares:
        runs = [
            track(
                plant,
                controller(with_wrong_parameters(robot, share, seed), trajectory),
                trajectory,
                imperfections=imperfections,
            )
            for seed in range(seeds if share else 1)
        ]
        rms = float(np.median([np.sqrt(np.mean(run.error**2)) for run in runs]))
        rows.append((100.0 * share, rms, float(np.median([run.largest.max() for run in runs]))))
    return Table.of(["parameter error [%]", "rms error over all joints [rad or m]", "largest error of one joint"], rows)


def tracking_table(runs: Mapping[str, Tracking]) -> Table:
    """Make a table of the errors of several experiments, joint by joint.

    Example:
        >>> tracking = dynid.control.track(robot, dynid.control.ComputedTorque(robot, move), move)
        >>> dynid.control.tracking_table({"computed torque": tracking}).header[:2]
        ('experiment', 'joint')
    """
    rows = [
        (name, j + 1, float(run.rms[j]), float(run.largest[j]), 100.0 * float(run.relative[j]))
        for name, run in runs.items()
        for j in range(run.error.shape[1])
    ]
    return Table.of(["experiment", "joint", "rms [rad or m]", "largest [rad or m]", "largest [% of stroke]"], rows)
