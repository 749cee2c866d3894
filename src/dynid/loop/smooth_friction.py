"""Dry friction that an integrator can follow.

``sign(v)`` jumps, and no explicit integrator passes a jump without chatter. Within a small speed v0 of rest it is
replaced by the odd polynomial that leaves it twice continuously differentiable,

    sign(v) -> s (15 - 10 s^2 + 3 s^4) / 8,    s = v / v0 held within -1 and 1,

and is *exactly* the sign beyond, so that samples faster than v0 obey the unchanged model. A joint that sticks creeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.tape import Tape
from dynid.tape.operations import Operation
from dynid.tape.record import Recorder, evaluate

__all__ = ["STEEPEST", "smooth_sign", "smoothed_friction", "with_signs"]

STEEPEST = 15.0 / 8.0
"""Slope at rest, per unit of s."""


def smooth_sign(v: Any, speed: float) -> Any:
    """The polynomial above; scalar-agnostic."""
    x = v * (1.0 / speed)
    s = (np.abs(x + 1.0) - np.abs(x - 1.0)) * 0.5
    square = s * s
    return s * (square * (square * 0.375 - 1.25) + 1.875)


def smoothed_friction(tape: Tape, speed: float | tuple[float, ...]) -> Tape:
    """The same program with every sign replaced by the polynomial.

    Args:
        tape: Its inputs n ... 2 n are the joints' velocities, where speeds differ.
        speed: v0 of every sign; or (n + 1,), of each joint's own velocity and of all others [rad/s or m/s].
    """
    if not isinstance(speed, tuple):
        return with_signs(tape, lambda v, place: smooth_sign(v, speed))
    n = len(speed) - 1
    return with_signs(tape, lambda v, place: smooth_sign(v, speed[place - n if n <= place < 2 * n else n]))


def with_signs(tape: Tape, sign: Callable[[Any, int], Any]) -> Tape:
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
