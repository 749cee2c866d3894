"""Recording: plain NumPy code runs on symbolic scalars, and a `Recorder` keeps each operation in a `Tape`.

`record` runs a function, such as the inverse dynamics of a robot, once on scalars, and returns its tape: the list of
all operations, without branches, which is then compiled. `replay` runs a tape on other scalars or on numbers.

Numbering: each element of an input, and then the result of each operation, has a number from 0 up, its *node*. Constant
k has the number ``~k = -1 - k``. What an operation reads is its *operand*, a node or a constant: the sign tells which.

A :class:`Scalar` is a node with a sign. Negation is therefore no operation: a minus sign passes through products and
odd functions until a sum takes it in as a subtraction. Known numbers stay plain Python floats while recording, so that
products with zeros and ones vanish. Equal expressions become the same node.
"""

from __future__ import annotations

import math
import operator
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dynid.errors import ArgumentError
from dynid.spatial import TINY
from dynid.tape.operations import COMMUTATIVE, EVEN, ODD, Operation
from dynid.tape.tape import Input, Tape, drop_unused

Number = (int, float, np.number)
"""Types of known numbers."""
Value = Any
"""A :class:`Scalar`, or a plain float where the value is known while recording."""


def _operator(with_scalar: str, with_number: str) -> Callable[[Scalar, Value], Value]:
    """Make an operator of `Scalar`.

    Args:
        with_scalar: Name of the method of `Recorder` for two scalars.
        with_number: Name of its method for a scalar and a number.
    """

    def operate(self: Scalar, other: Value) -> Value:
        if type(other) is Scalar:
            return getattr(self.recorder, with_scalar)(self, other)
        if isinstance(other, Number):
            return getattr(self.recorder, with_number)(self, float(other))
        return NotImplemented

    return operate


def _function(operation: Operation) -> Callable[[Scalar], Scalar]:
    """Make a method of `Scalar` that records a function of one argument."""
    return lambda scalar: scalar.recorder.function(operation, scalar)


class Scalar:
    """A number that is not known yet: plus or minus the value of one node of the program that is being recorded.

    Supports ``+ - * /``, negation, ``abs``, powers with small integer exponents and one half, and the functions sin,
    cos, sqrt, tanh, exp, abs and sign, as methods and as NumPy functions. It has no order and no truth value; ``==``
    tells whether two scalars are the same expression.
    """

    __slots__ = ("negative", "node", "recorder")

    def __init__(self, recorder: Recorder, node: int, negative: bool = False) -> None:
        self.recorder = recorder
        self.node = node
        self.negative = negative

    __add__ = __radd__ = _operator("sum", "shift")
    __mul__ = __rmul__ = _operator("product", "scale")
    __truediv__ = _operator("quotient", "divide")

    def __sub__(self, other: Value) -> Value:
        return self.__add__(-other)

    def __rsub__(self, other: Value) -> Value:
        return (-self).__add__(other)

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

    sin, cos, sqrt, tanh, exp, sign, __abs__ = map(
        _function, (Operation.SIN, Operation.COS, Operation.SQRT, Operation.TANH, Operation.EXP, Operation.SIGN,
                    Operation.ABS)
    )  # fmt: skip

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
    """Object array of scalars and floats; it also has functions that plain object arrays lack, such as np.sign."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Run a NumPy function on the elements."""
        return _apply(ufunc, method, inputs, options)


_FUNCTIONS: dict[np.ufunc, tuple[Operation, Callable[[float], float]]] = {
    np.sin: (Operation.SIN, math.sin),
    np.cos: (Operation.COS, math.cos),
    np.sqrt: (Operation.SQRT, math.sqrt),
    np.tanh: (Operation.TANH, math.tanh),
    np.exp: (Operation.EXP, math.exp),
    np.sign: (Operation.SIGN, lambda x: float(np.sign(x))),
    np.fabs: (Operation.ABS, abs),
    np.absolute: (Operation.ABS, abs),
}
"""Function of NumPy -> the operation that it records, and the function for known numbers."""


def _apply(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run a NumPy function on operands of which some are scalars or arrays of them; arguments of `__array_ufunc__`."""
    if ufunc in _FUNCTIONS and method == "__call__" and not options:
        return _elementwise(*_FUNCTIONS[ufunc], inputs[0])
    if "out" in options:
        options["out"] = tuple(_plain(array) for array in options["out"])
    try:
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
    except TypeError as error:
        allowed = ", ".join(f"np.{known.__name__}" for known in _FUNCTIONS)
        raise ArgumentError(
            f"np.{ufunc.__name__} cannot be recorded on these operands",
            remedy=f"Use + - * /, powers with integer exponents and these functions: {allowed}.",
        ) from error
    return result.view(ScalarArray) if isinstance(result, np.ndarray) and result.dtype == object else result


def _elementwise(operation: Operation, numeric: Callable[[float], float], operand: Any) -> Any:
    """Apply a function of one argument to a scalar, a number or each element of an array."""
    if isinstance(operand, np.ndarray):
        result = np.empty(operand.shape, dtype=object).view(ScalarArray)
        result.ravel()[:] = [_elementwise(operation, numeric, element) for element in operand.ravel().tolist()]
        return result
    return operand.recorder.function(operation, operand) if type(operand) is Scalar else numeric(operand)


def _plain(operand: Any) -> Any:
    """The operand without our array class, so that NumPy's loops over objects run and do not call `_apply` again."""
    if type(operand) is Scalar:  # in an array without dimensions
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


class Recorder:
    """A program that is being recorded. Declare all inputs first.

    `sum`, `product` and so on record one operation and return its result as a scalar, or as a float where the value is
    known. They simplify first, so that fewer operations are recorded.

    Attributes:
        _inputs: The declared inputs.
        _first: Node of the first operation, behind all input elements; operation k has the node ``_first + k``.
        _opcodes: Number of each operation, see `Operation`.
        _operands: Operands (left, right) of each operation; the right one is 0 for functions of one operand.
        _constants: The constants.
        _constant_numbers: Bytes of a constant -> its number ``~k``.
        _known: (operation, left, right) -> node of an operation that is already recorded.
    """

    __slots__ = ("_constant_numbers", "_constants", "_first", "_inputs", "_known", "_opcodes", "_operands")

    def __init__(self) -> None:
        self._inputs: list[Input] = []
        self._first = 0
        self._opcodes: list[int] = []
        self._operands: list[tuple[int, int]] = []
        self._constants: list[float] = []
        self._constant_numbers: dict[bytes, int] = {}
        self._known: dict[tuple[int, int, int], int] = {}

    def input(self, name: str, shape: tuple[int, ...]) -> ScalarArray:
        """Declare an input and get its scalars in an object array of that shape."""
        if self._opcodes:
            raise ArgumentError(f"input {name!r} comes after the first operation", remedy="Declare all inputs first")
        entry = Input(name, tuple(shape))
        self._inputs.append(entry)
        array = np.empty(entry.size, dtype=object)
        array[:] = [Scalar(self, self._first + position) for position in range(entry.size)]
        self._first += entry.size
        return array.reshape(entry.shape).view(ScalarArray)

    def sum(self, left: Scalar, right: Scalar) -> Value:
        """Sum of two scalars; summands that cancel are not computed: ``x - (x + c)`` is ``-c``."""
        remainder = self._cancel(left, right)
        if remainder is not None:
            return remainder
        if left.negative == right.negative:
            return Scalar(self, self._node(Operation.ADD, left.node, right.node), left.negative)
        if left.node == right.node:
            return 0.0
        # one of the two is negative: a difference of nodes
        minuend, subtrahend = (right, left) if left.negative else (left, right)
        return self._difference(minuend.node, subtrahend.node)

    def shift(self, scalar: Scalar, constant: float) -> Value:
        """Scalar + constant; ``(x + a) + b`` becomes ``x + (a + b)``."""
        if constant == 0.0:
            return scalar
        inner = self._summands(scalar)
        if inner is not None and type(inner[1]) is float:  # the scalar is the sum of a scalar and a constant
            merged = inner[1] + constant
            if math.isfinite(merged):
                return inner[0] + merged
        number = self._constant(abs(constant))
        operation = Operation.ADD if scalar.negative == (constant < 0.0) else Operation.SUB
        return Scalar(self, self._node(operation, scalar.node, number), scalar.negative)

    def product(self, left: Scalar, right: Scalar) -> Scalar:
        """Product of two scalars."""
        return Scalar(self, self._node(Operation.MUL, left.node, right.node), left.negative != right.negative)

    def scale(self, scalar: Scalar, factor: float) -> Value:
        """Scalar * factor; ``(x a) b`` becomes ``x (a b)``."""
        if factor == 0.0:
            return 0.0
        inner = self._operands[scalar.node - self._first] if scalar.node >= self._first else (0, 0)  # an input has none
        # the scalar is a product with a constant, which is always the right operand
        if inner[1] < 0 and self._opcodes[scalar.node - self._first] == Operation.MUL:
            merged = self._constants[~inner[1]] * factor
            if merged != 0.0 and math.isfinite(merged):
                return self.scale(Scalar(self, inner[0], scalar.negative), merged)
        negative = scalar.negative != (factor < 0.0)
        if abs(factor) == 1.0:
            return Scalar(self, scalar.node, negative)
        return Scalar(self, self._node(Operation.MUL, scalar.node, self._constant(abs(factor))), negative)

    def quotient(self, left: Scalar, right: Scalar) -> Value:
        """Quotient of two scalars; ``x / x`` is 1."""
        negative = left.negative != right.negative
        if left.node == right.node:
            return -1.0 if negative else 1.0
        return Scalar(self, self._node(Operation.DIV, left.node, right.node), negative)

    def divide(self, scalar: Scalar, divisor: float) -> Value:
        """Scalar / divisor, as a multiplication where the reciprocal is a normal number."""
        if divisor == 0.0:
            raise ArgumentError("division of a recorded scalar by the constant zero")
        if TINY < abs(divisor) < 1.0 / TINY:
            return self.scale(scalar, 1.0 / divisor)
        node = self._node(Operation.DIV, scalar.node, self._constant(abs(divisor)))
        return Scalar(self, node, scalar.negative != (divisor < 0.0))

    def reciprocal(self, dividend: float, scalar: Scalar) -> Value:
        """Dividend / scalar."""
        if dividend == 0.0:
            return 0.0
        node = self._node(Operation.DIV, self._constant(abs(dividend)), scalar.node)
        return Scalar(self, node, scalar.negative != (dividend < 0.0))

    def function(self, operation: Operation, scalar: Scalar) -> Scalar:
        """A function of one scalar: the sign of the argument goes to the result if it is odd, and vanishes if even."""
        node, negative = scalar.node, scalar.negative
        if negative and operation not in ODD and operation not in EVEN:
            node = self._node(Operation.NEG, node)
        return Scalar(self, self._node(operation, node), negative and operation in ODD)

    def tape(self, outputs: Mapping[str, npt.ArrayLike]) -> Tape:
        """The program that computes the given arrays of scalars and floats: name of an output -> its array."""
        elements = {name: np.asarray(array, dtype=object) for name, array in outputs.items()}
        # where an output needs -(a - b), the operands are exchanged, which saves a change of sign
        reversible = self._find_reversible([e for array in elements.values() for e in array.ravel().tolist()])
        numbers = {
            name: np.array([self._element(e, reversible) for e in array.ravel().tolist()], np.int32).reshape(
                array.shape
            )
            for name, array in elements.items()
        }
        operands = np.array(self._operands, dtype=np.int32).reshape(-1, 2)
        positions = [node - self._first for node in reversible]
        operands[positions] = operands[positions, ::-1]  # a - b becomes b - a
        opcodes = np.array(self._opcodes, dtype=np.uint8)
        constants = np.array(self._constants, dtype=np.float64)
        return drop_unused(opcodes, operands, constants, tuple(self._inputs), numbers)

    def _find_reversible(self, elements: Sequence[Value]) -> set[int]:
        """Nodes of differences a - b that only one output reads, and with a minus: `tape` makes them b - a.

        Args:
            elements: Elements of all outputs.
        """
        scalars = [element for element in elements if type(element) is Scalar]
        readers = Counter(operand for pair in self._operands for operand in pair)  # operand -> how often it is read
        readers.update(scalar.node for scalar in scalars)
        read_once = [scalar.node for scalar in scalars if scalar.negative and readers[scalar.node] == 1]
        return {n for n in read_once if n >= self._first and self._opcodes[n - self._first] == Operation.SUB}

    def _element(self, element: Value, reversible: set[int]) -> int:
        """The node of an element of an output, or the number of its constant."""
        if type(element) is not Scalar:
            return self._constant(float(element))
        if element.recorder is not self:
            raise ArgumentError("an output holds a scalar of another recording")
        if element.negative and element.node not in reversible:
            return self._node(Operation.NEG, element.node)
        return element.node

    def _summands(self, scalar: Scalar) -> tuple[Value, Value] | None:
        """The two summands of a scalar that is a sum or difference, with their signs; None for any other scalar.

        The first is a scalar, the second a scalar or a float.
        """
        position = scalar.node - self._first
        if position < 0 or self._opcodes[position] not in (Operation.ADD, Operation.SUB):
            return None
        left, right = self._operands[position]
        is_subtracted = scalar.negative != (self._opcodes[position] == Operation.SUB)
        first = Scalar(self, left, scalar.negative)
        if right >= 0:
            return first, Scalar(self, right, is_subtracted)
        return first, -self._constants[~right] if is_subtracted else self._constants[~right]

    def _cancel(self, left: Scalar, right: Scalar) -> Value | None:
        """Simplify ``left + right`` where a summand of one side is the negative of a summand of the other.

        Returns:
            What remains of the sum; None where nothing cancels.
        """
        # pairs (summand, remainder of its side): each side as a whole, and each side that is itself a sum in two parts
        undivided = ((left, 0.0),), ((right, 0.0),)
        divided = [(pair, pair[::-1]) if (pair := self._summands(side)) else () for side in (left, right)]
        for lefts, rights in ((divided[0], undivided[1]), (undivided[0], divided[1]), (divided[0], divided[1])):
            for one, left_remainder in lefts:
                for other, right_remainder in rights:
                    if _are_opposite(one, other):
                        return left_remainder + right_remainder
        return None

    def _difference(self, left: int, right: int) -> Scalar:
        """The value of node ``left`` minus that of node ``right``; a - b and b - a share one operation."""
        if left < right:
            return Scalar(self, self._node(Operation.SUB, left, right))
        return Scalar(self, self._node(Operation.SUB, right, left), negative=True)

    def _constant(self, value: float) -> int:
        """The (negative) number of a constant, new or already known."""
        if not math.isfinite(value):
            raise ArgumentError(f"the recorded program contains the constant {value}", remedy="Give finite constants")
        key = struct.pack("<d", value + 0.0)  # +0.0 turns a negative zero into zero
        number = self._constant_numbers.setdefault(key, ~len(self._constants))
        if ~number == len(self._constants):
            self._constants.append(value + 0.0)
        return number

    def _node(self, operation: Operation, left: int, right: int = 0) -> int:
        """The node of an operation, new or already recorded. In commutative operations constants are put right."""
        if operation in COMMUTATIVE and (left < 0 or 0 <= right < left):
            left, right = right, left
        key = (int(operation), left, right)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = self._append(operation, left, right)
        return number

    def _append(self, operation: Operation, left: int, right: int) -> int:
        """Record an operation and return its node."""
        self._opcodes.append(int(operation))
        self._operands.append((left, right))
        return self._first + len(self._opcodes) - 1


def _are_opposite(one: Value, other: Value) -> bool:
    """Whether two scalars are each other's negatives."""
    if type(one) is not Scalar or type(other) is not Scalar:
        return False
    return one.node == other.node and one.negative != other.negative


def record(function: Callable[..., Any], **shapes: tuple[int, ...]) -> Tape:
    """Record what a function computes.

    Args:
        function: called once, with one object array of scalars per keyword; returns an array or a dict of named arrays.
            It must not branch on the values of its inputs.
        **shapes: shape of each input for one sample, for example ``q=(6,)``, in the order of the tape's inputs.

    Returns:
        The tape. A bare array becomes the output named ``"output"``.
    """
    recorder = Recorder()
    inputs = {name: recorder.input(name, shape) for name, shape in shapes.items()}
    result = function(**inputs)
    return recorder.tape(result if isinstance(result, Mapping) else {"output": result})


def replay(
    tape: Tape, inputs: Iterable[Value], sign: Callable[[Value, int], Value] | None = None
) -> Callable[[int], Value]:
    """Run the operations of a tape on other values: scalars of another recording, floats or arrays.

    Args:
        tape: the program.
        inputs: (input_size,) values of the tape's input elements: scalars of a recording, floats or arrays.
        sign: function that replaces ``sign(v)``; its arguments are v and the node of v. None to keep the sign.

    Returns:
        Function that gives the value of an operand of the tape, by its number.
    """
    values: list[Value] = list(inputs)
    constants: list[float] = tape.constants.tolist()

    def value(operand: int) -> Value:
        return values[operand] if operand >= 0 else constants[~operand]

    for _, code, left, right in tape.steps():
        is_changed = sign is not None and code == Operation.SIGN
        values.append(sign(value(left), left) if is_changed else evaluate(code, value(left), value(right)))  # type: ignore[misc]
    return value


def evaluate(code: int, left: Value, right: Value) -> Value:
    """One operation on scalars, floats or arrays."""
    return _BINARY[code](left, right) if code in _BINARY else _UNARY[code](left)


_BINARY: dict[int, Callable[[Any, Any], Any]] = {
    Operation.ADD: operator.add,
    Operation.SUB: operator.sub,
    Operation.MUL: operator.mul,
    Operation.DIV: operator.truediv,
}
_UNARY: dict[int, Callable[[Any], Any]] = {
    Operation.NEG: operator.neg,
    **{operation: function for function, (operation, _) in _FUNCTIONS.items()},
}
