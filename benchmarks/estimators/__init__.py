"""Comparison of all estimators on simulated control loops with known truth."""
