"""Servos and legs: armature, friction, gains, delay and limits of drives, from commands and encoders without torque."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "alike": ["AlikeTest", "JointTest", "Sharing", "compare_joints", "compare_repeats", "decide_sharing"],
    "command_design": ["CommandDesign", "refine_commands"],
    "drive_laws": ["DriveLaw", "MotorLaw", "PositionLaw"],
    "servo_identification": ["ActuatorEstimate", "MotionError", "identify_actuators"],
    "judgement.servo_selection": ["TermChoice", "TermTrial", "select_terms"],
    "kinds": ["KINDS", "ParameterKind"],
    "motion": ["CommandedMotion"],
    "recorded_motion": ["commanded_motion"],
    "servo_files": ["read_servo_model"],
    "servo_identifiability": ["OpenDirection", "judge_servo_motions"],
    "servo_model": ["ServoModel", "ServoParameter"],
    "servo_simulator": ["simulate_servos"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
