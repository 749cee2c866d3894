"""Fleets: many arms of one type, identified together and compared with each other."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {"fleet": ["identify_fleet"]}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
