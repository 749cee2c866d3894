"""Why does it not fit? A table of suspects, one test at one stated rate of false alarms."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "log_check": ["check_recording"],
    "refinement": ["find_delay", "refine_geometry"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
