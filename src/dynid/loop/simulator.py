"""Simulation of a robot in its control loop, in machine code: one run, several side by side, or one run in pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.arrays import Floats
from dynid.checks import as_whole
from dynid.errors import ArgumentError, EstimationError
from dynid.kernels import energy_regressor, inertia_matrix
from dynid.loop.arm import Arm, control_tape, drop_unread_samples
from dynid.loop.integrator.rollout import Rollout, Runs, Timing, TracedRuns
from dynid.loop.integrator.runge_kutta import RK4, Scheme
from dynid.loop.loop import Loop
from dynid.loop.pace import FrictionPace, choose_friction_speed
from dynid.robot.model import Robot
from dynid.tape.program import Backend
from dynid.tape.tape import Tape

FAR = 1e6
"""Positions beyond which a simulated robot counts as unstable [rad or m]. Convention."""
FORGETTING_S = 0.75
"""Time by which pieces of a run start early [s]. Experiment: on the simulated 3R arm, PUMA 560 and TX40 of
tests/campaigns/estimators_noise.py (PD law) at most 5e-6 of a wrong initial state is then left; after 0.5 s it is 7e-4,
and 1 s makes the pieces of a log of 10 s longer by a tenth for nothing."""
PASSES = 2
"""Number of times that a run is tried in pieces. Experiment, same robots: the second pass reaches rounding."""
MEETING = 1e-4
"""Gap between pieces of a run that is small enough, as a share of the motion's change since the earlier run.
Experiment, same robots and IV and DIDIM: gaps of up to 7e-4 moved no estimate by more than 1e-5 of its standard
deviation, a hundredth of what is required."""
ROUNDING = 1e-9
"""Gap between pieces that is small enough in any case, in SI units and relative to one. Experiment: the error of
integration near a reversal of dry friction is some hundred times larger (5e-7 rad on the simulated 3R arm)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoopSimulation:
    """A simulated motion at K logged instants."""

    time: Floats
    """(K,) times on the log's clock [s]."""
    q: Floats
    """(K, n) true positions [rad or m]."""
    dq: Floats
    """(K, n) true velocities [rad/s or m/s]."""
    ddq: Floats
    """(K, n) true accelerations just after the instant, when the torque has changed [rad/s^2 or m/s^2]."""
    torque: Floats
    """(K, n) torques that act from this instant to the next control instant [N m or N]."""
    work: Floats
    """(K,) work of drives and friction since the start [J]."""
    rate_hz: float
    """Rate of the log [Hz]."""
    robot: Robot
    """The simulated robot."""

    @property
    def energy_error(self) -> float:
        """Largest difference between the energy gained and the work done [J]: the error of the integrator."""
        kinetic = 0.5 * np.einsum("ni,nij,nj->n", self.dq, inertia_matrix(self.robot, self.q), self.dq)
        energy = kinetic + energy_regressor(self.robot, self.q, np.zeros_like(self.q)) @ self.robot.inertial_vector
        return float(np.abs(energy - energy[0] - self.work).max())

    @property
    def energy_turned_over(self) -> float:
        """Sum of the absolute changes of the work done [J], the scale of `energy_error`."""
        return float(np.abs(np.diff(self.work)).sum())


class LoopSimulator:
    """A robot in one loop, compiled; its parameters are inputs."""

    def __init__(
        self,
        arm: Arm,
        loop: Loop,
        *,
        lanes: int = 1,
        backend: Backend = "auto",
        substeps: int | None = None,
        scheme: Scheme = RK4,
        friction_of: Robot | None = None,
    ) -> None:
        """Record the equations; they are compiled, or loaded from the cache, when they are run first.

        Args:
            arm: The robot and which of its parameters are inputs.
            loop: The loop.
            lanes: Number of runs side by side; 0 for as many as a vector register holds.
            backend: As for `dynid.tape.compile_tape`.
            substeps: Runge-Kutta steps per control period; by default the loop's, or as many as friction needs.
            scheme: The Runge-Kutta method.
            friction_of: A robot with about the true friction, which decides the number of steps; the arm's by default.
        """
        loop.check_joints(arm.robot)
        self.arm, self.loop, self.scheme = arm, loop, scheme
        self.law = control_tape(loop.law, loop.dof, loop.period_s)
        given = loop.substeps if substeps is None else as_whole("substeps", substeps, least=1)
        pace = FrictionPace(given, None) if given else FrictionPace.of(friction_of or arm.robot, loop)
        self.substeps = pace.most
        short, self._columns = drop_unread_samples(self.law)
        self._system, self._backend, self._lanes = _System(short, arm.rate(), pace.tape, scheme), backend, lanes
        self._clean = np.zeros((0, len(self._columns)))

    @property
    def lanes(self) -> int:
        """Number of runs side by side."""
        return _compiled(self._system, self._lanes, self._backend).lanes

    def run(
        self,
        parameters: ArrayLike,
        *,
        every: int = 1,
        ticks: int | None = None,
        position_noise: ArrayLike | None = None,
        torque_noise: ArrayLike | None = None,
    ) -> Runs:
        """Follow the whole reference.

        Args:
            parameters: (b,) or (L, b) values of the arm's input parameters.
            every: Control periods per logged instant.
            ticks: Control periods to simulate; all by default.
            position_noise: (M, n) added to what the law measures [rad or m].
            torque_noise: (M, n) added to the torque [N m or N].

        Raises:
            EstimationError: The simulated robot is unstable.
        """
        system, samples = self._system, self._samples()
        if position_noise is not None or torque_noise is not None:
            control = control_tape(self.loop.law, self.loop.dof, self.loop.period_s, noisy=True)
            system = _System(control, system.rate, system.pace, system.scheme)
            samples = self._noisy_samples(position_noise, torque_noise)
        runs = _compiled(system, self._lanes, self._backend).run(
            self.loop.start,
            self.loop.start_memory,
            np.asarray(parameters, dtype=float),
            samples,
            self._timing(ticks, as_whole("every", every, least=1)),
        )
        self._check_bounded(runs)
        return runs

    def trace(self, parameters: ArrayLike, *, ticks: int | None = None) -> TracedRuns:
        """Follow the whole reference and keep every stage of every step, for derivatives; arguments as for `run`.

        Raises:
            EstimationError: The simulated robot is unstable.
        """
        runs = _compiled(self._system, self._lanes, self._backend).trace(
            self.loop.start,
            self.loop.start_memory,
            np.asarray(parameters, dtype=float),
            self._samples(),
            self._timing(ticks, 1),
        )
        self._check_bounded(runs)
        return runs

    def _timing(self, ticks: int | None, every: int) -> Timing:
        """The ticks of a run; all of the reference by default."""
        count = len(self.loop.reference.q) if ticks is None else ticks
        return Timing(period=self.loop.period_s, ticks=count, every=every, substeps=self.substeps)

    def resume(self, parameters: ArrayLike, state: Floats, memory: Floats, wanted: Floats, *, every: int = 1) -> Runs:
        """Continue from a state along a further piece of the reference.

        Args:
            parameters: (b,) values of the arm's input parameters.
            state: (2 n + 1,) at the piece's first instant: positions, velocities, work done.
            memory: (m,) of the law.
            wanted: (K, 3 n) positions, velocities and accelerations of the reference at K instants.
            every: Control periods per logged instant; the first one is logged.

        Raises:
            EstimationError: The simulated robot is unstable.
        """
        runs = _compiled(self._system, self._lanes, self._backend).run(
            state,
            memory,
            np.asarray(parameters, dtype=float),
            wanted[:, self._columns],
            self._timing(len(wanted), every),
        )
        self._check_bounded(runs)
        return runs

    def run_near(self, parameters: ArrayLike, near: Runs | None, *, every: int, ticks: int) -> Runs:
        """One run in pieces that are computed side by side, for parameters near those of an earlier run.

        Every piece starts from the earlier run's state, `FORGETTING_S` before its own first instant: by then the motion
        of a stable loop hardly depends on the initial state. Where a piece does not end near the state that the next
        one has there, all pieces start once more from the new states; where gaps remain, the run is computed in one
        piece. A result therefore depends on the number of pieces by at most `MEETING`.

        Args:
            parameters: (b,) values of the arm's input parameters.
            near: The earlier run, recorded with the same ``every``; None for a run in one piece.
            every: Control periods per logged instant.
            ticks: Control periods to simulate.

        Raises:
            EstimationError: The simulated robot is unstable.
        """
        wide = _compiled(self._system, 0, self._backend)
        records = -(-ticks // every)
        warm = int(np.ceil(FORGETTING_S / (every * self.loop.period_s)))
        length = -(-(records + (wide.lanes - 1) * warm) // wide.lanes)
        if near is None or wide.lanes == 1 or length < 2 * warm:
            return self.run(parameters, every=every, ticks=ticks)
        starts = np.arange(wide.lanes) * (length - warm)
        state, memory, change = near.state[0], near.memory[0], None
        for _ in range(PASSES):
            runs = wide.run(
                state[starts],
                memory[starts],
                np.asarray(parameters, dtype=float),
                self._samples(int(starts[-1] + length) * every),
                self._timing(length * every, every),
                offsets=starts * every,
                into=starts,
            )
            if change is None:
                change = self._largest_change(near, runs, records)
            if self._pieces_meet(runs, starts + length, change):
                line = {name: getattr(runs, name)[:, :records] for name in ("state", "held", "rate", "memory")}
                last_state, last_memory = runs.last_state[-1:], runs.last_memory[-1:]
                self._check_bounded(runs)
                return replace(runs, **line, last_state=last_state, last_memory=last_memory)
            state, memory = runs.state[0], runs.memory[0]
        return self.run(parameters, every=every, ticks=ticks)

    def _largest_change(self, earlier: Runs, later: Runs, records: int) -> Floats:
        """(2 n + m,) largest change of every position, velocity and value of the law's memory between two runs."""
        moving = 2 * self.loop.dof  # behind them stands the work done, which no loop forgets
        changes = [later.state[0, :records, :moving] - earlier.state[0, :records, :moving]]
        changes.append(later.memory[0, :records] - earlier.memory[0, :records])
        return np.concatenate([np.abs(x).max(axis=0, initial=0.0) for x in changes])

    def _pieces_meet(self, runs: Runs, ends: NDArray[np.int64], change: Floats) -> bool:
        """Whether each piece ends, at these records, near the state that the next one has there."""
        moving, inner = 2 * self.loop.dof, ends[:-1]
        ended = np.concatenate([runs.last_state[:-1, :moving], runs.last_memory[:-1]], axis=1)
        there = np.concatenate([runs.state[0, inner, :moving], runs.memory[0, inner]], axis=1)
        return bool(np.all(np.abs(ended - there) <= np.maximum(MEETING * change, ROUNDING * (1.0 + np.abs(there)))))

    def reference_run(self, every: int) -> Runs | None:
        """The reference in the form of a run, for `run_near`; None if the law has memory, whose values are unknown."""
        if self.law.inputs[1].size:
            return None
        rows, reference = slice(None, None, every), self.loop.reference
        q, dq, ddq = (x[rows] for x in (reference.q, reference.dq, reference.ddq))
        nothing = np.zeros((len(q), 1))
        state, rate = np.concatenate([q, dq, nothing], axis=1), np.concatenate([dq, ddq, nothing], axis=1)
        state[0] = self.loop.start
        return Runs(
            state=state[None],
            held=np.zeros_like(q)[None],
            rate=rate[None],
            memory=np.zeros((1, len(q), 0)),
            last_state=state[-1:],
            last_memory=np.zeros((1, 0)),
            step_counts=np.zeros(0, dtype=np.int64),
        )

    def _samples(self, count: int = 0) -> Floats:
        """(M, k) the columns of the reference that the law reads, the last row repeated up to ``count`` rows."""
        reference = self.loop.reference
        if not len(self._clean) or len(self._clean) < count:
            wanted = np.concatenate([reference.q, reference.dq, reference.ddq], axis=1)[:, self._columns]
            missing = max(0, count - len(wanted))
            self._clean = np.concatenate([wanted, np.repeat(wanted[-1:], missing, axis=0)])
        return self._clean

    def _noisy_samples(self, position_noise: ArrayLike | None, torque_noise: ArrayLike | None) -> Floats:
        """(M, 5 n) reference and noise at every instant."""
        reference = self.loop.reference
        noises = [np.zeros_like(reference.q), np.zeros_like(reference.q)]
        given = {"position_noise": position_noise, "torque_noise": torque_noise}
        for noise, (name, values) in zip(noises, given.items(), strict=True):
            if values is not None and (np.shape(values) != noise.shape or not np.isfinite(values).all()):
                raise ArgumentError(
                    f"{name} of shape {np.shape(values)} is no finite {noise.shape} array",
                    remedy="Give one row per control instant of the reference, one column per joint.",
                )
            noise[:] = 0.0 if values is None else values
        return np.concatenate([reference.q, reference.dq, reference.ddq, *noises], axis=1)

    def _check_bounded(self, runs: Runs) -> None:
        """Refuse runs that end beyond `FAR` or at no finite state."""
        positions, everything = runs.last_state[:, : self.loop.dof], float(runs.last_state.sum())
        if not (np.isfinite(everything) and float(np.abs(positions).max()) < FAR):
            raise EstimationError(
                "the simulated robot runs away",
                remedy="Check the gains, or raise Loop.substeps; the parameters may be no possible robot.",
            )


class _System:
    """Tapes and integration method as a key of a cache: equal systems share their machine code."""

    def __init__(self, control: Tape, rate: Tape, pace: Tape | None, scheme: Scheme) -> None:
        self.control, self.rate, self.pace, self.scheme = control, rate, pace, scheme
        self._key = (*(tape and tape.fingerprint for tape in (control, rate, pace)), scheme)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _System) and self._key == other._key


@lru_cache(maxsize=64)
def _compiled(system: _System, lanes: int, backend: Backend) -> Rollout:
    return Rollout(system.control, system.rate, lanes, backend, pace=system.pace, scheme=system.scheme)


def simulate_loop(
    robot: Robot,
    loop: Loop,
    *,
    every: int = 1,
    position_noise: ArrayLike | None = None,
    torque_noise: ArrayLike | None = None,
    substeps: int | None = None,
    backend: Backend = "auto",
) -> LoopSimulation:
    """Simulate a robot that follows a reference under a control law.

    Args:
        robot: The robot with its true parameters; its dry friction is smoothed near rest.
        loop: The law, the reference, and how dry friction is smoothed.
        every: Control periods per logged instant.
        position_noise: (M, n) added to what the law measures at every instant [rad or m].
        torque_noise: (M, n) added to the torques that act [N m or N].
        substeps: Runge-Kutta steps per control period.
        backend: As for `dynid.tape.compile_tape`.

    Raises:
        EstimationError: The simulated robot is unstable.

    Example:
        >>> simulated = dynid.loop.simulate_loop(robot, loop, every=5)
        >>> simulated.q.shape
        (201, 3)
    """
    theta, loop = robot.parameter_vector, choose_friction_speed(loop, robot)
    columns = tuple(int(k) for k in np.flatnonzero(theta))
    simulator = LoopSimulator(Arm(robot, columns, loop.friction_speeds), loop, backend=backend, substeps=substeps)
    runs = simulator.run(theta[list(columns)], every=every, position_noise=position_noise, torque_noise=torque_noise)
    return _simulation(robot, loop, runs, every)


def _simulation(robot: Robot, loop: Loop, runs: Runs, every: int) -> LoopSimulation:
    n, state = robot.dof, runs.state[0]
    return LoopSimulation(
        time=np.asarray(loop.start_s + np.arange(len(state)) * (every * loop.period_s), dtype=np.float64),
        q=state[:, :n].copy(),
        dq=state[:, n : 2 * n].copy(),
        ddq=runs.rate[0, :, n : 2 * n].copy(),
        torque=runs.held[0].copy(),
        work=state[:, 2 * n].copy(),
        rate_hz=loop.reference.rate_hz / every,
        robot=robot,
    )
