# Types of the public names; written by tests/support/public_stub.py.

from dynid.actuators.motion import CommandedMotion as CommandedMotion
