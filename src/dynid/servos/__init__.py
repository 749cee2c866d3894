"""Servos and legs: armature, friction, gains, delay and limits of drives, from commands and encoders without torque."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "drive_laws": ["MotorLaw", "PositionLaw"],
    "servo_identification": ["identify_actuators"],
    "motion": ["CommandedMotion"],
    "recorded_motion": ["commanded_motion"],
    "servo_files": ["read_servo_model"],
    "servo_model": ["ServoModel", "ServoParameter"],
    "servo_simulator": ["simulate_servos"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
