"""Simulation of a robot in its control loop, in machine code, or with NumPy where there is no compiler.

At every tick k the law reads the state, its own memory and a row of the reference, and sets a torque that is held until
the next tick; in between the state follows its rate by Runge-Kutta steps of order four:

    held, memory = control(state, memory, samples[k]);   d state / dt = rate(state, held, parameters)

Dry friction that comes near rest decides how many steps a tick takes (`dynid.loop.pace`).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.arrays import Floats
from dynid.checks import as_whole
from dynid.errors import ArgumentError, EstimationError
from dynid.loop.arm import Arm, control_tape
from dynid.loop.llvm_loop import loop_module
from dynid.loop.loop import Loop
from dynid.loop.pace import choose_friction_speed, friction_pace
from dynid.robot.model import Robot
from dynid.tape.program import Backend, compile_tape, compiles
from dynid.tape.tape import Tape

FAR = 1e6
"""Positions beyond which a simulated robot counts as unstable [rad or m]. Convention."""
_ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 8)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """The records of a run at K recorded ticks."""

    state: Floats
    """(K, 2 n + 1) positions, velocities and work done."""
    held: Floats
    """(K, n) torques that are held from the tick to the next one [N m or N]."""
    rate: Floats
    """(K, 2 n + 1) rates of the state just after the tick."""
    memory: Floats
    """(K, m) memory of the law just before the tick."""
    step_counts: NDArray[np.int64]
    """(ticks,) number of steps of every tick."""


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


class LoopSimulator:
    """A robot in one loop, compiled; its parameters are inputs."""

    def __init__(
        self,
        arm: Arm,
        loop: Loop,
        *,
        backend: Backend = "auto",
        substeps: int | None = None,
        friction_of: Robot | None = None,
    ) -> None:
        """Record the equations; they are compiled, or loaded from the cache, when they are run first.

        Args:
            arm: The robot and which of its parameters are inputs.
            loop: The loop.
            backend: As for `dynid.tape.compile_tape`.
            substeps: Runge-Kutta steps per control period; by default the loop's, or as many as friction needs.
            friction_of: A robot with about the true friction, which decides the number of steps; the arm's by default.
        """
        loop.check_joints(arm.robot)
        given = loop.substeps if substeps is None else as_whole("substeps", substeps, least=1)
        self.arm, self.loop, self._backend = arm, loop, backend
        self.law = control_tape(loop.law, loop.dof, loop.period_s)
        self.substeps, self._pace = friction_pace(friction_of or arm.robot, loop, given)
        reference = loop.reference
        self._samples = np.concatenate([reference.q, reference.dq, reference.ddq], axis=1)

    def run(
        self,
        parameters: ArrayLike,
        *,
        every: int = 1,
        ticks: int | None = None,
        position_noise: ArrayLike | None = None,
        torque_noise: ArrayLike | None = None,
    ) -> Runs:
        """Follow the reference.

        Args:
            parameters: (b,) values of the arm's input parameters.
            every: Control periods per logged instant.
            ticks: Control periods to simulate; all by default.
            position_noise: (M, n) added to what the law measures [rad or m].
            torque_noise: (M, n) added to the torque [N m or N].

        Raises:
            EstimationError: The simulated robot is unstable.
        """
        control, samples = self.law, self._samples
        if position_noise is not None or torque_noise is not None:
            control = control_tape(self.loop.law, self.loop.dof, self.loop.period_s, noisy=True)
            given = {"position_noise": position_noise, "torque_noise": torque_noise}
            samples = np.hstack([samples, *(self._noise(name, values) for name, values in given.items())])
        rollout = _rollout(_System(control, self._pace, self.arm.rate()), self._backend)
        values = np.array(parameters, dtype=float)
        timing = (len(samples) if ticks is None else ticks, as_whole("every", every, least=1), self.substeps)
        runs, last = rollout.run((self.loop.start, self.loop.start_memory, values), samples, timing, self.loop.period_s)
        positions = last[: self.loop.dof]
        if not (np.isfinite(last).all() and float(np.abs(positions).max()) < FAR):
            raise EstimationError(
                "the simulated robot runs away",
                remedy="Check the gains, or raise Loop.substeps; the parameters may be no possible robot.",
            )
        return runs

    def _noise(self, name: str, values: ArrayLike | None) -> Floats:
        shape = self.loop.reference.q.shape
        noise = np.zeros(shape) if values is None else np.asarray(values, dtype=float)
        if noise.shape != shape or not np.isfinite(noise).all():
            raise ArgumentError(
                f"{name} of shape {noise.shape} is no finite {shape} array",
                remedy="Give one row per control instant of the reference, one column per joint.",
            )
        return noise


class _System:
    """Tapes as a key of a cache: equal systems share their machine code."""

    def __init__(self, control: Tape, pace: Tape, rate: Tape) -> None:
        self.tapes = (control, pace, rate)
        self.key = tuple(tape.fingerprint for tape in self.tapes)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _System) and self.key == other.key


@lru_cache(maxsize=64)
def _rollout(system: _System, backend: Backend) -> _Rollout:
    return _Rollout(system, backend)


class _Rollout:
    """A system ready to run."""

    def __init__(self, system: _System, backend: Backend) -> None:
        self._tapes = system.tapes
        control, _, _ = system.tapes
        state, memory, _ = (entry.size for entry in control.inputs)
        self._sizes = (state, control.outputs[0].size, state, memory)
        self._code = None
        if compiles(backend):
            from dynid.tape.llvm.engine import host, load_code

            key = f"loop {'|'.join(system.key)}"
            folder = Path(__file__).parent
            self._code = load_code(key, lambda: loop_module(*system.tapes, host()), printers=folder)

    def run(
        self, given: tuple[Floats, Floats, Floats], samples: Floats, timing: tuple[int, int, int], period_s: float
    ) -> tuple[Runs, Floats]:
        """The records, and (2 n + 1,) the state after the last tick.

        Args:
            given: State and memory at the first tick, and parameters.
            samples: (M, r) rows for the law.
            timing: Ticks, ticks per record, largest number of steps per tick.
            period_s: Time from tick to tick [s].
        """
        ticks, every, most = timing
        x, z, p = (array.copy() for array in given)
        records = np.empty((-(-ticks // every), sum(self._sizes)))
        taken = np.empty(ticks, dtype=np.int64)
        if self._code is None:
            self._interpret(x, z, p, samples, timing, period_s, records, taken)
        else:
            pace = period_s / np.arange(1, most + 1)[:, None] * np.array([0.5, 1.0, 1.0 / 6.0])
            wanted = np.ascontiguousarray(samples[:ticks])
            arrays: tuple[Any, ...] = (x, z, p, wanted, np.array(timing), pace, records, taken)
            _ENTRY(self._code.address("run"))(*(array.ctypes.data for array in arrays))
        state, held, rate, memory = np.split(records, np.cumsum(self._sizes)[:-1], axis=1)
        return Runs(state=state, held=held, rate=rate, memory=memory, step_counts=taken), x

    def _interpret(
        self,
        state: Floats,
        memory: Floats,
        parameters: Floats,
        samples: Floats,
        timing: tuple[int, int, int],
        period_s: float,
        records: Floats,
        taken: NDArray[np.int64],
    ) -> None:
        """The same with NumPy; state and memory become those after the last tick."""
        control, pace, rate = (compile_tape(tape, "numpy") for tape in self._tapes)
        ticks, every, most = timing
        for k in range(ticks):
            decided = control(state, memory, samples[k])
            held, k0 = decided["held"], rate(state, decided["held"], parameters)
            if k % every == 0:
                records[k // every] = np.concatenate([state, held, k0, memory])
            taken[k] = np.clip(np.ceil(pace(state, k0).max()), 1, most)
            h = period_s / taken[k]
            for _ in range(taken[k]):
                k0 = rate(state, held, parameters)
                k1 = rate(state + 0.5 * h * k0, held, parameters)
                k2 = rate(state + 0.5 * h * k1, held, parameters)
                k3 = rate(state + h * k2, held, parameters)
                state += h / 6.0 * (k0 + k3 + 2.0 * (k1 + k2))
            memory[:] = decided["memory"]


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
    theta, loop, n = robot.parameter_vector, choose_friction_speed(loop, robot), robot.dof
    columns = tuple(int(k) for k in np.flatnonzero(theta))
    simulator = LoopSimulator(Arm(robot, columns, loop.friction_speeds), loop, backend=backend, substeps=substeps)
    runs = simulator.run(theta[list(columns)], every=every, position_noise=position_noise, torque_noise=torque_noise)
    state = runs.state
    return LoopSimulation(
        time=np.asarray(loop.start_s + np.arange(len(state)) * (every * loop.period_s), dtype=np.float64),
        q=state[:, :n].copy(),
        dq=state[:, n : 2 * n].copy(),
        ddq=runs.rate[:, n : 2 * n].copy(),
        torque=runs.held.copy(),
        work=state[:, 2 * n].copy(),
        rate_hz=loop.reference.rate_hz / every,
        robot=robot,
    )
