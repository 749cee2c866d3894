# Types of the public names; written by tests/support/public_stub.py.

from dynid.fleet.fleet import identify_fleet as identify_fleet
