"""Estimators that simulate the control loop."""
