"""Exact derivatives of the simulated closed loop with respect to the robot's parameters.

They are derivatives of the integration steps themselves, not differences of simulations: a run is traced stage by
stage, the equations are linearised at these stages in batches, and the derivatives follow in one more pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.loop.arm import Arm, law_slopes
from dynid.loop.integrator.rollout import TracedRuns
from dynid.loop.integrator.variation import Linearisation, Variation, pad_width
from dynid.loop.simulator import LoopSimulator
from dynid.tape import Program, Tape, compile_tape
from dynid.tape.program import Backend

STEPS = 128
"""Runge-Kutta steps that are linearised at a time, so that their tables fit into the cache. Convention."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoopDerivatives:
    """A run and its derivatives at the K logged instants."""

    q: Floats
    """(K, n) positions [rad or m]."""
    dq: Floats
    """(K, n) velocities [rad/s or m/s]."""
    ddq: Floats
    """(K, n) accelerations [rad/s^2 or m/s^2]."""
    torque: Floats
    """(K, n) torques of the law [N m or N]."""
    q_slopes: Floats
    """(K, n, b) derivatives of the positions with respect to the arm's input parameters."""
    torque_slopes: Floats
    """(K, n, b) derivatives of the torques with respect to the arm's input parameters."""


def differentiate_loop(
    simulator: LoopSimulator, parameters: Floats, *, every: int = 1, ticks: int | None = None, backend: Backend = "auto"
) -> LoopDerivatives:
    """Simulate and differentiate.

    Args:
        simulator: A simulator of one run.
        parameters: (b,) values of the arm's input parameters.
        every: Control periods per logged instant.
        ticks: Control periods; all by default.
        backend: As for `dynid.tape.compile_tape`.

    Raises:
        EstimationError: The robot runs away.
    """
    runs = simulator.trace(parameters, ticks=ticks)
    n, b = simulator.loop.dof, len(simulator.arm.columns)
    S = np.zeros((2 * n + runs.memory.shape[2], pad_width(b)))
    slopes = _vary(simulator, runs, parameters, S, every, backend)[:, :, :b]
    state, rate = runs.state[0, ::every], runs.rate[0, ::every]
    return LoopDerivatives(
        q=state[:, :n],
        dq=state[:, n : 2 * n],
        ddq=rate[:, n : 2 * n],
        torque=runs.held[0, ::every],
        q_slopes=slopes[:, :n],
        torque_slopes=slopes[:, n:],
    )


def differentiate_start(
    simulator: LoopSimulator, parameters: Floats, *, every: int = 1, ticks: int | None = None, backend: Backend = "auto"
) -> tuple[Floats, Floats]:
    """(K, n, 2 n + m) derivatives of positions and of torques with respect to the initial state.

    The initial state is positions, velocities and the law's memory; arguments as for `differentiate_loop`.

    Raises:
        EstimationError: The robot runs away.
    """
    runs = simulator.trace(parameters, ticks=ticks)
    n = simulator.loop.dof
    size = 2 * n + runs.memory.shape[2]
    S = np.eye(size, pad_width(size))
    slopes = _vary(simulator, runs, parameters, S, every, backend, fixed=True)[:, :, :size]
    return slopes[:, :n], slopes[:, n:]


def _vary(
    simulator: LoopSimulator,
    runs: TracedRuns,
    parameters: Floats,
    S: Floats,
    every: int,
    backend: Backend,
    *,
    fixed: bool = False,
) -> Floats:
    """(K, 2 n, B) derivatives of positions and torques along a run; S (2 n + m, B) are those of its start.

    Args:
        simulator: The simulator of the run.
        runs: The run with its trace.
        parameters: (b,) parameters of the run.
        S: Derivatives of the initial state; overwritten.
        every: Control periods per record.
        backend: As for `dynid.tape.compile_tape`.
        fixed: Whether the parameters are constant, so that only the initial state varies.
    """
    variation = Variation(simulator.loop.dof, runs.memory.shape[2], S.shape[1], simulator.scheme, backend)
    steps = np.concatenate([[0], np.cumsum(runs.step_counts)])
    cuts = np.unique(np.searchsorted(steps, np.arange(0, steps[-1] + STEPS, STEPS)).clip(0, len(runs.step_counts)))
    records = []
    for start, stop in pairwise(cuts.tolist()):
        along = _linearised(simulator, runs, parameters, slice(start, stop), steps, backend, S.shape[1] if fixed else 0)
        records.append(variation.run(S, along, period=simulator.loop.period_s, first=start, every=every))
    return np.concatenate(records)


def _linearised(
    simulator: LoopSimulator,
    runs: TracedRuns,
    parameters: Floats,
    ticks: slice,
    steps: NDArray[np.int64],
    backend: Backend,
    unused: int = 0,
) -> Linearisation:
    """The linearised loop in some control periods; `unused` columns of parameters that do not vary are zero."""
    n, reference = simulator.loop.dof, simulator.loop.reference
    state, memory = runs.state[0, ticks], runs.memory[0, ticks]
    samples = np.concatenate([x[ticks] for x in (reference.q, reference.dq, reference.ddq)], axis=1)
    laws = compile_law_slopes(simulator.law, n, backend)(state, memory, samples)
    stages = runs.stages[0, steps[ticks.start] : steps[ticks.stop]]
    q, dq, ddq = (
        np.ascontiguousarray(stages[:, :, which, part].reshape(-1, n))
        for which, part in ((0, slice(n)), (0, slice(n, 2 * n)), (1, slice(n, 2 * n)))
    )
    found = _arm_program(simulator.arm, backend, not unused)(q, dq, ddq, parameters)
    shaped = {name: values.reshape(*stages.shape[:2], n, -1) for name, values in found.items()}
    if unused:
        shaped["columns"] = np.zeros((*stages.shape[:2], n, unused))
    return Linearisation(step_counts=runs.step_counts[ticks], laws=laws, **shaped)


def inverse_dynamics_slopes(arm: Arm, q: Floats, dq: Floats, ddq: Floats, parameters: Floats) -> tuple[Floats, Floats]:
    """(N, n, n) derivatives of the inverse dynamics with respect to positions and to velocities, friction smoothed."""
    found = _slopes_program(arm)(q, dq, ddq, parameters)
    return found["stiffness"], found["damping"]


@lru_cache(maxsize=16)
def _slopes_program(arm: Arm) -> Program:
    return compile_tape(arm.linearised(pad_width(len(arm.columns))).select({"stiffness": ..., "damping": ...}))


class _Key:
    """A tape and a number of joints as a key of a cache."""

    def __init__(self, tape: Tape, dof: int) -> None:
        self.tape, self.fields = tape, (tape.fingerprint, dof)

    def __hash__(self) -> int:
        return hash(self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.fields == other.fields


@lru_cache(maxsize=32)  # the same object is found without looking at what it holds
def compile_law_slopes(law: Tape, dof: int, backend: Backend = "auto") -> Program:
    """`law_slopes` compiled for many states at once; equal laws share the program."""
    return _law_program(_Key(law, dof), backend)


@lru_cache(maxsize=32)
def _law_program(key: _Key, backend: Backend) -> Program:
    return compile_tape(law_slopes(key.tape, key.fields[1]), backend)


@lru_cache(maxsize=16)
def _arm_program(arm: Arm, backend: Backend, has_columns: bool) -> Program:
    """The linearised arm; without the columns of its parameters, most of the work, where these do not vary."""
    tape = arm.linearised(pad_width(len(arm.columns)))
    names = [output.name for output in tape.outputs if has_columns or output.name != "columns"]
    return compile_tape(tape.select(dict.fromkeys(names, ...)), backend)
