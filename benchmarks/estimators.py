"""Estimators beside each other on simulated control loops of known truth: ``python -m benchmarks.estimators``.

Every method gets the same log. A name that ends in ``+f`` uses positions that are low-passed at the cutoff that their
spectrum suggests, the others positions as measured. Methods that simulate the loop get the control law.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import dynid
from dynid import DynidError
from dynid.array_types import Bools, Floats
from dynid.control_loop import PD, Loop, ReferenceMotion, assumed_law, simulate_loop
from dynid.control_loop.simulator import LoopSimulation
from dynid.estimators import build_equations
from dynid.estimators.registry import estimator_class
from dynid.processing.simulation import sum_of_sines
from dynid.tables import Table

CONTROL_HZ = 2000.0
"""Control rate [Hz]; a convention."""
FRICTION_SPEED = 0.05
"""Speed below which dry friction is smoothed and samples do not count [rad/s or m/s]; a convention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Errors of the measurement, and errors of the information that the estimator gets."""

    noise: float = 1e-4
    """Standard deviation of the white position noise, which the controller sees too [rad or m]"""
    torque_noise: float = 0.02
    """Standard deviation of the white torque noise, as a share of each joint's rms torque"""
    rate_hz: float = 100.0
    """Sampling rate of the log [Hz]; a divisor of the control rate"""
    step: float = 0.0
    """Resolution of the encoders [rad or m]; 0 for exact positions"""
    gain_error: float = 0.0
    """Relative error of the controller gains that the estimators get"""
    start_error: float = 0.1
    """Relative error of the initial parameters of the estimators, with random sign"""

    def __str__(self) -> str:
        others = {"step": self.step, "gains": self.gain_error, "start": self.start_error - 0.1}
        words = [f"{name} {value:g}" for name, value in others.items() if value]
        return ", ".join([f"{self.noise:g} rad, {self.rate_hz:g} Hz", *words])


@dataclass(frozen=True, slots=True)
class Question:
    """The robot, conditions and methods of one table."""

    robot: str
    conditions: Sequence[Condition]
    methods: Sequence[str] = ("ols", "wls+f", "iv", "iv+f", "didim")
    bandwidth_hz: float = 3.0
    """Bandwidth of each joint's position loop [Hz]"""


NOISES = [Condition(noise=noise) for noise in (1e-5, 1e-4, 1e-3, 1e-2)]
QUESTIONS = {
    "Noise of the positions, 3R arm": Question("gautier_khalil_3r", NOISES),
    "Noise of the positions, PUMA 560": Question("puma560", NOISES[:3]),
    "Noise of the positions, TX40": Question("tx40", NOISES[:3], bandwidth_hz=12.0),
    "Sampling rate": Question("gautier_khalil_3r", [Condition(rate_hz=rate) for rate in (50.0, 100.0, 1000.0)]),
    "Coarse encoders": Question("gautier_khalil_3r", [Condition(step=step) for step in (1e-4, 1e-3, 5e-3)]),
    "Wrong gains": Question("gautier_khalil_3r", [Condition(noise=1e-3, gain_error=e) for e in (0.0, 0.05, 0.3)]),
    "Bad start": Question("gautier_khalil_3r", [Condition(start_error=e) for e in (0.1, 0.3)]),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """One simulated log with the true parameters, and another motion to predict."""

    robot: dynid.Robot
    """The robot that estimators get, with initial parameters."""
    base: dynid.BaseParameters
    truth: Floats
    """(b,) true base parameters"""
    raw: dynid.Experiment
    """Positions as measured, differentiated without a filter"""
    filtered: dynid.Experiment
    """The same rows, positions low-passed"""
    other: LoopSimulation
    """The true robot on another motion, without noise"""

    def torque_error(self, beta: Floats) -> float:
        """Relative torque error on the other motion [%], without samples near rest."""
        theta = np.zeros(len(self.base.layout))
        theta[list(self.base.columns)] = beta
        other, counts = self.other, _is_away_from_rest(self.robot, self.other.dq)
        predicted = dynid.inverse_dynamics(self.robot.with_parameters(theta), other.q, other.dq, other.ddq)
        left = np.where(counts, predicted - other.torque, 0.0)
        return float(100.0 * np.linalg.norm(left) / np.linalg.norm(other.torque * counts))


def planted_robot(name: str) -> dynid.Robot:
    """A built-in robot with rotor inertia, friction and offset in every joint; existing values are kept."""
    robot = dynid.robots.get(name)
    usual = (dynid.RotorInertia(0.1), dynid.Viscous(0.5), dynid.Coulomb(0.4), dynid.Offset(0.1))
    for joint in robot.moving_joints:
        own = {type(term): term for term in joint.terms if term.value}
        terms = [own.pop(type(term), term) for term in usual]
        robot = robot.with_terms(*terms, *own.values(), joints=[joint.name])
    return robot


@cache
def _loops(name: str, bandwidth_hz: float, seconds: float, every: int) -> tuple[dynid.Robot, Loop, LoopSimulation]:
    """The true robot, the loop of its logs, and its motion in a second loop."""
    robot, loops = planted_robot(name), []
    for seed in (1, 2):
        path = sum_of_sines(robot.dof, period_s=10.0, harmonics=5, amplitude=0.8, seed=seed)
        reference = ReferenceMotion.of(path, rate_hz=CONTROL_HZ, duration_s=seconds)
        law = assumed_law(robot, bandwidth_hz)
        loops.append(Loop(law=law, reference=reference, friction_speed=FRICTION_SPEED))
    return robot, loops[0], simulate_loop(robot, loops[1], every=every)


def make_trial(question: Question, condition: Condition, seed: int, seconds: float = 10.0) -> Trial:
    """Simulate a log, add noise, and process it."""
    every = round(CONTROL_HZ / condition.rate_hz)
    robot, loop, other = _loops(question.robot, question.bandwidth_hz, seconds, every)
    rng = np.random.default_rng((seed, 17))
    noise = condition.noise * rng.normal(size=(len(loop.reference.q), robot.dof))
    sim = simulate_loop(robot, loop, every=every, position_noise=noise)
    measured = sim.q + noise[::every][: len(sim.q)]
    if condition.step:
        measured = np.round(measured / condition.step) * condition.step
    spread = condition.torque_noise * np.sqrt(np.mean(sim.torque**2, axis=0))
    effort = sim.torque + spread * rng.normal(size=sim.torque.shape)
    log = dynid.Recording(time=sim.time, q=measured, effort=effort, joint_names=robot.joint_names, source="simulation")
    factor = 1.0 + condition.gain_error
    known = replace(loop, law=PD(kp=np.asarray(loop.law.kp) * factor, kd=np.asarray(loop.law.kd) * factor))
    raw, filtered = _process(robot, log, known)
    theta, base = robot.parameter_vector, dynid.base_parameters(robot)
    wrong = condition.start_error * rng.choice([-1.0, 1.0], theta.size) * rng.random(theta.size)
    start = robot.with_parameters(theta * (1.0 + wrong))
    return Trial(robot=start, base=base, truth=base.project(theta), raw=raw, filtered=filtered, other=other)


def _process(robot: dynid.Robot, log: dynid.Recording, loop: Loop) -> tuple[dynid.Experiment, dynid.Experiment]:
    """Process the log without and with a low-pass filter; the filtered velocities decide which samples count."""
    smooth, rough = dynid.process(log, rest=None), dynid.process(log, cutoff_hz=None, rest=None)
    counts, valid = smooth.valid & _is_away_from_rest(robot, smooth.dq), np.zeros_like(rough.valid)
    valid[np.searchsorted(rough.time, smooth.time - 0.25 / rough.rate_hz)] = counts
    return replace(rough, valid=valid, loop=loop), replace(smooth, valid=counts, loop=loop)


def _is_away_from_rest(robot: dynid.Robot, dq: Floats) -> Bools:
    """(N, n) whether a joint and every motor coupled to it are faster than `FRICTION_SPEED`."""
    moving = np.abs(dq) > FRICTION_SPEED
    for coupling in robot.couplings:
        joints = [robot.joint_names.index(name) for name in coupling.ratios]
        motor = dq[:, joints] @ np.array(list(coupling.ratios.values()))
        moving[:, joints] &= (np.abs(motor) > FRICTION_SPEED)[:, None]
    return moving


def run_method(name: str, trial: Trial) -> tuple[float, float, float]:
    """Torque error [%], covered intervals [%] and processor time [s]; the first two are nan where it refuses."""
    data = trial.filtered if name.endswith("+f") else trial.raw
    started = time.process_time()
    try:
        estimate = estimator_class(name.removesuffix("+f"))().solve(build_equations(trial.robot, data, base=trial.base))
    except (DynidError, np.linalg.LinAlgError):
        return np.nan, np.nan, time.process_time() - started
    seconds = time.process_time() - started
    size = 1e-12 * np.linalg.norm(trial.truth)
    inside = np.abs(estimate.values - trial.truth) < 1.96 * np.maximum(estimate.stderr, size)
    return trial.torque_error(estimate.values), 100.0 * float(np.mean(inside)), seconds


def compare(question: Question, runs: int, seconds: float = 10.0) -> Table:
    """Each cell holds the median torque error on another motion and, in parentheses, the covered 95 % intervals."""
    methods = dict.fromkeys(("ols", *question.methods))
    found = np.zeros((len(question.conditions), runs, len(methods), 3))
    for place, condition in enumerate(question.conditions):
        for seed in range(runs):
            trial = make_trial(question, condition, seed, seconds)
            if seed == 0:  # compiles the kernels
                [run_method(name, trial) for name in methods]
            found[place, seed] = [run_method(name, trial) for name in methods]
    rows = []
    for k, name in enumerate(methods):
        unit = found[:, :, 0, 2]
        cells = [_describe(found[place, :, k]) for place in range(len(question.conditions))]
        rows.append((name, *cells, f"{np.median(found[:, :, k, 2] / unit):.2g}"))
    return Table.of(["method", *map(str, question.conditions), "time over ols"], rows)


def _describe(results: Floats) -> str:
    good = results[np.isfinite(results[:, 0])]
    if not len(good):
        return "refused"
    refused = f", refused {len(results) - len(good)} of {len(results)}" if len(good) < len(results) else ""
    return f"{np.median(good[:, 0]):.2g} % ({np.mean(good[:, 1]):.0f} %){refused}"


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robot", help="only this built-in robot, with the noises and methods given")
    parser.add_argument("--noise", nargs="+", type=float, default=[1e-4, 1e-3], help="noise of positions [rad or m]")
    parser.add_argument("--gains", nargs="+", type=float, default=[0.0], help="relative errors of the known gains")
    parser.add_argument("--methods", nargs="+", default=["ols", "wls+f", "iv", "didim"], help="estimators")
    parser.add_argument("--runs", type=int, default=6, help="logs per condition")
    options = parser.parse_args()
    questions = QUESTIONS
    if options.robot:
        conditions = [Condition(noise=noise, gain_error=e) for noise in options.noise for e in options.gains]
        questions = {options.robot: Question(options.robot, conditions, options.methods)}
    for title, question in questions.items():
        print(f"### {title}\n\n{compare(question, options.runs).to_markdown()}\n", flush=True)


if __name__ == "__main__":
    main()
