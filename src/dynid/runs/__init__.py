"""Runs on disk: what the command line does, as functions of the library that make a run folder."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "actuator_run": ["IdentifyServos"],
    "drift_run": ["CompareRuns"],
    "drives_run": ["calibrate_drives"],
    "identification_run": ["Identify"],
    "load_run": ["IdentifyLoad", "LoadRecipe"],
    "plan_run": ["DesignMotion", "PlanRecipe"],
    "protocol": ["run"],
    "validation_run": ["Validate"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
