# Types of the public names; written by tests/support/public_stub.py.

from dynid.logs.channel_map import ChannelMap as ChannelMap
from dynid.logs.channel_map import read_channel_map as read_channel_map
from dynid.logs.drives import CurrentGains as CurrentGains
from dynid.logs.drives import ThreePhase as ThreePhase
from dynid.logs.in_memory import as_recording as as_recording
from dynid.logs.inspect import inspect_log as inspect_log
from dynid.logs.joint_order import match_joints as match_joints
from dynid.logs.lerobot import read_lerobot as read_lerobot
from dynid.logs.reading import read_recording as read_recording
from dynid.logs.reading import read_stream as read_stream
from dynid.logs.reading import runs_in as runs_in
from dynid.logs.recording import Commands as Commands
from dynid.logs.recording import Recording as Recording
