# Types of the public names; written by tests/support/public_stub.py.

from dynid.actuators.alike import Sharing as Sharing
from dynid.actuators.alike import decide_sharing as decide_sharing
from dynid.actuators.command_design import refine_commands as refine_commands
from dynid.actuators.drive_laws import DriveLaw as DriveLaw
from dynid.actuators.drive_laws import MotorLaw as MotorLaw
from dynid.actuators.drive_laws import PositionLaw as PositionLaw
from dynid.actuators.motion import CommandedMotion as CommandedMotion
from dynid.actuators.recorded_motion import commanded_motion as commanded_motion
from dynid.actuators.servo_files import read_servo_model as read_servo_model
from dynid.actuators.servo_identification import ActuatorEstimate as ActuatorEstimate
from dynid.actuators.servo_identification import identify_actuators as identify_actuators
from dynid.actuators.servo_knowledge import judge_servo_motions as judge_servo_motions
from dynid.actuators.servo_model import ServoModel as ServoModel
from dynid.actuators.servo_model import ServoParameter as ServoParameter
from dynid.actuators.servo_simulator import simulate_servos as simulate_servos
from dynid.actuators.term_choice import TermChoice as TermChoice
from dynid.actuators.term_choice import select_terms as select_terms
