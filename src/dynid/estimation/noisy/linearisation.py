"""Torques to first order about a motion: exact derivatives by the tape's forward mode, compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.dynamics.symmetric_solve import solve_symmetric
from dynid.kernels import record_quantity
from dynid.lazy import cached_property
from dynid.loop.smooth_friction import smooth_signs
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot
from dynid.tape import Program, Tape, compile_single, compile_tape, jvp
from dynid.tape.record import Recorder, replay


@dataclass(frozen=True, eq=False)
class Linearisation:
    """The matrix ``[dtau/dq  dtau/ddq  dtau/dddq  Y]`` (n, 3 n + b) at a state and base parameters (b,)."""

    tape: Tape
    """(q, dq, ddq, beta) -> the matrix"""
    terms_tape: Tape
    """(q, dq, theta) -> inertia matrix and bias, all standard parameters as inputs"""

    @cached_property
    def terms(self) -> Program:
        """Inertia matrices and biases of many states, each with its own parameters."""
        return compile_tape(self.terms_tape)

    @cached_property
    def rate(self) -> Callable[..., Floats]:
        """(q, dq, torque, beta) of one state -> (n, 1 + 3 n + b): the acceleration, then its derivatives.

        By positions, velocities, parameters and torques, from ``tau = ID(q, dq, ddq, beta)``:
        ``M d(ddq) = d(tau) - ID_q dq - ID_dq d(dq) - Y d(beta)``.
        """
        return compile_single(_rate_tape(self))

    @cached_property
    def many(self) -> Program:
        """For many states (N, n) and one set of parameters, or one each."""
        return compile_tape(self.tape)

    @cached_property
    def single(self) -> Callable[..., Floats]:
        """For one state."""
        return compile_single(self.tape)


def linearisation(robot: Robot, base: BaseParameters, friction_speed: float | None = None) -> Linearisation:
    """The linearisation of a robot's torques; from the cache where an equal robot had it made.

    Args:
        robot: Geometry and terms.
        base: The base parameters.
        friction_speed: Dry friction is smoothed below this speed (`dynid.loop.smooth_friction`); None leaves its jump.
    """
    return _cached(_Key(robot, base.columns, friction_speed))


class _Key:
    """Two robots with the same equations share the result."""

    def __init__(self, robot: Robot, columns: tuple[int, ...], speed: float | None) -> None:
        self.robot, self.columns, self.speed = robot, columns, speed
        self.fields = (robot.fingerprint, columns, speed)

    def tape(self, quantity: str, *, symbolic: bool) -> Tape:
        """A quantity's tape, dry friction smoothed where that is wanted."""
        plain = record_quantity(self.robot, quantity, symbolic_parameters=symbolic)
        return plain if self.speed is None else smooth_signs(plain, self.speed)

    def __hash__(self) -> int:
        return hash(self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.fields == other.fields


@lru_cache(maxsize=32)
def _cached(key: _Key) -> Linearisation:
    robot, columns, n = key.robot, list(key.columns), key.robot.dof
    recorder = Recorder()
    states = [recorder.input(name, (n,)) for name in ("q", "dq", "ddq")]
    beta = recorder.input("beta", (len(columns),))
    theta = np.zeros(robot.parameter_vector.size, dtype=object)
    theta[:] = 0.0
    theta[columns] = beta
    regressor = key.tape("regressor", symbolic=False)
    matrix: Any = np.zeros((n, 3 * n + len(columns)), dtype=object)
    matrix[:, 3 * n :] = _output(regressor, recorder, np.concatenate(states))[:, columns]
    rate = jvp(key.tape("inverse_dynamics", symbolic=True), "output", ("q", "dq", "ddq"))
    for direction in range(3 * n):
        along = np.zeros(3 * n, dtype=object)
        along[:] = 0.0
        along[direction] = 1.0
        matrix[:, direction] = _output(rate, recorder, np.concatenate([*states, theta, along]))
    return Linearisation(recorder.tape({"output": matrix}), key.tape("inertia_and_bias", symbolic=True))


def _rate_tape(model: Linearisation) -> Tape:
    """See `Linearisation.rate`."""
    n = model.tape.inputs[0].shape[0]
    recorder = Recorder()
    names = [(entry.name, entry.shape) for entry in model.tape.inputs]
    q, dq, torque, beta = (recorder.input(name if name != "ddq" else "torque", shape) for name, shape in names)
    rest: Any = np.full(n, 0.0, dtype=object)
    still = _output(model.tape, recorder, np.concatenate([q, dq, rest, beta]))
    M = still[:, 2 * n : 3 * n]
    ddq = solve_symmetric(M, torque - still[:, 3 * n :] @ beta)
    at = _output(model.tape, recorder, np.concatenate([q, dq, ddq, beta]))
    slopes = [-column for column in (*at[:, : 2 * n].T, *at[:, 3 * n :].T)]
    columns = [ddq, *(solve_symmetric(M, column) for column in (*slopes, *np.eye(n)))]
    return recorder.tape({"output": np.stack(columns, axis=1)})


def _output(tape: Tape, recorder: Recorder, inputs: Any) -> Any:
    value = replay(tape, recorder, inputs)
    elements = tape.output("output").elements
    result = np.empty(elements.size, dtype=object)
    result[:] = [value(int(element)) for element in elements.ravel()]
    return result.reshape(elements.shape)
