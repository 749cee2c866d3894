"""Dry friction that an integrator can follow: every sign on a tape becomes `dynid.terms.smoothing.polynomial_sign`.

Terms need no simulation form of their own: whatever uses ``np.sign`` in its column is smoothed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.tape import Tape
from dynid.tape.operations import Operation
from dynid.tape.record import Recorder, evaluate
from dynid.terms.smoothing import polynomial_sign


def smooth_signs(tape: Tape, speed: float | tuple[float, ...]) -> Tape:
    """The same program with every sign replaced by the polynomial.

    Args:
        tape: The program; where speeds differ, its inputs n ... 2 n are the joints' velocities.
        speed: v0 of every sign [rad/s or m/s]; or (n + 1,) v0 for the sign of each joint's velocity, and that of all
            other signs.
    """
    if not isinstance(speed, tuple):
        return replace_signs(tape, lambda v, place: polynomial_sign(v, speed))
    n = len(speed) - 1
    return replace_signs(tape, lambda v, place: polynomial_sign(v, speed[place - n if n <= place < 2 * n else n]))


def replace_signs(tape: Tape, sign: Callable[[Any, int], Any]) -> Tape:
    """The same program with every ``sign(v)`` replaced by a function of v and of its place among inputs and steps."""
    recorder = Recorder()
    inputs = [recorder.input(entry.name, entry.shape) for entry in tape.inputs]
    values: list[Any] = [value for array in inputs for value in array.ravel().tolist()]
    constants: list[float] = tape.constants.tolist()

    def value(operand: int) -> Any:
        return values[operand] if operand >= 0 else constants[~operand]

    for _, code, left, right in tape.steps():
        if code == Operation.SIGN:
            values.append(sign(value(left), left))
        else:
            values.append(evaluate(code, value(left), value(right)))
    outputs: dict[str, Any] = {}
    for output in tape.outputs:
        elements = np.empty(output.size, dtype=object)
        elements[:] = [value(e) for e in output.elements.ravel().tolist()]
        outputs[output.name] = elements.reshape(output.shape)
    return recorder.tape(outputs)
