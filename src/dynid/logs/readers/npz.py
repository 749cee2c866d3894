"""NumPy archives: every member is checked against its declared size and ratio before a byte is unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path

from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Floats, Options, Table, bounded, flatten_array
from dynid.logs.readers.npy import read_array

__all__ = ["read"]


def read(path: Path, options: Options) -> Table:
    """Read every numeric array of an ``.npz``. Member names are labels only: nothing is written to them."""
    columns: dict[str, Floats] = {}
    notes = []
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _check(members, path.stat().st_size)
        done, stored = 0, sum(member.compress_size for member in members)
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                notes.append(f"member '{name[:80]}' is not an array and was left out")
                continue
            columns |= _read_member(archive, member, name)
            done += member.compress_size
            options.tell(done, stored)
    return Table(columns=columns, notes=tuple(notes))


def _check(members: list[zipfile.ZipInfo], stored: int) -> None:
    """Refuse bombs and encrypted members."""
    if len(members) > MAX_COLUMNS:
        raise LogReadError(f"it has {len(members)} members")
    bounded("the archive", sum(member.file_size for member in members), stored)
    for member in members:
        bounded(f"member '{member.filename[:80]}'", member.file_size, member.compress_size)


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> dict[str, Floats]:
    """One array; text and other non-numeric arrays are refused, for a log has no use for them."""
    try:
        with archive.open(member) as stream:
            array = read_array(stream, member.file_size, lambda done, whole: None)
            if stream.read(1):
                raise LogReadError("it is longer than declared")
        return flatten_array(name, array)
    except LogReadError as error:
        place = f"member '{name[:80]}'" + (f", {error.place}" if error.place else "")
        raise LogReadError(error.reason, place=place, remedy=error.remedy) from error
