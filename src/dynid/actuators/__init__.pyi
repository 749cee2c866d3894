# Types of the public names; written by tests/support/public_stub.py.

from dynid.actuators.drive_laws import MotorLaw as MotorLaw
from dynid.actuators.drive_laws import PositionLaw as PositionLaw
from dynid.actuators.motion import CommandedMotion as CommandedMotion
from dynid.actuators.recorded_motion import commanded_motion as commanded_motion
from dynid.actuators.servo_files import read_servo_model as read_servo_model
from dynid.actuators.servo_identification import identify_actuators as identify_actuators
from dynid.actuators.servo_model import ServoModel as ServoModel
from dynid.actuators.servo_model import ServoParameter as ServoParameter
from dynid.actuators.servo_simulator import simulate_servos as simulate_servos
