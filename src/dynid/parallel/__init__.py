"""Engines that run many independent tasks: in this process, in a pool of processes, or on a Dask cluster."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "base": ["Engine", "Local", "Outcome"],
    "engine_names": ["ENGINES", "make_engine"],
    "processes": ["Processes"],
    "dask_cluster": ["DaskCluster"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
