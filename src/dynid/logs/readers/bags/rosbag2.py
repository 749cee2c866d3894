"""ROS 2 bags in SQLite files (``.db3``): opened read-only, alone, with bounded queries."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from dynid.errors import LogReadError
from dynid.logs.readers.bags.ros_messages import MessageCollector
from dynid.logs.readers.base import Options, Table

MAX_MESSAGE = 64 * 2**20
"""Largest message [bytes] (convention)."""
BASE_SECONDS = 8.0
"""Time for the queries of a small bag [s] (convention)."""
BYTES_PER_SECOND = 1e6
"""Reading rate below which a query is given up [bytes/s] (convention: a hostile schema can make one that never
ends)."""


def read(path: Path, options: Options) -> Table:
    """Read the joint states and wrenches of a bag."""
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"  # immutable: no journal beside it is opened
    with closing(sqlite3.connect(address, uri=True)) as database:
        size = path.stat().st_size
        _restrict(database, size)
        collector = MessageCollector()
        notes, lost = [], []
        wanted = dict(_topics(database, collector))
        try:
            _collect(database, wanted, collector, lambda done: options.tell(done, size))
        except (sqlite3.DatabaseError, LogReadError) as error:
            if options.strict or not collector.count:
                raise
            lost.append(f"{collector.count} messages before the damage ({error})")
    if path.with_name(path.name + "-wal").exists():
        notes.append("a write-ahead log stands beside the bag; its messages were not read")
    return collector.table(notes=tuple(notes), salvaged=tuple(lost))


def _restrict(database: sqlite3.Connection, size: int) -> None:
    """Bound the size of values and the time of queries, and trust nothing the schema defines."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_MESSAGE)
    database.execute("PRAGMA temp_store = MEMORY")  # the guarded process bounds it, and no file is written
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    _refuse_programs(database)
    deadline = time.monotonic() + BASE_SECONDS + size / BYTES_PER_SECOND
    database.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)


def _refuse_programs(database: sqlite3.Connection) -> None:
    """Refuse a schema that computes: in a bag both tables hold rows, and a query of a view can go on for ever."""
    for kind, name, text in database.execute("SELECT type, name, sql FROM sqlite_master"):
        is_virtual = str(text or "").lstrip().lower().startswith("create virtual")
        if kind in ("view", "trigger") or is_virtual:
            raise LogReadError(
                f"its schema holds a {'virtual table' if is_virtual else kind} ('{str(name)[:60]}')",
                remedy="A bag has none: record it again, or export its messages.",
            )


def _topics(database: sqlite3.Connection, collector: MessageCollector) -> Iterator[tuple[int, str]]:
    """The number and name of every topic of use."""
    for number, name, kind, wire in database.execute("SELECT id, name, type, serialization_format FROM topics"):
        if collector.wants(str(name), str(kind), str(wire)):
            yield int(number), str(name)


def _collect(
    database: sqlite3.Connection, wanted: dict[int, str], collector: MessageCollector, tell: Callable[[int], None]
) -> None:
    """Collect the messages in file order, and report the number of bytes."""
    done = 0
    for number, received, data in database.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY id"):
        if number in wanted:
            if not isinstance(data, bytes) or not isinstance(received, int):
                raise LogReadError("a message is not stored as bytes", place=f"message {collector.count + 1}")
            collector.add(wanted[number], received, data)
        done += len(data) if isinstance(data, bytes) else 0
        tell(done)
