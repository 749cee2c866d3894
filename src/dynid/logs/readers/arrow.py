"""Read Parquet, Arrow and Feather files.

Invalid Arrow data can crash a process, so they are validated, and read in the guarded child (`guarded`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, ColumnTable, Options, as_column, note_left_out, refuse_bomb


def read(path: Path, options: Options, rows: int) -> Iterator[ColumnTable]:
    """Read every numeric column; lists of equal length become (N, k), structs become ``struct.field``.

    Args:
        path: The file.
        options: Not used; these formats have no options.
        rows: Rows of a piece of a Parquet file; Arrow files are read in the batches that they were written in. 0 for
            the whole file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    origins: dict[str, int] = {}  # column of instants -> the first of them, from which all pieces count
    with pa.OSFile(str(path), "rb") as source:  # not the path: readers would take a folder or an address, too
        if path.open("rb").read(4) == b"PAR1":
            file = pq.ParquetFile(source, pre_buffer=False)
            sizes = [file.metadata.row_group(k).total_byte_size for k in range(file.num_row_groups)]
            refuse_bomb("the file", sum(sizes), path.stat().st_size)
            refuse_bomb("the table", 8 * file.metadata.num_rows, 1000 * path.stat().st_size)
            pieces = file.iter_batches(batch_size=rows, use_threads=False) if rows else [file.read(use_threads=False)]
        else:
            stored = pa.ipc.open_file(source)
            pieces = (stored.get_batch(k) for k in range(stored.num_record_batches)) if rows else [stored.read_all()]
        for piece in pieces:
            yield _table(piece if isinstance(piece, pa.Table) else pa.Table.from_batches([piece]), origins)


def _table(table: Any, origins: dict[str, int]) -> ColumnTable:
    """Convert an Arrow table; instants count from the first of their column, which `origins` remembers."""
    import pyarrow as pa

    table.validate(full=True)
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
        if table.num_columns > MAX_COLUMNS:
            raise LogReadError(f"it has more than {MAX_COLUMNS} columns")
    columns: dict[str, Floats] = {}
    units: dict[str, str] = {}
    skipped = []
    for name, chunked in zip(table.column_names, table.columns):
        values = _values(chunked, name, origins)
        if values is None:
            skipped.append(name)
            continue
        label = name if name not in columns else f"{name}#{len(columns) + 1}"  # Arrow allows equal names
        columns[label] = values
        if hasattr(chunked.type, "unit"):  # of instants and durations
            units[label] = chunked.type.unit
    return ColumnTable(columns=columns, units=units, notes=note_left_out("columns", skipped))


def _values(chunked: Any, name: str, origins: dict[str, int]) -> Floats | None:
    """Numbers (N,) or (N, k) of an Arrow column, NaN for nulls; None if it holds anything else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = chunked.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        ticks = chunked.cast(pa.int64())
        first = origins.setdefault(name, next((value.as_py() for value in ticks[:1] if value.is_valid), 0))
        chunked = pc.subtract(ticks, first)  # an epoch in nanoseconds does not fit into a double
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        lengths = pc.min_max(pc.list_value_length(chunked)).as_py()
        if not len(chunked) or chunked.null_count or lengths["min"] != lengths["max"]:
            return None
        flat = _values(pa.chunked_array([pc.list_flatten(chunk) for chunk in chunked.chunks]), name, origins)
        return None if flat is None or flat.ndim != 1 else np.asarray(flat.reshape(len(chunked), -1))
    elif pa.types.is_boolean(kind):
        chunked = chunked.cast(pa.uint8())
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        return None
    return as_column(chunked.cast(pa.float64(), safe=False).to_numpy())
