# Types of the public names; written by tests/support/public_stub.py.

from dynid.export.c.c_pruning import prune as prune
from dynid.export.c.code_cost import pruning_cost as pruning_cost
from dynid.export.casadi_tape import casadi_function as casadi_function
from dynid.export.coefficient_text import coefficient_expressions as coefficient_expressions
from dynid.export.controller_dialogs import payload_dialogs as payload_dialogs
from dynid.export.controller_files import ros2_gravity_compensation as ros2_gravity_compensation
from dynid.export.controller_files import ur_payload_script as ur_payload_script
from dynid.export.data_tables import experiment_table as experiment_table
from dynid.export.data_tables import parameter_table as parameter_table
from dynid.export.data_tables import prediction_table as prediction_table
from dynid.export.data_tables import recording_tables as recording_tables
from dynid.export.data_tables import standard_parameter_table as standard_parameter_table
from dynid.export.data_tables import write_table as write_table
from dynid.export.parameter_vectors import drake_parameters as drake_parameters
from dynid.export.parameter_vectors import pinocchio_parameters as pinocchio_parameters
from dynid.export.parameter_vectors import with_drake_parameters as with_drake_parameters
from dynid.export.parameter_vectors import with_pinocchio_parameters as with_pinocchio_parameters
from dynid.export.running.recursive_code import recursive_files as recursive_files
from dynid.export.running.tracker_code import tracker_files as tracker_files
from dynid.export.servos.servo_config import isaac_actuators as isaac_actuators
from dynid.export.servos.servo_robot import write_servo_mjcf as write_servo_mjcf
from dynid.export.servos.servo_robot import write_servo_urdf as write_servo_urdf
from dynid.export.torque_formulas import torque_expressions as torque_expressions
