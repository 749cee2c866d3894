"""The formats of logs and their adapters; every exception of an adapter becomes a `LogReadError` here."""

from __future__ import annotations

import importlib
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from dynid.errors import DynidError, LogReadError, UnreachableLogError
from dynid.logs.readers.base import Options, Table


@dataclass(frozen=True, slots=True)
class Format:
    """One row of the registry."""

    name: str
    """The format's name, and by default that of its adapter's module in this folder."""
    suffixes: tuple[str, ...]
    magic: tuple[tuple[int, bytes], ...]
    """(offset, bytes) that open such a file."""
    isolated: bool = True
    """Whether it is read in a child process of limited memory and time. It need not be where nothing is packed and no
    library reads it, so that its numbers take at most eight times the bytes of the file."""
    extra: str = ""
    """The optional dependency it needs, as in ``pip install dynid[extra]``."""
    streams: bool = False
    """Whether the adapter also offers ``pieces(path, options, rows)``, for files larger than memory."""
    module: str = ""
    """The adapter's module, where it has another name."""


FORMATS = (
    Format("npy", (".npy",), ((0, b"\x93NUMPY"),), isolated=False, streams=True, module="numpy_files"),
    Format("npz", (".npz",), ((0, b"PK\x03\x04"), (0, b"PK\x05\x06")), module="numpy_files"),
    Format("torch", (".pt", ".pth"), ((0, b"PK\x03\x04"),), module="torch_archive"),
    Format("hdf5", (".h5", ".hdf5", ".hdf"), ((0, b"\x89HDF\r\n\x1a\n"), (512, b"\x89HDF\r\n\x1a\n")), extra="hdf5"),
    Format("mat", (".mat",), ((0, b"MATLAB 5.0"),)),
    Format("arrow", (".parquet", ".arrow", ".feather"), ((0, b"PAR1"), (0, b"ARROW1")), extra="parquet", streams=True),
    Format("mcap", (".mcap",), ((0, b"\x89MCAP"),), extra="ros", module="bags.mcap"),
    Format("rosbag1", (".bag",), ((0, b"#ROSBAG V"),), extra="ros", module="bags.rosbag1"),
    Format("rosbag2", (".db3",), ((0, b"SQLite format 3\0"),), module="bags.rosbag2"),
    Format("json", (".json",), (), module="json_records"),
    Format("text", (".csv", ".tsv", ".txt", ".dat", ".log", ".asc"), (), isolated=False),
)
"""All formats, binary ones first; a file of no other format is text."""
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
"""Endings of spreadsheets (convention of their programs)."""
_UNPACK = "Unpack it first, and give what was in it."
_REFUSED = (
    (re.compile(rb"\x1f\x8b"), "it is compressed with gzip", _UNPACK),
    (re.compile(rb"BZh[1-9]1AY&SY"), "it is compressed with bzip2", _UNPACK),
    (re.compile(rb"\xfd7zXZ\0"), "it is compressed with xz", _UNPACK),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "it is compressed with zstd", _UNPACK),
    (
        re.compile(rb"\x80[\x02-\x05]"),
        "it is a Python pickle, which can run any program when it is opened",
        "Open it where you trust it and save plain arrays, with numpy.savez for one.",
    ),
)
"""Files that are known and not read: (how they begin, what they are, what to do)."""


class Adapter(Protocol):
    """Functions of an adapter module."""

    def read(self, path: Path, options: Options) -> Table:
        """Read one file."""

    def pieces(self, path: Path, options: Options, rows: int) -> Iterator[Table]:
        """Read one file, a given number of rows at a time; only formats that stream offer it."""


def detect_format(path: Path) -> Format:
    """The format of a file, by its first bytes, else by its suffix, else text."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise LogReadError("it is not a regular file")
    with path.open("rb") as stream:
        head = stream.read(1024)
    if path.suffix.lower() in SPREADSHEETS:
        raise LogReadError("it is a spreadsheet, which dynid does not read", remedy="Save it as CSV, and give that.")
    begun = [f for f in FORMATS if any(head[at : at + len(magic)] == magic for at, magic in f.magic)]
    if begun:  # two formats are zip archives: their endings tell them apart
        return next((candidate for candidate in begun if path.suffix.lower() in candidate.suffixes), begun[0])
    for begins, reason, remedy in _REFUSED:
        if begins.match(head):
            raise LogReadError(reason, remedy=remedy)
    by_suffix = (candidate for candidate in FORMATS if path.suffix.lower() in candidate.suffixes)
    return next(by_suffix, FORMATS[-1])


def read_in_process(name: str, path: Path, options: Options) -> Table:
    """Read a file with the named adapter in this process; every failure is a `LogReadError` with the file's path."""
    return next(pieces_in_process(name, path, options, 0))


def pieces_in_process(name: str, path: Path, options: Options, rows: int) -> Iterator[Table]:
    """Read as `read_in_process` does, a given number of rows at a time; the whole file at once for 0 rows."""
    try:
        found = next(row for row in FORMATS if row.name == name)
        adapter = cast(Adapter, importlib.import_module(f"dynid.logs.readers.{found.module or name}"))
        if rows:
            yield from adapter.pieces(path, options, rows)
        else:
            yield adapter.read(path, options)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise log_read_error(error, name, path) from error


def log_read_error(error: BaseException, name: str, path: Path) -> LogReadError:
    """Convert any exception to our error about this file."""
    if isinstance(error, DynidError):
        kind = UnreachableLogError if isinstance(error, UnreachableLogError) else LogReadError
        return kind(error.reason, path=error.path or path, place=error.place, remedy=error.remedy)
    if isinstance(error, OSError) and error.strerror:
        return UnreachableLogError(
            f"it cannot be opened ({error.strerror})", path=path, remedy="Check the path and its rights."
        )
    if isinstance(error, ImportError):
        extra = next((f.extra for f in FORMATS if f.name == name), "")
        return UnreachableLogError(
            f"reading it needs {error.name}", path=path, remedy=f"Install it: pip install 'dynid[{extra or 'all'}]'."
        )
    if isinstance(error, MemoryError):
        return UnreachableLogError(
            "it asks for more memory than there is", path=path, remedy="Check the file for damage."
        )
    text = " ".join(str(error).split())[:200]
    return LogReadError(
        f"its contents are damaged or not of this format ({type(error).__name__}: {text})",
        path=path,
        remedy="Record or export the log again, or name its format by a matching suffix.",
    )
