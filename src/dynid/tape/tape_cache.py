"""Recorded programs kept on disk between processes, beside their machine code: recording one takes longer than loading.

An entry's name holds everything the program depends on: what was recorded and the source of whatever recorded it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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


def _pack(tape: Tape) -> bytes:
    """A line of JSON with the names and shapes, then the numbers."""
    header = {
        "inputs": [(entry.name, entry.shape) for entry in tape.inputs],
        "outputs": [(output.name, output.shape) for output in tape.outputs],
        "steps": len(tape.opcodes),
        "constants": len(tape.constants),
    }
    elements = [output.elements.astype("<i4").tobytes() for output in tape.outputs]
    numbers = [tape.constants.astype("<f8").tobytes(), tape.operands.astype("<i4").tobytes(), *elements]
    return b"".join([json.dumps(header).encode(), b"\n", *numbers, tape.opcodes.tobytes()])


def _unpack(content: bytes) -> Tape:
    """The program that `_pack` wrote; the cache has checked that nothing is damaged."""
    line, _, numbers = content.partition(b"\n")
    header = json.loads(line)
    place = 0

    def take(kind: str, shape: Sequence[int]) -> NDArray[Any]:
        nonlocal place
        count = int(np.prod(shape, dtype=int))
        array = np.frombuffer(numbers, kind, count, place).astype(np.dtype(kind).newbyteorder("=")).reshape(shape)
        array.setflags(write=False)
        place += count * np.dtype(kind).itemsize
        return array

    constants, operands = take("<f8", [header["constants"]]), take("<i4", [header["steps"], 2])
    outputs = tuple(Output(name, take("<i4", shape)) for name, shape in header["outputs"])
    opcodes = take("u1", [header["steps"]])
    inputs = tuple(Input(name, tuple(shape)) for name, shape in header["inputs"])
    return Tape(opcodes, operands, constants, inputs, outputs)
