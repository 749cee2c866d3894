"""Formulas of a tape as people write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynid.tape.operations import SYMBOLS, Operation, is_binary

__all__ = ["formula"]

Steps = Mapping[int, tuple[int, int, int]]
"""Operation code, left and right operand of every computed value."""

ONE_LINE = 160
"""Longest formula, in characters, that is written without intermediate names."""

_ATOM = 9
"""Precedence of names and numbers, which never need parentheses: above that of every operation."""
_PRECEDENCE = {Operation.ADD: 1, Operation.SUB: 1, Operation.MUL: 2, Operation.DIV: 2, Operation.NEG: 3}


def formula(label: str, element: int, inputs: Sequence[str], constants: Sequence[float], steps: Steps) -> str:
    """Write ``label = ...`` for one operand of a tape.

    Args:
        label: what stands left of the equals sign.
        element: the operand to write.
        inputs: readable label of each input element.
        constants: values of the constants.
        steps: the operations of the tape, by value number.
    """
    cone = _cone(element, steps)
    expressions: dict[int, tuple[str, int]] = {~k: (f"{value:.12g}", _ATOM) for k, value in enumerate(constants)}
    expressions.update({number: (name, _ATOM) for number, name in enumerate(inputs)})
    length = {operand: len(text) for operand, (text, _) in expressions.items()}
    uses: dict[int, int] = {}
    for value in cone:
        for operand in _operands(steps[value]):
            uses[operand] = uses.get(operand, 0) + 1
    for value in cone:
        length[value] = 5 + sum(length[operand] for operand in _operands(steps[value]))
    lines: list[str] = []
    for value in cone:
        text, precedence = _expression(steps[value], expressions)
        if length[element] > ONE_LINE and value != element and (uses[value] > 1 or len(text) > ONE_LINE):
            lines.append(f"t{len(lines) + 1} = {text}")
            text, precedence = f"t{len(lines)}", _ATOM
        expressions[value] = (text, precedence)
    return "\n".join([*lines, f"{label} = {expressions[element][0]}"])


def _operands(step: tuple[int, int, int]) -> tuple[int, ...]:
    return step[1:] if is_binary(step[0]) else step[1:2]


def _cone(element: int, steps: Steps) -> list[int]:
    """The computed values an operand depends on, itself included, in order."""
    found: set[int] = set()
    waiting = [element]
    while waiting:
        value = waiting.pop()
        if value in steps and value not in found:
            found.add(value)
            waiting.extend(_operands(steps[value]))
    return sorted(found)


def _expression(step: tuple[int, int, int], expressions: Mapping[int, tuple[str, int]]) -> tuple[str, int]:
    """One operation as text, with its precedence."""
    operation = Operation(step[0])
    if operation not in _PRECEDENCE:
        return f"{operation.name.lower()}({expressions[step[1]][0]})", _ATOM
    own = _PRECEDENCE[operation]
    left = _wrapped(expressions[step[1]], own)
    if operation is Operation.NEG:
        return f"-{left}", own
    # The right operand of - and / binds tighter than the left one.
    right = _wrapped(expressions[step[2]], own + (operation in (Operation.SUB, Operation.DIV)))
    return f"{left} {SYMBOLS[operation]} {right}" if own == 1 else f"{left}{SYMBOLS[operation]}{right}", own


def _wrapped(expression: tuple[str, int], precedence: int) -> str:
    text, own = expression
    return text if own >= precedence else f"({text})"
