"""Identified loads: what the robot's hand carries."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "drive_gains": [
        "gains_from_lever_arm",
        "gains_from_static_load",
        "identify_drive_gains",
    ],
    "load": ["Load"],
    "load_files": ["read_library", "read_load"],
    "load_motions": ["wrist_test_motion"],
    "load_study": ["study_load", "study_payload"],
    "online_load": ["OnlineLoad"],
    "payload": ["ArmUncertainty", "identify_end_link", "identify_payload"],
    "recognition": ["KnownObject", "recognise", "verify_grasp"],
    "sensor_calibration": ["SensorCompliance", "calibrate_sensor"],
    "sensor_checks": ["check_wrench", "find_wrench_delay"],
    "wrench_equations": ["pose_equations"],
    "wrist": ["Sensing", "identify_load", "identify_load_from_poses", "wrench_data"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
