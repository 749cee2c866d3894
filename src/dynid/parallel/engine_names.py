"""`make_engine`: from a word of the command line to an engine, the place where tasks run (`dynid.parallel.base`)."""

from __future__ import annotations

import re
from typing import NamedTuple

from dynid.checks import require_library
from dynid.errors import ArgumentError
from dynid.parallel.base import Engine, Local

ENGINES = ("local", "processes", "dask")
"""Names of the engines."""
ADDRESS = re.compile(r"[a-z]+://[^\s/:]+:\d+|[^\s/:]+:\d{4,}|[a-z]+://\[[0-9a-fA-F:.%]+\]:\d+|inproc://\S+")
"""The forms of a scheduler's address: PROTOCOL://HOST:PORT, HOST:PORT with a port of four digits or more (``proces:4``
is a misspelt engine), PROTOCOL://[IPv6 number]:PORT, and Dask's address of a scheduler in this process."""


def make_engine(engine: str = "local") -> Engine:
    """Make an engine from one command-line word.

    Args:
        engine: ``local`` (this process), ``processes`` (a pool of processes), ``dask`` (a Dask cluster on this
            machine), the last two with a number of workers if wanted (``processes:4``; as many as there are processors
            by default), or the address of a running Dask cluster (``tcp://10.0.0.5:8786``).

    Raises:
        ArgumentError: It is none of these, or Dask is not installed.

    Example:
        >>> dynid.parallel.make_engine("local").map(abs, [-2, 3])
        [2, 3]
    """
    choice = read_engine(engine)
    if choice.name == "processes":
        from dynid.parallel.processes import Processes

        return Processes(choice.workers)
    if choice.name == "dask":
        from dynid.parallel.dask_cluster import DaskCluster

        return DaskCluster(workers=choice.workers, scheduler=choice.scheduler)
    return Local()


class EngineChoice(NamedTuple):
    """An engine and its settings."""

    name: str
    """One of `ENGINES`."""
    workers: int | None
    """Number of workers to start; None for as many as there are processors, or for a cluster that runs already."""
    scheduler: str | None
    """Address of a running Dask cluster; None starts what is needed on this machine."""


def read_engine(text: str) -> EngineChoice:
    """Read the word that names an engine; see `make_engine` for its forms.

    Raises:
        ArgumentError: There is no such engine, or Dask is not installed.
    """
    name, colon, workers = text.partition(":")
    if name not in ENGINES and ADDRESS.fullmatch(text):
        choice = EngineChoice("dask", None, text)
    else:
        choice = EngineChoice(name, int(workers) if workers.isdecimal() else None, None)
        # refused: an unknown name, a colon without a number from 1 up behind it, and workers for `local`
        if name not in ENGINES or (colon and (name == "local" or not choice.workers)):
            remedy = (
                "Choose local, processes, processes:4, dask, dask:4 or the address of a scheduler, tcp://10.0.0.5:8786."
            )
            raise ArgumentError(f"there is no engine '{text}'", remedy=remedy)
    if choice.name == "dask":
        require_library("distributed", "dynid[cluster]")
    return choice
