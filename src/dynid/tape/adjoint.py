"""Derivatives of a tape, as tapes.

Reverse mode follows the program backwards once and gives the gradient of a weighted sum of all output elements for a
small multiple of the program's own cost; forward mode gives the derivative along one direction. The results are
ordinary tapes: every back end runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dynid.errors import ArgumentError
from dynid.tape.operations import Operation, is_binary
from dynid.tape.record import Recorder, Value, replay
from dynid.tape.tape import Tape


def vjp(tape: Tape, output: str, wrt: Sequence[str] | None = None, cotangent: str = "cotangent") -> Tape:
    """Tape of the gradient of ``sum(cotangent * output)``: the vector-Jacobian product.

    Args:
        tape: the program to differentiate.
        output: the output.
        wrt: names of the inputs to differentiate with respect to; all of them if None.
        cotangent: name of the additional, last input, in the output's shape. Its elements at structural zeros and
            constants of the output are not read.

    Returns:
        Tape with the inputs of ``tape`` and the cotangent, and one output per differentiated input, of its name.
    """
    recorder, chosen = Recorder(), _choose_inputs(tape, wrt)
    inputs = _declare_inputs(recorder, tape)
    elements = tape.output(output).elements
    weights = recorder.input(cotangent, elements.shape)
    value = replay(tape, recorder, inputs)
    adjoints: dict[int, Value] = {}
    for element, weight in zip(elements.ravel().tolist(), weights.ravel().tolist(), strict=True):
        adjoints[element] = adjoints.get(element, 0.0) + weight
    for number, code, left, right in reversed(list(tape.steps())):
        adjoint = adjoints.pop(number, 0.0)
        if isinstance(adjoint, float) and adjoint == 0.0:
            continue
        partials = _partials(code, value(number), value(left), value(right) if is_binary(code) else None)
        for partial, operand in zip(partials, (left, right), strict=False):
            if operand >= 0:
                adjoints[operand] = adjoints.get(operand, 0.0) + adjoint * partial
    results: dict[str, Any] = {}
    first = 0
    for entry in tape.inputs:
        column = [adjoints.get(first + position, 0.0) for position in range(entry.size)]
        results[entry.name] = _as_objects(column).reshape(entry.shape)
        first += entry.size
    return recorder.tape({name: results[name] for name in chosen})


def jvp(tape: Tape, output: str, wrt: Sequence[str] | None = None, prefix: str = "d_") -> Tape:
    """Tape of the derivative of an output along a direction: the Jacobian-vector product.

    Args:
        tape: the program to differentiate.
        output: the output.
        wrt: names of the inputs that move; all of them if None.
        prefix: the direction's inputs, which follow those of ``tape``, are called like these with this prefix.

    Returns:
        Tape with one output, of the name and shape of ``output``.
    """
    recorder = Recorder()
    inputs = _declare_inputs(recorder, tape)
    moving = _choose_inputs(tape, wrt)
    directions: list[Value] = []
    for entry in tape.inputs:
        is_moving = entry.name in moving
        directions += (
            recorder.input(prefix + entry.name, entry.shape).ravel().tolist() if is_moving else [0.0] * entry.size
        )
    value = replay(tape, recorder, inputs)
    constants = [0.0] * len(tape.constants)
    rates = [*directions, *[0.0] * len(tape.opcodes), *constants]  # rates[~k], the rate of a constant, is zero
    for number, code, left, right in tape.steps():
        partials = _partials(code, value(number), value(left), value(right) if is_binary(code) else None)
        rates[number] = sum((p * rates[operand] for p, operand in zip(partials, (left, right), strict=False)), 0.0)
    elements = tape.output(output).elements
    found = _as_objects([rates[element] for element in elements.ravel().tolist()])
    return recorder.tape({output: found.reshape(elements.shape)})


def jacobian(tape: Tape, output: str, wrt: str, at: float) -> Tape:
    """Tape of the derivatives of an output with respect to one input, all of whose elements have one known value.

    The value is folded into the program, which so becomes much shorter than one that takes it as an input.

    Args:
        tape: the program to differentiate.
        output: the output.
        wrt: name of the input; the result does not have it.
        at: the value of all elements of that input.

    Returns:
        Tape with one output, of the name of ``output`` and its shape followed by that of the input.
    """
    _choose_inputs(tape, [wrt])
    recorder = Recorder()
    values: list[Value] = []
    first = size = 0
    shape: tuple[int, ...] = ()
    for entry in tape.inputs:
        if entry.name == wrt:
            first, size, shape = len(values), entry.size, entry.shape
            values += [at] * entry.size
        else:
            values += recorder.input(entry.name, entry.shape).ravel().tolist()
    value = replay(tape, recorder, _as_objects(values))
    partials = [
        (number, _partials(code, value(number), value(left), value(right) if is_binary(code) else None), (left, right))
        for number, code, left, right in tape.steps()
    ]
    elements = tape.output(output).elements
    result = np.empty((elements.size, size), dtype=object)
    for place in range(size):
        rates: dict[int, Value] = {first + place: 1.0}  # what does not move is not in it
        for number, slopes, operands in partials:
            parts = [
                slope * rates[operand] for slope, operand in zip(slopes, operands, strict=False) if operand in rates
            ]
            if parts:
                rates[number] = sum(parts, 0.0)
        result[:, place] = [rates.get(element, 0.0) for element in elements.ravel().tolist()]
    return recorder.tape({output: result.reshape((*elements.shape, *shape))})


def _declare_inputs(recorder: Recorder, tape: Tape) -> npt.NDArray[np.object_]:
    """Declare a tape's inputs once more; all their elements in one vector."""
    arrays = [recorder.input(entry.name, entry.shape).ravel().tolist() for entry in tape.inputs]
    return _as_objects([scalar for array in arrays for scalar in array])


def _as_objects(values: Sequence[Value]) -> npt.NDArray[np.object_]:
    """Scalars and floats in a vector; NumPy itself would look into scalars for elements."""
    flat = np.empty(len(values), dtype=object)
    flat[:] = values
    return flat


def _choose_inputs(tape: Tape, wrt: Sequence[str] | None) -> list[str]:
    names = [entry.name for entry in tape.inputs]
    unknown = set(wrt or ()) - set(names)
    if unknown:
        raise ArgumentError(f"the tape has no input {sorted(unknown)}", remedy=f"Choose among {names}")
    return names if wrt is None else list(wrt)


def _partials(code: int, result: Value, left: Value, right: Value) -> tuple[Value, ...]:
    """Derivatives of one operation with respect to its operands."""
    match code:
        case Operation.ADD:
            return 1.0, 1.0
        case Operation.SUB:
            return 1.0, -1.0
        case Operation.MUL:
            return right, left
        case Operation.DIV:
            return 1.0 / right, -(result / right)
        case Operation.NEG:
            return (-1.0,)
        case Operation.SIN:
            return (np.cos(left),)
        case Operation.COS:
            return (-np.sin(left),)
        case Operation.SQRT:
            return (0.5 / result,)
        case Operation.TANH:
            return (1.0 - result * result,)
        case Operation.EXP:
            return (result,)
        case Operation.ABS:
            return (np.sign(left),)
        case _:  # the sign is constant wherever it has a derivative
            return (0.0,)
