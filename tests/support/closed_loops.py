"""Logs of robots in known loops, with and without noise, for the estimators that simulate the loop."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import dynid
from dynid.estimators.closed_loop.law_test import check_controller
from dynid.estimators.closed_loop.loop_runs import LoopRuns
from dynid.processing.simulation import sum_of_sines
from support.exact_runs import exact_run

EVERY = 5
"""Control periods per logged sample: 500 Hz and 100 Hz."""
FRICTION_SPEED = 0.1
"""Stated, so that truth and estimates are integrated in the same steps [rad/s]."""
FAST_WRIST = np.array([1.0, 0.8, 0.8, 1.6, 1.2, 2.4])


@dataclass(frozen=True)
class Scene:
    """A robot that follows a motion under a law that is known."""

    robot: dynid.Robot
    prior: dynid.Robot
    """The same with parameters up to 20 % off"""
    loop: dynid.control_loop.Loop
    truth: dynid.control_loop.simulator.LoopSimulation
    base: dynid.BaseParameters

    @property
    def values(self) -> np.ndarray:
        """(b,) true base parameters"""
        return self.base.project(self.robot.parameter_vector)

    def clean(self) -> dynid.Experiment:
        """The exact motion; samples at which dry friction is smoothed do not count."""
        run, speed = self.truth, self.loop.friction_speed
        valid = np.abs(run.dq) > speed
        for coupling in self.robot.couplings:
            joints = [self.robot.joint_names.index(name) for name in coupling.ratios]
            motor = run.dq[:, joints] @ np.array(list(coupling.ratios.values()))
            valid[:, joints] &= (np.abs(motor) > speed)[:, None]
        motion = (run.q, run.dq, run.ddq)
        return exact_run(run.time, motion, effort=run.torque, valid=valid, rate_hz=run.rate_hz, loop=self.loop)

    def noisy(
        self,
        seed: int,
        *,
        position: float = 1e-3,
        torque: float = 0.1,
        cutoff_hz: float | None = 20.0,
        filter_effort: bool = False,
    ) -> dynid.Experiment:
        """What a log with white noise becomes."""
        rng, run = np.random.default_rng(seed), self.truth
        recording = dynid.Recording(
            time=run.time,
            q=run.q + position * rng.normal(size=run.q.shape),
            effort=run.torque + torque * rng.normal(size=run.q.shape),
        )
        processed = dynid.process(recording, cutoff_hz=cutoff_hz, rest=None, filter_effort=filter_effort)
        return replace(processed, loop=self.loop)

    def equations(self, experiment: dynid.Experiment) -> dynid.estimators.Samples:
        """The equations of one experiment, with the wrong prior."""
        return dynid.estimators.build_equations(self.prior, experiment, base=self.base)

    def doubts(self, experiment: dynid.Experiment, values: np.ndarray) -> tuple[dynid.findings.Finding, ...]:
        """What the test of the law says of an experiment, with base parameters (b,)."""
        runs = LoopRuns.of(self.equations(experiment))
        return check_controller(runs, runs.simulate(values))


def scene(name: str, duration_s: float = 10.0, seed: int = 0, friction_speed: float | None = FRICTION_SPEED) -> Scene:
    """A robot of the zoo under a PD law; those without terms get rotors and friction."""
    robot = dynid.robots.get(name)
    bandwidth, motion = 12.0, sum_of_sines(robot.dof, period_s=5.0, amplitude=FAST_WRIST[: robot.dof], seed=seed)
    if not any(joint.terms for joint in robot.moving_joints):
        robot = robot.with_terms(dynid.RotorInertia(0.3), dynid.Viscous(2.0), dynid.Coulomb(3.0))
        bandwidth, motion = 6.0, sum_of_sines(robot.dof, amplitude=0.8, seed=seed)
    reference = dynid.control_loop.ReferenceMotion.of(motion, rate_hz=500.0, duration_s=duration_s)
    loop = dynid.control_loop.Loop(
        law=dynid.control_loop.assumed_law(robot, bandwidth), reference=reference, friction_speed=friction_speed
    )
    shares = np.random.default_rng(3).uniform(-0.2, 0.2, robot.parameter_vector.size)
    prior = robot.with_parameters(robot.parameter_vector * (1.0 + shares))
    truth = dynid.control_loop.simulate_loop(robot, loop, every=EVERY)
    return Scene(robot, prior, loop, truth, dynid.base_parameters(robot))
