"""Results for other programs: result files, values for robot controllers, real-time C code."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "c.c_pruning": ["prune", "pruning_cost"],
    "casadi_tape": ["casadi_function"],
    "controller_files": ["payload_dialogs", "ros2_gravity_compensation"],
    "data_tables": ["parameter_table", "prediction_table", "signal_tables", "write_table"],
    "formulas": ["coefficient_expressions", "torque_expressions"],
    "parameter_vectors": ["body_parameters", "with_body_parameters"],
    "servo_config": ["isaac_actuators"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
