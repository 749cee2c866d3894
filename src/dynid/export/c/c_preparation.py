"""Expressions of run-time parameters alone are computed once, when the parameters are set, and not in every call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.tape import Tape
from dynid.tape.operations import is_binary
from dynid.tape.record import Recorder, evaluate

PARAMETERS = "parameters"
"""Name of the tapes' input that holds the run-time parameters."""

Key = tuple[Any, ...]
"""An expression of run-time parameters: (opcode, operand, operand), ("parameter", number) or ("constant", value)."""


class Preparation:
    """The expressions of k run-time parameters that several tapes share.

    Prepared parameters (k + m,) are the k values followed by the m expressions; `apply` makes a tape read those.
    """

    def __init__(self, tapes: Sequence[Tape], size: int) -> None:
        """Collect the expressions of tapes that read ``parameters`` (size,)."""
        self.size = size
        self.keys: dict[Key, int] = {}
        for tape in tapes:
            for key in _boundary(tape).values():
                self.keys.setdefault(key, size + len(self.keys))

    def prepare(self, values: Sequence[Any]) -> Any:
        """Compute the prepared parameters (k + m,) from the values (k,); scalar-agnostic."""
        known: dict[Key, Any] = {}
        return np.array([*values, *(_evaluate(key, values, known) for key in self.keys)])

    def apply(self, tape: Tape) -> Tape:
        """Return the same program with prepared parameters as its input."""
        if all(entry.name != PARAMETERS for entry in tape.inputs):
            return tape
        prepared, recorder = _boundary(tape), Recorder()
        shapes = {e.name: (self.size + len(self.keys),) if e.name == PARAMETERS else e.shape for e in tape.inputs}
        inputs = {name: recorder.input(name, shape) for name, shape in shapes.items()}
        values: list[Any] = [v for e in tape.inputs for v in inputs[e.name].ravel()[: e.size].tolist()]
        constants: list[float] = tape.constants.tolist()

        def value(operand: int) -> Any:
            return values[operand] if operand >= 0 else constants[~operand]

        for number, code, left, right in tape.steps():
            if number in prepared:
                values.append(inputs[PARAMETERS][self.keys[prepared[number]]])
            else:
                values.append(evaluate(code, value(left), value(right)))
        outputs: Mapping[str, Any] = {
            o.name: np.array([value(e) for e in o.elements.ravel().tolist()], dtype=object).reshape(o.shape)
            for o in tape.outputs
        }
        return recorder.tape(outputs)


def _boundary(tape: Tape) -> dict[int, Key]:
    """Values that depend only on parameters and are used by other values, with their expressions."""
    keys: dict[int, Key] = {}
    first = 0
    for entry in tape.inputs:
        if entry.name == PARAMETERS:
            keys.update({first + position: ("parameter", position) for position in range(entry.size)})
        first += entry.size
    constants: list[float] = tape.constants.tolist()
    wanted: set[int] = {e for output in tape.outputs for e in output.elements.ravel().tolist()}

    def key(operand: int) -> Key | None:
        return keys.get(operand) if operand >= 0 else ("constant", constants[~operand])

    for number, code, left, right in tape.steps():
        operands = (left, right) if is_binary(code) else (left,)
        parts = tuple(key(operand) for operand in operands)
        if all(part is not None for part in parts):
            keys[number] = (code, *parts)
        else:
            wanted.update(operands)
    return {number: expression for number, expression in keys.items() if number in wanted and number >= first}


def _evaluate(key: Key, values: Sequence[Any], known: dict[Key, Any]) -> Any:
    if key[0] == "parameter":
        return values[key[1]]
    if key[0] == "constant":
        return key[1]
    if key not in known:
        operands = [_evaluate(part, values, known) for part in key[1:]]
        known[key] = evaluate(key[0], operands[0], operands[-1])
    return known[key]
