"""Engines by their names."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from dynid.errors import ArgumentError
from dynid.parallel.base import Engine, Local

ENGINES = ("local", "processes", "dask")
"""Names of the engines."""
ADDRESS = re.compile(r"(?:[a-z]+://)?[^\s/:]+:\d+|[a-z]+://\[[0-9a-fA-F:.%]+\]:\d+|inproc://\S+")
"""What the address of a scheduler looks like: a protocol, which may be omitted, a host or a number in brackets, and a
port."""


def make_engine(name: str = "local", *, workers: int | None = None, scheduler: str | None = None) -> Engine:
    """Make an engine by its name.

    Args:
        name: ``local`` (this process), ``processes`` (a pool of processes) or ``dask`` (a Dask cluster).
        workers: Number of processes; as many as there are processors if None. Not for a running cluster.
        scheduler: Address of a running Dask cluster, such as ``tcp://10.0.0.5:8786``; None starts a cluster on this
            machine.

    Raises:
        ArgumentError: There is no such engine, or the arguments do not belong to it.

    Example:
        >>> dynid.parallel.make_engine("local").map(abs, [-2, 3])
        [2, 3]
    """
    check_engine(name, workers, scheduler)
    refuse_missing_dask(name)
    if name == "processes":
        from dynid.parallel.processes import Processes

        return Processes(workers)
    if name == "dask":
        from dynid.parallel.dask_cluster import DaskCluster

        return DaskCluster(workers=workers, scheduler=scheduler)
    return Local()


def read_engine(text: str) -> dict[str, Any]:
    """The arguments of `make_engine` from one word.

    Args:
        text: ``local``, ``processes`` or ``dask``, with a number of workers if wanted (``processes:4``), or the address
            of a running Dask cluster (``tcp://10.0.0.5:8786``).

    Raises:
        ArgumentError: It is none of these.
    """
    if "://" in text:
        found: dict[str, Any] = {"name": "dask", "scheduler": text}
    else:
        name, _, workers = text.partition(":")
        found = {"name": name, "workers": int(workers) if workers.isdecimal() else workers or None}
    check_engine(found["name"], found.get("workers"), found.get("scheduler"))
    return found


def check_engine(name: Any, workers: Any, scheduler: Any) -> None:
    """Refuse settings of an engine that cannot be meant."""
    if name not in ENGINES:
        raise ArgumentError(f"there is no engine {name!r}", remedy=f"Choose one of {', '.join(ENGINES)}.")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ArgumentError(f"workers is {workers!r}", remedy="Give a number of processes from 1 up.")
    if workers is not None and name == "local":
        raise ArgumentError("the engine 'local' has no workers", remedy="Choose engine=processes or engine=dask.")
    if scheduler is not None and name != "dask":
        raise ArgumentError(f"the engine '{name}' has no scheduler", remedy="Choose engine=dask, or omit it.")
    if scheduler is not None and workers is not None:
        raise ArgumentError(
            "a running cluster has its own workers", remedy="Give the address of the scheduler, or workers."
        )
    if scheduler is not None and not (isinstance(scheduler, str) and ADDRESS.fullmatch(scheduler)):
        raise ArgumentError(
            f"{scheduler!r} is no address of a scheduler", remedy="Write HOST:PORT, such as tcp://10.0.0.5:8786."
        )


def refuse_missing_dask(name: str) -> None:
    """Refuse the engine ``dask`` where Dask is not installed, before any log is looked at."""
    if name == "dask" and find_spec("distributed") is None:
        raise ArgumentError("Dask is not installed", remedy="Install it: pip install 'dynid[cluster]'.")
