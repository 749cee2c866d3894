"""Derivatives of a tape (a recorded program) by automatic differentiation; the results are tapes again.

`vjp` is reverse mode: it follows the program backwards once and gives the gradient of a weighted sum of all output
elements, for a small multiple of the program's own cost. `jvp` is forward mode: the derivative along one direction.
`jacobian` is forward mode along every unit direction of one input. In all three the program is run once more on
recorded scalars (`replay`), and the derivatives are computed from its values, so that everything is recorded in a new
tape, which compiles like any other. Derivatives that are known numbers, such as zero and one, stay plain floats
meanwhile, so that products with them leave no steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dynid.errors import ArgumentError
from dynid.tape.operations import Operation, is_binary
from dynid.tape.record import Recorder, Value, replay
from dynid.tape.tape import Integers, Tape


def vjp(tape: Tape, output: str, wrt: Sequence[str] | None = None) -> Tape:
    """Tape of the gradient of ``sum(cotangent * output)``: the vector-Jacobian product.

    Args:
        tape: the program to differentiate.
        output: the output.
        wrt: names of the inputs to differentiate with respect to; all of them if None.

    Returns:
        Tape with the inputs of ``tape`` and a last one, ``cotangent``, in the output's shape, whose elements at
        structural zeros and constants of the output are not read; one output per differentiated input, of its name.
    """
    recorder = Recorder()
    chosen = _choose_inputs(tape, wrt)
    inputs = _declare_inputs(recorder, tape)
    elements = tape.output(output).elements
    weights = recorder.input("cotangent", elements.shape)
    value = replay(tape, inputs)  # function: number of an operand of the tape -> its recorded value
    adjoints: dict[int, Value] = {}  # operand -> derivative of the weighted sum with respect to it
    for element, weight in zip(elements.ravel().tolist(), weights.ravel().tolist(), strict=True):
        adjoints[element] = adjoints.get(element, 0.0) + weight
    for step in reversed(list(tape.steps())):
        number, *_ = step  # of the step's result
        adjoint = adjoints.pop(number, 0.0)
        if isinstance(adjoint, float) and adjoint == 0.0:  # the output does not depend on this step
            continue
        for partial, operand in _partials(step, value):
            if operand >= 0:  # not a constant
                adjoints[operand] = adjoints.get(operand, 0.0) + adjoint * partial
    shapes = {entry.name: entry.shape for entry in tape.inputs}
    places = _places(tape)
    return recorder.tape(
        {name: _as_objects([adjoints.get(k, 0.0) for k in places[name]]).reshape(shapes[name]) for name in chosen}
    )


def jvp(tape: Tape, output: str, wrt: Sequence[str] | None = None) -> Tape:
    """Tape of the derivative of an output along a direction: the Jacobian-vector product.

    Args:
        tape: the program to differentiate.
        output: the output.
        wrt: names of the inputs that change along the direction; all of them if None.

    Returns:
        Tape with one output, of the name and shape of ``output``. The direction's inputs follow those of ``tape``, and
        are called like these with ``d_`` before the name.
    """
    recorder = Recorder()
    chosen = _choose_inputs(tape, wrt)
    places = _places(tape)
    inputs = _declare_inputs(recorder, tape)
    seeds: dict[int, Value] = {}  # element of an input -> its rate
    for entry in tape.inputs:
        if entry.name in chosen:
            direction = recorder.input(f"d_{entry.name}", entry.shape).ravel().tolist()
            seeds |= zip(places[entry.name], direction, strict=True)
    elements = tape.output(output).elements
    (found,) = _rates(tape, replay(tape, inputs), elements, [seeds])
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
    _choose_inputs(tape, [wrt])  # refuses an unknown name
    recorder = Recorder()
    values: list[Value] = []
    shape: tuple[int, ...] = ()
    for entry in tape.inputs:
        if entry.name == wrt:
            shape = entry.shape
            values += [at] * entry.size
        else:
            values += recorder.input(entry.name, entry.shape).ravel().tolist()
    elements = tape.output(output).elements
    seeds = [{place: 1.0} for place in _places(tape)[wrt]]
    found = _rates(tape, replay(tape, _as_objects(values)), elements, seeds)
    return recorder.tape({output: np.stack(found, axis=-1).reshape((*elements.shape, *shape))})


def _rates(
    tape: Tape, value: Callable[[int], Value], elements: Integers, seeds: Sequence[Mapping[int, Value]]
) -> list[npt.NDArray[np.object_]]:
    """For each seed, the derivatives of some elements of the tape in the direction of the seed.

    Args:
        tape: the program.
        value: gives the value of an operand.
        elements: operands whose derivatives are wanted.
        seeds: directions, each a table: number of an input element -> its rate; the others do not change.

    Returns:
        For each seed a vector, one derivative per element.
    """
    steps = [(step[0], _partials(step, value)) for step in tape.steps()]  # step[0]: number of the result
    found = []
    for seed in seeds:
        rates = dict(seed)  # value -> its rate; what does not change is not in it
        for number, partials in steps:
            parts = [partial * rates[operand] for partial, operand in partials if operand in rates]
            if parts:
                rates[number] = sum(parts, 0.0)
        found.append(_as_objects([rates.get(element, 0.0) for element in elements.ravel().tolist()]))
    return found


def _places(tape: Tape) -> dict[str, range]:
    """Name of an input -> numbers of its elements among the elements of all inputs."""
    ends = accumulate(entry.size for entry in tape.inputs)
    return {entry.name: range(end - entry.size, end) for entry, end in zip(tape.inputs, ends, strict=True)}


def _declare_inputs(recorder: Recorder, tape: Tape) -> npt.NDArray[np.object_]:
    """Declare the inputs of a tape in a new recording; returns all their elements in one vector."""
    arrays = [recorder.input(entry.name, entry.shape).ravel().tolist() for entry in tape.inputs]
    return _as_objects([scalar for array in arrays for scalar in array])


def _as_objects(values: Sequence[Value]) -> npt.NDArray[np.object_]:
    """A vector of recorded scalars and floats; ``np.array`` would try to iterate over the scalars."""
    flat = np.empty(len(values), dtype=object)
    flat[:] = values
    return flat


def _choose_inputs(tape: Tape, wrt: Sequence[str] | None) -> list[str]:
    """The names of the inputs to differentiate by, all for None; an unknown one is an ArgumentError."""
    names = [entry.name for entry in tape.inputs]
    unknown = set(wrt or ()) - set(names)
    if unknown:
        raise ArgumentError(f"the tape has no input {sorted(unknown)}", remedy=f"Choose among {names}")
    return names if wrt is None else list(wrt)


def _partials(step: tuple[int, int, int, int], value: Callable[[int], Value]) -> list[tuple[Value, int]]:
    """Derivatives of one step (number, code, left, right) with respect to its operands, each with its operand."""
    number, code, left, right = step
    derivatives = _derivatives(code, value(number), value(left), value(right) if is_binary(code) else None)
    return list(zip(derivatives, (left, right), strict=False))  # one derivative, or two


def _derivatives(code: int, result: Value, left: Value, right: Value) -> tuple[Value, ...]:
    """Derivatives of an operation with respect to each of its operands, from its operands and its result."""
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
