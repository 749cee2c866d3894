# Types of the public names; written by tests/support/public_stub.py.

from dynid.load.drive_gains import identify_drive_gains as identify_drive_gains
from dynid.load.load import Load as Load
from dynid.load.load_motions import wrist_test_motion as wrist_test_motion
from dynid.load.online_load import OnlineLoad as OnlineLoad
from dynid.load.payload import identify_payload as identify_payload
from dynid.load.recognition import KnownObject as KnownObject
from dynid.load.recognition import recognise as recognise
from dynid.load.recognition import verify_grasp as verify_grasp
from dynid.load.sensing import Sensing as Sensing
from dynid.load.sensor_search import calibrate_sensor as calibrate_sensor
from dynid.load.wrist import identify_load as identify_load
from dynid.load.wrist import identify_load_from_poses as identify_load_from_poses
