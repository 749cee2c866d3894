"""Coefficients of the equations of motion as formulas ([Izaguirre1992] eq. (1)): D_ij, D_i and D_ijk as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any, Literal

import numpy as np

from dynid.dynamics.christoffel import christoffel_coefficients
from dynid.dynamics.inertia_matrix import composite_inertia_matrix, gravity_torque
from dynid.errors import ArgumentError
from dynid.parameters.base import base_parameters
from dynid.robot.model import Robot, require_robot
from dynid.tape import record

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "inertia": composite_inertia_matrix,
    "gravity": gravity_torque,
    "christoffel": christoffel_coefficients,
}


def coefficient_expressions(
    robot: Robot, kind: Literal["inertia", "gravity", "christoffel"] = "christoffel"
) -> dict[str, str]:
    """Formulas of the coefficients that are not zero, in joint positions q1, q2, ... and base parameters.

    Args:
        robot: The robot; only its geometry, gravity and kinds of terms matter.
        kind: ``inertia`` for D_ij (rotors included), ``gravity`` for D_i, ``christoffel`` for D_ijk.

    Returns:
        Name -> formula, such as ``D112``; joints are counted from 1, and of coefficients that are equal by symmetry
        only that with increasing indices is listed (of D_ijk in j and k). A long formula has lines ``t1 = ...`` first.

    Raises:
        ArgumentError: There are no coefficients of this kind.

    Example:
        >>> len(dynid.export.coefficient_expressions(robot, "gravity")) > 0
        True
    """
    require_robot(robot)
    if kind not in tuple(_FUNCTIONS):
        raise ArgumentError(f"kind is {kind!r}", remedy=f"Choose from {', '.join(_FUNCTIONS)}.")
    base, function = base_parameters(robot), _FUNCTIONS[kind]
    names = list(base.names)

    def coefficients(q: Any, beta: Any) -> Any:
        theta = np.zeros(len(base.layout), dtype=object)
        theta[list(base.columns)] = beta
        return function(robot, theta, q)

    tape = record(coefficients, q=(robot.dof,), beta=(len(names),))
    nonzero = tape.sparsity("output")
    shape = tape.output("output").shape
    found = {}
    for index in product(*(range(size) for size in shape)):
        if nonzero[index] and list(index[-2:]) == sorted(index[-2:]):
            name = "D" + ("" if robot.dof < 10 else "_").join(str(i + 1) for i in index)
            text = tape.text("output", index)
            text = re.sub(r"beta\[(\d+)\]", lambda m: names[int(m[1])], text)
            text = re.sub(r"q\[(\d+)\]", lambda m: f"q{int(m[1]) + 1}", text)
            found[name] = re.sub(r"output\[[\d,]+\]", name, text)
    return found
