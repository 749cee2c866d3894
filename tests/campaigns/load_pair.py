"""A loaded and an unloaded run of a 7-joint arm: friction, 2 % torque noise, a designed motion of 10 s.

Run: ``python tests/campaigns/load_pair.py [trials]``.
"""

from __future__ import annotations

import sys

import numpy as np

import dynid
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.load.payload import identify_payload
from dynid.processing.experiment import Experiment
from dynid.processing.simulation import Noise, simulate_experiment
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.tables import Table
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

TRUTH = Inertia.from_com(2.0, [0.02, -0.03, 0.12], np.diag([0.004, 0.005, 0.003]))


def recorded(robot: Robot, path: Trajectory, seed: int) -> Experiment:
    """A run at 500 Hz with encoder noise and 2 % of noise in every torque, filtered at 10 Hz."""
    clean = simulate_experiment(robot, path, rate_hz=500.0)
    assert clean.effort is not None
    noise = Noise(position=1e-5, effort=0.02 * np.sqrt((clean.effort**2).mean(axis=0)))
    recording = simulate_experiment(robot, path, rate_hz=500.0, noise=noise, with_velocity=False, seed=seed)
    return dynid.process(recording, cutoff_hz=10.0)


def main(trials: int = 10) -> None:
    """Print errors of mass and centre of mass over several loads' worth of noise."""
    arm = dynid.robots.panda().with_terms(RotorInertia(0.05), Viscous(0.8), Coulomb(0.6), Offset(0.1))
    heavy = arm.with_body("box", parent=arm.bodies[-1].joint.child, inertia=TRUTH)
    limits = dynid.MotionLimits.from_robot(arm, acceleration=6.0)
    plan = dynid.design_excitation(
        arm, limits, period_s=10.0, seed=0, settings=dynid.excitation.SearchSettings(starts=1, time_limit_s=20.0)
    )
    rows = []
    for seed in range(trials):
        runs = recorded(heavy, plan.trajectory, 2 * seed), recorded(arm, plan.trajectory, 2 * seed + 1)
        load = identify_payload(arm, loaded=runs[0], unloaded=runs[1])
        offset = 1e3 * np.abs(load.com - TRUTH.com).max()
        z = (load.vector - TRUTH.vector) / load.stderr
        rows.append((seed, 100 * (load.mass / TRUTH.mass - 1), float(offset), float(np.sqrt((z**2).mean()))))
    print(Table.of(["seed", "mass error %", "com error mm", "error over std, rms"], rows))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
