"""Make a tape, a recorded program, callable: compiled by LLVM, or with NumPy where llvmlite cannot be loaded.

`compile_tape` gives a `Program`, which takes many samples at a time; `compile_single` gives a function with little
overhead for one sample. Both check and convert their arguments, and leave the computation to an `Executor`.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.tape.numpy_backend import BLOCK, NumpyExecutor
from dynid.tape.tape import Input, Output, Tape

Backend = Literal["auto", "llvm", "numpy"]
"""``auto``: compiled where llvmlite can be loaded, else interpreted."""
_DOUBLE = np.dtype(np.float64)


class Executor(Protocol):
    """A back end's compiled or interpreted form of one tape."""

    def run(self, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> None:
        """Fill one C-contiguous (N, size) array per output from one C-contiguous (N, size) array per input."""


class Program:
    """A tape that can be called.

    Call it with one array per input of the tape, in the tape's order: (N, *shape) for N samples or (*shape) for one. A
    tape with one output returns an array, (N, *output shape) or (*output shape); one with several a dict of them.
    """

    __slots__ = ("_executor", "backend", "tape")

    def __init__(self, tape: Tape, executor: Executor, backend: str) -> None:
        """Use `compile_tape` instead.

        Args:
            tape: the program.
            executor: what runs it.
            backend: ``llvm`` or ``numpy``.
        """
        self.tape = tape
        self.backend = backend
        self._executor = executor

    def __call__(self, *inputs: npt.ArrayLike, out: Any = None) -> Any:
        """Run the program.

        Args:
            *inputs: one array per input; a single sample among batches is used for every sample.
            out: where to write the only output: a C-contiguous float64 array.

        Returns:
            The output array (``out`` where it was given), or a dict of arrays.

        Raises:
            ArgumentError: if an array does not have the shape or the type the tape asks for.
        """
        arrays, samples = self._prepare(inputs)
        batch_shape = () if samples is None else (samples,)  # of the results, before the shape for one sample
        rows = 1 if samples is None else samples
        outputs = self.tape.outputs
        if out is None:
            results = [np.empty((*batch_shape, *output.shape)) for output in outputs]
        elif len(outputs) > 1:
            raise ArgumentError(f"out for {len(outputs)} outputs", remedy="Leave it out, or select one output.")
        else:
            results = [_destination(outputs[0], batch_shape, out)]
            # the result is written while inputs are still read, so they must not share memory
            arrays = [array.copy() if np.may_share_memory(array, out) else array for array in arrays]
        self._run(arrays, [result.reshape(rows, each.size) for result, each in zip(results, outputs, strict=True)])
        named = {output.name: result for output, result in zip(outputs, results, strict=True)}
        return results[0] if len(results) == 1 else named

    def _run(self, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> None:
        """Run all rows at once, or piece by piece where an input is one row for all of them, which is then repeated."""
        rows = len(outputs[0]) if outputs else 0
        is_single = [len(array) == 1 < rows for array in inputs]  # one row, although there are several samples
        if not any(is_single):
            self._executor.run(inputs, outputs)
            return
        step = min(rows, BLOCK)
        ready = [np.repeat(array, step, axis=0) if one else array for array, one in zip(inputs, is_single, strict=True)]
        for start in range(0, rows, step):
            part = slice(start, min(start + step, rows))
            repeated = slice(part.stop - start)  # as many of the repeated rows as the part has
            pieces = [array[repeated if one else part] for array, one in zip(ready, is_single, strict=True)]
            self._executor.run(pieces, [output[part] for output in outputs])

    def _prepare(self, inputs: Sequence[npt.ArrayLike]) -> tuple[list[Floats], int | None]:
        """Convert the inputs to C-contiguous (N, size) arrays, or (1, size) for what is the same for all samples.

        Returns:
            The arrays and N, or None for a single sample.
        """
        entries = self.tape.inputs
        if len(inputs) != len(entries):
            names = ", ".join(entry.name for entry in entries)
            raise ArgumentError(f"{len(inputs)} inputs given, {len(entries)} expected: {names}")
        arrays = [
            array
            if type(array) is np.ndarray and array.dtype == _DOUBLE
            else real_array(entry.name, array).astype(np.float64, copy=False)
            for array, entry in zip(inputs, entries, strict=True)
        ]
        samples: int | None = None  # until an array with several samples is met
        for array, entry in zip(arrays, entries, strict=True):
            if array.shape == entry.shape:
                continue
            if array.shape[1:] != entry.shape or array.ndim == 0 or samples not in (None, len(array)):
                count = "N" if samples is None else samples
                raise ArgumentError(
                    f"input {entry.name!r} has shape {array.shape}",
                    remedy=f"Give {entry.shape} for one sample or {(count, *entry.shape)} for several",
                )
            samples = len(array)
        rows = 1 if samples is None else samples
        return [_flat(array, rows, entry) for array, entry in zip(arrays, entries, strict=True)], samples


def real_array(name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    """An argument as an array of real numbers, of whatever type they are.

    Raises:
        ArgumentError: if it holds anything else, or masked elements, whose hidden values would be used otherwise.
    """
    # Nobody can have made a masked array before numpy.ma is loaded; loading it here would delay a first call.
    if "numpy.ma" in sys.modules and np.ma.isMaskedArray(value) and np.ma.getmaskarray(value).any():
        raise ArgumentError(f"{name!r} has masked elements", remedy="Leave them out, or fill them")
    try:
        array = np.asarray(value)
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"{name} is no array of real numbers: {error}", remedy="Give an array of floats."
        ) from error
    if array.dtype.kind not in "fiub":  # floats, integers, unsigned integers, booleans
        raise ArgumentError(f"{name} is an array of {_plain_name(array.dtype)}", remedy="Give an array of floats.")
    return array


def _plain_name(dtype: np.dtype[Any]) -> str:
    """The plain word for a data type, for messages."""
    return {"U": "texts", "S": "texts", "c": "complex numbers", "O": "objects"}.get(dtype.kind, str(dtype))


def _flat(array: Floats, rows: int, entry: Input) -> Floats:
    """The array as C-contiguous (rows, size), or (1, size) for a single sample; the array itself where it is so."""
    if array.shape == (rows, entry.size) and array.flags.c_contiguous:
        return array  # the usual case; the calls below take microseconds each
    count = min(rows, 1) if array.shape == entry.shape else rows
    full = np.broadcast_to(array, (count, *entry.shape))
    return np.ascontiguousarray(full.reshape(count, entry.size))


def _destination(output: Output, batch_shape: tuple[int, ...], given: Any) -> Floats:
    """The caller's array for an output, checked: float64 (*batch shape, *output shape), C-contiguous, writeable."""
    shape = (*batch_shape, *output.shape)
    if not isinstance(given, np.ndarray) or given.shape != shape or given.dtype != np.float64:
        raise ArgumentError(f"out for {output.name!r} is not a float64 array of shape {shape}")
    if not (given.flags.c_contiguous and given.flags.writeable):
        raise ArgumentError(f"out for {output.name!r} is not C-contiguous and writeable", remedy="Give np.empty(shape)")
    return given


def compiles(backend: Backend) -> bool:
    """Whether a back end compiles; ``auto`` does where llvmlite can be loaded.

    Raises:
        ArgumentError: if there is no such back end.
    """
    if backend not in get_args(Backend):
        raise ArgumentError(f"there is no backend {backend!r}", remedy=f"Choose one of {', '.join(get_args(Backend))}")
    return backend == "llvm" or (backend == "auto" and llvm_loads())


def compile_tape(tape: Tape, backend: Backend = "auto") -> Program:
    """Make a tape callable.

    Args:
        tape: the program.
        backend: ``"llvm"`` compiles it for this processor, ``"numpy"`` interprets it; ``"auto"`` compiles where
            llvmlite can be loaded and otherwise interprets, with one warning per process.
    """
    if not compiles(backend):
        return Program(tape, NumpyExecutor(tape), "numpy")
    from dynid.tape.llvm.backend import LlvmExecutor

    return Program(tape, LlvmExecutor(tape), "llvm")


def compile_single(
    tape: Tape, backend: Backend = "auto", program: Callable[[], Program] | None = None
) -> Callable[..., Floats]:
    """Make a tape of one output callable for one sample, with the least overhead.

    Args:
        tape: the program.
        backend: as for :func:`compile_tape`.
        program: gives the `Program` that is used for arguments that the fast function cannot take; made from the tape
            by default.

    Returns:
        Function ``f(*inputs)``, ``f(*inputs, out)`` or ``f(*inputs, out=out)``. It is fastest with C-contiguous float64
        arrays in the tape's shapes; whatever else :class:`Program` accepts works too.
    """
    if len(tape.outputs) != 1:
        raise ArgumentError(f"the tape has {len(tape.outputs)} outputs, not one", remedy="Select one output")
    get_program = program or functools.cache(lambda: compile_tape(tape, backend))  # compiled when first needed

    def ordinary(*arguments: npt.ArrayLike, out: npt.ArrayLike | None = None, **named: object) -> Floats:
        """Sort out the arguments and call the `Program`, which accepts more than the fast function."""
        if named:
            order = ", ".join(entry.name for entry in tape.inputs)
            raise ArgumentError(
                f"'{next(iter(named))}' cannot be given by its name",
                remedy=f"Give {order} in this order, and the result's array by out=.",
            )
        inputs, targets = arguments[: len(tape.inputs)], arguments[len(tape.inputs) :]
        if len(targets) + (out is not None) > 1:
            given = len(arguments) + (out is not None)
            raise ArgumentError(f"{given} arguments given, at most {len(tape.inputs) + 1} expected")
        result: Floats = get_program()(*inputs, out=targets[0] if targets else out)
        return result

    if not compiles(backend):
        return ordinary
    from dynid.tape.llvm.single_call import single_call

    return single_call(tape, ordinary)


@functools.cache
def llvm_loads() -> bool:
    """Whether llvmlite can be loaded; warns the first time that it cannot."""
    try:
        import llvmlite.binding  # noqa: F401
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        warnings.warn(
            f"llvmlite cannot be loaded ({error}); dynid computes with NumPy instead, several times slower",
            RuntimeWarning,
            stacklevel=3,
        )
        return False
    return True
