"""Identified loads: what the robot's hand carries."""
