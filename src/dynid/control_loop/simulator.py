"""Simulation of a robot in its control loop, in machine code.

At every tick k (control instant) the law reads the state, its own memory and a row of the reference, and sets a torque
that is held until the next tick. In between the state is integrated by Runge-Kutta steps of order four:

    held, memory = control(state, memory, samples[k]);   d state / dt = rate(state, held, parameters)

`dynid.control_loop.pace` chooses the number of steps from tick to tick: more when a joint with dry friction comes near
rest. `simulate_loop` is for users; `LoopSimulator` runs one compiled loop many times, for estimators.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.array_types import Floats
from dynid.checks import as_whole
from dynid.control_loop.arm import SimulatedArm, control_tape
from dynid.control_loop.llvm_loop import loop_module
from dynid.control_loop.loop import Loop
from dynid.control_loop.pace import choose_friction_speed, friction_pace
from dynid.errors import ArgumentError, EstimationError
from dynid.robot.model import Robot
from dynid.tape.llvm.engine import MachineCode, host, load_code
from dynid.tape.tape import Tape

FAR = 1e6
"""Position beyond which a simulated robot counts as unstable [rad or m] (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """Records of a simulation at K recorded ticks."""

    state: Floats
    """(K, 2 n + 1) positions, velocities, and work of drives and friction."""
    held: Floats
    """(K, n) torques that are held from the tick to the next one [N m or N]."""
    rate: Floats
    """(K, 2 n + 1) time derivatives of the state just after the tick."""
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
    """A robot in one loop, compiled, whose parameters are inputs."""

    def __init__(self, arm: SimulatedArm, loop: Loop, *, friction_of: Robot | None = None) -> None:
        """Choose the number of steps. The equations are compiled, or loaded from the cache, at the first run.

        Args:
            arm: The robot and which of its parameters are inputs.
            loop: The loop.
            friction_of: A robot with about the true friction, which decides the number of steps; the arm's by default.
        """
        loop.check_joints(arm.robot)
        self.arm = arm
        self.loop = loop
        self.substeps, self._pace = friction_pace(friction_of or arm.robot, loop)

    @cached_property
    def tapes(self) -> tuple[Tape, Tape, Tape]:
        """Tapes of the law, of the number of steps of a tick, and of the rate of the state."""
        return control_tape(self.loop.law, self.loop.dof, self.loop.period_s), self._pace, self.arm.rate()

    @cached_property
    def _code(self) -> MachineCode:
        """Machine code, from the cache or compiled."""
        key = f"loop {'|'.join(tape.fingerprint for tape in self.tapes)}"
        return load_code(key, lambda: loop_module(*self.tapes, host()), printers=Path(__file__).parent)

    def run(
        self,
        parameters: ArrayLike,
        *,
        every: int = 1,
        ticks: int | None = None,
        position_noise: ArrayLike | None = None,
    ) -> Runs:
        """Simulate the robot that follows the reference.

        Args:
            parameters: (b,) values of the arm's input parameters.
            every: Control periods per record.
            ticks: Control periods to simulate; all by default.
            position_noise: (M, n) noise that is added to the positions which the law measures [rad or m].

        Raises:
            EstimationError: The simulated robot is unstable.
        """
        loop = self.loop
        n = loop.dof
        # the arrays of the compiled function, see `dynid.control_loop.llvm_loop.loop_module`
        samples = loop.reference.samples[:ticks]
        if position_noise is not None:
            samples[:, 3 * n :] = self._check_noise(position_noise)[:ticks]
        sizes = (2 * n + 1, n, 2 * n + 1, loop.law.memory_size(n))  # of the parts of a record
        end_state = loop.start  # changed in place from the first to the last state
        end_memory = loop.start_memory.copy()
        theta = np.array(parameters, dtype=float)
        records = np.empty((-(-len(samples) // as_whole("every", every, least=1)), sum(sizes)))
        step_counts = np.empty(len(samples), dtype=np.int64)
        counts = np.array((len(samples), every, self.substeps))
        steps = loop.period_s / np.arange(1, self.substeps + 1)[:, None] * np.array([0.5, 1.0, 1.0 / 6.0])
        arrays = (end_state, end_memory, theta, samples, counts, steps, records, step_counts)
        self._code.entry("run", len(arrays))(*(array.ctypes.data for array in arrays))
        if not (np.isfinite(end_state).all() and float(np.abs(end_state[:n]).max()) < FAR):
            raise EstimationError(
                "the simulated robot runs away",
                remedy="Check the gains, or raise Loop.substeps; the parameters may be no possible robot.",
            )
        state, held, rate, memory = np.split(records, np.cumsum(sizes)[:-1], axis=1)
        return Runs(state=state, held=held, rate=rate, memory=memory, step_counts=step_counts)

    def _check_noise(self, values: ArrayLike) -> Floats:
        """Refuse position noise that is not as long as the reference."""
        shape = self.loop.reference.q.shape
        noise = np.asarray(values, dtype=float)
        if noise.shape != shape or not np.isfinite(noise).all():
            raise ArgumentError(
                f"position_noise of shape {noise.shape} is no finite {shape} array",
                remedy="Give one row per control instant of the reference, one column per joint.",
            )
        return noise


def simulate_loop(
    robot: Robot, loop: Loop, *, every: int = 1, position_noise: ArrayLike | None = None
) -> LoopSimulation:
    """Simulate a robot that follows a reference under a control law.

    Args:
        robot: The robot with its true parameters; its dry friction is smoothed near rest.
        loop: The law, the reference, and how dry friction is smoothed.
        every: Control periods per logged instant.
        position_noise: (M, n) noise that is added to the positions which the law measures [rad or m].

    Raises:
        EstimationError: The simulated robot is unstable.

    Example:
        >>> simulated = dynid.control_loop.simulate_loop(robot, loop, every=5)
        >>> simulated.q.shape
        (201, 3)
    """
    theta = robot.parameter_vector
    loop = choose_friction_speed(loop, robot)
    n = robot.dof
    columns = tuple(int(k) for k in np.flatnonzero(theta))  # parameters that are zero need not be inputs
    simulator = LoopSimulator(SimulatedArm(robot, columns, loop.friction_speeds), loop)
    runs = simulator.run(theta[list(columns)], every=every, position_noise=position_noise)
    state = runs.state
    return LoopSimulation(
        time=np.asarray(loop.start_s + np.arange(len(state)) * (every * loop.period_s), dtype=np.float64),
        q=state[:, :n],
        dq=state[:, n : 2 * n],
        ddq=runs.rate[:, n : 2 * n],
        torque=runs.held,
        work=state[:, 2 * n],
        rate_hz=loop.reference.rate_hz / every,
        robot=robot,
    )
