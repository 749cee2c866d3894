"""Reference for generated code: random states and the results that Python computes for the original robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.export.c.c_model import CodeModel
from dynid.kernels import energy_regressor, kernel, regressor
from dynid.parameters.numeric import slow_down


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reference:
    """N samples of inputs and of the results for them."""

    theta: Floats
    """(N, p) standard parameters of the robot, load included, for each sample."""
    inputs: dict[str, Floats]
    """``q dq ddq torque`` (N, n), ``load`` (N, 10), ``values`` (N, k) before and ``loaded`` (N, k) with the load."""
    expected: dict[str, Floats]
    """Result of each function (N, size)."""
    scale: dict[str, Floats]
    """(N, 1) or (1, 1): size of the terms whose sum is the result; errors are relative to it."""


def reference(model: CodeModel, functions: tuple[str, ...], samples: int, seed: int = 0) -> Reference:
    """Draw random states and compute the results that the functions must return.

    Args:
        model: The customised robot.
        functions: Names of the functions; ``two_rate`` is the torque by background and synchronous tasks.
        samples: Number of states N.
        seed: Seed of the random states: positions within +-pi, velocities and accelerations with a standard deviation
            of 2, slower ones where terms need them, torques of that motion; also of loads and parameter values if they
            can be changed at run time.
    """
    rng = np.random.default_rng(seed)
    robot, n = model.robot, model.robot.dof
    q, dq, ddq = rng.uniform(-np.pi, np.pi, (samples, n)), *rng.normal(0.0, 2.0, (2, samples, n))
    dq = slow_down(robot, dq, rng)
    theta, load = _draw_parameters(model, samples, rng)
    values = theta @ model.grouping.T
    theta[:, 10 * (n - 1) : 10 * n] += load
    loaded = values + load @ model.load_map.T
    Y = regressor(robot, q, dq, ddq)
    torque = np.einsum("nij,nj->ni", Y, theta)
    inputs = {"q": q, "dq": dq, "ddq": ddq, "torque": torque, "values": values, "load": load, "loaded": loaded}
    size = np.einsum("nij,nj->ni", np.abs(Y), np.abs(theta)).max(axis=1, keepdims=True)
    expected = {name: _result(model, name, inputs, theta, Y).reshape(samples, -1) for name in functions}
    scale = {name: np.full((1, 1), max(float(np.abs(expected[name]).max()), 1e-300)) for name in functions}
    for name in ("inverse_dynamics", "external_torque", "two_rate", "velocity_torque", "gravity", "friction"):
        scale[name] = np.maximum(size, 1e-300)
    return Reference(theta=theta, inputs=inputs, expected=expected, scale=scale)


def _draw_parameters(model: CodeModel, samples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Standard parameters (N, p), varied if the code reads all of them at run time, and loads (N, 10)."""
    theta = np.tile(model.robot.parameter_vector, (samples, 1))
    load = np.zeros((samples, 10))
    if model.load:
        points = rng.uniform(-0.2, 0.2, (samples, 5, 3)) + np.array([0.0, 0.0, 0.1])
        mass = rng.uniform(0.0, 1.0, (samples, 5))  # five point masses are a physically possible load
        second = np.einsum("nk,nki,nkj->nij", mass, points, points)
        tensor = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
        load = np.column_stack(
            [tensor[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]], np.einsum("nk,nki->ni", mass, points), mass.sum(axis=1)]
        )
    elif model.columns:
        theta = theta * rng.uniform(0.8, 1.2, theta.shape)
    return theta, load


def _result(model: CodeModel, name: str, inputs: dict[str, Floats], theta: Floats, Y: Floats) -> Floats:
    robot, n = model.robot, model.robot.dof
    q, dq, ddq = inputs["q"], inputs["dq"], inputs["ddq"]
    if name == "regressor":
        if model.base is None:
            return Y
        kept = Y[:, :, list(model.base.columns)]
        return np.asarray(kept if model.base.mixing is None else kept @ model.base.mixing)
    if name == "external_torque":
        moving = kernel(robot, "inverse_dynamics", symbolic_parameters=True)(q, dq, ddq, theta)
        return np.asarray(moving - inputs["torque"])
    if name == "forward_dynamics":
        return ddq
    if name == "friction":
        at_constant_speed = regressor(robot, q, dq, np.zeros_like(q))[:, :, 10 * n :]
        return np.asarray(np.einsum("nij,nj->ni", at_constant_speed, theta[:, 10 * n :]))
    if name == "energy":
        return _energy(model, inputs, theta)
    quantity = {"gravity": "gravity_torque", "two_rate": "inverse_dynamics"}.get(name, name)
    states = {"inverse_dynamics": (q, dq, ddq), "two_rate": (q, dq, ddq), "velocity_torque": (q, dq)}.get(name, (q,))
    answer: Floats = kernel(robot, quantity, symbolic_parameters=True)(*states, theta)
    return answer


def _energy(model: CodeModel, inputs: dict[str, Floats], theta: Floats) -> Floats:
    """Kinetic and potential energy (N, 2); regrouped run-time values count the potential energy from another zero."""
    robot, n, q, dq = model.robot, model.robot.dof, inputs["q"], inputs["dq"]
    inertia = kernel(robot, "inertia_matrix", symbolic_parameters=True)(q, theta)
    rest = np.zeros_like(q)
    rows, at_zero = energy_regressor(robot, q, rest), energy_regressor(robot, rest, rest)
    potential = np.einsum("ni,ni->n", rows, theta[:, : 10 * n])
    if model.columns:
        used = np.tile(model.values, (len(q), 1))
        used[:, list(model.columns)] = model.in_columns(inputs["loaded"])
        potential += model.potential_offset - np.einsum("ni,ni->n", at_zero, (theta - used)[:, : 10 * n])
    return np.column_stack([0.5 * np.einsum("ni,nij,nj->n", dq, inertia, dq), potential])
