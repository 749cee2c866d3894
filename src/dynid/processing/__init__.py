"""From a raw Recording to an Experiment: uniform clock, filters, derivatives, masks."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "filters": ["Butterworth", "CentralDifferences", "MeasuredVelocity"],
    "uniform": ["Cleaning"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
