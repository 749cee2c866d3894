# Types of the public names; written by tests/support/public_stub.py.

from dynid.gate.quality import check_recording as check_recording
from dynid.gate.stream_check import StreamCheck as StreamCheck
