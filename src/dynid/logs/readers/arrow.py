"""Parquet, Arrow and Feather files. Invalid Arrow data can crash the process: fully validated, in the safe child."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.errors import LogReadError
from dynid.logs.readers.base import MAX_COLUMNS, Options, Table, as_column, refuse_bomb

_TICKS = {"s": "s", "ms": "ms", "us": "us", "ns": "ns"}


def read(path: Path, options: Options) -> Table:
    """Read every numeric column; lists of equal length become (N, k), structs become ``struct.field``."""
    return _table(_load(path, options), {})


def pieces(path: Path, options: Options, rows: int) -> Iterator[Table]:
    """Read a given number of rows at a time: Parquet by row groups, Arrow by record batches."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    origins: dict[str, int] = {}
    with pa.OSFile(str(path), "rb") as source:
        if _is_parquet(path):
            file = pq.ParquetFile(source, pre_buffer=False)
            _check_sizes(file.metadata, path)
            bundles = _bundles([file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)], rows)
            batches = (
                batch
                for groups in bundles
                for batch in file.iter_batches(batch_size=rows, row_groups=groups, use_threads=False)
            )
        else:
            stored = pa.ipc.open_file(source)
            batches = (stored.get_batch(k) for k in range(stored.num_record_batches))
        for batch in batches:
            yield _table(pa.Table.from_batches([batch]), origins)


def _bundles(sizes: list[int], rows: int) -> list[list[int]]:
    """Consecutive row groups of at most `rows` rows together; a piece across their border would be copied."""
    bundles: list[list[int]] = []
    filled = rows
    for number, size in enumerate(sizes):
        if filled + size > rows:
            bundles.append([])
            filled = 0
        bundles[-1].append(number)
        filled += size
    return bundles


def _table(table: Any, origins: dict[str, int]) -> Table:
    """An Arrow table as ours; instants count from the first of their column, kept in `origins`."""
    table.validate(full=True)
    while any(_is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
        if table.num_columns > MAX_COLUMNS:
            raise LogReadError(f"it has more than {MAX_COLUMNS} columns")
    columns: dict[str, Floats] = {}
    units: dict[str, str] = {}
    skipped = []
    for name, chunked in zip(table.column_names, table.columns):
        values = _values(chunked, name, origins)
        label = name if name not in columns else f"{name}#{len(columns) + 1}"
        if values is None:
            skipped.append(name)
            continue
        columns[label] = values
        unit = getattr(chunked.type, "unit", None)
        if unit in _TICKS:
            units[label] = unit
    notes = (f"columns without numbers were left out: {', '.join(skipped)}",) if skipped else ()
    return Table(columns=columns, units=units, notes=notes)


def _load(path: Path, options: Options) -> Any:
    """The file as an Arrow table, its declared size checked first."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pa.OSFile(str(path), "rb") as source:  # not the path: readers would take a folder or an address, too
        if not _is_parquet(path):
            stored = pa.ipc.open_file(source)
            batches = []
            for k in range(stored.num_record_batches):
                batches.append(stored.get_batch(k))
                options.tell(k + 1, stored.num_record_batches)
            return pa.Table.from_batches(batches, stored.schema)
        file = pq.ParquetFile(source, pre_buffer=False)
        _check_sizes(file.metadata, path)
        groups = []
        for k in range(file.num_row_groups):
            groups.append(file.read_row_group(k, use_threads=False))
            options.tell(k + 1, file.num_row_groups)
        return pa.concat_tables(groups) if groups else file.read(use_threads=False)


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _check_sizes(meta: Any, path: Path) -> None:
    """Refuse declared sizes that the file cannot hold."""
    groups = [meta.row_group(k).total_byte_size for k in range(meta.num_row_groups)]
    refuse_bomb("the file", sum(groups), path.stat().st_size)
    refuse_bomb("the table", 8 * meta.num_rows, 1000 * path.stat().st_size)


def _is_struct(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_struct(kind))


def _values(chunked: Any, name: str = "", origins: dict[str, int] | None = None) -> Floats | None:
    """A column's numbers, (N,) or (N, k), NaN for nulls; None if it holds none."""
    import pyarrow as pa

    kind = chunked.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        import pyarrow.compute as pc

        ticks = chunked.cast(pa.int64())
        first = next((value.as_py() for value in ticks[:1] if value.is_valid), 0)
        first = first if origins is None else origins.setdefault(name, first)
        shifted = pc.subtract(ticks, first)  # an epoch in nanoseconds does not fit into a double
        return as_column(shifted.cast(pa.float64(), safe=False).to_numpy())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _matrix(chunked)
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    if pa.types.is_float64(kind) and chunked.num_chunks == 1 and not chunked.null_count:
        return as_column(chunked.chunk(0).to_numpy())  # where they lie
    numbers = chunked.cast(pa.uint8()) if pa.types.is_boolean(kind) else chunked
    return as_column(numbers.cast(pa.float64(), safe=False).to_numpy())


def _matrix(chunked: Any) -> Floats | None:
    """A column of lists of one length as (N, k); None if they are ragged or not numbers."""
    rows = len(chunked)
    elements = _flattened(chunked) if rows else None
    flat = None if elements is None else _values(elements)
    if flat is None or flat.ndim != 1 or flat.size % rows:
        return None
    return np.asarray(flat.reshape(rows, -1))


def _flattened(chunked: Any) -> Any:
    """The elements of a list column; None if lengths differ or a list is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.list_value_length(chunked)
    shortest, longest = pc.min_max(lengths).values() if len(chunked) else (pa.scalar(0), pa.scalar(0))
    if chunked.null_count or shortest.as_py() != longest.as_py():
        return None
    return pa.chunked_array([pc.list_flatten(chunk) for chunk in chunked.chunks])
