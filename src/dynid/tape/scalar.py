"""Symbolic scalars: what plain NumPy code computes with while it is being recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.errors import ArgumentError
from dynid.tape.operations import Operation

if TYPE_CHECKING:
    from dynid.tape.record import Recorder

__all__ = ["Scalar", "ScalarArray", "Value"]

Number = (int, float, np.number)
Value = Any
"""A :class:`Scalar`, or a plain float where the value is known while recording."""


class Scalar:
    """A number that is not known yet: plus or minus one value of the program being recorded.

    Supports ``+ - * /``, negation, ``abs``, powers with small integer exponents and one half, and the functions sin,
    cos, sqrt, tanh, exp, abs and sign, as methods and as NumPy functions. It has no order and no truth value; ``==``
    tells whether two scalars are the same expression.
    """

    __slots__ = ("negative", "node", "recorder")

    def __init__(self, recorder: Recorder, node: int, negative: bool = False) -> None:
        self.recorder = recorder
        self.node = node
        self.negative = negative

    def __add__(self, other: Value) -> Value:
        if type(other) is Scalar:
            return self.recorder.sum(self, other)
        if isinstance(other, Number):
            return self.recorder.shifted(self, float(other))
        return NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Value) -> Value:
        if type(other) is Scalar:
            return self.recorder.sum(self, -other)
        if isinstance(other, Number):
            return self.recorder.shifted(self, -float(other))
        return NotImplemented

    def __rsub__(self, other: Value) -> Value:
        return (-self).__add__(other)

    def __mul__(self, other: Value) -> Value:
        if type(other) is Scalar:
            return self.recorder.product(self, other)
        if isinstance(other, Number):
            return self.recorder.scaled(self, float(other))
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Value) -> Value:
        if type(other) is Scalar:
            return self.recorder.quotient(self, other)
        if isinstance(other, Number):
            return self.recorder.divided(self, float(other))
        return NotImplemented

    def __rtruediv__(self, other: Value) -> Value:
        if isinstance(other, Number):
            return self.recorder.reciprocal(float(other), self)
        return NotImplemented

    def __pow__(self, exponent: Value) -> Value:
        if isinstance(exponent, Number) and float(exponent) == 0.5:
            return self.sqrt()
        if not isinstance(exponent, Number) or float(exponent) != int(exponent):
            raise ArgumentError(f"a recorded scalar cannot be raised to the power {exponent!r}", remedy="Use integers")
        return _power(self, int(exponent))

    def __neg__(self) -> Scalar:
        return Scalar(self.recorder, self.node, not self.negative)

    def __pos__(self) -> Scalar:
        return self

    def sin(self) -> Scalar:
        """Sine."""
        return self.recorder.function(Operation.SIN, self)

    def cos(self) -> Scalar:
        """Cosine."""
        return self.recorder.function(Operation.COS, self)

    def sqrt(self) -> Scalar:
        """Square root."""
        return self.recorder.function(Operation.SQRT, self)

    def tanh(self) -> Scalar:
        """Hyperbolic tangent."""
        return self.recorder.function(Operation.TANH, self)

    def exp(self) -> Scalar:
        """Exponential."""
        return self.recorder.function(Operation.EXP, self)

    def sign(self) -> Scalar:
        """-1, 0 or 1; the sign of 0 is 0."""
        return self.recorder.function(Operation.SIGN, self)

    def __abs__(self) -> Scalar:
        return self.recorder.function(Operation.ABS, self)

    def __eq__(self, other: object) -> bool:
        return type(other) is Scalar and (self.recorder, self.node, self.negative) == (
            other.recorder,
            other.node,
            other.negative,
        )

    def __hash__(self) -> int:
        return hash((id(self.recorder), self.node, self.negative))

    def __bool__(self) -> bool:
        raise ArgumentError(
            "a recorded scalar has no order and no truth value",
            remedy="Write the function without branches on its inputs",
        )

    def __lt__(self, other: object) -> bool:
        return bool(self)

    __le__ = __gt__ = __ge__ = __lt__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _apply(ufunc, method, inputs, options)

    def __repr__(self) -> str:
        return f"Scalar({'-' if self.negative else ''}{self.node})"


class ScalarArray(np.ndarray[Any, np.dtype[np.object_]]):
    """Object array of scalars and floats; knows the functions that NumPy's plain object arrays cannot do (np.sign)."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Run a NumPy function on the elements."""
        return _apply(ufunc, method, inputs, options)


_FUNCTIONS: dict[np.ufunc, tuple[str, Callable[[float], float]]] = {
    np.sin: ("sin", math.sin),
    np.cos: ("cos", math.cos),
    np.sqrt: ("sqrt", math.sqrt),
    np.tanh: ("tanh", math.tanh),
    np.exp: ("exp", math.exp),
    np.sign: ("sign", lambda x: float(np.sign(x))),
    np.absolute: ("__abs__", abs),
    np.fabs: ("__abs__", abs),
}


def _apply(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A NumPy function on operands of which some are, or hold, scalars."""
    if ufunc in _FUNCTIONS and method == "__call__" and not options:
        return _elementwise(*_FUNCTIONS[ufunc], inputs[0])
    if "out" in options:
        options["out"] = tuple(_plain(array) for array in options["out"])
    result = getattr(ufunc, method)(*map(_plain, inputs), **options)
    return result.view(ScalarArray) if isinstance(result, np.ndarray) and result.dtype == object else result


def _elementwise(name: str, numeric: Callable[[float], float], operand: Any) -> Any:
    if isinstance(operand, np.ndarray):
        result = np.empty(operand.shape, dtype=object).view(ScalarArray)
        result.ravel()[:] = [_elementwise(name, numeric, element) for element in operand.ravel().tolist()]
        return result
    return getattr(operand, name)() if type(operand) is Scalar else numeric(operand)


def _plain(operand: Any) -> Any:
    """The operand as NumPy's own object loops take it."""
    if type(operand) is Scalar:
        boxed = np.empty((), dtype=object)
        boxed[()] = operand
        return boxed
    return operand.view(np.ndarray) if isinstance(operand, ScalarArray) else operand


def _power(base: Value, exponent: int) -> Value:
    """Integer power by repeated squaring."""
    if exponent < 0:
        return 1.0 / _power(base, -exponent)
    result: Value = 1.0
    while exponent:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result
