"""Runs on disk: what the command line does, as functions of the library that make a run folder."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "actuator_run": ["ActuatorRun", "run_actuators"],
    "drift_run": ["Drift", "FrictionTrend", "compare_runs"],
    "drives_run": ["calibrate_drives"],
    "export_run": ["run_export"],
    "fleet_run": ["FleetRun", "run_fleet"],
    "identification_run": ["IdentificationRun", "run_identification"],
    "load_run": ["LoadRecipe", "LoadRun", "run_load"],
    "plan_run": ["PlanRecipe", "run_command_design", "run_design"],
    "run_folder": ["RunFolder", "RunRequest", "read_run"],
    "validation_run": ["run_validation"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
