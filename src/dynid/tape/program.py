"""One way to run a tape, whatever runs it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from dynid.errors import ArgumentError
from dynid.tape.numpy_backend import NumpyExecutor
from dynid.tape.tape import Input, Output, Tape

__all__ = ["Backend", "Program", "compile_single", "compile_tape", "llvm_loads"]

Floats = npt.NDArray[np.float64]
Backend = Literal["auto", "llvm", "numpy"]


class Executor(Protocol):
    """What runs a tape on batches of samples."""

    def run(self, inputs: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1) -> None:
        """Fill one C-contiguous (N, size) array per output from one C-contiguous (N, size) array per input."""


class Program:
    """A tape that can be called.

    Call it with one array per input of the tape, in the tape's order: (N, *shape) for N samples or (*shape) for one. A
    tape with one output returns an array, (N, *output shape) or (*output shape); one with several a dict of them.
    """

    __slots__ = ("_executor", "backend", "tape")

    def __init__(self, tape: Tape, executor: Executor, backend: str) -> None:
        self.tape = tape
        self.backend = backend
        self._executor = executor

    def __call__(self, *inputs: npt.ArrayLike, out: Any = None, threads: int = 1) -> Any:
        """Run the program.

        Args:
            *inputs: one array per input; a single sample among batches is used for every sample.
            out: where to write: a C-contiguous float64 array (or a dict of them where the tape has several outputs).
            threads: how many threads share the samples; the result is the same, bit for bit, for any number.

        Returns:
            The output array, or a dict of arrays; ``out`` where it was given.

        Raises:
            ArgumentError: if an array does not have the shape or the type the tape asks for.
        """
        arrays, samples = self._prepared(inputs)
        lead = () if samples is None else (samples,)
        results = [_destination(output, lead, self._given(out, output)) for output in self.tape.outputs]
        if out is not None:  # results are written while inputs are still read
            arrays = [a.copy() if any(np.may_share_memory(a, r) for r in results) else a for a in arrays]
        rows = 1 if samples is None else samples
        self._executor.run(
            arrays, [result.reshape(rows, output.size) for result, output in self._pairs(results)], threads
        )
        named = {output.name: result for result, output in self._pairs(results)}
        return results[0] if len(results) == 1 else named

    def _pairs(self, results: Sequence[Floats]) -> list[tuple[Floats, Output]]:
        return list(zip(results, self.tape.outputs, strict=True))

    def _prepared(self, inputs: Sequence[npt.ArrayLike]) -> tuple[list[Floats], int | None]:
        """The inputs as C-contiguous (N, size) arrays, and N, or None for a single sample."""
        entries = self.tape.inputs
        if len(inputs) != len(entries):
            names = ", ".join(entry.name for entry in entries)
            raise ArgumentError(f"{len(inputs)} inputs given, {len(entries)} expected: {names}")
        arrays = [np.asarray(array, dtype=np.float64) for array in inputs]
        samples: int | None = None
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

    def _given(self, out: Any, output: Output) -> Any:
        """The destination the caller gave for one output, or None."""
        return out[output.name] if isinstance(out, dict) else out


def _flat(array: Floats, rows: int, entry: Input) -> Floats:
    """The array as C-contiguous (rows, size), repeated where it is a single sample; unchanged where it is that."""
    if array.shape == (rows, entry.size) and array.flags.c_contiguous:
        return array  # the usual case; the calls below take microseconds each
    full = np.broadcast_to(array, (rows, *entry.shape))
    return np.ascontiguousarray(full.reshape(rows, entry.size))


def _destination(output: Output, lead: tuple[int, ...], given: Any) -> Floats:
    shape = (*lead, *output.shape)
    if given is None:
        return np.empty(shape)
    if not isinstance(given, np.ndarray) or given.shape != shape or given.dtype != np.float64:
        raise ArgumentError(f"out for {output.name!r} is not a float64 array of shape {shape}")
    if not (given.flags.c_contiguous and given.flags.writeable):
        raise ArgumentError(f"out for {output.name!r} is not C-contiguous and writeable", remedy="Give np.empty(shape)")
    return given


def compile_tape(tape: Tape, backend: Backend = "auto") -> Program:
    """Make a tape callable.

    Args:
        tape: the program.
        backend: ``"llvm"`` compiles it for this processor, ``"numpy"`` interprets it; ``"auto"`` compiles where
            llvmlite can be loaded and otherwise interprets, with one warning per process.
    """
    if backend == "numpy" or (backend == "auto" and not llvm_loads()):
        return Program(tape, NumpyExecutor(tape), "numpy")
    from dynid.tape.llvm_backend import LlvmExecutor

    return Program(tape, LlvmExecutor(tape), "llvm")


def compile_single(tape: Tape, backend: Backend = "auto") -> Callable[..., Floats]:
    """Make a tape of one output callable for one sample, with the least overhead.

    Args:
        tape: the program.
        backend: as for :func:`compile_tape`.

    Returns:
        Function ``f(*inputs)`` or ``f(*inputs, out)``. It is fastest with C-contiguous float64 arrays in the tape's
        shapes; whatever else :class:`Program` accepts works too.
    """
    if len(tape.outputs) != 1:
        raise ArgumentError(f"the tape has {len(tape.outputs)} outputs, not one", remedy="Select one output")
    program = functools.cache(lambda: compile_tape(tape, backend))  # compiled when first needed

    def ordinary(*arguments: npt.ArrayLike) -> Floats:
        inputs, out = arguments[: len(tape.inputs)], arguments[len(tape.inputs) :]
        if len(out) > 1:
            raise ArgumentError(f"{len(arguments)} arguments given, at most {len(tape.inputs) + 1} expected")
        result: Floats = program()(*inputs, out=out[0] if out else None)
        return result

    if backend == "numpy" or (backend == "auto" and not llvm_loads()):
        return ordinary
    from dynid.tape.single_call import single_call

    return single_call(tape, ordinary)


@functools.cache
def llvm_loads() -> bool:
    """Whether llvmlite can be loaded; warns the first time that it cannot."""
    try:
        import llvmlite.binding  # noqa: F401
    except (ImportError, OSError) as error:
        warnings.warn(
            f"llvmlite cannot be loaded ({error}); dynid computes with NumPy instead, several times slower",
            RuntimeWarning,
            stacklevel=3,
        )
        return False
    return True
