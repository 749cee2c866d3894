"""Results for other programs: result files, values for robot controllers, real-time C code."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "casadi_tape": ["casadi_from_tape", "casadi_function"],
    "coefficient_text": ["coefficient_expressions"],
    "controller_files": ["ControllerFile", "ros2_gravity_compensation", "ur_payload_script"],
    "controller_dialogs": ["payload_dialogs"],
    "c.c_package": ["CPackage", "generate_c"],
    "c.c_pruning": ["PrunedModel", "prune"],
    "c.code_cost": ["count_code", "pruning_cost"],
    "data_tables": [
        "experiment_table",
        "load_table",
        "parameter_table",
        "prediction_table",
        "recording_tables",
        "standard_parameter_table",
        "write_table",
        "write_tables",
    ],
    "parameter_vectors": [
        "drake_parameters",
        "pinocchio_parameters",
        "with_drake_parameters",
        "with_pinocchio_parameters",
    ],
    "result_file": ["read_result", "write_result"],
    "robot_files": ["RobotFile", "write_robot_files"],
    "servos.servo_config": ["isaac_actuators", "servo_friction_json"],
    "servos.servo_robot": ["ServoFile", "write_servo_mjcf", "write_servo_urdf"],
    "running.recursive_code": ["recursive_files"],
    "running.tracker_code": ["tracker_files"],
    "torque_formulas": ["TorqueExpressions", "torque_expressions"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
