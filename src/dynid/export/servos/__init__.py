"""Identified servos for simulators: MJCF, URDF, Isaac Lab, servo models as JSON."""
