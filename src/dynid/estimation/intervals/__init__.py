"""Uncertainty of estimates from the scores of blocks of time, whatever correlates the errors of the torques."""
