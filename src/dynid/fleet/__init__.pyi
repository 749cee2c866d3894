# Types of the public names; written by tests/support/public_stub.py.

from dynid.fleet.fleet import Arm as Arm
from dynid.fleet.fleet import Fleet as Fleet
from dynid.fleet.fleet import identify_fleet as identify_fleet
from dynid.fleet.fleet_logs import find_logs as find_logs
