"""PyTorch archives (``torch.save``: a zip with a pickle and raw numbers), read without unpickling.

The pickle is read as data: a list of operations, of which only those that build dictionaries, lists, tuples, texts,
numbers and references to tensors are followed. Nothing that it names is imported or called; anything else in it is
refused. The numbers are taken from the archive's members after their size is checked.
"""

from __future__ import annotations

import math
import pickletools
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Options, Table, as_column, refuse_bomb
from dynid.logs.readers.numpy_files import check_members

MAX_PICKLE = 2**20
"""Largest pickle of an archive [bytes] (convention: a thousand tensors take 100 kB)."""
MAX_DEPTH = 8
"""Deepest nesting of dictionaries and lists (convention)."""
_KINDS = {
    "torch DoubleStorage": "f8", "torch FloatStorage": "f4", "torch HalfStorage": "f2", "torch LongStorage": "i8",
    "torch IntStorage": "i4", "torch ShortStorage": "i2", "torch CharStorage": "i1", "torch ByteStorage": "u1",
    "torch BoolStorage": "u1",
}  # fmt: skip
"""What a pickle calls the numbers of a tensor -> NumPy's name for them."""
_REBUILD = "torch._utils _rebuild_tensor_v2"
_ORDERED = "collections OrderedDict"
_REMEDY = "Save a dictionary of plain tensors with torch.save, or arrays with numpy.savez."


@dataclass(frozen=True, slots=True)
class _Name:
    """A function or class that the pickle names; it is never imported."""

    text: str


@dataclass(frozen=True, slots=True)
class _Storage:
    """A member of the archive with numbers."""

    kind: str
    key: str
    count: int


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor: where its numbers lie in a member."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In numbers, not bytes."""


def read(path: Path, options: Options) -> Table:
    """Read the tensors of an archive, each as a column; nested names are joined by dots."""
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: member for member in archive.infolist()}
        check_members(list(members.values()), path.stat().st_size)
        prefix = _prefix(members)
        if members[f"{prefix}data.pkl"].file_size > MAX_PICKLE:
            raise LogReadError(f"its description is larger than {MAX_PICKLE} bytes", remedy=_REMEDY)
        content = _Description(archive.read(f"{prefix}data.pkl")).content()
        order = _byte_order(archive, members, prefix)
        columns: dict[str, Floats] = {}
        constants: dict[str, float] = {}
        words: dict[str, str] = {}
        leaves = list(_leaves("", content, 0))
        for number, (name, value) in enumerate(leaves):
            if isinstance(value, _Tensor):
                columns[name or "array"] = as_column(_numbers(archive, members, prefix, order, value))
            elif isinstance(value, list):
                columns[name] = as_column(np.array(value, dtype=np.float64))
            elif isinstance(value, str):
                words[name] = value
            else:
                constants[name] = float(value)
            options.tell(number + 1, len(leaves))
    if not columns:
        raise LogReadError("it holds no tensor of numbers", remedy=_REMEDY)
    return Table(columns=columns, constants=constants, words=words)


def _prefix(members: Mapping[str, zipfile.ZipInfo]) -> str:
    """The folder inside the archive that holds the description."""
    found = [name for name in members if name.endswith("data.pkl") and name.count("/") <= 1]
    if len(found) != 1:
        raise LogReadError("it is no archive of torch.save (no data.pkl in it)", remedy=_REMEDY)
    return found[0].removesuffix("data.pkl")


def _byte_order(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], prefix: str) -> str:
    """The order of bytes that the archive states, as NumPy writes it; little-endian where it states none."""
    if f"{prefix}byteorder" not in members:
        return "<"
    if members[f"{prefix}byteorder"].file_size > 16:
        raise LogReadError("its order of bytes is not stated plainly", place="byteorder", remedy=_REMEDY)
    stated = archive.read(f"{prefix}byteorder").strip()
    if stated not in (b"little", b"big"):
        raise LogReadError(f"its order of bytes is {stated[:16]!r}", place="byteorder", remedy=_REMEDY)
    return "<" if stated == b"little" else ">"


def _numbers(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], prefix: str, order: str, tensor: _Tensor
) -> NDArray[Any]:
    """The numbers of a tensor, checked against the member that holds them."""
    name = f"{prefix}data/{tensor.storage.key}"
    kind = np.dtype(order + tensor.storage.kind)
    member = members.get(name)
    if member is None or member.file_size != tensor.storage.count * kind.itemsize:
        there = "is missing" if member is None else f"has {member.file_size} bytes"
        wanted = tensor.storage.count * kind.itemsize
        raise LogReadError(f"member '{name[:80]}' {there} where {wanted} are declared", remedy="Save it again.")
    last = tensor.offset + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True))
    if math.prod(tensor.shape) and not 0 <= last < tensor.storage.count:
        raise LogReadError(f"a tensor of shape {tensor.shape} reaches beyond its numbers", remedy="Save it again.")
    refuse_bomb("a tensor", math.prod(tensor.shape) * 8, member.compress_size)
    flat = np.frombuffer(archive.read(name), dtype=kind)
    steps = tuple(step * kind.itemsize for step in tensor.strides)
    return np.array(np.lib.stride_tricks.as_strided(flat[tensor.offset :], tensor.shape, steps, writeable=False))


def _leaves(name: str, value: object, depth: int) -> Iterator[tuple[str, Any]]:
    """Name and value of every tensor, list of numbers, number and text, in file order."""
    for count, leaf in enumerate(_walk(name, value, depth)):
        if count >= MAX_COLUMNS:
            raise LogReadError(f"it has more than {MAX_COLUMNS} entries", remedy=_REMEDY)
        yield leaf


def _walk(name: str, value: object, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > MAX_DEPTH:
        raise LogReadError(f"it is nested deeper than {MAX_DEPTH} levels", remedy=_REMEDY)
    if isinstance(value, list) and value and all(type(item) in (int, float, bool) for item in value):
        yield name, value
    elif isinstance(value, Mapping | list | tuple):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in pairs:
            yield from _walk(f"{name}.{key}" if name else str(key), item, depth + 1)
    elif isinstance(value, _Tensor | str | int | float):
        yield name, value
    elif value is not None:
        raise LogReadError(f"'{name[:80]}' is neither a tensor nor a number nor a text", remedy=_REMEDY)


class _Description:
    """Follows the operations of a pickle that build plain data, and refuses all others."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def content(self) -> object:
        """What the pickle describes: dictionaries, lists, tuples, texts, numbers and `_Tensor`."""
        try:
            for operation, argument, place in pickletools.genops(self._data):
                if operation.name == "STOP":
                    return self._stack.pop()
                self._follow(operation.name, argument, place)
        except (IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise LogReadError("its description is damaged", place="data.pkl", remedy="Save it again.") from error
        raise LogReadError("its description has no end", place="data.pkl", remedy="Save it again.")

    def _follow(self, name: str, argument: Any, place: int | None) -> None:
        """One operation."""
        if name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _VALUES:
            self._stack.append(_Name(str(argument)) if name == "GLOBAL" else argument)
        elif name in _PUTS:
            self._memo[len(self._memo) if name == "MEMOIZE" else int(argument)] = self._stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            self._stack.append(self._memo[int(argument)])
        elif name in _BUILDERS:
            _BUILDERS[name](self)
        elif name not in ("PROTO", "FRAME"):
            raise LogReadError(
                f"its description uses {name}, which plain tensors do not need",
                place=f"data.pkl, byte {place}",
                remedy=_REMEDY,
            )

    def mark(self) -> None:
        self._marks.append(len(self._stack))

    def _since_mark(self) -> list[Any]:
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def new_dict(self) -> None:
        self._stack.append({})

    def new_list(self) -> None:
        self._stack.append([])

    def tuple_since_mark(self) -> None:
        self._stack.append(tuple(self._since_mark()))

    def short_tuple(self, count: int) -> None:
        items = [self._stack.pop() for _ in range(count)]
        self._stack.append(tuple(reversed(items)))

    def set_items(self, items: list[Any]) -> None:
        """Pairs of keys and values, into the dictionary on top of the stack."""
        target = self._stack[-1]
        if not isinstance(target, dict) or not all(isinstance(key, str | int) for key in items[::2]):
            raise LogReadError("its description sets entries of what is no dictionary", remedy=_REMEDY)
        target.update(zip(items[::2], items[1::2], strict=True))

    def set_many(self) -> None:
        self.set_items(self._since_mark())

    def set_one(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self.set_items([key, value])

    def append_items(self, items: list[Any]) -> None:
        if not isinstance(self._stack[-1], list):
            raise LogReadError("its description appends to what is no list", remedy=_REMEDY)
        self._stack[-1].extend(items)

    def append_many(self) -> None:
        self.append_items(self._since_mark())

    def append_one(self) -> None:
        self.append_items([self._stack.pop()])

    def storage(self) -> None:
        """A reference to a member: ("storage", kind, key, device, count)."""
        given = self._stack.pop()
        if not isinstance(given, tuple) or len(given) != 5 or given[0] != "storage":
            raise LogReadError("its description refers to something other than numbers", remedy=_REMEDY)
        _, kind, key, _, count = given
        known = _KINDS.get(kind.text) if isinstance(kind, _Name) else None
        plain = isinstance(key, str) and key.isalnum() and type(count) is int and count >= 0
        if known is None or not plain:
            named = kind.text if isinstance(kind, _Name) else type(kind).__name__
            raise LogReadError(f"its numbers are of the kind {named[:60]}, which is not read", remedy=_REMEDY)
        self._stack.append(_Storage(known, key, count))

    def call(self) -> None:
        """The two calls that saved tensors have: an empty dictionary, and a tensor of a storage."""
        given, function = self._stack.pop(), self._stack.pop()
        named = function.text if isinstance(function, _Name) else type(function).__name__
        if named == _ORDERED and given == ():
            self._stack.append({})
        elif named == _REBUILD and isinstance(given, tuple) and len(given) >= 4:
            self._stack.append(_tensor(*given[:4]))
        else:
            raise LogReadError(f"its description calls {named[:80]}, which is never done", remedy=_REMEDY)


def _tensor(storage: object, offset: object, shape: object, strides: object) -> _Tensor:
    """A tensor, its place and size checked."""
    if not isinstance(storage, _Storage) or type(offset) is not int or offset < 0:
        raise LogReadError("a tensor has no numbers", remedy=_REMEDY)
    if not isinstance(shape, tuple) or not isinstance(strides, tuple) or len(shape) != len(strides) or len(shape) > 3:
        raise LogReadError("a tensor is no table", remedy="Save one row per sample.")
    if not all(type(n) is int and 0 <= n <= 2**40 for n in (*shape, *strides)):
        raise LogReadError("the size of a tensor is no number", remedy="Save it again.")
    return _Tensor(storage, offset, shape, strides)


_CONSTANTS: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_VALUES = frozenset(
    {"BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "GLOBAL"}
)  # fmt: skip
_PUTS = frozenset({"BINPUT", "LONG_BINPUT", "MEMOIZE"})
_BUILDERS: dict[str, Callable[[_Description], None]] = {
    "MARK": _Description.mark,
    "EMPTY_DICT": _Description.new_dict,
    "EMPTY_LIST": _Description.new_list,
    "TUPLE": _Description.tuple_since_mark,
    "TUPLE1": lambda self: self.short_tuple(1),
    "TUPLE2": lambda self: self.short_tuple(2),
    "TUPLE3": lambda self: self.short_tuple(3),
    "SETITEM": _Description.set_one,
    "SETITEMS": _Description.set_many,
    "APPEND": _Description.append_one,
    "APPENDS": _Description.append_many,
    "BINPERSID": _Description.storage,
    "REDUCE": _Description.call,
}
"""Operation -> what it builds."""
