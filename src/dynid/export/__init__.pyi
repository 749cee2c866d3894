# Types of the public names; written by tests/support/public_stub.py.

from dynid.export.c.c_package import CPackage as CPackage
from dynid.export.c.c_package import generate_c as generate_c
from dynid.export.c.c_pruning import PrunedModel as PrunedModel
from dynid.export.c.c_pruning import prune as prune
from dynid.export.c.code_cost import count_code as count_code
from dynid.export.c.code_cost import pruning_cost as pruning_cost
from dynid.export.casadi_tape import casadi_from_tape as casadi_from_tape
from dynid.export.casadi_tape import casadi_function as casadi_function
from dynid.export.coefficient_text import coefficient_expressions as coefficient_expressions
from dynid.export.controller_dialogs import payload_dialogs as payload_dialogs
from dynid.export.data_tables import DataTable as DataTable
from dynid.export.data_tables import experiment_table as experiment_table
from dynid.export.data_tables import parameter_table as parameter_table
from dynid.export.data_tables import prediction_table as prediction_table
from dynid.export.data_tables import recording_tables as recording_tables
from dynid.export.data_tables import standard_parameter_table as standard_parameter_table
from dynid.export.data_tables import write_tables as write_tables
from dynid.export.parameter_vectors import drake_parameters as drake_parameters
from dynid.export.parameter_vectors import pinocchio_parameters as pinocchio_parameters
from dynid.export.result_file import read_result as read_result
from dynid.export.result_file import write_result as write_result
from dynid.export.robot_files import RobotFile as RobotFile
from dynid.export.robot_files import write_robot_files as write_robot_files
from dynid.export.torque_formulas import TorqueExpressions as TorqueExpressions
from dynid.export.torque_formulas import torque_expressions as torque_expressions
