# Types of the public names; written by tests/support/public_stub.py.

from dynid.runs.drives_run import calibrate_drives as calibrate_drives
from dynid.runs.identification_run import Identify as Identify
from dynid.runs.protocol import run as run
