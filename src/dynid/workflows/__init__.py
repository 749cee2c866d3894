"""Runs on disk: what the command line does, as functions of the library that make a run folder."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "drives_run": ["calibrate_drives"],
    "identification_run": ["Identify"],
    "protocol": ["run"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
