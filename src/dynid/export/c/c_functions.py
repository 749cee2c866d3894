"""The functions of a C package: what each computes, how it is recorded, and what its arguments mean.

Each function takes a `CodeModel` and the parameters theta (p,) that the code computes with. Of the model it uses:

- ``model.robot``: the robot as the user gave it. The regressor computes with it, because its columns belong to the
  parameters of this robot, and the potential energy of constant values, because regrouped ones count it from another
  zero.
- ``model.internal``: the same robot in the frames that the code computes in; theta belongs to it.
- ``theta``: other values with the same torques where all values are constants; theta itself where
  values are read at run time. They shorten the recursion over a moving robot (`newton_euler`, `velocity_torque`), so
  that functions with this recursion use them; all others use theta.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynid.dynamics.christoffel import christoffel_coefficients
from dynid.dynamics.energy import kinetic_energy_row, potential_energy_row
from dynid.dynamics.inertia_matrix import (
    composite_inertia_matrix,
    gravity_torque,
    motor_inertia_matrix,
    velocity_torque,
)
from dynid.dynamics.inverse_dynamics import newton_euler, term_torque
from dynid.dynamics.minimal_inertia import minimal_inertia_and_bias
from dynid.dynamics.minimal_recursion import minimal_newton_euler
from dynid.dynamics.regressor import torque_regressor
from dynid.dynamics.symmetric_solve import solve_symmetric
from dynid.export.c.c_model import CodeModel
from dynid.robot.model import Robot
from dynid.tape import Tape, record

Outputs = dict[str, Any]

OBSERVER = "observer_step"
"""Name by which `generate_c` offers the momentum observer, which has files of its own."""


@dataclass(frozen=True, slots=True)
class CFunction:
    """One function of the package."""

    description: str
    """What it computes, for the header."""
    states: tuple[str, ...]
    """Inputs (n,) each: q, dq, ddq, torque."""
    outputs: Mapping[str, str]
    """Content and unit of each output."""
    compute: Callable[..., Outputs] = field(repr=False)
    """``compute(model, theta, *states)`` -> outputs; it works on numbers and on the symbols of a tape."""
    needs_theta: bool = True
    """Whether the outputs depend on theta; otherwise the function takes no values at run time."""


def _inverse_dynamics(model: CodeModel, theta: Any, q: Any, dq: Any, ddq: Any) -> Outputs:
    if model.is_minimal:
        return {"torque": minimal_newton_euler(model.robot, model.minimal_theta(theta), q, dq, ddq)}
    return {"torque": newton_euler(model.internal, theta, q, dq, ddq)}


def _external_torque(model: CodeModel, theta: Any, q: Any, dq: Any, ddq: Any, torque: Any) -> Outputs:
    return {"external": _inverse_dynamics(model, theta, q, dq, ddq)["torque"] - torque}


def _inertia_matrix(model: CodeModel, theta: Any, q: Any) -> Outputs:
    return {"inertia": composite_inertia_matrix(model.internal, theta, q)}


def _gravity(model: CodeModel, theta: Any, q: Any) -> Outputs:
    return {"torque": gravity_torque(model.internal, theta, q)}


def _velocity_torque(model: CodeModel, theta: Any, q: Any, dq: Any) -> Outputs:
    return {"torque": velocity_torque(model.internal, theta, q, dq)}


def _christoffel_coefficients(model: CodeModel, theta: Any, q: Any) -> Outputs:
    return {"coefficients": christoffel_coefficients(model.internal, theta, q)}


def _friction(model: CodeModel, theta: Any, q: Any, dq: Any) -> Outputs:
    zero_ddq = np.zeros(model.robot.dof)  # leaves out rotor inertia
    return {"torque": term_torque(model.internal, theta, q, dq, zero_ddq)}


def _forward_dynamics(model: CodeModel, theta: Any, q: Any, dq: Any, torque: Any) -> Outputs:
    if model.is_minimal:
        terms = minimal_inertia_and_bias(model.robot, model.minimal_theta(theta), q, dq)
        return {"ddq": solve_symmetric(terms["inertia"], torque - terms["bias"])}
    robot, zero_ddq = model.internal, np.zeros(model.robot.dof)
    bias = newton_euler(robot, theta, q, dq, zero_ddq)
    return {"ddq": solve_symmetric(composite_inertia_matrix(robot, theta, q), torque - bias)}


def _energy(model: CodeModel, theta: Any, q: Any, dq: Any) -> Outputs:
    robot = model.robot if not model.columns else model.internal
    values = robot.parameter_vector if not model.columns else theta
    links = values[: 10 * robot.dof]
    rotors = dq @ (motor_inertia_matrix(robot, values) @ dq)
    kinetic = kinetic_energy_row(robot, q, dq) @ links + 0.5 * rotors
    return {"energy": np.array([kinetic, potential_energy_row(robot, q) @ links])}


def _regressor(model: CodeModel, theta: Any, q: Any, dq: Any, ddq: Any) -> Outputs:
    Y = torque_regressor(model.robot, q, dq, ddq)
    if model.base is None:
        return {"regressor": Y}
    Y = Y[:, list(model.base.columns)]
    return {"regressor": Y if model.base.mixing is None else Y @ model.base.mixing}


def _background_inertia(model: CodeModel, theta: Any, q: Any) -> Outputs:
    inertia = composite_inertia_matrix(model.internal, theta, q)  # D_ij + I_a, [Izaguirre1992] eqs. (9), (15)-(17)
    gravity = gravity_torque(model.internal, theta, q)  # D_i, [Izaguirre1992] eq. (13)
    return {"inertia": inertia[np.triu_indices(model.robot.dof)], "gravity": gravity}


def _background_velocity(model: CodeModel, theta: Any, q: Any, dq: Any) -> Outputs:
    zero_ddq = np.zeros(model.robot.dof)  # leaves out rotor inertia: it is in the inertia matrix
    friction = term_torque(model.internal, theta, q, dq, zero_ddq)
    velocity = velocity_torque(model.internal, theta, q, dq)  # [Izaguirre1992] eqs. (18)-(24)
    return {"velocity": velocity + friction}


FUNCTIONS: dict[str, CFunction] = {
    "inverse_dynamics": CFunction(
        "Joint torques of a motion: links, rotors, friction, offsets.",
        ("q", "dq", "ddq"),
        {"torque": "[N m or N]"},
        _inverse_dynamics,
    ),
    "external_torque": CFunction(
        "Torques from outside by the accelerations: the torques of the motion less those of the drives.",
        ("q", "dq", "ddq", "torque"),
        {"external": "[N m or N]"},
        _external_torque,
    ),
    "inertia_matrix": CFunction(
        "Inertia matrix, rotors included.", ("q",), {"inertia": "row-major [kg m^2, kg m or kg]"}, _inertia_matrix
    ),
    "gravity": CFunction("Torques that balance the weight of the links.", ("q",), {"torque": "[N m or N]"}, _gravity),
    "velocity_torque": CFunction(
        "Coriolis and centrifugal torques of the links.", ("q", "dq"), {"torque": "[N m or N]"}, _velocity_torque
    ),
    "christoffel_coefficients": CFunction(
        "Coefficients D_ijk of the Coriolis and centrifugal torques: torque_i = sum of D_ijk dq_j dq_k.",
        ("q",),
        {"coefficients": "row-major: D_ijk at (i * n + j) * n + k [kg m^2, kg m or kg per rad or m]"},
        _christoffel_coefficients,
    ),
    "friction": CFunction(
        "Torques of all terms but rotor inertia: friction, offsets, springs, couplings.",
        ("q", "dq"),
        {"torque": "[N m or N]"},
        _friction,
    ),
    "forward_dynamics": CFunction(
        "Accelerations under joint torques.", ("q", "dq", "torque"), {"ddq": "[rad/s^2 or m/s^2]"}, _forward_dynamics
    ),
    "energy": CFunction(
        "Kinetic energy (rotors included), then potential energy of the links in gravity, without that of springs.",
        ("q", "dq"),
        {"energy": "[J]"},
        _energy,
    ),
    "regressor": CFunction(
        "Torques per unit of each parameter: torque = regressor * parameters.",
        ("q", "dq", "ddq"),
        {"regressor": "row-major"},
        _regressor,
        needs_theta=False,
    ),
}
"""The functions that `generate_c` offers, by name."""

TWO_RATE: dict[str, CFunction] = {
    "background_inertia": CFunction(
        "Background task: inertia matrix (upper triangle, row after row) and gravity torques.",
        ("q",),
        {"inertia": "[kg m^2, kg m or kg]", "gravity": "[N m or N]"},
        _background_inertia,
    ),
    "background_velocity": CFunction(
        "Background task, independent of the other one: velocity torques with friction and offsets.",
        ("q", "dq"),
        {"velocity": "[N m or N]"},
        _background_velocity,
    ),
}
"""The two background tasks of the two-rate structure ([Izaguirre1992] section 3)."""


def record_function(model: CodeModel, name: str) -> Tape:
    """Record a function of the package for a model."""
    entry = (FUNCTIONS | TWO_RATE)[name]
    states = {state: (model.robot.dof,) for state in entry.states}
    if not entry.needs_theta:
        return record(lambda **given: entry.compute(model, None, *given.values()), **states)
    return model.record(lambda theta, **given: entry.compute(model, theta, *given.values()), **states)


def record_synchronous(robot: Robot) -> Tape:
    """Record the synchronous task: n multiplications and n + 1 additions per joint ([Izaguirre1992] section 3)."""
    n = robot.dof
    index_in_triangle = np.zeros((n, n), dtype=int)  # where the stored upper triangle has each element of the matrix
    index_in_triangle[np.triu_indices(n)] = np.arange(n * (n + 1) // 2)
    index_in_triangle = np.maximum(index_in_triangle, index_in_triangle.T)

    def torque(inertia: Any, gravity: Any, velocity: Any, ddq: Any) -> Outputs:
        return {"torque": inertia[index_in_triangle] @ ddq + gravity + velocity}  # [Izaguirre1992] eq. (1)

    return record(torque, inertia=(n * (n + 1) // 2,), gravity=(n,), velocity=(n,), ddq=(n,))
