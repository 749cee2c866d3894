# Types of the public names; written by tests/support/public_stub.py.

from dynid.payload.drive_gains import identify_drive_gains as identify_drive_gains
from dynid.payload.load import Load as Load
from dynid.payload.load_motions import wrist_test_motion as wrist_test_motion
from dynid.payload.online_load import OnlineLoad as OnlineLoad
from dynid.payload.payload import identify_payload as identify_payload
from dynid.payload.recognition import KnownObject as KnownObject
from dynid.payload.recognition import recognise as recognise
from dynid.payload.recognition import verify_grasp as verify_grasp
from dynid.payload.sensing import Sensing as Sensing
from dynid.payload.sensor_search import calibrate_sensor as calibrate_sensor
from dynid.payload.wrist import identify_load as identify_load
from dynid.payload.wrist import identify_load_from_poses as identify_load_from_poses
