"""The identified model at work: torques from outside, their bands and alarms, contacts, compensation."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "alarms": ["watch_experiment"],
    "calibration": ["calibrate"],
    "contact": ["contact_wrench", "find_touched_link"],
    "hand_guiding": ["HandGuiding"],
    "live_watch": ["LiveWatch"],
    "load_tracker": ["LoadTracker"],
    "observer": ["MomentumObserver", "observe"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
