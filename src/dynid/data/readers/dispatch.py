"""Reading one file: the right adapter, here or in the safe child."""

from __future__ import annotations

from pathlib import Path

from dynid.data.readers.base import Options, Table
from dynid.data.readers.registry import detect_format, log_read_error, read_in_process
from dynid.data.readers.safe_child import SafeChild
from dynid.errors import LogReadError

__all__ = ["read_table"]


def read_table(path: str | Path, options: Options | None = None) -> Table:
    """Read one log file into named columns.

    Args:
        path: The file; nothing else is opened.
        options: How to read it.

    Raises:
        LogReadError: For any file that cannot be read, with place, reason and remedy.
    """
    file, chosen = Path(path), options or Options()
    try:
        found = detect_format(file)
    except (OSError, ValueError, LogReadError) as error:
        raise log_read_error(error, "text", file) from error
    if not found.isolated:
        return read_in_process(found.name, file, chosen)
    try:
        with SafeChild() as child:
            return child.read(found.name, file, chosen)
    except OSError as error:
        raise log_read_error(error, found.name, file) from error
