"""Functions of a robot for CasADi: the recorded program, operation by operation, as a CasADi function.

CasADi differentiates the function, writes C code of it, and uses it in optimal control. dynid's compiled functions
(`dynid.compiled.kernel`) each have a tape: the straight-line list of the operations that were recorded when the
dynamics ran once with symbols. Each operation of the tape becomes the same operation on CasADi symbols.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.checks import require_library
from dynid.compiled import kernel
from dynid.identification.identify import Identification
from dynid.robot.model import Robot
from dynid.tape import Tape
from dynid.tape.operations import Operation, is_binary
from dynid.tape.record import evaluate


def casadi_function(
    model: Robot | Identification, quantity: str = "inverse_dynamics", *, symbolic_parameters: bool = False
) -> Any:
    """Make a ``casadi.Function`` that computes a quantity of a robot in one state.

    Inputs are columns (n, 1) with the names of the kernel: ``q``, ``dq``, ``ddq`` or ``tau``. A vector comes out as a
    column, a matrix as a matrix; entries that are zero in every state are structural zeros of CasADi.

    Args:
        model: The robot with its parameter values; or an identification, whose selected terms of the present state are
            included.
        quantity: As for `dynid.compiled.kernel`: ``inverse_dynamics`` (q, dq, ddq), ``inertia_matrix`` (q),
            ``gravity_torque`` (q), ``velocity_torque`` (q, dq), ``forward_dynamics`` (q, dq, tau), ``regressor``
            (q, dq, ddq) and so on. ``christoffel_coefficients`` comes out as (n, n^2): row i holds D_i11, D_i12, ...
        symbolic_parameters: Keep the parameters as a last input ``theta`` (p, 1), in the order of
            ``robot.parameter_vector``, in place of their values.

    Returns:
        ``casadi.Function``. The derivative of a dry friction's sign is zero, as CasADi has it.

    Raises:
        ArgumentError: CasADi is not installed; or there is no such quantity.

    Example:
        >>> torque = dynid.export.casadi_function(robot, "gravity_torque")
        >>> torque.name_in()
        ['q']
    """
    robot = model if isinstance(model, Robot) else model.identified
    return casadi_from_tape(kernel(robot, quantity, symbolic_parameters=symbolic_parameters).tape, quantity)


def casadi_from_tape(tape: Tape, name: str) -> Any:
    """Make a ``casadi.Function`` of a tape, with the names of its inputs and outputs; see `casadi_function`."""
    casadi = require_library("casadi", "dynid[casadi]")
    inputs = [casadi.SX.sym(entry.name, max(entry.size, 1)) for entry in tape.inputs]
    # a tape numbers its values: constants ~0, ~1, ..., inputs from zero on, then the results of its steps
    values: dict[int, Any] = {~k: casadi.SX(float(value)) for k, value in enumerate(tape.constants)}
    elements = [symbol[row] for symbol, entry in zip(inputs, tape.inputs, strict=True) for row in range(entry.size)]
    values.update(enumerate(elements))
    # all other operations have CasADi's own names: sin, cos, sqrt, tanh, exp, sign
    other_names = {Operation.NEG: operator.neg, Operation.ABS: casadi.fabs}
    for value, code, left, right in tape.steps():
        if is_binary(code):
            values[value] = evaluate(code, values[left], values[right])
        else:
            function = other_names.get(Operation(code)) or getattr(casadi, Operation(code).name.lower())
            values[value] = function(values[left])
    outputs = [_matrix(casadi, output.elements, tape.sparsity(output.name), values) for output in tape.outputs]
    names = [output.name for output in tape.outputs]
    return casadi.Function(name, inputs, outputs, [entry.name for entry in tape.inputs], names)


def _matrix(casadi: Any, elements: Any, occupied: Any, values: Mapping[int, Any]) -> Any:
    """Write an output as a matrix; axes behind the first become one, because CasADi has no more than two.

    Args:
        casadi: The module.
        elements: Numbers of the tape's values, in the shape of the output.
        occupied: Which elements may differ from zero, in the same shape; the others stay structural zeros.
        values: Number of a value -> its CasADi expression.
    """
    rows = elements.shape[0] if elements.ndim else 1
    numbers = elements.reshape(rows, -1)
    result = casadi.SX(*numbers.shape)
    for i, j in np.argwhere(np.reshape(occupied, (rows, -1))).tolist():
        result[i, j] = values[int(numbers[i, j])]
    return result
