# Types of the public names; written by tests/support/public_stub.py.

from dynid.runs.actuator_run import IdentifyServos as IdentifyServos
from dynid.runs.drift_run import CompareRuns as CompareRuns
from dynid.runs.drives_run import calibrate_drives as calibrate_drives
from dynid.runs.identification_run import Identify as Identify
from dynid.runs.load_run import IdentifyLoad as IdentifyLoad
from dynid.runs.load_run import LoadRecipe as LoadRecipe
from dynid.runs.plan_run import DesignMotion as DesignMotion
from dynid.runs.plan_run import PlanRecipe as PlanRecipe
from dynid.runs.protocol import run as run
from dynid.runs.validation_run import Validate as Validate
