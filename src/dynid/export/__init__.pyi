# Types of the public names; written by tests/support/public_stub.py.

from dynid.export.c.c_pruning import prune as prune
from dynid.export.c.c_pruning import pruning_cost as pruning_cost
from dynid.export.casadi_tape import casadi_function as casadi_function
from dynid.export.controller_files import payload_dialogs as payload_dialogs
from dynid.export.controller_files import ros2_gravity_compensation as ros2_gravity_compensation
from dynid.export.data_tables import parameter_table as parameter_table
from dynid.export.data_tables import prediction_table as prediction_table
from dynid.export.data_tables import signal_tables as signal_tables
from dynid.export.data_tables import write_table as write_table
from dynid.export.formulas import coefficient_expressions as coefficient_expressions
from dynid.export.formulas import torque_expressions as torque_expressions
from dynid.export.parameter_vectors import body_parameters as body_parameters
from dynid.export.parameter_vectors import with_body_parameters as with_body_parameters
from dynid.export.servo_config import isaac_actuators as isaac_actuators
