# Types of the public names; written by tests/support/public_stub.py.

from dynid.runs.actuator_run import ActuatorRun as ActuatorRun
from dynid.runs.actuator_run import run_actuators as run_actuators
from dynid.runs.drift_run import Drift as Drift
from dynid.runs.drift_run import FrictionTrend as FrictionTrend
from dynid.runs.drift_run import compare_runs as compare_runs
from dynid.runs.drives_run import calibrate_drives as calibrate_drives
from dynid.runs.export_run import run_export as run_export
from dynid.runs.fleet_run import FleetRun as FleetRun
from dynid.runs.fleet_run import run_fleet as run_fleet
from dynid.runs.identification_run import IdentificationRun as IdentificationRun
from dynid.runs.identification_run import run_identification as run_identification
from dynid.runs.load_run import LoadRecipe as LoadRecipe
from dynid.runs.load_run import LoadRun as LoadRun
from dynid.runs.load_run import run_load as run_load
from dynid.runs.plan_run import PlanRecipe as PlanRecipe
from dynid.runs.plan_run import run_command_design as run_command_design
from dynid.runs.plan_run import run_design as run_design
from dynid.runs.run_folder import RunFolder as RunFolder
from dynid.runs.run_folder import RunRequest as RunRequest
from dynid.runs.run_folder import read_run as read_run
from dynid.runs.validation_run import run_validation as run_validation
