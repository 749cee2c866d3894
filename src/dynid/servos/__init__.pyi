# Types of the public names; written by tests/support/public_stub.py.

from dynid.servos.drive_laws import MotorLaw as MotorLaw
from dynid.servos.drive_laws import PositionLaw as PositionLaw
from dynid.servos.motion import CommandedMotion as CommandedMotion
from dynid.servos.recorded_motion import commanded_motion as commanded_motion
from dynid.servos.servo_files import read_servo_model as read_servo_model
from dynid.servos.servo_identification import identify_actuators as identify_actuators
from dynid.servos.servo_model import ServoModel as ServoModel
from dynid.servos.servo_model import ServoParameter as ServoParameter
from dynid.servos.servo_simulator import simulate_servos as simulate_servos
