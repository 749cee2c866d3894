"""Checks of a log before identification; every objection is a Finding."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "quality": ["check_recording"],
    "stream_check": ["StreamCheck"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
