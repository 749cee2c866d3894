"""From LLVM's text to machine code in this process: `load_code`; this is the only file that uses llvmlite.

The modules that print LLVM's text call `load_code`. It keeps the machine code on disk, under a name that is the digest
of everything it depends on: what was compiled, this processor, the versions of LLVM, and the source of what printed the
text.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from dynid.tape.llvm.functions import LIBRARY, functions_module
from dynid.tape.llvm.object_cache import ObjectCache, source_digest

PYTHON = (
    "Py_IncRef",
    "PyTuple_GetItem",
    "PyTuple_Size",
    "PyObject_Vectorcall",
)
"""Functions of Python's C interface that the printed code may call, under the names ``dynid_Py_IncRef`` and so on."""


class MachineCode:
    """Machine code loaded into this process; its memory is freed with this object."""

    __slots__ = ("_engine",)

    def __init__(self, *machine_code: bytes) -> None:
        """Link object files in memory."""
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        for part in machine_code:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(part))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Address of a function."""
        return int(self._engine.get_function_address(name))

    def entry(self, name: str, arguments: int) -> Callable[..., None]:
        """A Python function that calls a compiled one with ``arguments`` arguments, pointers or integers.

        It may be called as long as this object exists.
        """
        function: Callable[..., None] = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(self.address(name))
        return function


@dataclass(frozen=True, slots=True)
class Host:
    """The processor that the code is made for; a vector register holds several doubles, one per *lane*."""

    name: str
    """LLVM's name of the processor."""

    features: str
    """LLVM's list of its features."""

    lanes: int
    """Doubles per vector register."""

    registers: int
    """Number of vector registers."""

    fused: bool
    """Whether it has fused multiply-add instructions."""


@functools.cache
def host() -> Host:
    """The processor of this machine."""
    _initialise()
    features = llvm.get_host_cpu_features()
    lanes_with = {"avx512f": 8, "avx": 4}  # every processor that is neither has at least two (SSE2, NEON)
    lanes = next((lanes for name, lanes in lanes_with.items() if features.get(name)), 2)
    is_arm = llvm.get_process_triple().startswith(("aarch64", "arm64"))
    return Host(
        name=llvm.get_host_cpu_name(),
        features=features.flatten(),
        lanes=lanes,
        registers=32 if is_arm or lanes == 8 else 16,
        fused=is_arm or bool(features.get("fma")),
    )


def load_code(key: str, text: Callable[[], str], *, printers: Path | None = None) -> MachineCode:
    """Machine code of a module, from the cache on disk or compiled now.

    Args:
        key: names the module: equal keys mean equal text, as long as the printers' source stays the same.
        text: prints the module. Called only where the cache does not have the code.
        printers: folder of the source that prints the text, where that is not `dynid.tape` alone.
    """
    return MachineCode(_functions(), _object(key, text, printers))


@functools.cache
def _functions() -> bytes:
    """Machine code of the passes of :mod:`~dynid.tape.llvm.functions`, which all other code calls."""
    return _object("functions", lambda: functions_module(host().fused), None)


def _object(key: str, text: Callable[[], str], printers: Path | None) -> bytes:
    """Object file of a module, from the cache on disk or compiled now; see `load_code` for the arguments."""
    cache = ObjectCache.default()
    versions = f"{llvm.get_process_triple()}|{llvmlite.__version__} {llvm.llvm_version_info}"
    sources = "|".join(source_digest(folder) for folder in (TAPE, printers) if folder is not None)
    name = hashlib.sha256(f"{sources}|{key}|{host()}|{versions}".encode()).hexdigest()
    found = cache.read(name)
    if found is None:
        found = compile_text(text())
        cache.write(name, found)
    return found


TAPE = Path(__file__).parent.parent
"""The folder of `dynid.tape`, whose modules lower, schedule and print programs."""


def compile_text(text: str) -> bytes:
    """Compile a module to an object file in memory."""
    host()
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    return bytes(_target_machine().emit_object(module))


@functools.cache
def _initialise() -> None:
    """Prepare LLVM, and let machine code call functions of Python and of C's mathematical library."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in PYTHON:
        provide(name, _address(getattr(ctypes.pythonapi, name)))
    library = _mathematics()
    for name in LIBRARY:
        provide(name, _address(getattr(library, name)))


def _mathematics() -> ctypes.CDLL:
    """C's library of mathematical functions; searched by name, other libraries of the process may have its names."""
    if os.name == "nt":
        return ctypes.CDLL("ucrtbase")
    try:
        return ctypes.CDLL("libm.so.6")
    except OSError:
        from ctypes.util import find_library  # it starts a program to look for the file

        return ctypes.CDLL(find_library("m"))


def _keep_forks_safe() -> None:
    """Let no process fork while one of its threads is inside LLVM: in the copy, LLVM's lock would stay locked."""
    lock = getattr(llvm.ffi.lib, "_lock", None)  # llvmlite has no public name for it
    if lock is None or not hasattr(os, "register_at_fork"):
        return

    def leave() -> None:
        lock.__exit__(None, None, None)

    os.register_at_fork(before=lock.__enter__, after_in_parent=leave, after_in_child=leave)


_keep_forks_safe()


def provide(name: str, address: int | None) -> None:
    """Let machine code call the function at an address as ``dynid_<name>``."""
    llvm.add_symbol(f"dynid_{name}", address)


def _address(function: Any) -> int | None:
    """Address of a C function that ctypes has found."""
    return ctypes.cast(function, ctypes.c_void_p).value


def _target_machine() -> Any:
    """LLVM's code generator for this processor, with its usual optimisations."""
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=host().name, features=host().features, opt=2, jit=True)
