"""The functions of a C package: what each computes, how it is recorded, and what its arguments mean.

Each function takes a `CodeModel` and the parameters theta (p,) that the code computes with. Of the model it uses:

- ``model.robot``: the robot as the user gave it. The regressor computes with it, because its columns belong to the
  parameters of this robot, and the potential energy of constant values, because regrouped ones count it from another
  zero.
- ``model.internal``: the same robot in the frames that the code computes in; theta belongs to it.
- ``model.of_robot(theta)``: parameters of ``model.robot``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynid.dynamics.christoffel import christoffel_coefficients
from dynid.dynamics.energy import kinetic_energy_row, potential_energy_row
from dynid.dynamics.forward_dynamics import solve_symmetric
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
from dynid.export.c.c_model import CodeModel
from dynid.tape import Tape, record

PARAMETERS = "parameters"
"""Name of the tapes' arrays that hold what is read at run time."""


@dataclass(frozen=True, slots=True)
class CFunction:
    """One function of the package."""

    description: str
    """What it computes, for the header; ``{link}`` stands for the last one."""
    inputs: tuple[str, ...]
    """Its arrays, see `UNITS`; the parameters of `CodeModel.runtime`, where there are any, come last."""
    outputs: Mapping[str, str]
    """Content and unit of each output."""
    compute: Callable[..., Any] = field(repr=False)
    """``compute(model, theta, *inputs)`` -> the output, or all of them, of symbols of a tape."""
    needs_theta: bool = True
    """Whether the outputs depend on theta; otherwise the function takes no values at run time."""


UNITS = {
    "q": "[rad or m]",
    "dq": "[rad/s or m/s]",
    "ddq": "[rad/s^2 or m/s^2]",
    "torque": "[N m or N]",
    "values": "in the order of the names above",
    "load": "XX XY XZ YY YZ ZZ [kg m^2] about the origin of the link's frame, MX MY MZ [kg m], mass [kg]",
    "inertia": "upper triangle, row after row [kg m^2, kg m or kg]",
    "gravity": "[N m or N]",
    "velocity": "[N m or N]",
}
"""Array -> its content and unit, as an input."""


def _internal(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of dynid, of the robot in the frames that the code computes in."""
    return lambda model, theta, *states: function(model.internal, theta, *states)


def _inverse_dynamics(model: CodeModel, theta: Any, q: Any, dq: Any, ddq: Any) -> Any:
    if model.is_minimal:
        return minimal_newton_euler(model.robot, model.of_robot(theta), q, dq, ddq)
    return newton_euler(model.internal, theta, q, dq, ddq)


def _friction(model: CodeModel, theta: Any, q: Any, dq: Any) -> Any:
    zero_ddq = np.zeros(model.robot.dof)  # leaves out rotor inertia
    return term_torque(model.internal, theta, q, dq, zero_ddq)


def _forward_dynamics(model: CodeModel, theta: Any, q: Any, dq: Any, torque: Any) -> Any:
    if model.is_minimal:
        terms = minimal_inertia_and_bias(model.robot, model.of_robot(theta), q, dq)
        return solve_symmetric(terms["inertia"], torque - terms["bias"])
    robot, zero_ddq = model.internal, np.zeros(model.robot.dof)
    bias = newton_euler(robot, theta, q, dq, zero_ddq)
    return solve_symmetric(composite_inertia_matrix(robot, theta, q), torque - bias)


def _energy(model: CodeModel, theta: Any, q: Any, dq: Any) -> Any:
    robot, values = model.robot, model.of_robot(theta)
    links = values[: 10 * robot.dof]
    rotors = dq @ (motor_inertia_matrix(robot, values) @ dq)
    kinetic = kinetic_energy_row(robot, q, dq) @ links + 0.5 * rotors
    return np.array([kinetic, potential_energy_row(robot, q) @ links])


def columns_of(model: CodeModel, Y: Any) -> Any:
    """The columns (..., n, b) of a regressor (..., n, p) that belong to the base parameters the user asked for."""
    if model.base is None:
        return Y
    kept = Y[..., list(model.base.columns)]
    return kept if model.base.mixing is None else kept @ model.base.mixing


def _background_inertia(model: CodeModel, theta: Any, q: Any) -> Any:
    inertia = composite_inertia_matrix(model.internal, theta, q)  # D_ij + I_a, [Izaguirre1992] eqs. (9), (15)-(17)
    gravity = gravity_torque(model.internal, theta, q)  # D_i, [Izaguirre1992] eq. (13)
    return inertia[np.triu_indices(model.robot.dof)], gravity


def _background_velocity(model: CodeModel, theta: Any, q: Any, dq: Any) -> Any:
    velocity = velocity_torque(model.internal, theta, q, dq)  # [Izaguirre1992] eqs. (18)-(24)
    return velocity + _friction(model, theta, q, dq)  # rotors are in the inertia matrix


def _synchronous(model: CodeModel, theta: Any, inertia: Any, gravity: Any, velocity: Any, ddq: Any) -> Any:
    n = model.robot.dof
    place = np.zeros((n, n), dtype=int)  # where the stored upper triangle has each element of the matrix
    place[np.triu_indices(n)] = np.arange(n * (n + 1) // 2)
    return inertia[np.maximum(place, place.T)] @ ddq + gravity + velocity  # [Izaguirre1992] eq. (1)


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
        lambda model, theta, q, dq, ddq, torque: _inverse_dynamics(model, theta, q, dq, ddq) - torque,
    ),
    "inertia_matrix": CFunction(
        "Inertia matrix, rotors included.",
        ("q",),
        {"inertia": "row-major [kg m^2, kg m or kg]"},
        _internal(composite_inertia_matrix),
    ),
    "gravity": CFunction(
        "Torques that balance the weight of the links.", ("q",), {"torque": "[N m or N]"}, _internal(gravity_torque)
    ),
    "velocity_torque": CFunction(
        "Coriolis and centrifugal torques of the links.",
        ("q", "dq"),
        {"torque": "[N m or N]"},
        _internal(velocity_torque),
    ),
    "christoffel_coefficients": CFunction(
        "Coefficients D_ijk of the Coriolis and centrifugal torques: torque_i = sum of D_ijk dq_j dq_k.",
        ("q",),
        {"coefficients": "row-major: D_ijk at (i * n + j) * n + k [kg m^2, kg m or kg per rad or m]"},
        _internal(christoffel_coefficients),
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
        lambda model, theta, *states: columns_of(model, torque_regressor(model.robot, *states)),
        needs_theta=False,
    ),
}
"""The functions of a state that `generate_c` offers, by name."""

TORQUES = ("inverse_dynamics", "external_torque", "two_rate", "velocity_torque", "gravity", "friction")
"""Those whose result is a part of the joint torques."""

TWO_RATE: dict[str, CFunction] = {
    "background_inertia": CFunction(
        "Background task: inertia matrix and gravity torques.",
        ("q",),
        {"inertia": UNITS["inertia"], "gravity": UNITS["gravity"]},
        _background_inertia,
    ),
    "background_velocity": CFunction(
        "Background task, independent of the other one: velocity torques with friction and offsets.",
        ("q", "dq"),
        {"velocity": UNITS["velocity"]},
        _background_velocity,
    ),
    "synchronous": CFunction(
        "Synchronous task: torque = inertia ddq + gravity + velocity.",
        ("inertia", "gravity", "velocity", "ddq"),
        {"torque": "[N m or N]"},
        _synchronous,
        needs_theta=False,
    ),
}
"""The tasks of the two-rate structure; the synchronous one takes n multiplications and n + 1 additions per joint
([Izaguirre1992] section 3)."""

SETTERS: dict[str, CFunction] = {
    "default_values": CFunction(
        "The values that the model was generated with.",
        (),
        {"values": UNITS["values"]},
        lambda model, theta: model.defaults,
        needs_theta=False,
    ),
    "set_parameters": CFunction(
        "Set the values that the functions compute with.",
        ("values",),
        {PARAMETERS: "for the functions"},
        lambda model, theta, values: values,
        needs_theta=False,
    ),
    "set_load": CFunction(
        "Set the values with a load on link '{link}', along its axes; zeros remove the load.",
        ("values", "load"),
        {PARAMETERS: "for the functions"},
        lambda model, theta, values, load: values + model.load_map @ load,
        needs_theta=False,
    ),
}
"""What prepares the parameters that are read at run time."""


def record_function(model: CodeModel, name: str) -> Tape:
    """Record a function of the package for a model."""
    entry, n, columns = (FUNCTIONS | TWO_RATE | SETTERS)[name], model.robot.dof, model.runtime.columns
    sizes = {"values": len(columns), "load": 10, "inertia": n * (n + 1) // 2, PARAMETERS: len(columns)}
    reads = bool(entry.needs_theta and columns)

    def compute(**given: Any) -> dict[str, Any]:
        theta = model.theta(given.pop(PARAMETERS)) if reads else model.values
        found = entry.compute(model, theta, *given.values())
        return dict(zip(entry.outputs, found if isinstance(found, tuple) else [found], strict=True))

    return record(compute, **{key: (sizes.get(key, n),) for key in (*entry.inputs, *[PARAMETERS] * reads)})
