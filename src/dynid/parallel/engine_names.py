"""Engines by their names."""

from __future__ import annotations

import re

from dynid.checks import require_library
from dynid.errors import ArgumentError
from dynid.parallel.base import Engine, Local

ENGINES = ("local", "processes", "dask")
"""Names of the engines."""
ADDRESS = re.compile(r"(?:[a-z]+://)?[^\s/:]+:\d+|[a-z]+://\[[0-9a-fA-F:.%]+\]:\d+|inproc://\S+")
"""What the address of a scheduler looks like: a protocol, which may be omitted, a host or a number in brackets, and a
port."""


def make_engine(engine: str = "local") -> Engine:
    """Make an engine by its name.

    Args:
        engine: ``local`` (this process), ``processes`` (a pool of processes) or ``dask`` (a Dask cluster on this
            machine), the latter with a number of workers if wanted (``processes:4``; as many as there are processors by
            default), or the address of a running Dask cluster (``tcp://10.0.0.5:8786``).

    Raises:
        ArgumentError: It is none of these, or Dask is not installed.

    Example:
        >>> dynid.parallel.make_engine("local").map(abs, [-2, 3])
        [2, 3]
    """
    name, workers, scheduler = read_engine(engine)
    if name == "processes":
        from dynid.parallel.processes import Processes

        return Processes(workers)
    if name == "dask":
        from dynid.parallel.dask_cluster import DaskCluster

        return DaskCluster(workers=workers, scheduler=scheduler)
    return Local()


def read_engine(text: str) -> tuple[str, int | None, str | None]:
    """Name of an engine, number of its workers, and address of a running cluster; see `make_engine`.

    Raises:
        ArgumentError: There is no such engine, or Dask is not installed.
    """
    name, _, workers = text.partition(":")
    count = int(workers) if workers.isdecimal() else None
    scheduler = text if name not in ENGINES and ADDRESS.fullmatch(text) else None
    if not scheduler and (name not in ENGINES or (workers and (name == "local" or not count))):
        remedy = (
            "Choose local, processes, processes:4, dask, dask:4 or the address of a scheduler, tcp://10.0.0.5:8786."
        )
        raise ArgumentError(f"there is no engine '{text}'", remedy=remedy)
    if scheduler or name == "dask":
        require_library("distributed", "dynid[cluster]")
    return ("dask", None, scheduler) if scheduler else (name, count, None)
