"""Runs on disk: what the command line does, as functions of the library that make a run folder."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "actuator_run": ["ActuatorRun", "IdentifyServos"],
    "drift_run": ["CompareRuns", "Drift"],
    "drives_run": ["calibrate_drives"],
    "export_run": ["run_export"],
    "fleet_run": ["IdentifyFleet"],
    "identification_run": ["IdentificationRun", "Identify"],
    "load_run": ["IdentifyLoad", "LoadRecipe", "LoadRun"],
    "plan_run": ["DesignMotion", "PlanRecipe"],
    "protocol": ["Task", "run"],
    "run_folder": ["RunRequest", "read_run"],
    "validation_run": ["Validate"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
