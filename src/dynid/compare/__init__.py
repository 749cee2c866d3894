"""Estimators compared on robots of known parameters: many simulated logs under many conditions."""
