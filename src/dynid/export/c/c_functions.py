"""The functions of a C package: what each computes, how it is recorded, and what its arguments mean.

Each function is written in Python and called once with symbols in place of numbers; `record_function` records its
operations as a tape, a straight-line program, which `c_printer` writes in C. A function takes a `CodeModel`, the p
parameters theta (p,) (ten inertial ones per link, then those of friction and other terms) and the states (n,) of one
moment: ``q`` [rad or m], ``dq``, ``ddq``, ``torque`` [N m or N]. Of the model it uses:

- ``model.robot``: the robot as the user gave it. The regressor computes with it, because its columns belong to the
  parameters of this robot. So does the potential energy, because regrouped parameters (fewer values with the same
  torques) count it from another zero.
- ``model.internal``: the same robot in the body frames that the code computes in; theta belongs to it.
- ``model.of_robot(theta)``: parameters (p,) of ``model.robot``.
- ``model.values``: theta (p,) as the model was generated; ``model.defaults``: the k values of it that are read at run
  time, as the robot was given.
- ``model.is_minimal``: whether the user asked for Lin's minimal linear combinations ([Lin1995]), in which the
  recursions need fewer operations.
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
"""Name of the input of a tape that holds the parameters read at run time, and of the output of a setter."""


@dataclass(frozen=True, slots=True)
class CFunction:
    """One function of the package."""

    description: str
    """What it computes, for the header; ``{link}`` stands for the name of the last link."""
    inputs: tuple[str, ...]
    """Names of its input arrays, keys of `UNITS`; parameters that are read at run time come after them."""
    outputs: Mapping[str, str]
    """Name of each output array -> its content and unit."""
    compute: Callable[..., Any] = field(repr=False)
    """``compute(model, theta, *inputs)`` -> the output array, or a tuple of them."""
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
"""Name of an input array -> its content and unit."""


def _internal(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a `CFunction.compute` from a function ``(robot, theta, *states)`` of `dynid.dynamics`."""
    return lambda model, theta, *states: function(model.internal, theta, *states)


def _inverse_dynamics(model: CodeModel, theta: Any, q: Any, dq: Any, ddq: Any) -> Any:
    """Compute the joint torques (n,)."""
    if model.is_minimal:
        return minimal_newton_euler(model.robot, model.of_robot(theta), q, dq, ddq)
    return newton_euler(model.internal, theta, q, dq, ddq)


def _friction(model: CodeModel, theta: Any, q: Any, dq: Any) -> Any:
    """Compute the torques (n,) of friction, offsets, springs and couplings."""
    zero_ddq = np.zeros(model.robot.dof)  # leaves out rotor inertia
    return term_torque(model.internal, theta, q, dq, zero_ddq)


def _forward_dynamics(model: CodeModel, theta: Any, q: Any, dq: Any, torque: Any) -> Any:
    """Compute the accelerations (n,): solve ``M(q) ddq = torque - bias``, the bias being the torque at ddq = 0."""
    if model.is_minimal:
        terms = minimal_inertia_and_bias(model.robot, model.of_robot(theta), q, dq)
        return solve_symmetric(terms["inertia"], torque - terms["bias"])
    robot, zero_ddq = model.internal, np.zeros(model.robot.dof)
    bias = newton_euler(robot, theta, q, dq, zero_ddq)
    return solve_symmetric(composite_inertia_matrix(robot, theta, q), torque - bias)


def _energy(model: CodeModel, theta: Any, q: Any, dq: Any) -> Any:
    """Compute kinetic and potential energy (2,) [J]: each is a row of (10 n,) times the links' parameters."""
    robot = model.robot
    values = model.of_robot(theta)
    links = values[: 10 * robot.dof]
    kinetic_of_rotors = 0.5 * (dq @ (motor_inertia_matrix(robot, values) @ dq))
    kinetic = kinetic_energy_row(robot, q, dq) @ links + kinetic_of_rotors
    return np.array([kinetic, potential_energy_row(robot, q) @ links])


def columns_of(model: CodeModel, Y: Any) -> Any:
    """Make the regressor (..., n, b) of the base parameters that the user asked for from that of all p parameters.

    Without such a request, all columns of Y (..., n, p) stay. The members of Lin's set are no columns of Y but
    combinations of columns, by the matrix ``mixing`` (b, b).
    """
    if model.base is None:
        return Y
    kept = Y[..., list(model.base.columns)]
    return kept if model.base.mixing is None else kept @ model.base.mixing


def _background_inertia(model: CodeModel, theta: Any, q: Any) -> Any:
    """Compute the upper triangle (n (n + 1) / 2,) of the inertia matrix, and the gravity torques (n,)."""
    inertia = composite_inertia_matrix(model.internal, theta, q)  # D_ij + I_a, [Izaguirre1992] eqs. (9), (15)-(17)
    gravity = gravity_torque(model.internal, theta, q)  # D_i, [Izaguirre1992] eq. (13)
    return inertia[np.triu_indices(model.robot.dof)], gravity


def _background_velocity(model: CodeModel, theta: Any, q: Any, dq: Any) -> Any:
    """Compute the velocity torques with friction and offsets (n,)."""
    velocity = velocity_torque(model.internal, theta, q, dq)  # [Izaguirre1992] eqs. (18)-(24)
    return velocity + _friction(model, theta, q, dq)  # rotors are in the inertia matrix


def _synchronous(model: CodeModel, theta: Any, inertia: Any, gravity: Any, velocity: Any, ddq: Any) -> Any:
    """Compute the torques (n,) from the results of the background tasks; theta is in them already."""
    n = model.robot.dof
    place = np.zeros((n, n), dtype=int)  # index of each element of the matrix in the stored upper triangle
    place[np.triu_indices(n)] = np.arange(n * (n + 1) // 2)
    # the lower triangle of `place` is zero: the maximum with its transpose makes it symmetric
    return inertia[np.maximum(place, place.T)] @ ddq + gravity + velocity  # [Izaguirre1992] eq. (1)


FUNCTIONS: dict[str, CFunction] = {
    "inverse_dynamics": CFunction(
        "Joint torques of a motion: links, rotors, friction, offsets.",
        ("q", "dq", "ddq"),
        {"torque": "[N m or N]"},
        _inverse_dynamics,
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

TORQUES = ("inverse_dynamics", "two_rate", "velocity_torque", "gravity", "friction")
"""Functions whose result is a part of the joint torques; ``two_rate`` is all `TWO_RATE`, called by `c_check`."""

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
"""The tasks of the two-rate structure. Two slow background tasks compute what changes slowly (inertia and gravity;
velocity torques), and the fast synchronous task makes the torque of their results. The synchronous one takes n
multiplications and n + 1 additions per joint ([Izaguirre1992] section 3)."""

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
"""The functions that prepare the parameters that are read at run time, by name."""


def record_function(model: CodeModel, name: str) -> Tape:
    """Record a function of the package for a model as a tape.

    The inputs of the tape are those of the function and, where parameters are read at run time and matter, these
    k values as a last input ``parameters`` (k,). All other parameters are constants of the tape.
    """
    entry = (FUNCTIONS | TWO_RATE | SETTERS)[name]
    n = model.robot.dof
    at_run_time = len(model.runtime.columns)
    sizes = {"values": at_run_time, "load": 10, "inertia": n * (n + 1) // 2, PARAMETERS: at_run_time}  # others: n
    inputs = (*entry.inputs, PARAMETERS) if entry.needs_theta and at_run_time else entry.inputs

    def compute(**given: Any) -> dict[str, Any]:
        theta = model.theta(given.pop(PARAMETERS)) if PARAMETERS in given else model.values
        found = entry.compute(model, theta, *given.values())
        return dict(zip(entry.outputs, found if isinstance(found, tuple) else [found], strict=True))

    return record(compute, **{key: (sizes.get(key, n),) for key in inputs})
