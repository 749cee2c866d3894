"""Recorded programs kept on disk between processes, beside their machine code: recording one takes longer than loading.

An entry's name holds everything the program depends on: what was recorded and the source of whatever recorded it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dynid.tape.llvm.object_cache import ObjectCache, source_digest
from dynid.tape.tape import Input, Output, Tape

_TAPE = Path(__file__).parent
"""The folder of `dynid.tape`, whose modules record programs."""


def recorded_once(key: str, sources: Sequence[Path], make: Callable[[], Tape]) -> Tape:
    """A program from the user's cache, or recorded now and kept there.

    Args:
        key: Names the program: equal keys mean equal programs, as long as the sources stay the same.
        sources: Files and folders with the code that is recorded; `dynid.tape` is always one of them.
        make: Records the program. Called only where the cache does not have it.
    """
    cache = ObjectCache.default()
    if cache.folder is None:
        return make()
    digests = "|".join(map(source_digest, (_TAPE, *sources)))
    name = f"tape-{hashlib.sha256(f'{digests}|{np.__version__}|{key}'.encode()).hexdigest()}"
    found = cache.read(name)
    if found is not None:
        return _unpack(found)
    tape = make()
    cache.write(name, _pack(tape))
    return tape


class _Stored(msgspec.Struct, array_like=True):
    """A program in plain types; numbers as bytes, the lowest first."""

    inputs: list[tuple[str, tuple[int, ...]]]
    outputs: list[tuple[str, tuple[int, ...], bytes]]
    constants: bytes
    operands: bytes
    opcodes: bytes


def _pack(tape: Tape) -> bytes:
    outputs = [(output.name, output.shape, output.elements.astype("<i4").tobytes()) for output in tape.outputs]
    constants, operands = tape.constants.astype("<f8").tobytes(), tape.operands.astype("<i4").tobytes()
    inputs = [(entry.name, entry.shape) for entry in tape.inputs]
    return msgspec.msgpack.encode(_Stored(inputs, outputs, constants, operands, tape.opcodes.tobytes()))


def _unpack(content: bytes) -> Tape:
    """The program that `_pack` wrote; the cache has checked that nothing is damaged."""
    stored = msgspec.msgpack.decode(content, type=_Stored)

    def read(data: bytes, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
        array = np.frombuffer(data, kind).astype(np.dtype(kind).newbyteorder("=")).reshape(shape)
        array.setflags(write=False)
        return array

    return Tape(
        read(stored.opcodes, "u1", (-1,)),
        read(stored.operands, "<i4", (-1, 2)),
        read(stored.constants, "<f8", (-1,)),
        tuple(Input(name, shape) for name, shape in stored.inputs),
        tuple(Output(name, read(data, "<i4", shape)) for name, shape, data in stored.outputs),
    )
