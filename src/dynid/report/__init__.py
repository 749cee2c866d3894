"""Pages made from finished results; views only read."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "report": ["write_report"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
