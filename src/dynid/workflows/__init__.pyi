# Types of the public names; written by tests/support/public_stub.py.

from dynid.workflows.drives_run import calibrate_drives as calibrate_drives
from dynid.workflows.identification_run import Identify as Identify
from dynid.workflows.protocol import run as run
