# Types of the public names; written by tests/support/public_stub.py.

from dynid.fleet.differences import Difference as Difference
from dynid.fleet.fleet import Arm as Arm
from dynid.fleet.fleet import FailedLog as FailedLog
from dynid.fleet.fleet import Fleet as Fleet
from dynid.fleet.fleet import identify_fleet as identify_fleet
from dynid.fleet.fleet_logs import FleetLog as FleetLog
from dynid.fleet.fleet_logs import find_logs as find_logs
from dynid.fleet.history import History as History
from dynid.fleet.history import TemperatureEffect as TemperatureEffect
from dynid.fleet.history import Window as Window
from dynid.fleet.pooling import ArmEquations as ArmEquations
from dynid.fleet.pooling import Pool as Pool
from dynid.fleet.pooling import pool_arms as pool_arms
from dynid.fleet.pooling import weigh_arm as weigh_arm
