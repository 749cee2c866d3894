"""Estimators whose results are possible bodies."""
