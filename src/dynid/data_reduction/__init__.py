"""Reduction of samples to an information factor per joint and segment, mergeable and weighable afterwards."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "information": ["Information"],
    "reduction": ["reduce_samples"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
