"""Simulation of experiments in their control loops, and steps to parameters with which the loop stays stable.

`closed_loop.loop_estimator` (DIDIM and instrumental variables) calls this file with equations whose experiments have a
loop: a control law, a commanded motion, and the robot's start. `LoopRun` is one experiment with its simulator.
`LoopRuns` holds all of them: it finds where to start (`starts`) and how far to step (`advance`). `welch_covariance` is
the covariance of a solution with noise that is correlated in time.

A tick is a control instant; a record is a tick at which the simulation stores the state. Shapes: N samples, n joints, b
base parameters, K records at the rate of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dynid.array_types import Bools, Floats, Ints
from dynid.control_loop.arm import SimulatedArm
from dynid.control_loop.loop import Loop
from dynid.control_loop.pace import choose_friction_speed
from dynid.control_loop.simulator import LoopSimulator, Runs
from dynid.errors import ArgumentError, EstimationError
from dynid.estimators.equations import Factors, Samples
from dynid.estimators.linear.least_squares import weighted_values
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.estimators.score_sums import student_factor
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Butterworth
from dynid.robot.model import Robot
from dynid.tape import Program, compile_tape
from dynid.terms.base import Dependence

LARGEST_MISALIGNMENT = 1e-3
"""Largest distance of a sample from a control instant [control periods] (convention)."""
LARGEST_MISFIT_FACTOR = 2.0
"""Factor of the misfit above which a step is shortened (convention)."""
STEP_TRIALS = 6
"""Number of lengths of a step that are tried, each half of the one before (convention)."""
WINDOWS_S = (1.0, 2.0)
"""Shortest and longest window of Welch's method [s]; between these, a tenth of the log (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedMotion:
    """The simulated motion at an experiment's samples; arrays (N, n)."""

    q: Floats
    """Positions [rad or m]."""
    dq: Floats
    """Velocities [rad/s or m/s]."""
    ddq: Floats
    """Accelerations [rad/s^2 or m/s^2]."""
    torque: Floats
    """Torques of the law [N m or N]."""
    runs: Runs
    """The simulation with all its records."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopRun:
    """One experiment, the simulator of its loop, and the places of its samples among the control instants."""

    run: Experiment
    """The experiment."""
    simulator: LoopSimulator
    """The simulator of its loop."""
    every: int
    """Number of control periods from one record to the next."""
    rows: Ints
    """(N,) index of the record that belongs to each sample."""
    stride: int
    """Number of records per sample of the log at its full rate; an experiment may have fewer samples than the log."""

    @property
    def loop(self) -> Loop:
        """The experiment's loop."""
        return self.simulator.loop

    @property
    def ticks(self) -> int:
        """Number of control instants to simulate: up to the last sample, and beyond it what its low-pass needs."""
        made = self.run.derivation
        beyond = 0.0 if made is None else made.smoothing.settling_s * self.loop.reference.rate_hz
        last = int(self.rows[-1]) * self.every + int(np.ceil(beyond))
        return min(last, len(self.loop.reference.q) - 1) + 1

    @property
    def commanded(self) -> tuple[Floats, Floats, Floats]:
        """(N, n) commanded positions, velocities and accelerations at the samples."""
        reference, ticks = self.loop.reference, self.rows * self.every
        return reference.q[ticks], reference.dq[ticks], reference.ddq[ticks]

    def simulate(self, values: Floats) -> SimulatedMotion:
        """The motion with base parameters (b,).

        Raises:
            EstimationError: The simulation diverges.
        """
        runs = self.simulator.run(values, every=self.every, ticks=self.ticks)
        n = self.loop.dof
        state = runs.state[self.rows]
        rate = runs.rate[self.rows]
        return SimulatedMotion(state[:, :n], state[:, n : 2 * n], rate[:, n : 2 * n], runs.held[self.rows], runs)

    def derived(self, motion: SimulatedMotion) -> tuple[Floats, Floats, Floats] | None:
        """(N, n) simulated positions, velocities and accelerations, filtered and differentiated like the measured ones.

        None where that changes nothing: the measured motion is exact, or nothing is known of how it was made.
        """
        if self.run.derivation is None:
            return None
        n = self.loop.dof
        state = self._select_logged(motion.runs.state)
        q, dq, ddq = self.run.derivation.motion(state[:, :n], state[:, n : 2 * n])
        return q[self._places], dq[self._places], ddq[self._places]

    def columns(self, motion: SimulatedMotion) -> Floats:
        """(N, n, b) regressor of the simulated motion, low-passed like the measured torques; friction is smoothed."""
        program = _columns(self.simulator.arm)
        n = self.loop.dof
        if self._torque_filter is None:
            made: Floats = program(motion.q, motion.dq, motion.ddq)
            return made
        state, rate = (self._select_logged(x) for x in (motion.runs.state, motion.runs.rate))
        states = (state[:, :n], state[:, n : 2 * n], rate[:, n : 2 * n])
        return self._smooth(program(*(np.ascontiguousarray(x) for x in states)))

    def torque_residual(self, motion: SimulatedMotion) -> Floats:
        """(N, n) measured minus simulated torque, zero where it does not count [N m or N]."""
        simulated = (
            motion.torque if self._torque_filter is None else self._smooth(self._select_logged(motion.runs.held))
        )
        return np.where(self.run.valid, np.nan_to_num(self.run.effort) - simulated, 0.0)

    def _smooth(self, logged: Floats) -> Floats:
        """Low-pass values (K, ...) at the log's full rate like the torques; returns those at the samples (N, ...)."""
        assert self._torque_filter is not None
        rate_hz = self.loop.reference.rate_hz / (self.every * self.stride)
        flat = np.ascontiguousarray(logged.reshape(len(logged), -1))
        return replace(self._torque_filter, rate_hz=rate_hz).apply(flat).reshape(logged.shape)[self._places]

    @property
    def _torque_filter(self) -> Butterworth | None:
        """The low-pass of the measured torques; None where there was none."""
        smoothing = self.run.smoothing
        return None if smoothing is None or smoothing.cutoff_hz is None else smoothing

    @property
    def _places(self) -> Ints:
        """(N,) place of each sample among the records that `_select_logged` selects."""
        return np.asarray((self.rows - self.rows[0] % self.stride) // self.stride)

    def _select_logged(self, records: Floats) -> Floats:
        """Select the records (K, ...) at the log's full rate, at which its filters were applied."""
        return records[self.rows[0] % self.stride :: self.stride]


@lru_cache(maxsize=32)
def _columns(arm: SimulatedArm) -> Program:
    """The compiled regressor of an arm."""
    return compile_tape(arm.motion_columns())


Motions = tuple[SimulatedMotion, ...]
"""The simulated motion of each experiment."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopRuns:
    """All experiments in their loops."""

    equations: Samples
    """The equations of all experiments."""
    runs: tuple[LoopRun, ...]
    """One for each experiment."""

    @classmethod
    def of(cls, equations: Samples) -> LoopRuns:
        """Prepare the simulators of experiments that have a loop.

        Raises:
            ArgumentError: The samples of an experiment are not those of its reference motion.
        """
        return cls(equations, tuple(_prepare_run(equations, run) for run in equations.experiments))

    def simulate(self, beta: Floats) -> Motions:
        """The motion of every experiment with base parameters (b,)."""
        return tuple(run.simulate(beta) for run in self.runs)

    def attempt(self, beta: Floats) -> Motions | None:
        """The motion of every experiment; None where the loop is unstable or a joint is far from its log."""
        try:
            with np.errstate(all="ignore"):
                motions = self.simulate(beta)
        except EstimationError:
            return None
        pairs = zip(self.runs, motions, strict=True)
        follows = all(np.abs(m.q - run.run.q).max() < 1.0 + np.ptp(run.run.q, axis=0).max() for run, m in pairs)
        return motions if follows else None

    def misfit(self, motions: Motions) -> float:
        """Squared torque error over squared torque, summed over the joints.

        The simulated torques are not low-passed, so that torques which chatter by friction count as a misfit.
        """
        squares = np.zeros(self.equations.robot.dof)
        total = np.zeros(self.equations.robot.dof)
        for run, motion in zip(self.runs, motions, strict=True):
            residual = np.where(run.run.valid, np.nan_to_num(run.run.effort) - motion.torque, 0.0)
            squares += (residual**2).sum(axis=0)
            total += (np.where(run.run.valid, run.run.effort, 0.0) ** 2).sum(axis=0)
        return float((squares / np.maximum(total, 1e-300)).sum())

    def starts(self) -> list[tuple[Floats, Motions]]:
        """Up to three parameter vectors (b,) to start from, with their motions; the smallest misfit first.

        Noise of differentiated positions makes least squares underestimate inertia, at worst so much that the simulated
        robot hardly follows. So the robot's prior values and a physically possible fit are tried, too.
        """
        equations = self.equations
        found = list[tuple[Floats, Motions]]()
        for beta in (
            weighted_values(equations),
            equations.base.project(equations.robot.parameter_vector),
            FeasibleWLS().solve(equations).values,
        ):
            motions = self.attempt(beta)
            found += [] if motions is None else [(beta, motions)]
        return sorted(found, key=lambda start: self.misfit(start[1]))

    def advance(self, beta: Floats, wanted: Floats, motions: Motions) -> tuple[Floats, Motions]:
        """Step from beta to the wanted parameters, halved until the loop stays stable and the misfit hardly grows.

        Args:
            beta: (b,) the present parameters.
            wanted: (b,) the parameters after a full step.
            motions: The motions with the present parameters.

        Returns:
            The parameters after the step, and their motions.

        Raises:
            EstimationError: Not even a small step is possible.
        """
        limit = LARGEST_MISFIT_FACTOR * self.misfit(motions) + 1e-12
        for halvings in range(STEP_TRIALS):
            values = beta + (wanted - beta) * 0.5**halvings
            found = self.attempt(values)
            if found is not None and self.misfit(found) <= limit:
                return values, found
        raise EstimationError(
            "the simulated robot stops following its reference as soon as the estimate improves",
            remedy="Check the control law, or start from better prior values.",
        )


def welch_covariance(slope: Floats, scores: Sequence[Floats], rate_hz: float) -> Floats:
    """(b, b) covariance of a solution, with the spectral density of its scores at zero frequency by Welch's method.

    The scores are the terms of the sum that is zero at the solution. 1.96 standard deviations are half of a 95 %
    interval.

    Args:
        slope: (b, b) derivative of the equations with respect to the parameters.
        scores: The scores of each run, (N, b): their sum over all samples is zero at the solution.
        rate_hz: Sampling rate [Hz].
    """
    total = sum(len(g) for g in scores)
    wanted = int(rate_hz * np.clip(0.1 * total / rate_hz, *WINDOWS_S))  # samples of a window
    spread = np.zeros(slope.shape)  # covariance of the sum of all scores
    windows = 0
    longest = 0
    for g in scores:
        length = max(2, min(wanted, len(g)))
        taper = np.hanning(length + 2)[1:-1]
        # tapered sums over windows that overlap by half
        sums = np.lib.stride_tricks.sliding_window_view(g, length, axis=0)[:: max(1, length // 2)] @ taper
        spread += len(g) / (len(sums) * (taper @ taper)) * (sums.T @ sums)
        windows += len(sums)
        longest = max(longest, length)
    # Student's t for few windows, and a correction because the fit makes the sum of all scores zero
    spread *= student_factor(windows - 1) ** 2 / max(1.0 - 2.0 * longest / total, 0.25)
    inverse = np.linalg.inv(slope)
    return np.asarray(inverse @ spread @ inverse.T)


def _prepare_run(equations: Samples, run: Experiment) -> LoopRun:
    """Find the samples of an experiment among the control instants, and make the simulator of its loop.

    Raises:
        ArgumentError: The samples are not taken at control instants of the reference motion.
    """
    loop = run.loop
    assert loop is not None, "runs without a loop got one"
    place = (run.time - loop.start_s) * loop.reference.rate_hz
    ticks = np.round(place).astype(np.int64)
    if ticks.size == 0 or ticks[0] < 0 or ticks[-1] >= len(loop.reference.q) or np.any(np.diff(ticks) <= 0):
        raise ArgumentError(
            f"the samples of '{run.source}' are not within its reference motion",
            remedy="Check Loop.start_s and that the log's rate does not exceed the control rate.",
        )
    if np.abs(place - ticks).max() > LARGEST_MISALIGNMENT:
        raise ArgumentError(
            f"the samples of '{run.source}' are not taken at control instants",
            remedy="Give Loop.start_s, or a reference whose rate is a multiple of the log's.",
        )
    log_hz = run.rate_hz if run.derivation is None else run.derivation.smoothing.rate_hz
    period = max(1, round(loop.reference.rate_hz / log_hz))
    # the greatest common divisor of all distances [ticks], so that every sample is a record
    every = max(1, int(np.gcd.reduce(np.append(np.diff(ticks), [ticks[0], period]))))
    return LoopRun(run, loop_simulator(equations, loop), every, ticks // every, period // every)


def loop_simulator(equations: Factors, loop: Loop) -> LoopSimulator:
    """Make the simulator of a loop: base parameters are inputs, dry friction is smoothed so that few steps suffice."""
    robot = _with_dry_friction(equations)
    loop = choose_friction_speed(loop, robot)
    arm = SimulatedArm(equations.robot, equations.base.columns, loop.friction_speeds)
    return LoopSimulator(arm, loop, friction_of=robot)


def _with_dry_friction(equations: Factors) -> Robot:
    """The robot with a value for all dry friction: that of ordinary least squares where its prior value is zero."""
    theta = equations.robot.parameter_vector.copy()
    base = equations.base
    # base parameters k, standard parameters c whose torque depends on the direction of motion
    dry = [(k, c) for k, c in enumerate(base.columns) if base.layout[c].dependence is Dependence.DIRECTION]
    unknown = [(k, c) for k, c in dry if theta[c] == 0.0]
    if not unknown:
        return equations.robot
    beta = equations.information.weight(np.ones(equations.robot.dof)).solve(minimum_norm=True)
    for place, column in unknown:
        theta[column] = abs(beta[place])
    return equations.robot.with_parameters(theta)


def dry_joints(robot: Robot) -> Bools:
    """(n,) whether a joint has dry friction, be it of a motor that turns with several joints."""
    dry = [j for placed in robot.terms if placed.term.dependence is Dependence.DIRECTION for j in placed.joints]
    return np.isin(np.arange(robot.dof), dry)
