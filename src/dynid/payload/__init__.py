"""Identify the load on the robot's hand, from a wrist sensor or from joint torques; recognise it; calibrate sensors."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "drive_gains": ["identify_drive_gains"],
    "load": ["Load"],
    "load_motions": ["wrist_test_motion"],
    "online_load": ["OnlineLoad"],
    "payload": ["identify_payload"],
    "recognition": ["KnownObject", "recognise", "verify_grasp"],
    "sensing": ["Sensing"],
    "sensor_search": ["calibrate_sensor"],
    "wrist": ["identify_load", "identify_load_from_poses"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
