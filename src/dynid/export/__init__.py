"""Results for other programs: result files, values for robot controllers, real-time C code."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "casadi_tape": ["casadi_function"],
    "coefficient_text": ["coefficient_expressions"],
    "controller_files": ["ros2_gravity_compensation", "ur_payload_script"],
    "controller_dialogs": ["payload_dialogs"],
    "c.c_pruning": ["prune"],
    "c.code_cost": ["pruning_cost"],
    "data_tables": [
        "experiment_table",
        "parameter_table",
        "prediction_table",
        "recording_tables",
        "standard_parameter_table",
        "write_table",
    ],
    "parameter_vectors": [
        "drake_parameters",
        "pinocchio_parameters",
        "with_drake_parameters",
        "with_pinocchio_parameters",
    ],
    "servos.servo_config": ["isaac_actuators"],
    "servos.servo_robot": ["write_servo_mjcf", "write_servo_urdf"],
    "running.recursive_code": ["recursive_files"],
    "running.tracker_code": ["tracker_files"],
    "torque_formulas": ["torque_expressions"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
