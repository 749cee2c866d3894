"""Experiments simulated in their control loops, sample by sample beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError, EstimationError
from dynid.estimation.closed_loop.acting import Acting, acting
from dynid.estimation.closed_loop.loop_search import LoopSearch, SearchStart
from dynid.estimation.closed_loop.loop_stability import LoopStability, loop_simulator, sample_poses
from dynid.estimation.equations import LoopedRuns
from dynid.kernels import kernel
from dynid.loop.arm import Arm
from dynid.loop.integrator.rollout import Runs
from dynid.loop.loop import Loop
from dynid.loop.simulator import LoopSimulator
from dynid.processing.experiment import Experiment
from dynid.processing.filters import Smoothing
from dynid.tape import Program, compile_tape

ALIGNED = 1e-3
"""Largest distance of a sample from a control instant, in control periods. Convention."""
FORGOTTEN = 8.0
"""Settling times after which a low-pass has forgotten its input, to rounding. Convention."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedMotion:
    """What the simulated robot did at an experiment's samples; arrays (N, n)."""

    q: Floats
    dq: Floats
    ddq: Floats
    torque: Floats
    runs: Runs
    """The simulation with all its records"""


@dataclass(frozen=True, slots=True, eq=False)
class LoopRun:
    """One experiment, the simulator of its loop, and where its samples are among the control instants."""

    run: Experiment
    simulator: LoopSimulator
    every: int
    """Control periods per record of the simulation"""
    rows: NDArray[np.int64]
    """(N,) record of each sample"""
    stability: LoopStability
    """Which parameters it can be simulated with"""
    stride: int = 1
    """Records per sample of the log, before samples were thinned out"""

    @property
    def ticks(self) -> int:
        """Control periods up to the last sample, and on as far as its low-pass saw."""
        made = self.run.derivation
        beyond = 0.0 if made is None else made.smoothing.settling_s * self.loop.reference.rate_hz
        last = int(self.rows[-1]) * self.every
        return min(last + int(np.ceil(beyond)), len(self.loop.reference.q) - 1) + 1

    @property
    def loop(self) -> Loop:
        """The experiment's loop."""
        return self.simulator.loop

    def finer(self, factor: int) -> LoopRun:
        """The same with more steps of the integrator between control instants."""
        arm, steps = self.simulator.arm, factor * self.simulator.substeps
        simulator = LoopSimulator(arm, self.loop, substeps=steps)
        return replace(self, simulator=simulator, stability=linearise_stability(simulator, sample_poses(self.run)))

    def simulate(self, beta: Floats, near: SimulatedMotion | None = None) -> SimulatedMotion:
        """The motion with base parameters (b,); quicker where one with parameters near these is known.

        Raises:
            EstimationError: The robot runs away.
        """
        n = self.loop.dof
        known = self.simulator.reference_run(self.every) if near is None else near.runs
        runs = self.simulator.run_near(beta, known, every=self.every, ticks=self.ticks)
        state, rate = runs.state[0, self.rows], runs.rate[0, self.rows]
        return SimulatedMotion(state[:, :n], state[:, n : 2 * n], rate[:, n : 2 * n], runs.held[0, self.rows], runs)

    def velocities(self, motion: SimulatedMotion) -> Floats:
        """(N, n) simulated velocities, made as the measured ones were [rad/s or m/s]."""
        derived = self.derived(motion)
        return motion.dq if derived is None else derived[1]

    def derived(self, motion: SimulatedMotion) -> tuple[Floats, Floats, Floats] | None:
        """(N, n) simulated positions, velocities and accelerations, made as the measured ones were.

        None where that changes nothing: the measured motion is exact, or nothing is known of how it was made.
        """
        if self.run.derivation is None:
            return None
        n, state = self.loop.dof, self._logged(motion.runs.state[0])
        q, dq, ddq = self.run.derivation.motion(state[:, :n], state[:, n : 2 * n])
        return q[self._places], dq[self._places], ddq[self._places]

    @property
    def acting(self) -> Acting:
        """Which parameters act on which joints."""
        return acting(self.simulator.arm)

    def columns(self, motion: SimulatedMotion, rows: slice = slice(None)) -> Floats:
        """(N, n, b) torque per unit of each base parameter along a simulated motion, friction smoothed."""
        return self._along(_columns(self.simulator.arm), motion, rows)

    def active_rows(self, motion: SimulatedMotion, rows: slice = slice(None)) -> Floats:
        """(N, K) the same of those parameters only that act on a joint."""
        return self._along(self.acting.all, motion, rows)

    def _along(self, program: Program, motion: SimulatedMotion, rows: slice) -> Floats:
        """(N, ...) a program's output along a simulated motion, low-passed like the measured torques."""
        n, torque_filter = self.loop.dof, self._torque_filter
        if torque_filter is None:
            states = (motion.q[rows], motion.dq[rows], motion.ddq[rows])
            result: Floats = program(*(np.ascontiguousarray(x) for x in states))
            return result
        places, smoothing = self._places[rows], self._at_log_rate(torque_filter)
        beside = int(np.ceil(FORGOTTEN * smoothing.settling_s * smoothing.rate_hz))
        seen = slice(max(0, int(places[0]) - beside), int(places[-1]) + beside + 1)
        state, rate = (self._logged(x[0])[seen] for x in (motion.runs.state, motion.runs.rate))
        motion_seen = (state[:, :n], state[:, n : 2 * n], rate[:, n : 2 * n])
        made = program(*(np.ascontiguousarray(x) for x in motion_seen))
        return smoothing.apply(made.reshape(len(made), -1)).reshape(made.shape)[places - seen.start]

    def positions(self, motion: SimulatedMotion) -> Floats:
        """(N, n) simulated positions, low-passed where the measured ones are known to be [rad or m]."""
        q, made = motion.runs.state[0, :, : self.loop.dof], self.run.derivation
        return q[self.rows] if made is None else self._smoothed(made.smoothing, q)

    def torques(self, motion: SimulatedMotion) -> Floats:
        """(N, n) simulated torques, likewise [N m or N]."""
        return self.low_pass(motion.runs.held[0])

    def torque_residual(self, motion: SimulatedMotion) -> Floats:
        """(N, n) measured minus simulated torque, zero where it does not count [N m or N]."""
        return np.where(self.run.valid, np.nan_to_num(self.run.effort) - self.torques(motion), 0.0)

    def low_pass(self, records: Floats) -> Floats:
        """All records (K, ...) of a simulation, low-passed like the measured torques, at the samples (N, ...)."""
        return records[self.rows] if self._torque_filter is None else self._smoothed(self._torque_filter, records)

    def _smoothed(self, smoothing: Smoothing, records: Floats) -> Floats:
        """Records (K, ...) through a low-pass at the rate of the log, at the samples (N, ...)."""
        if smoothing.cutoff_hz is None:
            return records[self.rows]
        logged = self._logged(records)
        flat = np.ascontiguousarray(logged.reshape(len(logged), -1))
        return self._at_log_rate(smoothing).apply(flat).reshape(logged.shape)[self._places]

    def _at_log_rate(self, smoothing: Smoothing) -> Smoothing:
        return replace(smoothing, rate_hz=self.loop.reference.rate_hz / (self.every * self.stride))

    @property
    def _places(self) -> NDArray[np.int64]:
        """(N,) place of each sample among the logged records."""
        return np.asarray((self.rows - self._first) // self.stride)

    @property
    def _first(self) -> int:
        """First record at which the log could have been sampled."""
        return int(self.rows[0]) % self.stride

    def _logged(self, records: Floats) -> Floats:
        """The records (K, ...) at which the log was sampled."""
        return records[self._first :: self.stride]

    @property
    def is_low_passed(self) -> bool:
        """Whether the measured torques are low-pass filtered."""
        return self._torque_filter is not None

    @property
    def _torque_filter(self) -> Smoothing | None:
        """The low-pass that the measured torques went through; None without one."""
        smoothing = self.run.smoothing
        return None if smoothing is None or smoothing.cutoff_hz is None else smoothing


@lru_cache(maxsize=32)
def _columns(arm: Arm) -> Program:
    return compile_tape(arm.motion_columns())


Motions = tuple[SimulatedMotion, ...]


Start = SearchStart[Motions]
"""Where an iteration begins."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopRuns(LoopSearch[Motions]):
    """All experiments in their loops."""

    equations: LoopedRuns
    runs: tuple[LoopRun, ...]

    @classmethod
    def of(cls, equations: LoopedRuns) -> LoopRuns:
        """Prepare the simulators.

        Raises:
            ArgumentError: The samples of an experiment are not those of its reference motion.
        """
        return cls(equations, tuple(_prepare_run(equations, run) for run in equations.experiments))

    @property
    def rate_hz(self) -> float:
        """Sampling rate of the longest experiment [Hz]."""
        return max(self.runs, key=lambda run: run.run.samples).run.rate_hz

    def simulate(self, beta: Floats, near: Motions | None = None) -> Motions:
        """The motion of every experiment with base parameters (b,), near ones where they are known."""
        starts = near if near is not None else (None,) * len(self.runs)
        return tuple(run.simulate(beta, start) for run, start in zip(self.runs, starts, strict=True))

    def finer(self, factor: int) -> LoopRuns:
        """The same with more steps of the integrator between control instants."""
        return LoopRuns(self.equations, tuple(run.finer(factor) for run in self.runs))

    def misfit(self, motions: Motions) -> float:
        """Squares of measured minus simulated torques over those of the measured ones, summed over the joints.

        The simulated ones are as they are, whatever filter the measured went through: a robot whose friction makes its
        torques chatter does not fit.
        """
        squares, total = np.zeros(self.equations.robot.dof), np.zeros(self.equations.robot.dof)
        for run, motion in zip(self.runs, motions, strict=True):
            rest = np.where(run.run.valid, np.nan_to_num(run.run.effort) - motion.torque, 0.0)
            squares += (rest**2).sum(axis=0)
            total += (np.where(run.run.valid, run.run.effort, 0.0) ** 2).sum(axis=0)
        return float((squares / np.maximum(total, 1e-300)).sum())

    def attempt(self, beta: Floats, near: Motions | None = None) -> Motions | None:
        """The motion of every experiment; None where the loop is not stable or the robot leaves its reference."""
        evaluate = kernel(self.equations.robot, "inertia_matrix", symbolic_parameters=True)
        theta = self.equations.representative(beta)
        for run in self.runs:
            if not run.stability.holds(evaluate(sample_poses(run.run), theta), beta):
                return None
        try:
            motions = self.simulate(beta, near)
        except EstimationError:
            return None
        pairs = zip(self.runs, motions, strict=True)
        follows = all(np.abs(m.q - run.run.q).max() < 1.0 + np.ptp(run.run.q, axis=0).max() for run, m in pairs)
        return motions if follows else None


def require_loop(run: Experiment) -> Loop:
    """The loop of an experiment.

    Raises:
        ArgumentError: It is not known.
    """
    if run.loop is None:
        raise ArgumentError(
            f"the loop of '{run.source}' is not known",
            remedy="Give it: dataclasses.replace(experiment, loop=dynid.loop.Loop(law=..., reference=...)).",
        )
    return run.loop


def linearise_stability(simulator: LoopSimulator, poses: Floats) -> LoopStability:
    """Which parameters a loop can be simulated with, judged at poses (K, n)."""
    return LoopStability.of(simulator, _columns(simulator.arm), poses)


def _prepare_run(equations: LoopedRuns, run: Experiment) -> LoopRun:
    loop = require_loop(run)
    place = (run.time - loop.start_s) * loop.reference.rate_hz
    ticks = np.round(place).astype(np.int64)
    if ticks.size == 0 or ticks[0] < 0 or ticks[-1] >= len(loop.reference.q) or np.any(np.diff(ticks) <= 0):
        raise ArgumentError(
            f"the samples of '{run.source}' are not within its reference motion",
            remedy="Check Loop.start_s and that the log's rate does not exceed the control rate.",
        )
    if np.abs(place - ticks).max() > ALIGNED:
        raise ArgumentError(
            f"the samples of '{run.source}' are not taken at control instants",
            remedy="Give Loop.start_s, or a reference whose rate is a multiple of the log's.",
        )
    log_hz = run.rate_hz if run.derivation is None else run.derivation.smoothing.rate_hz
    period = max(1, round(loop.reference.rate_hz / log_hz))
    every = max(1, int(np.gcd.reduce(np.append(np.diff(ticks), [ticks[0], period]))))
    simulator = loop_simulator(equations, loop)
    stability = linearise_stability(simulator, sample_poses(run))
    return LoopRun(run, simulator, every, ticks // every, stability, period // every)


def joint_weights(residuals: Iterable[Floats], counts: NDArray[np.int64]) -> Floats:
    """(n,) inverse variance of each joint's residuals (N, n) over all runs, of which so many counted."""
    return inverse_variances(np.asarray(sum((residual**2).sum(axis=0) for residual in residuals)), counts)


def inverse_variances(squares: Floats, counts: NDArray[np.int64]) -> Floats:
    """(n,) the same from the sums of the squares (n,)."""
    variances = np.asarray(squares / np.maximum(counts, 1), dtype=float)
    return np.asarray(1.0 / np.maximum(variances, 1e-20 * max(float(variances.max()), 1e-280)))
