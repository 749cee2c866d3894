"""`single_call`: a compiled tape (recorded program) as a Python function of few samples, with the least overhead.

Control loops call it some thousand times per second. The compiled code is itself a built-in function of CPython, with
the calling convention METH_FASTCALL | METH_KEYWORDS. It reads the fields of the NumPy arrays it is given at the offsets
of NumPy's public headers, as every C extension does, computes, and returns the result array. Before any function is
made, these offsets are checked on a few arrays. Arguments that are anything else than aligned, C-contiguous float64
arrays of the right shapes (lists, other types, views, large batches) go to an ordinary Python function that converts or
refuses them.

LLVM's text: a name with ``%`` is a register, assigned once, and one with ``@`` a function or table. Code is divided
into blocks that begin with a label and end with a branch (``br``). ``phi [a, %x], [b, %y]`` is a if control came from
block x, and b if it came from block y: so loop variables get their next value. ``getelementptr`` adds an offset to a
pointer.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynid.tape.llvm.engine import host, load_code, provide
from dynid.tape.llvm.functions import PASSES, print_function
from dynid.tape.llvm.ir import Writer, declarations
from dynid.tape.tape import Tape

_CONVENTION = 0x0082
"""Calling convention of CPython: arguments as an array, then the names of those that have one (METH_FASTCALL and
METH_KEYWORDS in methodobject.h)."""
_HEAD = object.__basicsize__
"""Bytes that every Python object begins with: the count of references, then the type."""
_TYPE, _DATA, _DIMENSIONS, _SHAPE, _DTYPE, _FLAGS = (_HEAD + offset for offset in (-8, 0, 8, 16, 40, 48))
"""Byte offsets of fields in a NumPy array (PyArrayObject), the first one in every Python object."""
_READABLE = 0x0101
"""Flags of a NumPy array that is C-contiguous and aligned."""
_WRITEABLE = 0x0501
"""Flags of one that is writeable, too."""

FEW = 48
"""Largest number of samples that are computed one by one (experiment: `make bench`, a robot's functions for 10 states;
beyond some 80 the code for blocks of samples is as fast, whatever its overhead)."""
_NUMPY_INTERFACES = (0x01000009, 0x02000000)
"""Versions of NumPy's binary interface in which slot `_NEW_ARRAY` makes arrays."""
_NEW_ARRAY = 94
"""Slot of PyArray_NewFromDescr in NumPy's table of functions."""

_PYTHON = """
declare void @dynid_Py_IncRef(ptr)
declare ptr @dynid_PyTuple_GetItem(ptr, i64)
declare i64 @dynid_PyTuple_Size(ptr)
declare ptr @dynid_PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @dynid_PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
"""Declarations of what the printed code calls."""


class _MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef: what a built-in function is made of."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


def single_call(tape: Tape, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a tape of one output into a built-in function of one sample.

    Args:
        tape: the program.
        otherwise: called with the same arguments where they are not C-contiguous float64 arrays of the tape's shapes.

    Returns:
        Function of one array per input and optionally, last or as ``out``, the array to write to; returns the output
        array.
    """
    if not (_has_known_fields() and _provide_new_array()):
        return otherwise
    code = load_code(f"{tape.fingerprint}|single", lambda: _Printer(tape).text())
    definition = _MethodDefinition(b"dynid_program", code.address("call"), _CONVENTION, None)
    # The built-in function gets this tuple as its `self`. The printed code reads the first four by their places; the
    # other two are kept alive by it as long as the function exists.
    owner = (otherwise, np.ndarray, np.dtype(np.float64), sys.intern("out"), code, definition)
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype = ctypes.py_object
    create.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    function: Callable[..., Any] = create(ctypes.addressof(definition), owner, None)
    return function


@functools.cache
def _provide_new_array() -> bool:
    """Let machine code call NumPy's function that makes arrays; False if this NumPy's interface is not known."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    package = "numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core"
    interface = importlib.import_module(f"{package}._multiarray_umath")._ARRAY_API
    slots = (ctypes.c_void_p * (_NEW_ARRAY + 1)).from_address(pointer(interface, None))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(slots[0] or 0)()
    if version not in _NUMPY_INTERFACES:
        return False
    provide("PyArray_NewFromDescr", slots[_NEW_ARRAY])
    return True


@functools.cache
def _has_known_fields() -> bool:
    """Whether arrays of this NumPy have their fields where the machine code reads them, tested on a few arrays."""
    return all(map(_probe, (np.empty((3, 5)), np.empty(7), np.empty((2, 4)).T, np.broadcast_to(np.zeros(3), (2, 3)))))


def _probe(array: Any) -> bool:
    """Whether the fields of an array, read from memory, are what NumPy says of it."""
    start = id(array)  # CPython: the address of the object
    shape = (ctypes.c_ssize_t * array.ndim).from_address(ctypes.c_void_p.from_address(start + _SHAPE).value or 0)
    flags = ctypes.c_int.from_address(start + _FLAGS).value
    # the bits of NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED and NPY_ARRAY_WRITEABLE
    expected = array.flags.c_contiguous | array.flags.aligned << 8 | array.flags.writeable << 10
    return (
        ctypes.c_void_p.from_address(start + _TYPE).value == id(np.ndarray)
        and ctypes.c_void_p.from_address(start + _DATA).value == array.ctypes.data
        and ctypes.c_int.from_address(start + _DIMENSIONS).value == array.ndim
        and tuple(shape) == array.shape
        and ctypes.c_void_p.from_address(start + _DTYPE).value == id(np.dtype(np.float64))
        and flags & _WRITEABLE == expected
    )


class _Printer:
    """Prints the LLVM module of a built-in function."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._count = len(tape.inputs)
        self._shapes = [*(entry.shape for entry in tape.inputs), tape.outputs[0].shape]
        self._writer = Writer(1)

    def text(self) -> str:
        """The module; its entry is ``call``.

        ``PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)``, where `count`
        leaves out the arguments with names. In Python, with the labels as comments::

            total = count
            if names is not None:                                       # named, name
                if names != ("out",) or count != inputs:
                    return self[0](*args)                               # otherwise
                total = inputs + 1
            if total not in (inputs, inputs + 1):                       # counted
                return self[0](*args)
            samples = 1 or len(args[0])                                 # look, few
            if samples > FEW or not all(can_be_used(args[k]) for k in range(inputs)):  # array0, kind0, right0, ...
                return self[0](*args)
            if total == inputs:                                         # new
                result = np.empty(shape or (samples, *shape))
            elif args[0] is a batch:                                    # given
                return self[0](*args)
            else:                                                       # use
                result = args[inputs]  # after the same check
            for row in range(samples):                                  # compute, next, sample
                result[row] = compute(*(args[k][row] for k in range(inputs)))
            return result
        """
        w = self._writer
        w.line("define ptr @call(ptr %self, ptr %args, i64 %count, ptr %names) {\nentry:")
        w.line(f"%local = alloca [{max(self._tape.outputs[0].size, 1)} x double], align 64")
        w.line(f"%sizes = alloca [{1 + len(self._shapes[-1])} x i64], align 8")  # number of samples, then the shape
        w.line("%is_plain = icmp eq ptr %names, null\nbr i1 %is_plain, label %counted, label %named\nnamed:")
        w.line("%keywords = call i64 @dynid_PyTuple_Size(ptr %names)\n%is_single = icmp eq i64 %keywords, 1")
        w.line("br i1 %is_single, label %name, label %otherwise\nname:")
        w.line("%given_name = call ptr @dynid_PyTuple_GetItem(ptr %names, i64 0)")
        w.line("%out_name = call ptr @dynid_PyTuple_GetItem(ptr %self, i64 3)")  # names in calls are interned
        w.line(f"%is_out = icmp eq ptr %given_name, %out_name\n%has_all = icmp eq i64 %count, {self._count}")
        w.line("%is_only = and i1 %is_out, %has_all\nbr i1 %is_only, label %counted, label %otherwise\ncounted:")
        w.line(f"%total = phi i64 [ %count, %entry ], [ {self._count + 1}, %name ]")
        w.line(f"%is_new = icmp eq i64 %total, {self._count}\n%is_given = icmp eq i64 %total, {self._count + 1}")
        w.line("%is_fine = or i1 %is_new, %is_given\nbr i1 %is_fine, label %begin, label %otherwise\nbegin:")
        w.line("%array_type = call ptr @dynid_PyTuple_GetItem(ptr %self, i64 1)")
        w.line("%double_type = call ptr @dynid_PyTuple_GetItem(ptr %self, i64 2)")
        self._count_samples()
        for place in range(self._count):
            self._check_argument(place)
        w.line("br i1 %is_new, label %new, label %given\nnew:")
        shape = self._shapes[-1]
        w.line("%axes = getelementptr i64, ptr %sizes, i64 %from\n%rank = trunc i64 %extra to i32")
        w.line(f"store i64 %samples, ptr %sizes, align 8\n%axis_count = add i32 %rank, {len(shape)}")
        for axis, size in enumerate(shape, start=1):
            w.line(f"store i64 {size}, ptr {w.address('%sizes', 8 * axis)}, align 8")
        w.line("call void @dynid_Py_IncRef(ptr %double_type)")  # the new array takes over this reference
        arguments = "ptr %array_type, ptr %double_type, i32 %axis_count, ptr %axes, ptr null, ptr null, i32 0, ptr null"
        w.line(f"%made = call ptr @dynid_PyArray_NewFromDescr({arguments})\n%failed = icmp eq ptr %made, null")
        w.line("br i1 %failed, label %error, label %compute\nerror:\nret ptr null\ngiven:")
        self._check_argument(self._count)
        # rows of a batch are written one by one, so that a given array might change inputs that are not read yet
        w.line("br i1 %is_batch, label %otherwise, label %use\nuse:")
        w.line(f"call void @dynid_Py_IncRef(ptr %argument{self._count})\nbr label %compute\ncompute:")
        w.line(f"%result = phi ptr [ %made, %new ], [ %argument{self._count}, %use ]")
        arrays = [*(f"%argument{place}" for place in range(self._count)), "%result"]
        data = [w.value(f"load ptr, ptr {w.address(array, _DATA)}, align 8") for array in arrays]
        w.line("br label %next\nnext:\n%row = phi i64 [ 0, %compute ], [ %following, %sample ]")
        w.line("%is_left = icmp ult i64 %row, %samples\nbr i1 %is_left, label %sample, label %finished\nsample:")
        rows = []
        for pointer, entry in zip(data, self._shapes, strict=True):
            offset = w.value(f"mul i64 %row, {8 * math.prod(entry)}")
            rows.append(w.value(f"getelementptr inbounds i8, ptr {pointer}, i64 {offset}"))
        w.line(f"call void @compute({', '.join(f'ptr {row}' for row in [*rows[:-1], '%local'])})")
        bytes_out = 8 * self._tape.outputs[0].size
        # computed into local memory and copied at the end, because the output array may be one of the inputs
        w.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {rows[-1]}, ptr %local, i64 {bytes_out}, i1 false)")
        w.line("%following = add i64 %row, 1\nbr label %next\nfinished:\nret ptr %result")
        w.line("otherwise:")
        w.line("%function = call ptr @dynid_PyTuple_GetItem(ptr %self, i64 0)")
        w.line("%converted = call ptr @dynid_PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr %names)")
        w.line("ret ptr %converted\n}\n")
        table = "@one = private constant i64 1\n"
        compute = print_function("compute", self._tape, host().fused)
        return "\n".join([declarations(1), PASSES, _PYTHON, table, compute, w.text()])

    def _count_samples(self) -> None:
        """Name the number of samples: the first size of the first argument where that has one axis more than a sample.

        ``extra`` is 1 there, else 0. More than `FEW` go to ``otherwise``.
        """
        w = self._writer
        if self._count == 0:
            w.line("%extra = add i64 0, 0\n%is_batch = icmp eq i64 %extra, 1\n%samples = add i64 0, 1")
        else:
            w.line("%first = load ptr, ptr %args, align 8")
            found = w.value(f"load ptr, ptr {w.address('%first', _TYPE)}, align 8")
            is_array = w.value(f"icmp eq ptr {found}, %array_type")
            w.line(f"br i1 {is_array}, label %look, label %otherwise\nlook:")
            dimensions = w.value(f"load i32, ptr {w.address('%first', _DIMENSIONS)}, align 4")
            w.line(f"%is_batch = icmp eq i32 {dimensions}, {1 + len(self._shapes[0])}")
            w.line("%extra = zext i1 %is_batch to i64")
            sizes = w.value(f"load ptr, ptr {w.address('%first', _SHAPE)}, align 8")
            count = w.value(f"select i1 %is_batch, ptr {sizes}, ptr @one")
            w.line(f"%samples = load i64, ptr {count}, align 8")
            w.line(f"%are_few = icmp ule i64 %samples, {FEW}\nbr i1 %are_few, label %few, label %otherwise\nfew:")
        w.line("%from = sub i64 1, %extra")

    def _check_argument(self, place: int) -> None:
        """Go on to ``right<place>`` if an argument is an array that can be used as it is, else to ``otherwise``.

        Labels on the way: ``array<place>`` where it is an array, ``kind<place>`` where it is of doubles, contiguous and
        of the right number of axes. The argument behind the inputs is the result's array, which must be writeable.
        """
        w = self._writer
        argument = f"%argument{place}"
        shape = self._shapes[place]
        w.line(f"{argument} = load ptr, ptr {w.address('%args', 8 * place)}, align 8")
        found = w.value(f"load ptr, ptr {w.address(argument, _TYPE)}, align 8")
        is_array = w.value(f"icmp eq ptr {found}, %array_type")
        w.line(f"br i1 {is_array}, label %array{place}, label %otherwise\narray{place}:")
        kind = w.value(f"load ptr, ptr {w.address(argument, _DTYPE)}, align 8")
        dimensions = w.value(f"load i32, ptr {w.address(argument, _DIMENSIONS)}, align 4")
        flags = w.value(f"load i32, ptr {w.address(argument, _FLAGS)}, align 4")
        needed = _WRITEABLE if place == self._count else _READABLE
        tests = [
            w.value(f"icmp eq ptr {kind}, %double_type"),
            w.value(
                f"icmp eq i64 {w.value(f'zext i32 {dimensions} to i64')}, {w.value(f'add i64 %extra, {len(shape)}')}"
            ),
            w.value(f"icmp eq i32 {w.value(f'and i32 {flags}, {needed}')}, {needed}"),
        ]
        w.line(f"br i1 {self._all(tests)}, label %kind{place}, label %otherwise\nkind{place}:")
        sizes = w.value(f"load ptr, ptr {w.address(argument, _SHAPE)}, align 8")
        count = w.value(f"load i64, ptr {w.value(f'select i1 %is_batch, ptr {sizes}, ptr @one')}, align 8")
        behind = w.value(f"getelementptr i64, ptr {sizes}, i64 %extra")  # the sizes of one sample
        axes = [w.value(f"load i64, ptr {w.address(behind, 8 * axis)}, align 8") for axis in range(len(shape))]
        tests = [w.value(f"icmp eq i64 {axis}, {size}") for axis, size in zip(axes, shape, strict=True)]
        tests.append(w.value(f"icmp eq i64 {count}, %samples"))
        w.line(f"br i1 {self._all(tests)}, label %right{place}, label %otherwise\nright{place}:")

    def _all(self, tests: Sequence[str]) -> str:
        """Whether all of some conditions hold."""
        result = tests[0]
        for test in tests[1:]:
            result = self._writer.value(f"and i1 {result}, {test}")
        return result
