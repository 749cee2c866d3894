"""Simulated control with an identified model."""
