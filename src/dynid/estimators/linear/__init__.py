"""Estimators that solve linear least-squares equations."""
