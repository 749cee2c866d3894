"""The table of log formats with their readers; every failure of a reader becomes a `LogReadError` here.

To add a format, write ``readers/<name>.py`` with ``read(path, options, rows)``, and add a row. The function opens
nothing but `path` and yields tables of at most ``rows`` rows, or the whole file for 0. It may also yield longer tables:
the caller cuts them.
"""

from __future__ import annotations

import importlib
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dynid.errors import DynidError, LogReadError, UnreachableLogError
from dynid.logs.readers.base import ColumnTable, Options


@dataclass(frozen=True, slots=True)
class Format:
    """One row of the table of formats."""

    name: str
    """Name of the format, in messages and for `read_here`."""
    suffixes: tuple[str, ...]
    """Endings of file names, in lower case."""
    magic: tuple[tuple[int, bytes], ...] = ()
    """(offset, bytes) by which such a file is recognised; one of them suffices."""
    reader: str = ""
    """``module:function`` in this folder that reads it; ``<name>:read`` by default."""
    guarded: bool = True
    """Whether it is read in a child process of limited memory and time. That is not needed for formats without
    compression and without declared sizes, whose numbers take a few times the bytes of the file at most."""
    extra: str = ""
    """The optional dependency it needs, as in ``pip install dynid[extra]``."""


_HDF = b"\x89HDF\r\n\x1a\n"
FORMATS = (
    Format("npy", (".npy",), ((0, b"\x93NUMPY"),), "named_arrays:read_npy", guarded=False),
    Format("npz", (".npz",), ((0, b"PK\x03\x04"), (0, b"PK\x05\x06")), "named_arrays:read_npz"),
    Format(
        "hdf5",
        (".h5", ".hdf5", ".hdf"),
        ((0, _HDF), (512, _HDF)),
        "named_arrays:read_hdf5",
        extra="readers",
    ),
    Format("mat", (".mat",), ((0, b"MATLAB 5.0"),), "named_arrays:read_mat"),
    Format("arrow", (".parquet", ".arrow", ".feather"), ((0, b"PAR1"), (0, b"ARROW1")), extra="readers"),
    Format("mcap", (".mcap",), ((0, b"\x89MCAP"),), "ros:read", extra="readers"),
    Format("rosbag1", (".bag",), ((0, b"#ROSBAG V"),), "ros:read", extra="readers"),
    Format("rosbag2", (".db3",), ((0, b"SQLite format 3\0"),), "ros:read", extra="readers"),
    Format("json", (".json",), (), "json_records:read"),
    Format("text", (".csv", ".tsv", ".txt", ".dat", ".log", ".asc"), guarded=False),
)
"""All formats, binary ones first; a file of no other format is text."""
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
"""Files that are recognised and refused: (how they begin, what they are, what to do)."""


def detect_format(path: Path) -> Format:
    """The format of a log, by its first bytes, else by its suffix, else text; a folder is a ROS 2 bag."""
    if path.is_dir():
        return next(found for found in FORMATS if found.name == "rosbag2")
    if not stat.S_ISREG(path.stat().st_mode):
        raise LogReadError("it is not a regular file")
    if path.suffix.lower() in (".xlsx", ".xls", ".ods", ".numbers"):
        raise LogReadError("it is a spreadsheet, which dynid does not read", remedy="Save it as CSV, and give that.")
    with path.open("rb") as stream:
        head = stream.read(1024)
    for found in FORMATS:
        if any(head[at : at + len(magic)] == magic for at, magic in found.magic):
            return found
    for begins, reason, remedy in _REFUSED:
        if begins.match(head):
            raise LogReadError(reason, remedy=remedy)
    return next((found for found in FORMATS if path.suffix.lower() in found.suffixes), FORMATS[-1])


def read_here(name: str, path: Path, options: Options, rows: int = 0) -> Iterator[ColumnTable]:
    """Read a file with the named reader in this process; every failure is a `LogReadError` with the file's path."""
    try:
        found = next(row for row in FORMATS if row.name == name)
        module, _, function = (found.reader or f"{name}:read").partition(":")
        reader = getattr(importlib.import_module(f"dynid.logs.readers.{module}"), function)
        yield from reader(path, options, rows)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # libraries written in Rust raise errors that are no Exception
        raise log_read_error(error, name, path) from error


def log_read_error(error: BaseException, name: str, path: Path) -> LogReadError:
    """Convert any exception of a reader (by name) to a `LogReadError` about this file."""
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
