"""Estimators for noisy positions and coloured torque noise."""
