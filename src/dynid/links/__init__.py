"""Identified links: from logs to a robot with proof on held-out data."""
