"""Servos and legs: armature, friction, gains, delay and limits of drives, from commands and encoders without torque."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "alike": ["Sharing", "decide_sharing"],
    "command_design": ["refine_commands"],
    "drive_laws": ["DriveLaw", "MotorLaw", "PositionLaw"],
    "servo_identification": ["ActuatorEstimate", "identify_actuators"],
    "motion": ["CommandedMotion"],
    "recorded_motion": ["commanded_motion"],
    "servo_files": ["read_servo_model"],
    "servo_knowledge": ["judge_servo_motions"],
    "servo_model": ["ServoModel", "ServoParameter"],
    "servo_simulator": ["simulate_servos"],
    "term_choice": ["TermChoice", "select_terms"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
