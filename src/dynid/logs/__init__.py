"""Logs as they were recorded: read from files, columns mapped to quantities and units, not yet processed."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "drives": ["ThreePhase"],
    "in_memory": ["as_recording"],
    "lerobot": ["read_lerobot"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
