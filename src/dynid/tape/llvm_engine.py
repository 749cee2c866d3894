"""From LLVM's text to machine code in this process: the only file that talks to llvmlite."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from dynid.tape.llvm_functions import LIBRARY
from dynid.tape.object_cache import ObjectCache

__all__ = ["Code", "Host", "host", "load_code"]


@dataclass(frozen=True, slots=True)
class Host:
    """The processor that the code is made for."""

    name: str
    """LLVM's name of the processor."""

    features: str
    """LLVM's list of its features."""

    lanes: int
    """Doubles per vector register."""

    fused: bool
    """Whether it has fused multiply-add."""

    @property
    def key(self) -> str:
        """Everything on which the machine code depends, apart from the program."""
        versions = f"{llvmlite.__version__} {llvm.llvm_version_info}"
        return f"{llvm.get_process_triple()}|{self.name}|{self.features}|{versions}"


class Code:
    """Machine code loaded into this process; it lives as long as this object."""

    __slots__ = ("_engine",)

    def __init__(self, machine_code: bytes) -> None:
        module = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(module, _target_machine(0))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Address of a function."""
        return int(self._engine.get_function_address(name))


@functools.cache
def host() -> Host:
    """This machine."""
    _initialise()
    features = llvm.get_host_cpu_features()
    wide = {"avx512f": 8, "avx": 4}
    lanes = next((lanes for name, lanes in wide.items() if features.get(name)), 2)
    is_arm = llvm.get_process_triple().startswith(("aarch64", "arm64"))
    return Host(llvm.get_host_cpu_name(), features.flatten(), lanes, is_arm or bool(features.get("fma")))


def load_code(key: str, text: Callable[[], tuple[str, int]]) -> Code:
    """Machine code of a module, from the cache on disk or compiled now.

    Args:
        key: names the module: equal keys mean equal text.
        text: prints the module; returns its text and the optimisation level of the code generator (0 to 3). Called only
            where the cache does not have the code.
    """
    cache = ObjectCache.default()
    name = hashlib.sha256(f"{key}|{host().key}".encode()).hexdigest()
    machine_code = cache.read(name)
    if machine_code is None:
        machine_code = compile_text(*text())
        cache.write(name, machine_code)
    return Code(machine_code)


def compile_text(text: str, level: int) -> bytes:
    """Compile a module to an object file in memory."""
    host()
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    return bytes(_target_machine(level).emit_object(module))


@functools.cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    library = ctypes.CDLL(ctypes.util.find_library("m") if os.name != "nt" else "ucrtbase")
    for name in LIBRARY:
        llvm.add_symbol(f"dynid_{name}", ctypes.cast(getattr(library, name), ctypes.c_void_p).value)


def _target_machine(level: int) -> Any:
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=host().name, features=host().features, opt=level, jit=True)
