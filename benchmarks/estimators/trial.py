"""A trial: one simulated log of the true robot in its control loop, and another motion to predict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.estimators.condition import Condition
from dynid.arrays import Floats
from dynid.errors import ArgumentError, DataError, EstimationError
from dynid.kernels import kernel
from dynid.logs.recording import Recording
from dynid.loop.arm import Arm
from dynid.loop.laws import PD, assumed_law
from dynid.loop.loop import Loop, ReferenceMotion
from dynid.loop.simulator import LoopSimulation, LoopSimulator, simulate_loop
from dynid.parameters.base import base_parameters
from dynid.parameters.base_set import BaseParameters
from dynid.processing.experiment import Experiment
from dynid.processing.process import process
from dynid.processing.simulation import sum_of_sines
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

CONTROL_HZ = 2000.0
"""Control rate, unless the log is faster [Hz]; a convention."""
FRICTION_SPEED = 0.05
"""Speed below which dry friction is smoothed and samples do not count [rad/s or m/s]; a convention."""
MOST_INSTANTS = 1_000_000
"""Largest number of control instants of a log; a convention that bounds the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Settings that all trials share."""

    robot: Robot
    """With its true parameters, terms included."""
    duration_s: float = 10.0
    """Length of a log [s]"""
    amplitude: float = 0.8
    """Approximate largest excursion of the joints [rad or m]"""
    bandwidth_hz: float = 3.0
    """Bandwidth of each joint's position loop [Hz]"""
    motion: int = 1
    """Seed of the commanded motion; the motion to predict has the next seed"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """A log with the true parameters."""

    condition: Condition
    robot: Robot
    """The robot that estimators get, with initial parameters."""
    base: BaseParameters
    truth: Floats
    """(b,) true base parameters"""
    raw: Experiment
    """Positions as measured, differentiated without a filter"""
    filtered: Experiment
    """The same rows, positions low-passed at the cutoff that their spectrum suggests"""
    torque_std: tuple[float, ...]
    """(n,) standard deviation of the torque noise [N m or N]"""
    other: LoopSimulation
    """The true robot on another motion, without noise"""
    other_loop: Loop

    def torque_error(self, beta: Floats) -> float:
        """Relative torque error on the other motion [%], without samples near rest."""
        theta = np.zeros(len(self.base.layout))
        theta[list(self.base.columns)] = beta
        states = (np.ascontiguousarray(x) for x in (self.other.q, self.other.dq, self.other.ddq))
        predicted = kernel(self.robot, "inverse_dynamics", symbolic_parameters=True)(*states, theta)
        counts = _away_from_rest(self.robot, self.other.dq)
        rest = np.where(counts, predicted - self.other.torque, 0.0)
        return float(100.0 * np.linalg.norm(rest) / np.linalg.norm(self.other.torque * counts))

    def position_error(self, beta: Floats) -> float:
        """Root mean square position error of the identified robot in the loop on the other motion [rad or m].

        Infinite if the simulation diverges.
        """
        arm = Arm(self.robot, self.base.columns, self.other_loop.friction_speeds)
        try:
            runs = LoopSimulator(arm, self.other_loop).run(beta, every=_every(self.other_loop, self.other))
        except EstimationError:
            return float("inf")
        return float(np.sqrt(np.mean((runs.state[0, :, : self.robot.dof] - self.other.q) ** 2)))


def planted_robot(robot: Robot) -> Robot:
    """Add rotor inertia, friction and offset to every joint; existing values are kept."""
    usual = (RotorInertia(0.1), Viscous(0.5), Coulomb(0.4), Offset(0.1))
    for joint in robot.moving_joints:
        own = {type(term): term for term in joint.terms if term.value}
        terms = [own.pop(type(term), term) for term in usual]
        robot = robot.with_terms(*terms, *own.values(), joints=[joint.name])
    return robot


def make_trial(setting: Setting, condition: Condition, seed: int) -> Trial:
    """Simulate a log, add noise, and process it.

    Args:
        setting: The robot and its motion.
        condition: Errors of the measurement.
        seed: Seed of all random numbers except the motion.
    """
    check_length(setting, condition)
    robot, n = setting.robot, setting.robot.dof
    every, control_hz = _rates(condition.rate_hz)
    rng = np.random.default_rng((seed, 17))
    loops = [_loop(setting, control_hz, setting.motion + k) for k in range(2)]
    ticks = len(loops[0].reference.q)
    noise = condition.position_std * rng.normal(size=(ticks, n))
    try:
        sim = simulate_loop(robot, loops[0], every=every, position_noise=noise)
    except EstimationError as error:
        raise EstimationError(
            f"under {condition.label}: {error.reason}",
            remedy="Lower amplitude or --noise: even the true robot cannot follow such a motion.",
        ) from error
    torque_std = condition.torque_std * np.sqrt(np.mean(sim.torque**2, axis=0))
    measured = sim.q + noise[::every][: len(sim.q)]
    if condition.quantisation:
        measured = np.round(measured / condition.quantisation) * condition.quantisation
    recording = Recording(
        time=sim.time,
        q=measured,
        effort=sim.torque + torque_std * rng.normal(size=sim.torque.shape),
        joint_names=robot.joint_names,
        source=f"simulation of {robot.name}, seed {seed}",
    )
    law = loops[0].law
    assert isinstance(law, PD)
    factor = 1.0 + condition.gain_error
    assumed_loop = replace(loops[0], law=PD(kp=np.asarray(law.kp) * factor, kd=np.asarray(law.kd) * factor))
    raw, filtered = _process_log(robot, recording, assumed_loop)
    signs = rng.choice([-1.0, 1.0], robot.parameter_vector.size)
    start = robot.with_parameters(
        robot.parameter_vector * (1.0 + condition.start_error * signs * rng.random(signs.size))
    )
    base = base_parameters(robot)
    return Trial(
        condition=condition,
        robot=start,
        base=base,
        truth=base.project(robot.parameter_vector),
        raw=raw,
        filtered=filtered,
        torque_std=tuple(torque_std.tolist()),
        other=_other(_Key(setting, control_hz, every)),
        other_loop=loops[1],
    )


def check_length(setting: Setting, condition: Condition) -> None:
    """Refuse logs at rates that do not fit the control rate, or of too many control instants.

    Raises:
        ArgumentError: The rate or the length is not possible; the message names the options.
    """
    instants = _rates(condition.rate_hz)[1] * setting.duration_s
    if instants > MOST_INSTANTS:
        raise ArgumentError(
            f"{setting.duration_s:g} s at {condition.rate_hz:g} Hz are {instants:.3g} control instants",
            remedy=f"Lower --rate or duration_s: at most {MOST_INSTANTS} in a log.",
        )


def _rates(rate_hz: float) -> tuple[int, float]:
    """Control periods per sample, and the control rate [Hz]."""
    if rate_hz >= CONTROL_HZ:
        return 1, rate_hz
    every = round(CONTROL_HZ / rate_hz)
    if abs(every * rate_hz - CONTROL_HZ) > 1e-6 * CONTROL_HZ:
        raise ArgumentError(
            f"the control rate of {CONTROL_HZ:g} Hz is not a multiple of {rate_hz:g} Hz",
            remedy="Use 50, 100 or 250 Hz.",
        )
    return every, CONTROL_HZ


def _loop(setting: Setting, control_hz: float, motion: int) -> Loop:
    path = sum_of_sines(setting.robot.dof, period_s=10.0, harmonics=5, amplitude=setting.amplitude, seed=motion)
    reference = ReferenceMotion.of(path, rate_hz=control_hz, duration_s=setting.duration_s)
    law = assumed_law(setting.robot, setting.bandwidth_hz)
    return Loop(law=law, reference=reference, friction_speed=FRICTION_SPEED)


def _process_log(robot: Robot, recording: Recording, loop: Loop) -> tuple[Experiment, Experiment]:
    """Process the log without and with a low-pass filter; the filtered velocities decide which samples count."""
    try:
        smooth = process(recording, rest=None)
        rough = process(recording, cutoff_hz=None, rest=None)
    except DataError as error:
        raise DataError(error.reason, place=recording.source, remedy="Raise duration_s or --rate.") from error
    places = np.searchsorted(rough.time, smooth.time - 0.25 / rough.rate_hz)
    counts = smooth.valid & _away_from_rest(robot, smooth.dq)
    valid = np.zeros_like(rough.valid)
    valid[places] = counts
    return replace(rough, valid=valid, loop=loop), replace(smooth, valid=counts, loop=loop)


def _away_from_rest(robot: Robot, dq: Floats) -> NDArray[np.bool_]:
    """(N, n) whether a joint and every motor coupled to it are faster than `FRICTION_SPEED`."""
    moving = np.abs(dq) > FRICTION_SPEED
    for coupling in robot.couplings:
        joints = [robot.joint_names.index(name) for name in coupling.ratios]
        motor = dq[:, joints] @ np.array(list(coupling.ratios.values()))
        moving[:, joints] &= (np.abs(motor) > FRICTION_SPEED)[:, None]
    return moving


class _Key:
    """A setting and rates, hashable for the cache."""

    def __init__(self, setting: Setting, control_hz: float, every: int) -> None:
        self.setting, self.control_hz, self.every = setting, control_hz, every
        robot = setting.robot
        self.fields = (
            robot.fingerprint,
            robot.parameter_vector.tobytes(),
            (setting.duration_s, setting.amplitude, setting.bandwidth_hz, setting.motion),
            control_hz,
            every,
        )

    def __hash__(self) -> int:
        return hash(self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.fields == other.fields


@lru_cache(maxsize=16)
def _other(key: _Key) -> LoopSimulation:
    loop = _loop(key.setting, key.control_hz, key.setting.motion + 1)
    return simulate_loop(key.setting.robot, loop, every=key.every)


def _every(loop: Loop, simulation: LoopSimulation) -> int:
    return round(loop.reference.rate_hz / simulation.rate_hz)
