# Types of the public names; written by tests/support/public_stub.py.

from dynid.logs.drives import ThreePhase as ThreePhase
from dynid.logs.in_memory import as_recording as as_recording
from dynid.logs.lerobot import read_lerobot as read_lerobot
