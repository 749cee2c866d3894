# Types of the public names; written by tests/support/public_stub.py.

from dynid.load.drive_gains import gains_from_lever_arm as gains_from_lever_arm
from dynid.load.drive_gains import gains_from_static_load as gains_from_static_load
from dynid.load.drive_gains import identify_drive_gains as identify_drive_gains
from dynid.load.load import Load as Load
from dynid.load.load_files import read_library as read_library
from dynid.load.load_files import read_load as read_load
from dynid.load.load_motions import wrist_test_motion as wrist_test_motion
from dynid.load.load_study import study_load as study_load
from dynid.load.load_study import study_payload as study_payload
from dynid.load.online_load import OnlineLoad as OnlineLoad
from dynid.load.payload import ArmUncertainty as ArmUncertainty
from dynid.load.payload import identify_end_link as identify_end_link
from dynid.load.payload import identify_payload as identify_payload
from dynid.load.recognition import KnownObject as KnownObject
from dynid.load.recognition import recognise as recognise
from dynid.load.recognition import verify_grasp as verify_grasp
from dynid.load.sensor_calibration import SensorCompliance as SensorCompliance
from dynid.load.sensor_calibration import calibrate_sensor as calibrate_sensor
from dynid.load.sensor_checks import check_wrench as check_wrench
from dynid.load.sensor_checks import find_wrench_delay as find_wrench_delay
from dynid.load.wrench_equations import pose_equations as pose_equations
from dynid.load.wrist import Sensing as Sensing
from dynid.load.wrist import identify_load as identify_load
from dynid.load.wrist import identify_load_from_poses as identify_load_from_poses
from dynid.load.wrist import wrench_data as wrench_data
